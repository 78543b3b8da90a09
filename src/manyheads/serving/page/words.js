"use strict";
/* Word by word: how likely each token of the output was, what else it could have been, and what comes of that. */
(() => {
  mh.views.words = { tasks: ["translation", "language-modeling"], needs: "inspection", build };

  function build(panel, found) {
    const own = found.predictions;
    const at = Math.min(mh.state.at, own.length - 1);
    const detail = mh.h("div", { class: "stack" });
    const list = mh.tokens(own.map((one) => ({ piece: one.piece, probability: one.probability, given: one.forced })), choose, at);
    panel.append(list, detail, whole());
    choose(at);

    function choose(place) {
      mh.set({ at: place });
      list.querySelectorAll("button").forEach((one, number) => one.setAttribute("aria-pressed", String(number === place)));
      detail.replaceChildren(rivals(place));
    }

    function rivals(place) {
      const one = own[place];
      const facts = [["words.probability", mh.n(one.probability, 4)], ["words.rank", mh.whole(one.rank)], ["words.entropy", mh.n(one.entropy, 3)]];
      const items = [{ label: mh.piece(one.piece), value: one.probability, text: mh.n(one.probability, 3), strong: true, action: mh.h("span", { class: "tag" }, mh.t(one.forced ? "words.given" : "words.chosen")) },
        ...one.rivals.map((rival) => ({
          label: mh.piece(rival.piece), value: rival.probability, text: mh.n(rival.probability, 3),
          action: mh.live && mh.button(mh.t("words.use"), () => use(place, rival), { class: "quiet", "aria-label": mh.t("words.use_this", { piece: mh.piece(rival.piece) }) }),
        }))];
      const table = () => ({ columns: ["piece", "probability", "log_probability"].map((name) => mh.t(`column.${name}`)), rows: [one, ...one.rivals].map((rival) => [rival.piece, rival.probability, rival.log_probability]) });
      const before = own.slice(Math.max(0, place - 6), place).map((other) => mh.piece(other.piece)).join(" ");
      return mh.figure({
        title: mh.t("words.rivals", { place: place + 1, piece: mh.piece(one.piece) }), note: before ? mh.t("words.after", { before }) : mh.t("words.first"), name: "rivals", table,
        chart: mh.h("div", {}, mh.h("dl", { class: "facts" }, facts.map(([key, value]) => mh.h("div", {}, mh.h("dt", {}, mh.t(key)), mh.h("dd", {}, value)))),
          mh.bars(items, { high: 1 }), !mh.live && mh.h("p", { class: "note" }, mh.t("words.needs_server"))),
      });
    }

    /** Go on from here with another token. */
    function use(place, rival) {
      const ids = [...own.slice(0, place).map((one) => one.id), rival.id];
      mh.set({ prefix: ids.join("."), target: "", at: place, node: -1, step: -1, more: found.kind === "language-modeling" ? Math.max(8, own.length - place - 1) : 0 });
      mh.say(mh.t("words.used", { piece: mh.piece(rival.piece) }));
      mh.render({ keep: true });
    }

    function whole() {
      const columns = ["place", "piece", "probability", "rank", "entropy", "best_rival"].map((one) => mh.t(`column.${one}`));
      const rows = own.map((one, place) => [place + 1, one.piece, one.probability, one.rank, one.entropy, one.rivals[0] ? `${mh.piece(one.rivals[0].piece)} ${mh.n(one.rivals[0].probability, 3)}` : "–"]);
      const places = own.map((_, place) => place + 1);
      return mh.figure({
        title: mh.t("words.all"), note: mh.t("words.all_note"), name: "probabilities", table: () => ({ columns, rows }),
        chart: mh.lines({ label: mh.t("words.all"), xTitle: mh.t("column.place"), yTitle: mh.t("column.probability"), series: [
          { name: mh.t("column.probability"), x: places, y: own.map((one) => one.probability) }] }),
      });
    }
  }
})();
