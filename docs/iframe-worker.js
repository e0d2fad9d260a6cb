// Search of a page that is opened as a file: browsers refuse workers there, so that the worker's
// script runs in a hidden frame of the page.
if (location.protocol === "file:") {
  window.Worker = window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      this.ready = new Promise((resolve) => {
        const frame = document.createElement("iframe");
        frame.hidden = true;
        frame.srcdoc = "<!doctype html>";
        frame.onload = () => resolve(this.start(frame.contentWindow, url));
        document.documentElement.append(frame);
      });
    }

    start(inside, url) {
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      return new Promise((resolve) => {
        const script = inside.document.createElement("script");
        script.onload = () => resolve(inside);
        script.src = url;
        inside.document.head.append(script);
      });
    }

    async postMessage(data) {
      const inside = await this.ready;
      inside.dispatchEvent(new inside.MessageEvent("message", { data }));
    }
  };
}
