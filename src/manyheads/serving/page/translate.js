"use strict";
/* Translate: text in, translations out as it is typed, with the outputs that the beam found beside the best. */
/* Milliseconds after the last key. */
const WAIT = 450;
const DOUBTFUL = 0.5;
const BEAMS = [1, 2, 3, 4, 5, 8, 12, 16];

views.translate = { tasks: ["translation"], served: true, build: buildTranslate };

/** A box for a text, with an example and the characters that are left; `run` is called when it has changed. */
function textBox(head, run) {
  const { source, example } = theModel();
  const count = h("p", { class: "count", id: "count" });
  const later = debounce(WAIT, ran);
  const box = h("textarea", {
    id: "source", rows: 4, dir: "auto", lang: source, spellcheck: "false", placeholder: t("translate.placeholder"), "aria-describedby": "count",
    oninput: () => { counted(); later(); },
    onkeydown: (e) => { if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) { e.preventDefault(); ran(); } },
  });
  box.value = state.q;
  counted();
  function counted() {
    const left = mh.about.char_limit - [...box.value].length;
    count.textContent = t("translate.left", { left: whole(left) });
    count.classList.toggle("wrong", left < 0);
  }
  function ran() {
    if (box.value !== state.q) change({ ...OWN, q: box.value, sentence: 0 });
    run();
  }
  return div("card side", h("label", { class: "side-head", for: "source" }, head), box, div("side-foot", count,
    example && quiet(t("translate.example"), () => { box.value = example; counted(); ran(); })));
}

async function buildTranslate(panel) {
  const model = theModel();
  const output = h("div", { class: "output", dir: "auto", lang: model.target, "aria-live": "polite" });
  const speed = para("count");
  const below = stack();
  let [latest, text] = [0, ""];

  const back = mh.about.models.find((one) => one.source === model.target && one.target === model.source);
  const swap = button("⇄", () => { change({ ...OWN, ...TRAINED, model: back.name, q: text, sentence: 0 }); render(); },
    { class: "round", "aria-label": t("translate.swap"), title: t(back ? "translate.swap" : "translate.no_swap"), disabled: !back });
  const copy = copyButton(t("copy"), () => text);
  panel.append(
    div("pair", textBox(languageName(model.source), run), swap,
      div("card side", div("side-head", languageName(model.target)), output, div("side-foot", speed, copy))),
    div("controls",
      choice(t("translate.beam"), [["", t("translate.beam_default", { beam: model.beam })], ...BEAMS], state.beam, (beam) => { change({ ...OWN, beam }); run(); }),
      button(t("translate.go"), run, { class: "primary" }), span("hint", t("translate.keys"))), below);
  await run();

  async function run() {
    const own = (latest += 1);
    below.replaceChildren();
    showEffect();
    const slow = setTimeout(() => { if (own === latest) { speed.textContent = t("translate.busy"); aria(output, "busy", "true"); } }, WAIT);
    let shown = "";
    try {
      const found = state.q.trim() ? await translated(state.q, changesNow()) : { translation: "", sentences: [] };
      if (own !== latest) return;
      text = found.translation;
      shown = para("translation", text);
      speed.textContent = text && t("translate.facts", { seconds: n(found.seconds, 2), speed: whole(found.tokens / found.seconds) });
      if (found.sentences.length) below.append(sentencesOf(found.sentences, below), insideOf(found.sentences[state.sentence] || found.sentences[0]));
    } catch (error) {
      shown = para("wrong", error.message);
      if (own === latest) speed.textContent = "";
    }
    clearTimeout(slow);
    if (own !== latest) return;
    aria(output, "busy", "false");
    output.replaceChildren(shown);
  }
}

/** When there are several sentences: which of them is looked at. */
function sentencesOf(sentences, below) {
  if (sentences.length < 2) return "";
  const buttons = sentences.map((one, i) => button(one.source, () => {
    change({ ...OWN, sentence: i });
    press(buttons, i);
    below.lastChild.replaceWith(insideOf(one));
  }, { class: "sentence", dir: "auto", "aria-pressed": i === state.sentence || "false" }));
  return figure({ key: "translate.sentences", chart: div("sentences", buttons) });
}

function insideOf({ hypotheses }) {
  if (!hypotheses.length) return "";
  const [best] = hypotheses;
  const tokens = best.tokens.map((piece, i) => ({ piece, probability: Math.exp(best.token_scores[i]) }));
  const look = (target) => () => { change({ ...OWN, tab: "words", target }); render(); };
  const rows = hypotheses.map((one, rank) => [rank + 1, rank ? different(one.text, best.text) : one.text, one.score, one.log_probability, one.tokens.length,
    quiet(t("translate.inside"), look(rank ? one.text : ""), `${t("translate.inside")}: ${one.text}`)]);
  return stack(
    tokenFigure(tokens, (at) => { change({ ...OWN, tab: "words", at }); render(); }),
    figure({ key: "translate.alternatives", chart: tableOf([heads("rank text score log_probability length look"), rows], t("translate.alternatives")) }));
}

/** The tokens of an output as buttons; doubtful ones are underlined with dots. */
function tokenFigure(tokens, chosen, current, table) {
  const buttons = tokens.map(({ piece, probability, forced }, i) => h("button", {
    type: "button", class: `token${probability < DOUBTFUL ? " doubtful" : ""}${forced ? " given" : ""}`, "aria-pressed": i === current || "false",
    onclick: () => chosen(i),
  }, span("token-text", spell(piece)), span("token-bar", h("span", { style: { width: `${100 * probability}%` } })), " ", span("token-number", n(probability, 2)), forced && span("hidden", ` ${t("words.given")}`)));
  return figure({ key: "words.tokens", table, chart: roving(h("div", { class: "tokens", role: "group", "aria-label": t("words.tokens") }, buttons), buttons, current) });
}

/** A text with the words underlined in which it leaves another one: all but the longest common sequence. */
function different(text, other) {
  const [own, others] = [text.split(" "), other.split(" ")];
  const best = [...own, ""].map(() => [...others, ""].map(() => 0));
  for (let i = own.length - 1; i >= 0; i -= 1) {
    for (let j = others.length - 1; j >= 0; j -= 1) best[i][j] = own[i] === others[j] ? best[i + 1][j + 1] + 1 : max(best[i + 1][j], best[i][j + 1]);
  }
  let j = 0;
  return span("", own.map((word, i) => {
    while (j < others.length && word !== others[j] && best[i][j + 1] >= best[i + 1][j]) j += 1;
    const same = word === others[j];
    if (same) j += 1;
    return [i ? " " : "", same ? word : h("u", { class: "different" }, word)];
  }));
}
