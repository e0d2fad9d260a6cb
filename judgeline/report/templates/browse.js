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

// A link into a folded part of the page unfolds it.
(() => {
  const unfold = () => {
    const target = document.getElementById(location.hash.slice(1)); // our ids are plain
    for (let part = target; part; part = part.parentElement) {
      if (part.tagName === "DETAILS") part.open = true;
    }
    const inside = target?.querySelector(":scope > details.whole");
    if (inside) inside.open = true;
    target?.scrollIntoView();
  };
  addEventListener("hashchange", unfold);
  addEventListener("click", (event) => {
    const link = event.target.closest?.('a[href^="#"]');
    if (link?.hash === location.hash) unfold(); // the same link once more changes no hash
  });
  if (location.hash) unfold();
})();

// Unfolds all sections and tables, such as for paper; battles stay folded, there are too many.
(() => {
  const button = document.querySelector("button.unfold");
  const parts = document.querySelectorAll("main details:not(.battle)");
  button.addEventListener("click", () => {
    const unfolds = Array.from(parts).some((part) => !part.open);
    for (const part of parts) part.open = unfolds;
    button.textContent = unfolds ? "Fold all" : "Unfold all";
  });
  button.hidden = parts.length === 0;
})();
