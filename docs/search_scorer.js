// What the search of the site puts first: the function of that name, then pages with these words in their title, of which
// those that show how to do something come before the others.

var Scorer = {
  // The values that Sphinx has by itself.
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,

  words: (new URLSearchParams(window.location.search).get("q") ?? "")
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((word) => word.length > 2),

  score([page, title, , , score, , kind]) {
    const words = Scorer.words;
    if (kind === "object") {
      const name = /^ftrans\.(\w+)$/.exec(title)?.[1].toLowerCase().split("_");
      if (!name) return score;
      return score + (name.length === words.length && name.every((part) => words.includes(part)) ? 30 : 8);
    }
    // The entry of a function is found as an object already.
    if (page.startsWith("reference/generated/")) return score - 8;
    const heading = title.toLowerCase();
    const named = words.filter((word) => heading.includes(word.replace(/s$/, ""))).length / Math.max(words.length, 1);
    const shows = /^(start|how_to|tutorials)\//.test(page) ? 6 : /^(reference\/|architecture|changelog)/.test(page) ? 0 : 4;
    return score + 12 * named + shows;
  },
};
