// Tables scroll inside of a frame that the theme makes; a keyboard can reach it.
new MutationObserver(() => {
  for (const frame of document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex])")) {
    frame.tabIndex = 0;
    frame.setAttribute("role", "region");
    frame.setAttribute("aria-label", "Table");
  }
}).observe(document.body, { childList: true, subtree: true });
