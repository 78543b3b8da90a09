"use strict";
/* Where the data comes from: the server that sent this page, or the document that it stands in, which may hold a model too. */
const inside = document.getElementById("manyheads-data");
const embedded = inside && JSON.parse(inside.textContent);
if (embedded ? embedded.about.char_limit && !offline : offline || location.protocol === "file:") throw new Error("a part of this page is missing"); // the page keeps its first text, which says that it is damaged
const live = !embedded || offline;
const answers = new Map();
const MOST_KEPT = 24;

/** Ask the server, the same thing once; what it says is wrong comes as an Error with its words. */
function ask(path, body) {
  const name = `${mh.key} ${path} ${JSON.stringify(body)}`;
  if (!answers.has(name)) {
    const answer = fetched(path, body);
    answer.catch(() => answers.delete(name));
    answers.set(name, answer);
    if (answers.size > MOST_KEPT) answers.delete(answers.keys().next().value);
  }
  return answers.get(name);
}

async function fetched(path, body) {
  if (offline) return computed(path, body);
  const headers = { ...(mh.key && { Authorization: `Bearer ${mh.key}` }), ...(body && { "Content-Type": "application/json" }) };
  const answer = await fetch(path, { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body) }).catch(() => { throw new Error(t("error.unreachable")); });
  const found = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(found.error || t("error.status", { status: answer.status }));
  return found;
}

const given = (name, path) => (embedded ? embedded[name] : ask(path));
const about = () => given("about", "api/models");
const stringsOf = (language) => (embedded ? embedded.strings[language] : ask(`page/${language}.json`));
const modelOf = (name) => given("model", `api/model?model=${encodeURIComponent(name)}`);
const trainingOf = (name) => given("curves", `api/curves?model=${encodeURIComponent(name)}`);

/** The model that is looked at, as it was described. */
const theModel = () => mh.about.models.find((one) => one.name === state.model) || mh.about.models[0];

/** The heads that are turned off, by their names. */
const headsOff = () => state.off.split("_").filter(Boolean);
/** What is changed about the model, as requests say it; undefined for the model as it was trained. */
const changesNow = () => (state.off || !state.mask || !state.positions ? { heads: headsOff(), mask: state.mask > 0, positions: state.positions > 0 } : undefined);

/** The sentences of a text with their translations. */
const translated = (q, changes) => ask("api/translate", { model: theModel().name, q, changes, ...(state.beam && { beam: Number(state.beam) }) });
const sentenceOf = ({ sentences }) => sentences[state.sentence] || sentences[0] || { source: "", translation: "" };

/** What the server is asked about the reader's text, or null when there is none yet. */
async function requestBody() {
  const { name: model, task } = theModel();
  const changes = changesNow();
  const prefix = state.prefix ? state.prefix.split(".").map(Number) : undefined;
  if (!state.q.trim() && !prefix) return null;
  if (task === "language-modeling") return { model, changes, q: prefix ? "" : state.q, prefix, max_tokens: state.more };
  if (task === "classification") return { model, changes, q: state.q };
  const q = sentenceOf(await translated(state.q)).source;
  return { model, changes, q, prefix, padding: state.padding, ...(state.beam && { beam: Number(state.beam) }), ...(state.target && { target: state.target }) };
}

/** What the reader's text did inside the model, or null when there is none yet; `more` is asked too. */
async function inspected(more) {
  if (!live) return embedded.inspection;
  const body = await requestBody();
  return body && ask("api/inspect", { ...body, ...more });
}

/** What a head computed for the text. */
const headOf = async (kind, layer, head) => ask("api/head", { ...(await requestBody()), kind, layer, head });
