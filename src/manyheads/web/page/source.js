/* The source of the data: the server of this page, or the exported document, which may contain
   a model too. */

import { computeInWorker, hasWorker } from "./engine.js";
import { mh, state } from "./state.js";
import { t } from "./strings.js";

const dataElement = document.getElementById("manyheads-data");

/** @type {EmbeddedData | null} */
export const embedded = dataElement && JSON.parse(dataElement.textContent ?? "");

const isPartMissing = embedded
  ? embedded.about.char_limit && !hasWorker
  : hasWorker || location.protocol === "file:";
// The page keeps showing its first text, which says that it is damaged.
if (isPartMissing) throw new Error("a part of this page is missing");

/** Whether the model can compute on new texts: on the server, or in the worker. */
export const canCompute = !embedded || hasWorker;

/** @type {Map<string, Promise<unknown>>} */
const cachedAnswers = new Map();

/** The AbortController of the newest request of each kind.
    @type {Map<string, AbortController>} */
const inProgress = new Map();

const MAX_CACHED = 24;

/** Send a request, or return the cached answer; a failed request throws an Error with the server's
    message.
    @template T
    @param {string} path
    @param {RequestBody} [body]
    @returns {Promise<T>} */
export function request(path, body) {
  const name = `${mh.key} ${path} ${JSON.stringify(body)}`;
  const cached = cachedAnswers.get(name);
  if (cached) return /** @type {Promise<T>} */ (cached);
  const answer = sendRequest(path, body);
  answer.catch(() => cachedAnswers.delete(name));
  cachedAnswers.set(name, answer);
  if (cachedAnswers.size > MAX_CACHED) {
    cachedAnswers.delete(cachedAnswers.keys().next().value ?? "");
  }
  return /** @type {Promise<T>} */ (answer);
}

/** Send a request to the worker or the server; return its JSON value. It cancels one for another
    text or target of the same model.
    @type {(path: string, body?: RequestBody) => Promise<unknown>} */
async function sendRequest(path, body) {
  const kind = body ? JSON.stringify([path, body.model, body.changes, body.write]) : "";
  const control = new AbortController();
  if (kind) {
    inProgress.get(kind)?.abort();
    inProgress.set(kind, control);
  }
  try {
    return await (hasWorker ? computeInWorker : fetchAnswer)(path, body, control.signal);
  } catch (error) {
    throw control.signal.aborted ? new Error(t("error.replaced")) : error;
  } finally {
    if (inProgress.get(kind) === control) inProgress.delete(kind);
  }
}

/** Send a request to the server, with a form or an object as JSON; throw an Error with the server's
    message for an error status.
    @type {(path: string, body: object | undefined, signal: AbortSignal) => Promise<Response>} */
export async function fetchResponse(path, body, signal) {
  const isForm = body instanceof FormData;
  const response = await fetch(path, {
    method: body ? "POST" : "GET",
    headers: {
      ...(mh.key && { Authorization: `Bearer ${mh.key}` }),
      ...(body && !isForm && { "Content-Type": "application/json" }),
    },
    body: isForm ? body : body && JSON.stringify(body),
    signal,
  }).catch(() => {
    throw new Error(t("error.unreachable"));
  });
  if (response.ok) return response;
  const { error } = await response.json().catch(() => ({}));
  throw new Error(error || t("error.status", { status: response.status }));
}

/** Send a request to the server; return its JSON value.
    @type {(path: string, body: object | undefined, signal: AbortSignal) => Promise<unknown>} */
export const fetchAnswer = async (path, body, signal) =>
  (await fetchResponse(path, body, signal)).json();

/** Return data of the document, or request it.
    @type {<K extends "about" | "model" | "curves">(name: K, path: string) =>
      Promise<EmbeddedData[K]> | EmbeddedData[K]} */
const embeddedOr = (name, path) => (embedded ? embedded[name] : request(path));

/** @type {() => Promise<About> | About} */
export const loadAbout = () => embeddedOr("about", "api/models");

/** @type {(language: string) => Promise<{ [key: string]: string }> | { [key: string]: string }} */
export const loadStrings = (language) =>
  embedded ? embedded.strings[language] : request(`page/${language}.json`);

/** @type {(name: string) => Promise<ModelDocument> | ModelDocument} */
export const loadModel = (name) =>
  embeddedOr("model", `api/model?model=${encodeURIComponent(name)}`);

/** @type {(name: string) => Promise<TrainingCurves> | TrainingCurves} */
export const loadCurves = (name) =>
  embeddedOr("curves", `api/curves?model=${encodeURIComponent(name)}`);

/** Return the description of the selected model.
    @type {() => ModelFacts} */
export const currentModel = () =>
  mh.about.models.find(({ name }) => name === state.model) || mh.about.models[0];

/** Return the text to show with another model: an example of the current one becomes one of the
    other.
    @type {(name: string | undefined, q?: string) => string} */
export function textFor(name, q = state.q) {
  const other = mh.about.models.find((model) => model.name === name);
  return currentModel().examples.includes(q) ? (other?.examples[0] ?? "") : q;
}

/** Return the names of the heads that are turned off.
    @type {() => string[]} */
export const disabledHeads = () => state.off.split("_").filter(Boolean);

/** Return the changes of the model for a request; undefined for the model as it was trained.
    @type {() => ModelChanges | undefined} */
export const modelChanges = () =>
  state.off || !state.mask || !state.positions
    ? { heads: disabledHeads(), mask: state.mask > 0, positions: state.positions > 0 }
    : undefined;

/** Translate a text sentence by sentence.
    @type {(q: string, changes?: ModelChanges) => Promise<TextTranslation>} */
export const translateText = (q, changes) =>
  request("api/translate", {
    model: currentModel().name,
    q,
    changes,
    ...(state.beam && { beam: Number(state.beam) }),
  });

/** Return the selected sentence of a translation.
    @type {(result: TextTranslation) => SentenceTranslation} */
export const sentenceOf = ({ sentences }) =>
  sentences[state.sentence] || sentences[0] || { source: "", translation: "", hypotheses: [] };

/** Return the body of a request about the user's text; null without a text.
    @type {() => Promise<RequestBody | null>} */
async function requestBody() {
  const { name: model, task } = currentModel();
  const changes = modelChanges();
  const prefix = state.prefix ? state.prefix.split(".").map(Number) : undefined;
  if (!state.q.trim() && !prefix) return null;
  if (task === "language-modeling") {
    return { model, changes, q: prefix ? "" : state.q, prefix, max_tokens: state.more };
  }
  if (task === "classification") return { model, changes, q: state.q };
  const q = sentenceOf(await translateText(state.q)).source;
  return {
    model,
    changes,
    q,
    prefix,
    padding: state.padding,
    ...(state.beam && { beam: Number(state.beam) }),
    ...(state.target && { target: state.target }),
  };
}

/** Return the inspection of the user's text, with further `options` of the request; null without a
    text.
    @type {(options?: { temperature?: number, occlusion?: boolean, changes?: ModelChanges }) =>
      Promise<Inspection | null>} */
export async function fetchInspection(options) {
  if (!canCompute && embedded) return embedded.inspection;
  const body = await requestBody();
  return body && request("api/inspect", { ...body, ...options });
}

/** Return the intermediate values of a head for the text.
    @type {(kind: AttentionKind, layer: number, head: number) =>
      Promise<{ [name: string]: PackedArray }>} */
export const fetchHead = async (kind, layer, head) =>
  request("api/head", { ...(await requestBody()), kind, layer, head });
