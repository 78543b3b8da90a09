"use strict";
/* The page as a whole: its settings, its tabs, and what stands in the panel. */
const LANGUAGES = { en: "English", ko: "한국어" };
const ORDER = ["translate", "classify", "continue", "words", "alignment", "attention", "steps", "beam", "training", "model", "card"];
const [tabs, panel, settings] = ["tabs", "panel", "settings"].map((id) => document.getElementById(id));
let drawing = 0;

/** The tabs that there are: a server has those of a task, a document those that it holds. */
const PARTS = { training: "curves", model: "model", card: "model" }; // of a document, by tab; other tabs need an inspection
function fitting() {
  const { task, watched } = theModel();
  return ORDER.filter((name) => {
    const view = views[name];
    if (!(view.tasks?.includes(task) ?? true)) return false;
    if (live) return watched || !(view.inside || PARTS[name] === "model");
    return !view.served && mh.about.parts.includes(PARTS[name] || "inspection");
  });
}

function drawSettings() {
  const models = mh.about.models.map((one) => one.name);
  const key = h("input", { type: "password", autocomplete: "off", onchange: () => { mh.key = key.value.trim(); render(); } });
  key.value = mh.key;
  settings.replaceChildren(live && !offline ? h("a", { href: "docs" }, "API") : "", copyButton(t("settings.link"), () => location.href, t("settings.link_hint")),
    models.length > 1 ? choice(t("settings.model"), models, theModel().name, (model) => { change({ ...OWN, ...TRAINED, model, kind: "", layer: -1, head: "mean", other: "", beam: "", sentence: 0 }); render(); }) : "",
    mh.about.key_required ? h("label", { class: "field" }, span("", t("settings.key")), key) : "",
    h("div", { class: "segments", role: "group", "aria-label": t("settings.language") }, Object.entries(LANGUAGES).map(([code, name]) => button(name, () => speak(code), { lang: code, "aria-pressed": code === mh.language || "false" }))),
    choice(t("settings.theme"), ["auto", "light", "dark"].map((one) => [one, t(`theme.${one}`)]), recall("theme") || "auto", (theme) => { recall("theme", theme); dress(theme); }));
}

const dress = (theme) => { document.documentElement.dataset.theme = theme || "auto"; };

async function speak(language) {
  mh.strings[language] ??= await stringsOf(language);
  mh.language = language;
  recall("language", language);
  document.documentElement.lang = language;
  document.querySelector(".skip").textContent = t("skip");
  if (mh.about) {
    const focused = settings.contains(document.activeElement);
    await render(true);
    if (focused) settings.querySelector(`[lang=${language}]`).focus();
  }
}

function drawTabs() {
  const names = fitting();
  if (!names.includes(state.tab)) [state.tab] = names;
  const at = names.indexOf(state.tab);
  const focused = tabs.contains(document.activeElement);
  const buttons = names.map((name, i) => button(t(`tab.${name}`), () => open(name), { role: "tab", id: `tab-${name}`, "aria-controls": "panel", "aria-selected": i === at || "false" }));
  aria(tabs, "label", t("tabs"));
  tabs.replaceChildren(roving(h("div", { class: "tabs-row", role: "presentation" }, buttons), buttons, at, (to) => open(names[to])));
  if (focused) buttons[at].focus();
  aria(panel, "labelledby", `tab-${state.tab}`);
  document.title = `${t(`tab.${state.tab}`)} – manyheads`;
  function open(tab) { change({ tab }); render(); }
}

/** Draw all that depends on the state; with `keep` the place on the page stays. */
async function render(keep) {
  const own = (drawing += 1);
  drawSettings();
  drawTabs();
  const view = views[state.tab];
  const top = keep ? window.scrollY : 0;
  const held = keep && panel.contains(document.activeElement) && (document.activeElement.dataset.focus || "-");
  aria(panel, "busy", "true");
  try {
    const found = view.inside && await inspected();
    if (own !== drawing) return;
    const fresh = stack((view.inside || view.tasks) && changedNotice(), view.inside && (found ? aboutOf(found) : nothing()));
    panel.replaceChildren(fresh);
    if (found || !view.inside) await view.build(fresh, found);
  } catch (error) {
    if (own === drawing) panel.replaceChildren(stack(changedNotice(), h("p", { class: "notice wrong", role: "alert" }, error.message)));
  }
  if (own !== drawing) return;
  if (held) (panel.querySelector(`[data-focus="${CSS.escape(held)}"]`) || panel).focus();
  window.scrollTo(0, top);
  aria(panel, "busy", "false");
  showEffect();
}

/** Which text is looked at, and what was changed about it. */
function aboutOf({ kind, source, target, text, label, score }) {
  const line = (one, look, more) => h("p", { dir: "auto", lang: one.language, class: look }, one.text, more && h("small", {}, more));
  const texts = kind === "translation" ? [line(source, "about-source"), line(target, "about-target", `${t("column.score")} ${n(score)}`)] : line(text, "about-target", label);
  const own = button(t("about.reset"), () => { change(OWN); render(true); });
  return div("about", texts, live && (state.prefix || state.target) && div("changed", t(state.prefix ? "about.prefix" : "about.target"), own));
}

function nothing() {
  const [first] = fitting();
  const { example: q } = theModel();
  return div("empty", h("p", {}, t("empty")), div("controls",
    button(t(`tab.${first}`), () => { change({ tab: first }); render(); }, { class: "primary" }), q && button(t("translate.example"), () => { change({ q }); render(); })));
}

async function start() {
  document.documentElement.classList.toggle("framed", window !== window.top);
  dress(recall("theme"));
  const wish = new URLSearchParams(location.search).get("lang") || recall("language") || embedded?.language || navigator.language.slice(0, 2);
  await speak(wish in LANGUAGES ? wish : "en");
  mh.about = await about();
  readAddress();
  window.addEventListener("popstate", () => { if (location.hash !== addressOf()) { readAddress(); render(); } });
  await render();
  document.getElementById("starting").remove();
}
start().catch((error) => {
  if (!mh.strings[mh.language]) return; // the page keeps its first text, as an error would have no words
  panel.replaceChildren(error.message);
  document.getElementById("starting")?.remove();
});
