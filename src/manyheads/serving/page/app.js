"use strict";
/* The page as a whole: its settings, its tabs, and what stands in the panel. */
(() => {
  const { h, t } = mh;
  const LANGUAGES = [["en", "English"], ["ko", "한국어"]];
  const THEMES = ["auto", "light", "dark"];
  const ORDER = ["translate", "classify", "continue", "words", "alignment", "attention", "beam", "training", "model"];
  const [tabs, panel, settings] = ["tabs", "panel", "settings"].map((id) => document.getElementById(id));
  let latest = 0;

  const fitting = () => ORDER.filter((name) => mh.views[name].tasks.includes(mh.current().task) && (mh.live || !mh.views[name].live) && has(name));
  /** A document holds what it was given, a server everything. */
  const has = (name) => mh.live || (name === "training" ? mh.about.curves : name === "model" ? mh.about.model : mh.about.inspection);

  function drawSettings() {
    const languages = LANGUAGES.map(([code, name]) => mh.button(name, () => speak(code), { lang: code, "aria-pressed": String(code === mh.language) }));
    const models = mh.about.models.length > 1 && mh.select(t("settings.model"), mh.about.models.map((one) => [one.name, one.title]), mh.current().name, (model) => {
      mh.set({ model, prefix: "", target: "", kind: "", layer: -1, head: "mean", other: "", beam: "", sentence: 0 });
      mh.render();
    });
    const key = mh.live && mh.about.key_required && h("label", { class: "field" }, h("span", {}, t("settings.key")),
      h("input", { type: "password", autocomplete: "off", value: mh.key, onchange: (event) => { mh.key = event.target.value.trim(); mh.render(); } }));
    settings.replaceChildren(...[models, key, h("div", { class: "segments", role: "group", "aria-label": t("settings.language") }, languages),
      mh.select(t("settings.theme"), THEMES.map((one) => [one, t(`theme.${one}`)]), mh.remembered("theme") || "auto", (theme) => { mh.remember("theme", theme); dress(theme); })].filter(Boolean));
  }

  function dress(theme) {
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
  }

  async function speak(language) {
    mh.strings[language] ??= await mh.source.strings(language);
    mh.language = language;
    mh.remember("language", language);
    document.documentElement.lang = language;
    for (const node of document.querySelectorAll("[data-t]")) node.textContent = t(node.dataset.t);
    if (mh.about) mh.render();
  }

  function drawTabs() {
    const names = fitting();
    if (!names.includes(mh.state.tab)) mh.state.tab = names[0];
    const buttons = names.map((name) => h("button", {
      type: "button", role: "tab", id: `tab-${name}`, "aria-controls": "panel", "aria-selected": String(name === mh.state.tab), onclick: () => open(name),
    }, t(`tab.${name}`)));
    tabs.setAttribute("aria-label", t("tabs"));
    const fresh = h("div", { class: "tabs-row", role: "presentation" }, buttons);
    mh.roving(fresh, buttons, { current: names.indexOf(mh.state.tab), onmove: (place) => open(names[place]) });
    tabs.replaceChildren(fresh);
    buttons[names.indexOf(mh.state.tab)].scrollIntoView?.({ block: "nearest", inline: "nearest" });
    panel.setAttribute("aria-labelledby", `tab-${mh.state.tab}`);
    document.title = `${t(`tab.${mh.state.tab}`)} – manyheads`;
  }

  function open(name) {
    const focused = tabs.contains(document.activeElement);
    mh.set({ tab: name });
    mh.render();
    if (focused) document.getElementById(`tab-${name}`).focus();
  }

  /** Draw all that depends on the state; `keep` keeps the place on the page. */
  mh.render = async ({ keep = false } = {}) => {
    const own = (latest += 1);
    drawSettings();
    drawTabs();
    const view = mh.views[mh.state.tab];
    const fresh = h("div", { class: "stack", id: "content" });
    const top = window.scrollY;
    panel.setAttribute("aria-busy", "true");
    try {
      const found = view.needs ? await mh.inspection() : null;
      if (own !== latest) return;
      panel.replaceChildren(fresh);
      if (view.needs && !found) fresh.append(nothing());
      else {
        if (view.needs) fresh.append(about(found));
        await view.build(fresh, found);
      }
    } catch (error) {
      if (own === latest) panel.replaceChildren(h("div", { class: "stack", id: "content" }, h("p", { class: "notice wrong", role: "alert" }, error.message)));
    }
    if (own !== latest) return;
    window.scrollTo(0, keep ? top : 0);
    panel.setAttribute("aria-busy", "false");
  };

  /** Which sentence is looked at, and what was changed about it. */
  function about(found) {
    const given = found.prefix && !found.forced && mh.state.prefix;
    const reset = () => { mh.set({ prefix: "", target: "", more: 0, at: 0, node: -1, step: -1 }); mh.render({ keep: true }); };
    const texts = found.kind === "translation" ? [[found.source], [found.target, mh.n(found.score, 3)]] : [[found.text, found.label]];
    return h("div", { class: "about" }, texts.map(([text, more], place) => h("p", { dir: "auto", lang: text.language || null, class: place ? "about-target" : "about-source" }, text.text, more && h("small", { class: "quiet-text" }, ` ${more}`))),
      (given || mh.state.target) && h("p", { class: "changed" }, t(given ? "about.prefix" : "about.target"), " ", mh.button(t("about.reset"), reset, {})));
  }

  function nothing() {
    const model = mh.current();
    return h("div", { class: "empty" }, h("p", {}, t("empty")), h("div", { class: "controls" },
      mh.button(t(`tab.${fitting()[0]}`), () => open(fitting()[0]), { class: "primary" }), model.example && mh.button(t("translate.example"), () => { mh.set({ q: model.example }); mh.render(); }, {})));
  }

  async function start() {
    dress(mh.remembered("theme"));
    mh.read();
    const wish = new URLSearchParams(location.search).get("lang") || mh.remembered("language") || (navigator.language || "en").slice(0, 2);
    await speak(LANGUAGES.some(([code]) => code === wish) ? wish : "en");
    mh.about = await mh.source.about();
    window.addEventListener("popstate", () => { mh.read(); mh.render(); });
    window.addEventListener("hashchange", () => { if (location.hash !== mh.address()) { mh.read(); mh.render(); } });
    await mh.render();
  }
  start().catch((error) => panel.replaceChildren(h("p", { class: "notice wrong", role: "alert" }, error.message)));
})();
