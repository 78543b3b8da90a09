/* Give each live frame the height of its page, which the page reports. */
addEventListener("message", ({ source, data }) => {
  for (const frame of document.querySelectorAll(".live iframe")) {
    if (frame.contentWindow === source && Number.isFinite(data.height)) frame.style.height = `${data.height}px`;
  }
});

/* Name the two side bars, and let the keyboard scroll what is wider than the page. */
addEventListener("load", () => {
  const names = document.documentElement.lang === "ko" ? ["책의 차례", "이 페이지의 차례"] : ["Contents of the book", "Contents of the page"];
  [".sidebar-drawer", ".toc-drawer"].forEach((bar, i) => document.querySelector(bar)?.setAttribute("aria-label", names[i]));
  for (const region of document.querySelectorAll("article :is(pre, .table-wrapper, .math-wrapper)")) {
    if (region.scrollWidth > region.clientWidth) region.tabIndex = 0;
  }
});
