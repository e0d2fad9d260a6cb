"use strict";
// Sorts tables by column. Without this script the tables are complete, in their given order.
(() => {
  const place = (key) => {
    const number = Number(key);
    return key === "" ? null : Number.isNaN(number) ? key : number;
  };

  const compare = (a, b) => {
    if (typeof a === "number" && typeof b === "number") {
      return a < b ? -1 : a > b ? 1 : 0;
    }
    return String(a).localeCompare(String(b), "en", { numeric: true });
  };

  const sort = (table, heading) => {
    const column = heading.cellIndex;
    const downwards = heading.getAttribute("aria-sort") === "ascending";
    for (const other of table.tHead.rows[0].cells) {
      other.removeAttribute("aria-sort");
    }
    heading.setAttribute("aria-sort", downwards ? "descending" : "ascending");
    const rows = Array.from(table.tBodies[0].rows, (row) => ({
      row,
      key: place(row.cells[column].dataset.key),
    }));
    rows.sort((a, b) => {
      if (a.key === null || b.key === null) {
        return (a.key === null) - (b.key === null); // what is missing stays last
      }
      return downwards ? compare(b.key, a.key) : compare(a.key, b.key);
    });
    table.tBodies[0].append(...rows.map((entry) => entry.row));
  };

  for (const table of document.querySelectorAll("table.sortable")) {
    for (const heading of table.tHead.rows[0].cells) {
      if ("fixed" in heading.dataset) {
        continue;
      }
      const button = document.createElement("button");
      button.type = "button";
      button.append(...heading.childNodes);
      button.addEventListener("click", () => sort(table, heading));
      heading.append(button);
    }
  }
})();
