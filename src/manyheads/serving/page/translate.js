"use strict";
/* Translate: text in, translations out as it is typed, with the outputs that the beam found beside the best. */
(() => {
  const WAIT = 450; // milliseconds after the last key
  const DOUBTFUL = 0.5;

  mh.views.translate = { tasks: ["translation"], live: true, build };

  async function build(panel) {
    const model = mh.current();
    const limit = mh.about.char_limit;
    let latest = 0;

    const count = mh.h("p", { class: "count", id: "count" });
    const box = mh.h("textarea", {
      id: "source", rows: 5, dir: "auto", lang: model.source, spellcheck: "false", placeholder: mh.t("translate.placeholder"), "aria-describedby": "count",
      oninput: () => { counted(); later(); },
      onkeydown: (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); run(); } },
    });
    box.value = mh.state.q;
    const output = mh.h("div", { class: "output", dir: "auto", lang: model.target, "aria-live": "polite", "aria-busy": "false", id: "output" });
    const facts = mh.h("p", { class: "count", id: "facts" });
    const below = mh.h("div", { class: "stack" });

    const back = mh.about.models.find((one) => one.source === model.target && one.target === model.source);
    const swap = mh.button("⇄", () => {
      mh.set({ model: back.name, q: output.dataset.text || "", prefix: "", target: "", sentence: 0, at: 0 });
      mh.render();
    }, { class: "round", "aria-label": mh.t("translate.swap"), title: mh.t(back ? "translate.swap" : "translate.no_swap"), disabled: !back });
    const copy = mh.button(mh.t("copy"), async () => {
      await navigator.clipboard?.writeText(output.dataset.text || "");
      mh.say(mh.t("copied"));
      copy.textContent = mh.t("copied");
      setTimeout(() => { copy.textContent = mh.t("copy"); }, 1500);
    }, { class: "quiet" });
    const beams = [["", mh.t("translate.beam_default", { beam: model.beam })], ...[1, 2, 3, 4, 5, 8, 10].map((one) => [one, one === 1 ? mh.t("translate.greedy") : String(one)])];

    panel.append(
      mh.h("div", { class: "pair" },
        mh.h("div", { class: "card side" }, mh.h("label", { class: "side-head", for: "source" }, model.source_name), box, mh.h("div", { class: "side-foot" }, count)),
        swap,
        mh.h("div", { class: "card side" }, mh.h("div", { class: "side-head" }, model.target_name), output, mh.h("div", { class: "side-foot" }, facts, copy))),
      mh.h("div", { class: "controls" },
        mh.select(mh.t("translate.beam"), beams, mh.state.beam, (beam) => { mh.set({ beam }); run(); }),
        mh.button(mh.t("translate.go"), () => run(), { class: "primary" }),
        model.example && mh.button(mh.t("translate.example"), () => { box.value = model.example; counted(); run(); }, {}),
        mh.h("span", { class: "hint" }, mh.t("translate.keys"))),
      below);
    counted();

    function counted() {
      const left = limit - [...box.value].length;
      count.textContent = mh.t("translate.left", { left: mh.whole(left) });
      count.classList.toggle("wrong", left < 0);
    }
    const later = mh.quiet(WAIT, () => run());

    async function run() {
      const q = box.value;
      if (q !== mh.state.q) mh.set({ q, prefix: "", target: "", sentence: 0, at: 0, node: -1, step: -1 });
      const own = (latest += 1);
      below.replaceChildren();
      facts.textContent = "";
      if (!q.trim()) {
        output.replaceChildren();
        output.dataset.text = "";
        return;
      }
      output.setAttribute("aria-busy", "true");
      try {
        const found = await mh.split(q);
        if (own === latest && panel.isConnected) show(found);
      } catch (error) {
        if (own === latest) output.replaceChildren(mh.h("p", { class: "wrong" }, error.message));
      }
      output.setAttribute("aria-busy", "false");
    }

    function show(found) {
      output.dataset.text = found.translation;
      output.replaceChildren(mh.h("p", { class: "translation" }, found.translation));
      const speed = found.seconds > 0 ? found.tokens / found.seconds : 0;
      facts.textContent = mh.t("translate.facts", { seconds: mh.n(found.seconds, 2), speed: mh.whole(speed) });
      if (found.sentences.length) below.append(...sentences(found), inside(found, Math.min(mh.state.sentence, found.sentences.length - 1)));
    }

    /** When there are several sentences: which of them is looked at. */
    function sentences(found) {
      if (found.sentences.length < 2) return [];
      const buttons = found.sentences.map((one, place) => mh.button(one.source, () => {
        mh.set({ sentence: place, target: "", prefix: "", at: 0 });
        buttons.forEach((button, other) => button.setAttribute("aria-pressed", String(other === place)));
        below.lastChild.replaceWith(inside(found, place));
      }, { class: "sentence", dir: "auto", "aria-pressed": String(place === mh.state.sentence) }));
      return [mh.h("section", { class: "figure" }, mh.h("h3", {}, mh.t("translate.sentences")), mh.h("p", { class: "note" }, mh.t("translate.sentences_note")), mh.h("div", { class: "sentences" }, buttons))];
    }

    function inside(found, place) {
      const one = found.sentences[place];
      return mh.h("div", { class: "stack" }, mh.tokens(one.hypotheses[0].tokens.map((piece, at) => ({ piece, probability: Math.exp(one.hypotheses[0].token_scores[at]) })),
        (at) => { mh.set({ tab: "words", at, target: "", prefix: "" }); mh.render(); }), alternatives(one));
    }
  }

  /** The tokens of an output as buttons; doubtful ones are underlined with dots. */
  mh.tokens = (tokens, onclick, current = -1) => {
    const buttons = tokens.map(({ piece, probability, given }, place) => mh.h("button", {
      type: "button", class: `token${probability < DOUBTFUL ? " doubtful" : ""}${given ? " given" : ""}`, "aria-pressed": String(place === current),
      "aria-label": `${mh.piece(piece)} ${mh.n(probability, 2)}${given ? ` ${mh.t("words.given")}` : ""}`, onclick: () => onclick(place),
    }, mh.h("span", { class: "token-text" }, mh.piece(piece)), mh.h("span", { class: "token-bar" }, mh.h("span", { style: { width: `${100 * probability}%` } })),
    mh.h("span", { class: "token-number" }, mh.n(probability, 2))));
    const row = mh.h("div", { class: "tokens", role: "group", "aria-label": mh.t("words.tokens") }, buttons);
    mh.roving(row, buttons, { current: Math.max(0, Math.min(current, buttons.length - 1)) });
    return mh.h("section", { class: "figure" }, mh.h("h3", {}, mh.t("words.tokens")), mh.h("p", { class: "note" }, mh.t("words.tokens_note")), row);
  };

  function alternatives({ hypotheses }) {
    const rows = hypotheses.map((one, rank) => [rank + 1, rank ? different(one.text, hypotheses[0].text) : one.text, one.score, one.log_probability, one.tokens.length,
      rank ? mh.button(mh.t("translate.inside"), () => { mh.set({ tab: "words", target: one.text, prefix: "", at: 0 }); mh.render(); }, { class: "quiet", "aria-label": `${mh.t("translate.inside")}: ${one.text}` }) : ""]);
    const columns = ["rank", "text", "score", "log_probability", "length"].map((one) => mh.t(`column.${one}`));
    return mh.h("section", { class: "figure", "data-figure": "alternatives" },
      mh.h("h3", {}, mh.t("translate.alternatives")), mh.h("p", { class: "note" }, mh.t("translate.alternatives_note")),
      mh.table({ columns: [...columns, mh.t("column.look")], rows }, mh.t("translate.alternatives")));
  }

  /** A text with the words underlined that another one does not have in this order. */
  function different(text, other) {
    const [own, others] = [text.split(" "), other.split(" ")];
    const best = Array.from({ length: own.length + 1 }, () => new Array(others.length + 1).fill(0));
    for (let i = own.length - 1; i >= 0; i -= 1) {
      for (let j = others.length - 1; j >= 0; j -= 1) best[i][j] = own[i] === others[j] ? best[i + 1][j + 1] + 1 : Math.max(best[i + 1][j], best[i][j + 1]);
    }
    const found = mh.h("span", {});
    for (let i = 0, j = 0; i < own.length; i += 1) {
      while (j < others.length && own[i] !== others[j] && best[i][j + 1] >= best[i + 1][j]) j += 1;
      const same = own[i] === others[j];
      found.append(i ? " " : "", same ? own[i] : mh.h("u", { class: "different" }, own[i]));
      if (same) j += 1;
    }
    return found;
  }
  mh.different = different;
})();
