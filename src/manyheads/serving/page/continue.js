"use strict";
/* Continue: what a language model thinks may come next, and how temperature, top-k and top-p change that. */
(() => {
  const { h, t, n } = mh;
  mh.views.continue = { tasks: ["language-modeling"], build };

  async function build(panel) {
    const holder = h("div", { class: "stack" });
    const written = h("div", { class: "output written", dir: "auto", "aria-live": "polite" });
    if (!mh.live) {
      const found = await mh.inspection();
      panel.append(h("p", { class: "translation", dir: "auto" }, found.text.text), chart(found.next.map((one) => ({ ...one, share: one.probability })), null));
      return;
    }
    const later = mh.quiet(200, show);
    const dial = (name, options) => mh.slider(t(`continue.${name}`), { value: mh.state[name], ...options }, (value) => { mh.set({ [name]: value }); later(); });
    panel.append(mh.textBox(show), h("div", { class: "controls" },
      dial("temperature", { min: 0.1, max: 2, step: 0.1, show: (value) => n(value, 1) }),
      dial("topk", { min: 0, max: 50, show: (value) => (value ? String(value) : t("continue.all")) }),
      dial("topp", { min: 0.05, max: 1, step: 0.05, show: (value) => n(value, 2) }),
      mh.button(t("continue.write"), write, { class: "primary" })), written, holder);
    await show();

    function asked() {
      const { q, temperature, topk, topp } = mh.state;
      return { model: mh.current().name, q, temperature, top_k: topk, top_p: topp };
    }

    async function show() {
      const found = await mh.source.next(asked());
      if (panel.isConnected) holder.replaceChildren(chart(found.tokens, found.kept));
    }

    async function write() {
      const found = await mh.source.next({ ...asked(), write: 24, seed: Math.floor(Math.random() * 1e6) });
      written.replaceChildren(h("p", { class: "translation" }, mh.state.q, h("mark", {}, found.text)));
    }

    function chart(tokens, kept) {
      const append = (one) => mh.live && one.text && mh.button(t("continue.append"), () => { mh.set({ q: mh.state.q + one.text }); mh.render({ keep: true }); }, { class: "quiet", "aria-label": `${t("continue.append")}: ${mh.piece(one.piece)}` });
      return mh.figure({
        title: t("continue.next"), note: kept === null ? "" : t("continue.note", { kept: mh.whole(kept) }), name: "next",
        chart: mh.bars(tokens.map((one) => ({ label: mh.piece(one.piece), value: one.share, text: `${n(one.share, 3)}${kept === null ? "" : ` (${n(one.probability, 3)})`}`, action: append(one) })), { high: 1 }),
        table: () => ({ columns: ["piece", "share", "probability"].map((one) => t(`column.${one}`)), rows: tokens.map((one) => [one.piece, one.share, one.probability]) }),
      });
    }
  }
})();
