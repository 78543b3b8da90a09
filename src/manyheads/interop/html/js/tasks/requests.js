/* The answers to the requests of the page, which a server of manyheads would answer otherwise (serving/inspection_routes.py). */

import { createEngine } from "../engine/model.js";
import { sentenceSpans } from "../text/sentences.js";
import { loadTokenizer } from "../text/tokenizer.js";
import { PageClassifier } from "./classification.js";
import { PageGenerator } from "./generation.js";
import { RequestError } from "./reading.js";
import { PageTranslator } from "./translation.js";

/** A model for the page: `header` is its description (JSON), `readTensors` as in Engine.loadModel. */
export async function loadPageModel(wasmBytes, header, readTensors) {
  const engine = await createEngine(wasmBytes);
  const model = await engine.loadModel(header, readTensors);
  const { source, target } = header.tokenizers;
  const first = loadTokenizer(source);
  if (header.task === "classification") return new PageClassifier(model, first, header.page);
  if (header.task === "language-modeling") return new PageGenerator(model, first, header.page);
  return new PageTranslator(model, { source: first, target: target ? loadTokenizer(target) : first }, header.page);
}

/** Answer a request; `control` has pause and signal (see engine/search.js). */
export async function answerRequest(loaded, path, body, control = {}) {
  const { q = "", ...rest } = body;
  const options = { ...rest, ...control };
  if (path === "api/translate") return translateSentences(loaded, q, options);
  if (path === "line") return loaded.translate(q, { ...options, alignment: true });
  if (path === "api/inspect") return loaded.inspect(q, options);
  if (path === "api/head") return loaded.head(q, options);
  if (path === "api/next") return nextTokens(loaded, q, options);
  throw new RequestError(`there is no ${path} in a page without a server.`);
}

/** The sentences of a text, one by one, with all hypotheses of the beam. */
async function translateSentences(translator, text, { beam = translator.model.search.beam_size, ...options }) {
  const started = performance.now();
  const sentences = [];
  let translation = "", end = 0;
  for (const [first, last] of sentenceSpans(text, translator.settings.source)) {
    const sentence = await translator.translate(text.slice(first, last), { ...options, beam, nBest: beam });
    sentences.push(sentence);
    translation += text.slice(end, first) + sentence.translation;
    end = last;
  }
  const tokens = sentences.reduce((sum, { hypotheses }) => sum + (hypotheses[0]?.tokens.length ?? 0), 0);
  return { translation: translation + text.slice(end), sentences, tokens, seconds: (performance.now() - started) / 1000 };
}

/** The most probable next tokens, or with `write` so many sampled ones. */
async function nextTokens(generator, text, { write = 0, temperature = 1, top_k: topK = 0, top_p: topP = 1, seed, ...options }) {
  const sampling = { temperature, topK, topP, seed: seed ?? Math.floor(Math.random() * 2 ** 31) };
  if (!write) return generator.next(text, { ...options, sampling });
  return { text: await generator.generate(text, { ...options, sampling, maxTokens: write }) };
}
