"use strict";
/* Word by word: how likely each token of the output was, what else it could have been, and what comes of that. */
views.words = { tasks: ["translation", "language-modeling"], inside: true, build: buildWords };

async function buildWords(panel, found) {
  const own = found.predictions;
  const [list, detail] = [div(""), div("")];
  let warm = own;
  if (live) panel.append(div("controls", slider(t("words.temperature"), { min: 0.1, max: 3, step: 0.1, value: state.temperature, show: (value) => n(value, 1) }, (temperature) => { change({ temperature }); later(); })));
  panel.append(list, detail);
  const later = debounce(200, heat);
  await heat();

  /** Divide the logits by the temperature. */
  async function heat() {
    const { temperature } = state;
    try {
      const fresh = live && temperature !== 1 ? (await inspected({ temperature, occlusion: false })).predictions : own;
      if (temperature !== state.temperature) return;
      warm = fresh;
      draw();
    } catch (error) { list.replaceChildren(h("p", { class: "wrong", role: "alert" }, error.message)); }
  }

  function draw() {
    const first = min(state.at, own.length - 1);
    list.replaceChildren(tokenFigure(own.map((one, i) => ({ ...one, probability: warm[i].probability })), look, first,
      () => [heads("place piece probability rank entropy best_rival"), warm.map((one, i) => [i + 1, one.piece, one.probability, one.rank, one.entropy, one.rivals[0] ? `${spell(one.rivals[0].piece)} ${n(one.rivals[0].probability)}` : "–"])]));
    look(first);
  }

  function look(at) {
    change({ at });
    press(list.querySelectorAll(".token"), at);
    const [one, plain] = [warm[at], own[at]];
    const before = own.slice(max(0, at - 6), at).map((other) => spell(other.piece)).join(" ");
    const [all, unheated] = [one, plain].map((each) => [each, ...each.rivals]);
    const use = (rival) => live && quiet(t("words.use"), () => {
      const prefix = [...own.slice(0, at).map((other) => other.id), rival.id].join(".");
      change({ ...OWN, prefix, at, more: found.kind === "translation" ? 0 : max(8, own.length - at - 1) });
      say(t("words.used", { piece: spell(rival.piece) }));
      render(true);
    }, t("words.use_this", { piece: spell(rival.piece) }));
    const tag = span("tag", t(plain.forced ? "words.given" : "words.chosen"));
    const shown = (i) => (warm === own ? n(all[i].probability) : `${n(all[i].probability)} (${n(unheated[i].probability)})`);
    detail.replaceChildren(figure({
      key: "words.rivals", values: { place: at + 1, piece: spell(one.piece) }, about: before ? t("words.after", { before }) : t("words.first"),
      chart: div("", facts([[t("column.probability"), n(one.probability, 4)], [t("column.rank"), whole(one.rank)], [t("words.entropy"), n(one.entropy)]]),
        bars(all.map((rival, i) => [spell(rival.piece), rival.probability, shown(i), i ? use(rival) : tag, !i]), 1),
        warm !== own && note(t("words.temperature_note", { temperature: n(state.temperature, 1) })), !live && note(t("words.needs_server"))),
      table: () => [heads("piece probability log_probability"), all.map((rival) => [rival.piece, rival.probability, rival.log_probability])],
    }));
  }
}
