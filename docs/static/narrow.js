// Tables that do not fit in their place, or only with a word or two in a line. On a phone, each row becomes a block, in
// which each cell has the name of its column. On a wide screen, columns of prose get room, and code breaks where it must.
"use strict";

(function () {
  // Tables with more columns are grids of marks or numbers, which are read by column: these scroll sideways.
  const MOST_COLUMNS = 6;
  const PROSE = 60;
  const [LONG, WIDE] = [30, 130];
  const narrow = window.matchMedia("(max-width: 600px)");

  function markCells(table) {
    const names = [...table.querySelectorAll("thead th")].map((cell) => cell.textContent.trim());
    const rows = [...table.querySelectorAll("tbody tr")];
    const isProse = names.map((_, i) => rows.some((row) => (row.cells[i]?.textContent.length ?? 0) > PROSE));
    for (const row of rows)
      [...row.cells].forEach((cell, i) => {
        cell.dataset.column = i > 0 ? names[i] : "";
        cell.classList.toggle("prose", isProse[i]);
        cell.classList.toggle("nothing", cell.textContent.trim() === "");
      });
  }

  // Whether the longest text of a column has to stand in a few words a line.
  function isSqueezed(table) {
    const rows = [...table.querySelectorAll("tbody tr")];
    const longest = (i) => rows.map((row) => row.cells[i]).reduce((a, b) => (text(b) > text(a) ? b : a));
    const text = (cell) => cell?.textContent.length ?? 0;
    return [...rows[0].cells].some((_, i) => text(longest(i)) > LONG && longest(i).clientWidth < WIDE);
  }

  function fit(tables) {
    for (const table of tables) {
      table.classList.remove("stacked", "tight");
      const overflows = table.scrollWidth > table.parentElement.clientWidth;
      if (narrow.matches && (overflows || isSqueezed(table))) table.classList.add("stacked");
      else if (overflows) table.classList.add("tight");
    }
  }

  document.addEventListener("DOMContentLoaded", () => {
    const columns = (table) => table.querySelectorAll("thead th").length;
    const tables = [...document.querySelectorAll("article.bd-article table")].filter(
      (table) => columns(table) > 1 && columns(table) <= MOST_COLUMNS && !table.matches(".ftrans table") && !table.querySelector("td img"),
    );
    tables.forEach(markCells);
    fit(tables);
    narrow.addEventListener("change", () => fit(tables));
  });
})();
