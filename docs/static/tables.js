// Pages with long tables get a box that filters their rows, and a choice of the kind of table where there are several.
// Paragraphs that list names are filtered as well: in place of the list stand the names that were looked for.
"use strict";

(function () {
  const FEWEST_ROWS = 100;

  function element(tag, properties, ...children) {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  }

  // What the tables of a page hold: each row with its text, and the kind that the first column of its table names.
  function rowsOf(tables) {
    return tables.flatMap((table) => {
      const kind = table.querySelector("thead th")?.textContent.trim() ?? "";
      return [...table.querySelectorAll("tbody tr")].map((row) => ({ row, kind, text: row.textContent.toLowerCase() }));
    });
  }

  // The paragraphs that consist of names in the main, each with its names, and a paragraph for those that are found.
  function listsOf(article) {
    const isList = (p) => {
      const length = [...p.querySelectorAll("code")].reduce((sum, code) => sum + code.textContent.length, 0);
      return length > 0.6 * p.textContent.length;
    };
    return [...article.querySelectorAll("section section > p")].filter(isList).map((list) => {
      const found = element("p", { className: "table-names", hidden: true });
      list.after(found);
      return { list, found, names: [...list.querySelectorAll("code")] };
    });
  }

  // Show what of a list of names contains all words; return how many names.
  function filterList({ list, found, names }, words) {
    const matching = names.filter((code) => words.every((word) => code.textContent.toLowerCase().includes(word)));
    list.hidden = words.length > 0;
    found.hidden = words.length === 0 || matching.length === 0;
    const shown = matching.flatMap((code, i) => [i ? ", " : "Same name: ", code.cloneNode(true)]);
    found.replaceChildren(...shown);
    return matching.length;
  }

  // Tables without a visible row disappear, and so do sections of which no table and no name is left.
  function hideEmpty(article, tables) {
    for (const table of tables) {
      const shown = table.querySelector("tbody tr:not([hidden])") !== null;
      (table.closest(".pst-scrollable-table-container") ?? table).hidden = !shown;
    }
    for (const section of article.querySelectorAll("section section")) {
      const inside = [...section.querySelectorAll("table")];
      const hasName = section.querySelector(".table-names:not([hidden])") !== null;
      section.hidden = !hasName && inside.length > 0 && inside.every((t) => !t.querySelector("tbody tr:not([hidden])"));
    }
  }

  function addFilter(article, tables) {
    const rows = rowsOf(tables);
    const lists = listsOf(article);
    const total = rows.length + lists.reduce((sum, { names }) => sum + names.length, 0);
    const kinds = [...new Set(rows.map((entry) => entry.kind))].filter(Boolean);
    const box = element("input", { type: "search", placeholder: "Filter the tables", id: "table-filter" });
    box.setAttribute("aria-label", "Filter the tables of this page");
    const choice = element("select", {}, element("option", { value: "", textContent: "all kinds" }));
    choice.setAttribute("aria-label", "Kind of table");
    choice.append(...kinds.map((kind) => element("option", { value: kind, textContent: kind })));
    const count = element("span", { className: "table-count" });
    count.setAttribute("role", "status");

    function update() {
      const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const { row, kind, text } of rows) {
        row.hidden = (choice.value && kind !== choice.value) || !words.every((word) => text.includes(word));
        shown += !row.hidden;
      }
      for (const list of lists) shown += filterList(list, words);
      hideEmpty(article, tables);
      const what = lists.length ? "names" : "rows";
      count.textContent = shown === total ? `${total} ${what}` : `${shown} of ${total} ${what}`;
    }

    box.addEventListener("input", update);
    choice.addEventListener("change", update);
    const bar = element("div", { className: "table-filter" }, box);
    if (kinds.length > 1 && kinds.length <= 30) bar.append(choice);
    bar.append(count);
    article.querySelector("h1").after(bar);
    update();
  }

  document.addEventListener("DOMContentLoaded", () => {
    const article = document.querySelector("article.bd-article");
    if (!article || !article.querySelector("h1")) return;
    const tables = [...article.querySelectorAll("table")].filter((table) => table.querySelector("thead th"));
    const rows = tables.reduce((sum, table) => sum + table.querySelectorAll("tbody tr").length, 0);
    if (rows >= FEWEST_ROWS) addFilter(article, tables);
  });
})();
