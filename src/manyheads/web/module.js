/* manyheads.js: a trained model for your own page or for Node.js, without a server. The types are
   in manyheads.d.ts.  import { translate } from "./manyheads.js"; const { translation } = await
   translate("Guten Morgen!"); */

const { fromBase64, loadPageModel, makePause } = manyheads;

const LENGTH_BYTES = 8; // of the length of the header of model.bin, little-endian
/** @type {{ [task: string]: string }} */
const METHODS = {
  translation: "translate",
  classification: "classify",
  "language-modeling": "generate",
};

/** A loaded model. */
class Model {
  /** @type {PageModel | null} */
  #loaded;
  #pause = makePause();

  /** @param {PageModel} loaded */
  constructor(loaded) {
    this.#loaded = loaded;
    const { run, source, target, language, labels, directions } = loaded.settings;
    this.name = run;
    this.task = loaded.model.task;
    this.source = source;
    this.target = target;
    this.language = language;
    this.labels = labels;
    this.directions = directions?.map((direction) => [direction.source, direction.target]);
  }

  /** Return the loaded model; throw an error if it is closed or its task has another method.
      @type {(method: string) => PageModel} */
  #check(method) {
    const expected = METHODS[this.task];
    if (!this.#loaded) throw new Error("the model was closed.");
    if (method !== expected) {
      throw new Error(
        `this model is of the task "${this.task}": call ${expected}() instead of ${method}().`,
      );
    }
    return this.#loaded;
  }

  /** Translate a text; see TranslateOptions.
      @type {(text: string, options?: import("./manyheads.js").TranslateOptions) =>
        Promise<object>} */
  async translate(text, { beam, nBest, source = "", target = "", signal } = {}) {
    for (const [name, value] of Object.entries({ beam, nBest })) {
      if (value !== undefined && !(Number.isInteger(value) && value > 0)) {
        throw new RangeError(`${name} = ${value} must be a whole number from 1 on.`);
      }
    }
    const translator = /** @type {PageTranslator} */ (this.#check("translate"));
    return translator
      .to(source, target)
      .translate(String(text), { beam, nBest, signal, alignment: true, pause: this.#pause });
  }

  /** Return the classes of a text, the likeliest first; none for a blank text.
      @type {(text: string) => Promise<object[]>} */
  async classify(text) {
    const loaded = /** @type {PageClassifier} */ (this.#check("classify"));
    return String(text).trim() ? loaded.classify(String(text)) : [];
  }

  /** Return the text that follows a prompt; see GenerateOptions.
      @type {(prompt: string, options?: import("./manyheads.js").GenerateOptions) =>
        Promise<string>} */
  async generate(
    prompt,
    { maxTokens = 256, temperature = 1, topK = 0, topP = 1, seed, signal } = {},
  ) {
    const sampling =
      temperature > 0
        ? { temperature, topK, topP, seed: seed ?? Math.floor(Math.random() * 2 ** 31) }
        : null;
    return /** @type {PageGenerator} */ (this.#check("generate")).generate(String(prompt), {
      maxTokens,
      sampling,
      signal,
      pause: this.#pause,
    });
  }

  /** Free the memory. */
  close() {
    this.#loaded?.model.close();
    this.#loaded = null;
  }
}

/** Return the bytes of a file, given by its address or as bytes, in a browser or in Node.js.
    @type {(source: string | URL | ArrayBuffer | Uint8Array) => Promise<Uint8Array>} */
async function readBytes(source) {
  if (source instanceof ArrayBuffer) return new Uint8Array(source);
  if (ArrayBuffer.isView(source)) {
    return new Uint8Array(source.buffer, source.byteOffset, source.byteLength);
  }
  const address = new URL(source, import.meta.url);
  if (address.protocol === "file:" && typeof process !== "undefined") {
    const { readFile } = await import(
      /* webpackIgnore: true */ /* @vite-ignore */ "node:fs/promises"
    );
    return new Uint8Array(await readFile(address));
  }
  const response = await fetch(address);
  if (!response.ok) {
    throw new Error(`${address} cannot be read: ${response.status} ${response.statusText}.`);
  }
  return new Uint8Array(await response.arrayBuffer());
}

/** Load a model; `source` is the address of model.bin, or its bytes.
    @param {string | URL | ArrayBuffer | Uint8Array} source */
export async function load(source = "model.bin") {
  const bytes = await readBytes(source);
  /** @type {(reason: string) => Error} */
  const damaged = (reason) => new Error(`the file of the model is damaged: ${reason}.`);
  if (bytes.length < LENGTH_BYTES) throw damaged("it ends too early");
  const length = Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, true));
  if (LENGTH_BYTES + length > bytes.length) throw damaged("it ends too early");
  let description;
  try {
    description = JSON.parse(
      new TextDecoder().decode(bytes.subarray(LENGTH_BYTES, LENGTH_BYTES + length)),
    );
  } catch (error) {
    throw damaged(error.message);
  }
  return new Model(
    await loadPageModel(fromBase64(description.wasm), description.header, (write) =>
      write(0, bytes.subarray(LENGTH_BYTES + length)),
    ),
  );
}

/** @type {Promise<Model> | null} */
let defaultModel = null;

/** Load model.bin beside this file, once. */
const loadDefault = () => {
  defaultModel ??= load();
  defaultModel.catch(() => {
    defaultModel = null;
  }); // the next call tries again
  return defaultModel;
};

/** Translate with model.bin beside this file, which the first call loads.
    @type {(text: string, options?: import("./manyheads.js").TranslateOptions) =>
      Promise<object>} */
export const translate = async (text, options) => (await loadDefault()).translate(text, options);

/** Classify with model.bin beside this file.
    @type {(text: string) => Promise<object[]>} */
export const classify = async (text) => (await loadDefault()).classify(text);

/** Generate with model.bin beside this file.
    @type {(prompt: string, options?: import("./manyheads.js").GenerateOptions) =>
      Promise<string>} */
export const generate = async (prompt, options) => (await loadDefault()).generate(prompt, options);
