"use strict";
/* Word by word: how likely each token of the output was, what else it could have been, and what comes of that. */
views.words = { tasks: ["translation", "language-modeling"], inside: true, build: buildWords };

function buildWords(panel, found) {
  const own = found.predictions;
  const detail = div("");
  const first = min(state.at, own.length - 1);
  const list = tokenFigure(own, look, first, () => [heads("place piece probability rank entropy best_rival"), own.map((one, i) => [i + 1, one.piece, one.probability, one.rank, one.entropy, one.rivals[0] ? `${spell(one.rivals[0].piece)} ${n(one.rivals[0].probability)}` : "–"])]);
  panel.append(list, detail);
  look(first);

  function look(at) {
    change({ at });
    press(list.querySelectorAll(".token"), at);
    const one = own[at];
    const before = own.slice(max(0, at - 6), at).map((other) => spell(other.piece)).join(" ");
    const all = [one, ...one.rivals];
    const use = (rival) => live && quiet(t("words.use"), () => {
      const prefix = [...own.slice(0, at).map((other) => other.id), rival.id].join(".");
      change({ ...OWN, prefix, at, more: found.kind === "translation" ? 0 : max(8, own.length - at - 1) });
      say(t("words.used", { piece: spell(rival.piece) }));
      render(true);
    }, t("words.use_this", { piece: spell(rival.piece) }));
    const tag = span("tag", t(one.forced ? "words.given" : "words.chosen"));
    detail.replaceChildren(figure({
      key: "words.rivals", values: { place: at + 1, piece: spell(one.piece) }, about: before ? t("words.after", { before }) : t("words.first"),
      chart: div("", facts([[t("column.probability"), n(one.probability, 4)], [t("column.rank"), whole(one.rank)], [t("words.entropy"), n(one.entropy)]]),
        bars(all.map((rival, i) => [spell(rival.piece), rival.probability, n(rival.probability), i ? use(rival) : tag, !i]), 1), !live && note(t("words.needs_server"))),
      table: () => [heads("piece probability log_probability"), all.map((rival) => [rival.piece, rival.probability, rival.log_probability])],
    }));
  }
}
