"use strict";
/* Classify: how likely each class is, and what each word did for it. */
(() => {
  const { h, t, n } = mh;
  mh.views.classify = { tasks: ["classification"], build };

  async function build(panel) {
    const holder = h("div", { class: "stack" });
    if (mh.live) panel.append(mh.textBox(show));
    panel.append(holder);
    await show();

    async function show() {
      const found = await mh.inspection();
      if (!found) return;
      const items = found.classes.map((one) => ({ label: one.label, value: one.probability, text: n(one.probability, 3), strong: one.label === found.label })).sort((one, other) => other.value - one.value);
      const columns = [t("column.class"), t("column.probability")];
      holder.replaceChildren(mh.figure({
        title: t("classify.label", { label: found.label }), note: t(`classify.${found.pooling}`), name: "classes", chart: mh.bars(items, { high: 1 }),
        table: () => ({ columns, rows: found.classes.map((one) => [one.label, one.probability]) }),
      }), found.occlusion && mh.figure({
        title: t("occlusion.title"), note: t("classify.occlusion_note", { label: found.label }), name: "occlusion",
        chart: mh.bars(found.occlusion.words.map((one) => ({ label: found.text.words[one.word], value: one.drop, text: `${n(one.drop, 2)}${one.output === found.label ? "" : ` → ${one.output}`}` }))),
        table: () => ({ columns: [t("occlusion.without"), t("occlusion.drop"), ...found.occlusion.columns], rows: found.occlusion.words.map((one) => [found.text.words[one.word], one.drop, ...one.drops]) }),
      }));
    }
  }

  /** A box for the text that is looked at; `show` is called when it has changed. */
  mh.textBox = (show) => {
    const model = mh.current();
    const count = h("p", { class: "count", id: "count" });
    const wrong = h("p", { class: "wrong", role: "alert" });
    const box = h("textarea", { id: "source", rows: 4, dir: "auto", spellcheck: "false", "aria-describedby": "count", placeholder: t("classify.placeholder"), oninput: () => { counted(); later(); } });
    box.value = mh.state.q;
    const run = async () => {
      if (box.value !== mh.state.q) mh.set({ q: box.value, prefix: "", more: 0, at: 0 });
      wrong.textContent = "";
      try { await show(); } catch (error) { wrong.textContent = error.message; }
    };
    const later = mh.quiet(450, run);
    const counted = () => {
      const left = mh.about.char_limit - [...box.value].length;
      count.textContent = t("translate.left", { left: mh.whole(left) });
      count.classList.toggle("wrong", left < 0);
    };
    counted();
    return h("div", { class: "card side" }, h("label", { class: "side-head", for: "source" }, t("classify.text")), box,
      h("div", { class: "side-foot" }, count, model.example && mh.button(t("translate.example"), () => { box.value = model.example; counted(); run(); }, { class: "quiet" })), wrong);
  };
})();
