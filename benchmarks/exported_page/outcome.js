/* Translate SENTENCE once the page has loaded; a line on the console reports the outcome: a translation, a message, or "silent". */
window.addEventListener("load", async () => {
  const noticeText = () => document.querySelector(".notice")?.innerText.replace(/\s+/g, " ");
  let outcome = "";
  for (let i = 0; i < 20 && !window.manyheads && !outcome; i += 1) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    outcome = noticeText();
  }
  if (window.manyheads) {
    outcome = await window.manyheads.translate(SENTENCE, { beam: 2 }).then((result) => `translation ${result.translation}`, (error) => error.message);
  }
  console.log(`outcome ${outcome || "silent"}`);
});
