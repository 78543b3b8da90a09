"use strict";
/* Where the data comes from: the server that sent this page, or the document that it stands in. */
(() => {
  const inside = document.getElementById("manyheads-data");
  const embedded = inside ? JSON.parse(inside.textContent) : null;
  const kept = new Map();
  const MOST_KEPT = 24;

  mh.live = embedded === null;
  mh.key = "";

  /** Ask the server; what it says is wrong comes as an Error with its words. */
  async function ask(path, body) {
    const headers = { Accept: "application/json" };
    if (mh.key) headers.Authorization = `Bearer ${mh.key}`;
    if (body) headers["Content-Type"] = "application/json";
    let answer;
    try {
      answer = await fetch(path, { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body) });
    } catch {
      throw new Error(mh.t("error.unreachable"));
    }
    const found = await answer.json().catch(() => ({}));
    if (!answer.ok) throw new Error(found.error?.message || found.error || mh.t("error.status", { status: answer.status }));
    return found;
  }

  /** The same question is asked once. */
  function once(path, body) {
    const name = `${mh.key} ${path} ${body ? JSON.stringify(body) : ""}`;
    if (!kept.has(name)) {
      const promise = ask(path, body);
      promise.catch(() => kept.delete(name));
      kept.set(name, promise);
      if (kept.size > MOST_KEPT) kept.delete(kept.keys().next().value);
    }
    return kept.get(name);
  }

  mh.source = {
    strings: async (language) => (embedded ? embedded.strings[language] : ask(`page/${language}.json`)),
    about: async () => (embedded ? embedded.about : once("api/models")),
    translate: (body) => once("api/translate", body),
    inspect: async (body) => (embedded ? embedded.inspection : once("api/inspect", body)),
    next: (body) => once("api/next", body),
    model: async (name) => (embedded ? embedded.model : once(`api/model?model=${encodeURIComponent(name)}`)),
    curves: async (name) => (embedded ? embedded.curves : once(`api/curves?model=${encodeURIComponent(name)}`)),
  };

  /** The model that is looked at, as the server describes it. */
  mh.current = () => mh.about.models.find((one) => one.name === mh.state.model) || mh.about.models[0];

  /** The text that is looked into: a sentence of what was typed. */
  mh.sentence = () => {
    if (!mh.live) return "";
    return mh.sentences?.of === mh.state.q ? mh.sentences.list[mh.state.sentence] ?? mh.state.q : mh.state.q;
  };

  /** What the reader's sentence did inside the model, or null when there is none yet. */
  mh.inspection = async () => {
    if (!mh.live) return embedded.inspection;
    const { model, q, beam, prefix, target, padding, more, sentence } = mh.state;
    const ids = prefix ? prefix.split(".").map(Number) : [];
    if (!q.trim() && !ids.length) return null;
    const task = mh.current().task;
    let text = q;
    if (task === "translation" && mh.sentences?.of !== q) await mh.split(q);
    if (task === "translation") text = mh.sentences.list[sentence] ?? mh.sentences.list[0] ?? q;
    const body = { model: mh.current().name, q: text };
    if (task === "translation") {
      Object.assign(body, { padding: Number(padding) });
      if (beam) body.beam = Number(beam);
      if (target) body.target = target;
    }
    if (task === "language-modeling") {
      body.max_tokens = Number(more);
      if (ids.length) body.q = "";
    }
    if (ids.length) body.prefix = ids;
    return mh.source.inspect(body);
  };

  /** Ask the server where the sentences of a text are. */
  mh.split = async (q) => {
    const found = await mh.source.translate(mh.asked(q));
    mh.sentences = { of: q, list: found.sentences.map((one) => one.source) };
    return found;
  };
  mh.asked = (q) => ({ model: mh.current().name, q, ...(mh.state.beam ? { beam: Number(mh.state.beam) } : {}) });
})();
