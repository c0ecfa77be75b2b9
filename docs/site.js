"use strict";
// What the theme leaves out for people who read with a keyboard or by ear: long lines of code and wide tables are scrolled
// by keys on a small window, too, the bar of a copy button is no landmark, and the search has a name.
const mend = () => {
  for (const bar of document.querySelectorAll("nav.md-code__nav:not([role])")) bar.setAttribute("role", "none");
  for (const box of document.querySelectorAll("pre > code, .md-typeset__scrollwrap")) {
    if (box.scrollWidth > box.clientWidth && box.tabIndex !== 0) box.tabIndex = 0;
  }
};
document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
new MutationObserver(mend).observe(document.body, { childList: true, subtree: true, attributeFilter: ["tabindex"] });
addEventListener("resize", mend);
mend();
