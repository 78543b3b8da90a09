"use strict";
/* Where the data comes from: the server that sent this page, or the document that it stands in. */
const inside = document.getElementById("manyheads-data");
const embedded = inside && JSON.parse(inside.textContent);
const live = !embedded;
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

/** The sentences of a text with their translations. */
const translated = (q) => ask("api/translate", { model: theModel().name, q, ...(state.beam && { beam: Number(state.beam) }) });

/** What the reader's text did inside the model, or null when there is none yet. */
async function inspected() {
  if (embedded) return embedded.inspection;
  const { name: model, task } = theModel();
  const prefix = state.prefix ? state.prefix.split(".").map(Number) : undefined;
  if (!state.q.trim() && !prefix) return null;
  if (task === "language-modeling") return ask("api/inspect", { model, q: prefix ? "" : state.q, prefix, max_tokens: state.more });
  if (task === "classification") return ask("api/inspect", { model, q: state.q });
  const { sentences } = await translated(state.q);
  const q = (sentences[state.sentence] || sentences[0] || { source: "" }).source;
  return ask("api/inspect", { model, q, prefix, padding: state.padding, ...(state.beam && { beam: Number(state.beam) }), ...(state.target && { target: state.target }) });
}
