/* manyheads.js: a trained model for your own page or for Node.js, without a server. Its types are in manyheads.d.ts.

     import { translate } from "./manyheads.js";
     const { translation } = await translate("Guten Morgen!"); */

import { makePause } from "./tasks/pause.js";
import { loadPageModel } from "./tasks/requests.js";
import { fromBase64 } from "./text/utf8.js";

const HEAD_BYTES = 8; // the length of the head of model.bin, little-endian
const VERBS = { translation: "translate", classification: "classify", "language-modeling": "generate" };

/** A loaded model. */
class Model {
  #loaded;
  #pause = makePause();

  constructor(loaded) {
    this.#loaded = loaded;
    const { run, source, target, language, labels } = loaded.settings;
    Object.assign(this, { name: run, task: loaded.model.task, source, target, language, labels });
  }

  #check(verb) {
    const own = VERBS[this.task];
    if (!this.#loaded) throw new Error("the model was closed.");
    if (verb !== own) throw new Error(`this model is of the task "${this.task}": call ${own}() instead of ${verb}().`);
    return this.#loaded;
  }

  /** Translate a text; see TranslateOptions. */
  async translate(text, { beam, nBest, signal } = {}) {
    for (const [name, value] of Object.entries({ beam, nBest })) {
      if (value !== undefined && !(Number.isInteger(value) && value > 0)) throw new RangeError(`${name} = ${value} must be a whole number from 1 on.`);
    }
    return this.#check("translate").translate(String(text), { beam, nBest, signal, alignment: true, pause: this.#pause });
  }

  /** Return the classes of a text, the likeliest first; none for a blank text. */
  async classify(text) {
    const loaded = this.#check("classify");
    return String(text).trim() ? loaded.classify(String(text)) : [];
  }

  /** Return the text that follows a prompt; see GenerateOptions. */
  async generate(prompt, { maxTokens = 256, temperature = 1, topK = 0, topP = 1, seed, signal } = {}) {
    const sampling = temperature > 0 ? { temperature, topK, topP, seed: seed ?? Math.floor(Math.random() * 2 ** 31) } : null;
    return this.#check("generate").generate(String(prompt), { maxTokens, sampling, signal, pause: this.#pause });
  }

  /** Free the memory. */
  close() {
    this.#loaded?.model.close();
    this.#loaded = null;
  }
}

/** Read a file by its address, in a browser or in Node.js. */
async function bytesOf(source) {
  if (source instanceof ArrayBuffer || ArrayBuffer.isView(source)) return new Uint8Array(source.buffer ?? source, source.byteOffset ?? 0, source.byteLength);
  const address = new URL(source, import.meta.url);
  if (address.protocol === "file:" && typeof process !== "undefined") {
    const { readFile } = await import(/* webpackIgnore: true */ /* @vite-ignore */ "node:fs/promises");
    return new Uint8Array(await readFile(address));
  }
  const response = await fetch(address);
  if (!response.ok) throw new Error(`${address} cannot be read: ${response.status} ${response.statusText}.`);
  return new Uint8Array(await response.arrayBuffer());
}

/** Load a model; `source` is the address of model.bin, or its bytes. */
export async function load(source = "model.bin") {
  const bytes = await bytesOf(source);
  const damaged = (reason) => new Error(`the file of the model is damaged: ${reason}.`);
  if (bytes.length < HEAD_BYTES) throw damaged("it ends too early");
  const length = Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, true));
  if (HEAD_BYTES + length > bytes.length) throw damaged("it ends too early");
  let head;
  try {
    head = JSON.parse(new TextDecoder().decode(bytes.subarray(HEAD_BYTES, HEAD_BYTES + length)));
  } catch (error) {
    throw damaged(error.message);
  }
  return new Model(await loadPageModel(fromBase64(head.wasm), head.header, (write) => write(0, bytes.subarray(HEAD_BYTES + length))));
}

let first = null;
const loaded = () => {
  first ??= load();
  first.catch(() => { first = null; }); // the next call tries again
  return first;
};

/** Translate with model.bin beside this file, which the first call loads. */
export const translate = async (text, options) => (await loaded()).translate(text, options);

/** Classify with model.bin beside this file. */
export const classify = async (text) => (await loaded()).classify(text);

/** Generate with model.bin beside this file. */
export const generate = async (prompt, options) => (await loaded()).generate(prompt, options);
