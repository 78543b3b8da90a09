/* Answers to the requests of an exported page, in place of a server
   (serving/inspection_routes.py). */

import { createEngine } from "../engine/model.js";
import { loadTokenizer } from "../text/tokenizer.js";
import { PageClassifier } from "./classification.js";
import { PageGenerator } from "./generation.js";
import { RequestError } from "./inspection.js";
import { PageTranslator } from "./translation.js";

/** Load a model with its tokenizers; `header` is its description (JSON), `readTensors` as in
    Engine.loadModel.
    @type {(wasmBytes: BufferSource, header: PageHeader, readTensors: ReadTensors) =>
      Promise<PageModel>} */
export async function loadPageModel(wasmBytes, header, readTensors) {
  const engine = await createEngine(wasmBytes);
  return pageModel(await engine.loadModel(header, readTensors), header);
}

/** Join a model of the engine with its tokenizers.
    @type {(model: EngineModel, header: PageHeader) => PageModel} */
export function pageModel(model, header) {
  const { source, target } = header.tokenizers;
  const tokenizer = loadTokenizer(source);
  if (header.task === "classification") return new PageClassifier(model, tokenizer, header.page);
  if (header.task === "language-modeling") return new PageGenerator(model, tokenizer, header.page);
  return new PageTranslator(
    model,
    {
      source: tokenizer,
      target: target ? loadTokenizer(target) : tokenizer.forSide(tokenizer.side && "target"),
    },
    header.page,
  );
}

/** Answer a request; `control` has pause and signal (see engine/search.js).
    @type {(loaded: PageModel, path: string, body: PageRequest, control?: Control) =>
      Promise<object>} */
export async function answerRequest(loaded, path, body, control = {}) {
  const { q = "", model, ...rest } = body;
  const options = { ...rest, ...control };
  if (loaded instanceof PageTranslator) loaded = loaded.direction(model);
  if (path === "api/translate") {
    return translateSentences(/** @type {PageTranslator} */ (loaded), q, options);
  }
  if (path === "line") {
    return /** @type {PageTranslator} */ (loaded).translate(q, { ...options, alignment: true });
  }
  if (path === "api/inspect") return loaded.inspect(q, options);
  if (path === "api/head") return loaded.head(q, /** @type {HeadRequest} */ (options));
  if (path === "api/next") return nextTokens(/** @type {PageGenerator} */ (loaded), q, options);
  throw new RequestError(`there is no ${path} in a page without a server.`);
}

/** Translate the lines of a text, or the sentences of long ones, one by one, with all hypotheses of
    the beam.
    @param {PageTranslator} translator @param {string} text @param {TranslateOptions} options */
async function translateSentences(
  translator,
  text,
  { beam = translator.model.search.beam_size, ...options },
) {
  const started = performance.now();
  const sentences = [];
  let translation = "";
  let end = 0;
  for (const [start, stop] of translator.splitter.units(text)) {
    const sentence = await translator.translate(text.slice(start, stop), {
      ...options,
      beam,
      nBest: beam,
    });
    sentences.push(sentence);
    translation += text.slice(end, start) + sentence.translation;
    end = stop;
  }
  const tokens = sentences.reduce(
    (sum, { hypotheses }) => sum + (hypotheses[0]?.tokens.length ?? 0),
    0,
  );
  return {
    translation: translation + text.slice(end),
    sentences,
    tokens,
    seconds: (performance.now() - started) / 1000,
  };
}

/** Return the most probable next tokens, or with `write` a text of up to that many sampled tokens.
    @param {PageGenerator} generator @param {string} text @param {NextOptions} options */
async function nextTokens(
  generator,
  text,
  { write = 0, temperature = 1, top_k: topK = 0, top_p: topP = 1, seed, ...options },
) {
  const sampling = { temperature, topK, topP, seed: seed ?? Math.floor(Math.random() * 2 ** 31) };
  if (!write) return generator.next(text, { ...options, sampling });
  return { text: await generator.generate(text, { ...options, sampling, maxTokens: write }) };
}
