"use strict";
/* Translate: a text box whose text is translated as it is typed, and the hypotheses of the beam. */
/* Milliseconds from the last key until the text is translated. */
const TYPING_DELAY = 450;
/* Tokens below this probability are marked. */
const LOW_PROBABILITY = 0.5;
const BEAMS = [1, 2, 3, 4, 5, 8, 12, 16];

views.translate = { tasks: ["translation"], needsEngine: true, build: buildTranslate };

/** Create a text box with examples and the number of characters left; `run` is called after each change.
    @type {(title: string, run: () => void) => HTMLElement} */
function textBox(title, run) {
  const { source, examples } = currentModel();
  const count = h("p", { class: "count", id: "count" });
  const later = debounce(TYPING_DELAY, submit);
  const box = h("textarea", {
    id: "source", rows: 3, dir: "auto", lang: source, spellcheck: "false", placeholder: t("translate.placeholder"), "aria-describedby": "count",
    oninput: () => { updateCount(); later(); },
    onkeydown: (/** @type {KeyboardEvent} */ e) => { if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) { e.preventDefault(); submit(); } },
  });
  box.value = state.q;
  updateCount();
  function updateCount() {
    const left = mh.about.char_limit - [...box.value].length;
    count.textContent = t("translate.left", { left: integer(left) });
    count.classList.toggle("wrong", left < 0);
  }
  function submit() {
    if (box.value !== state.q) change({ ...OWN_OUTPUT, q: box.value, sentence: 0 });
    run();
  }
  return div("card side", h("label", { class: "side-head", for: "source" }, title), box, div("side-foot", count,
    examples.length > 0 && linkButton(t("translate.example"), () => { box.value = examples[(examples.indexOf(box.value) + 1) % examples.length]; updateCount(); submit(); })));
}

/** @type {(panel: HTMLElement) => Promise<void>} */
async function buildTranslate(panel) {
  const model = currentModel();
  const output = h("div", { class: "output", dir: "auto", lang: model.target, "aria-live": "polite" });
  const speed = para("count"), notices = h("div", { class: "notices", "aria-live": "polite" });
  const below = stack();
  let [runCount, text] = [0, ""];

  const reverse = mh.about.models.find((other) => other.source === model.target && other.target === model.source);
  const swap = button("⇄", () => { change({ ...OWN_OUTPUT, ...AS_TRAINED, model: reverse?.name, q: text, sentence: 0 }); render(); },
    { class: "round", "aria-label": t("translate.swap"), title: t(reverse ? "translate.swap" : "translate.no_swap"), disabled: !reverse });
  const languages = languageLists();
  const copy = copyButton(t("copy"), () => text);
  const correction = mh.about.suggestions && correctionForm(() => text);
  panel.append(
    div("pair", textBox(languageName(model.source), run), swap,
      div("card side", div("side-head", languageName(model.target)), output, notices, div("side-foot", speed, copy), correction)),
    div("controls", languages,
      choice(t("translate.beam"), [["", t("translate.beam_default", { beam: model.beam })], ...BEAMS], state.beam, (beam) => { change({ ...OWN_OUTPUT, beam }); run(); }),
      button(t("translate.go"), run, { class: "primary" }), availableViews().includes("whole") && button(t("translate.whole"), () => { change({ tab: "whole", part: 0 }); render(); }), span("hint", t("translate.keys"))), below);
  await run();

  async function run() {
    const number = (runCount += 1);
    below.replaceChildren();
    showEffect();
    const slow = setTimeout(() => { if (number === runCount) { speed.textContent = t("translate.busy"); aria(output, "busy", "true"); } }, TYPING_DELAY);
    let shown;
    try {
      const result = state.q.trim() ? await translateText(state.q, modelChanges()) : { translation: "", sentences: [], tokens: 0, seconds: 0 };
      if (number !== runCount) return;
      text = result.translation;
      notices.replaceChildren(...warningsOf(result.sentences).map((name) => para("notice", t(`warning.${name}`))));
      shown = para("translation", text);
      speed.textContent = text && t("translate.facts", { seconds: n(result.seconds, 2), speed: integer(result.tokens / result.seconds) }) + confidenceOf(result.sentences);
      if (result.sentences.length) {
        below.append(sentencesFigure(result.sentences, below), div("preview"), sentenceDetails(sentenceOf(result)));
        previewAttention(below);
      }
    } catch (error) {
      shown = para("wrong", error.message);
      if (number === runCount) speed.textContent = "";
    }
    clearTimeout(slow);
    if (number !== runCount) return;
    aria(output, "busy", "false");
    output.replaceChildren(shown);
  }
}

/** Create the lists of source and target languages; none for one direction.
    @type {() => HTMLElement[]} */
function languageLists() {
  const { source, target } = currentModel();
  const directions = mh.about.models.filter((model) => model.source);
  /** @type {(model: ModelFacts | undefined) => void} */
  const open = (model) => {
    const q = /** @type {HTMLTextAreaElement} */ (byId("source")).value; // it may have been typed just now
    change({ ...OWN_OUTPUT, ...AS_TRAINED, model: model?.name, q, sentence: 0 });
    render();
  };
  /** @type {(codes: (string | undefined)[]) => [string, string][]} */
  const named = (codes) => [...new Set(codes)].map((code = "") => [code, languageName(code)]);
  return directions.length < 2 ? [] : [
    choice(t("translate.from"), named(directions.map((model) => model.source)), source, (chosen) => {
      const from = directions.filter((model) => model.source === chosen);
      open(from.find((model) => model.target === target) || from[0]);
    }),
    choice(t("translate.to"), named(directions.filter((model) => model.source === source).map((model) => model.target)), target, (chosen) => open(directions.find((model) => model.source === source && model.target === chosen))),
  ];
}

/** Create the button "Correct this", and the form that it opens: the output of `text` to be corrected and sent to the server.
    @type {(text: () => string) => HTMLElement} */
function correctionForm(text) {
  const { source, target } = currentModel();
  const box = h("textarea", { id: "correction", rows: 3, dir: "auto", lang: target });
  const status = h("p", { class: "count", role: "status" });
  const send = button(t("correct.send"), submit, { class: "primary" });
  const form = h("div", { hidden: true, role: "group", "aria-label": t("correct.open") }, h("label", { for: "correction" }, t("correct.label")), box, div("controls", send, button(t("correct.cancel"), close)));
  const opener = button(t("correct.open"), () => { (form.hidden ? open : close)(); }, { class: "quiet", "aria-expanded": "false" });
  /** What is corrected: another text may be typed meanwhile. */
  let [q, output] = ["", ""];
  form.addEventListener("keydown", (e) => { if (e.key === "Escape") close(); });
  return div("correct", div("side-foot", opener, status), form);
  function open() {
    [q, output] = [state.q, text()];
    if (!output) { status.textContent = t("correct.empty"); return; }
    box.value = output;
    status.textContent = "";
    show(true);
    box.focus();
  }
  function close() { show(false); opener.focus(); }
  /** @type {(visible: boolean) => void} */
  function show(visible) {
    form.hidden = !visible;
    aria(opener, "expanded", visible);
  }
  async function submit() {
    const s = box.value.trim();
    if (!s || s === output) { status.textContent = t("correct.same"); return; }
    send.disabled = true;
    try {
      await fetchAnswer("suggest", { q, s, source, target }, new AbortController().signal);
      close();
      status.textContent = t("correct.thanks");
    } catch (error) {
      status.textContent = error.message;
    }
    send.disabled = false;
  }
}

/** Return the names of the warnings about any of several sentences.
    @type {(sentences: SentenceTranslation[]) => string[]} */
const warningsOf = (sentences) => [...new Set(sentences.flatMap(({ warnings }) => warnings))];

/** Return the words for the lowest confidence in the translations of several sentences; empty if there is none.
    @type {(sentences: SentenceTranslation[]) => string} */
function confidenceOf(sentences) {
  const lowest = ["low", "medium", "high"].find((level) => sentences.some(({ confidence_level: own }) => own === level));
  return lowest ? `, ${t(`confidence.${lowest}`)}` : "";
}

/** Show the cross-attention of the selected sentence in an exported page, whose readers see it without opening a view.
    @type {(below: HTMLElement) => Promise<void>} */
async function previewAttention(below) {
  if (!hasWorker) return;
  const inspection = await fetchInspection().catch(() => null);
  const holder = below.querySelector(".preview");
  if (!inspection || !holder?.isConnected) return;
  const cross = attentionOfKind(inspection, "cross");
  const layer = inspection.alignment?.layer ?? unpack(cross.weights).shape[0] - 1;
  const [rows, columns] = attentionAxes(inspection, "cross");
  const title = `${t("attention.cross")}, ${t("attention.named_mean", { layer })}`;
  /** @type {MatrixOptions} */
  const options = { rows: rows.names, columns: columns.names, value: weightsOf(cross, layer, "mean"), label: title, meaning: t("attention.weight"), rowTitle: rows.title, columnTitle: columns.title };
  holder.replaceChildren(figure({
    key: "translate.attention", table: () => matrixTable(options),
    chart: div("", matrix(options), linkButton(t("translate.heads"), () => { change({ tab: "attention", kind: "cross", layer, head: "mean" }); render(); })),
  }));
}

/** Create the buttons that select one of several sentences.
    @type {(sentences: SentenceTranslation[], below: HTMLElement) => HTMLElement | string} */
function sentencesFigure(sentences, below) {
  if (sentences.length < 2) return "";
  const buttons = sentences.map((sentence, i) => button(sentence.source, () => {
    change({ ...OWN_OUTPUT, sentence: i });
    setPressed(buttons, i);
    showEffect();
    previewAttention(below);
    below.lastChild?.replaceWith(sentenceDetails(sentence));
  }, { class: "sentence", dir: "auto", "aria-pressed": i === state.sentence || "false" }));
  return figure({ key: "translate.sentences", chart: div("sentences", buttons) });
}

/** Create the figures of the tokens and the hypotheses of a sentence.
    @type {(sentence: SentenceTranslation) => HTMLElement | string} */
function sentenceDetails({ hypotheses }) {
  if (!hypotheses.length) return "";
  const [best] = hypotheses;
  const tokens = best.tokens.map((piece, i) => ({ piece, probability: Math.exp(best.token_scores[i]) }));
  /** @type {(target: string) => () => void} */
  const inspect = (target) => () => { change({ ...OWN_OUTPUT, tab: "words", target }); render(); };
  const rows = hypotheses.map((hypothesis, rank) => [rank + 1, rank ? markDifferences(hypothesis.text, best.text) : hypothesis.text, hypothesis.score, hypothesis.log_probability, hypothesis.tokens.length,
    linkButton(t("translate.inside"), inspect(rank ? hypothesis.text : ""), `${t("translate.inside")}: ${hypothesis.text}`)]);
  return stack(
    tokenFigure(tokens, (at) => { change({ ...OWN_OUTPUT, tab: "words", at }); render(); }),
    figure({ key: "translate.alternatives", chart: tableOf([columnTitles("rank text score log_probability length look"), rows], t("translate.alternatives")) }));
}

/** Create the figure of the tokens of an output as buttons; those below LOW_PROBABILITY have a dotted underline.
    @type {(tokens: { piece: string, probability: number, forced?: boolean }[], onChoose: (index: number) => void, current?: number, table?: () => Table) => HTMLElement} */
function tokenFigure(tokens, onChoose, current, table) {
  const buttons = tokens.map(({ piece, probability, forced }, i) => h("button", {
    type: "button", class: `token${probability < LOW_PROBABILITY ? " doubtful" : ""}${forced ? " given" : ""}`, "aria-pressed": i === current || "false",
    onclick: () => onChoose(i),
  }, h("span", { class: "token-text", dir: "auto" }, pieceText(piece)), span("token-bar", h("span", { style: { width: `${100 * probability}%` } })), " ", span("token-number", n(probability, 2)), forced && span("hidden", ` ${t("words.given")}`)));
  return figure({ key: "words.tokens", table, chart: tokenRow(t("words.tokens"), buttons, tokens.map(({ piece }) => piece), current) });
}

/** Return the words of a text and those that only another has, in order: all words outside the longest common subsequence are "new" or "gone".
    @type {(text: string, other: string) => [word: string, change: "" | "new" | "gone"][]} */
function wordDifferences(text, other) {
  const [words, otherWords] = [text, other].map((line) => line.split(" ").filter(Boolean));
  const lengths = [...words, ""].map(() => [...otherWords, ""].map(() => 0));
  for (let i = words.length - 1; i >= 0; i -= 1) {
    for (let j = otherWords.length - 1; j >= 0; j -= 1) lengths[i][j] = words[i] === otherWords[j] ? lengths[i + 1][j + 1] + 1 : max(lengths[i + 1][j], lengths[i][j + 1]);
  }
  /** @type {[string, "" | "new" | "gone"][]} */
  const found = [];
  let [i, j] = [0, 0];
  while (i < words.length || j < otherWords.length) {
    const same = words[i] === otherWords[j];
    const gone = !same && (i === words.length || (j < otherWords.length && lengths[i][j + 1] >= lengths[i + 1][j]));
    found.push(same ? [words[i], ""] : gone ? [otherWords[j], "gone"] : [words[i], "new"]);
    if (same || !gone) i += 1;
    if (same || gone) j += 1;
  }
  return found;
}

/** Create a text of words, new ones underlined and those that are gone struck through.
    @type {(words: [string, "" | "new" | "gone"][]) => HTMLElement} */
const markedWords = (words) => span("", words.map(([word, change], i) => [i ? " " : "", change ? h(change === "new" ? "u" : "del", { class: "different" }, word) : word]));
/** @type {(text: string, other: string) => HTMLElement} */
const markDifferences = (text, other) => markedWords(wordDifferences(text, other));
