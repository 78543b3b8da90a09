/* Translate texts one after the other in an exported page; returns translation, score and milliseconds of each. */
async ([texts, beam]) => {
  const results = [];
  for (const text of texts) {
    const start = performance.now();
    const { translation, score } = await window.manyheads.translate(text, { beam });
    results.push({ translation, score, milliseconds: performance.now() - start });
  }
  return results;
};
