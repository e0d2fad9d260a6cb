"use strict";
// Filters battles by model and by text. Without this script every battle is on the page, folded.
(() => {
  const plain = (text) => text.normalize("NFKC").toLocaleLowerCase("en");

  for (const browser of document.querySelectorAll(".browser")) {
    const model = browser.querySelector("select");
    const search = browser.querySelector("input");
    const told = browser.querySelector("output");
    const battles = Array.from(browser.querySelectorAll(".battle"), (element) => ({
      element,
      model: element.dataset.model,
      text: plain(element.textContent),
    }));

    const filter = () => {
      const words = plain(search.value).split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const battle of battles) {
        const fits =
          (model.value === "" || battle.model === model.value) &&
          words.every((word) => battle.text.includes(word));
        battle.element.hidden = !fits;
        shown += fits ? 1 : 0;
      }
      told.textContent = `${shown} of ${battles.length} battles`;
    };

    model.addEventListener("change", filter);
    search.addEventListener("input", filter);
    browser.querySelector(".filters").hidden = false;
    filter();
  }
})();
