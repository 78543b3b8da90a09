/* Give each live frame the height of its page, which the page reports. */
addEventListener("message", ({ source, data }) => {
  for (const frame of document.querySelectorAll(".live iframe")) {
    if (frame.contentWindow === source && Number.isFinite(data.height)) frame.style.height = `${data.height}px`;
  }
});
