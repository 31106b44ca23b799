// How the site's search ranks its results: pages for users first, then the record of changes and the decisions.
"use strict";

const kBehind = ["project/", "design/", "explanation/design"];

// eslint-disable-next-line no-unused-vars
var Scorer = {
  score([docname, , , , score]) {
    return kBehind.some((part) => docname.startsWith(part)) ? score - 1000 : score;
  },
  // Sphinx's own figures.
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
