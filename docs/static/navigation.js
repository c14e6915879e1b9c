// A page that is opened by a link from elsewhere has its place in the long navigation in view.
"use strict";

window.addEventListener("load", () => {
  const sidebar = document.querySelector(".bd-sidebar-primary");
  const link = sidebar?.querySelector("a[aria-current=page]");
  if (!link) return;
  const [place, box] = [link.getBoundingClientRect(), sidebar.getBoundingClientRect()];
  if (place.top < box.top || place.bottom > box.bottom) sidebar.scrollTop += place.top - box.top - box.height / 2;
});
