/* The frame of the page: settings, tabs, and the panel with the current view. */

import { button, choice, copyButton, linkButton, roving } from "./controls.js";
import { changeNotice, showEffect } from "./effect.js";
import { aria, byId, div, h, para, span, stack } from "./elements.js";
import { hasWorker } from "./engine.js";
import { acceptDroppedFiles } from "./files.js";
import {
  canCompute,
  currentModel,
  embedded,
  fetchInspection,
  loadAbout,
  loadStrings,
  textFor,
} from "./source.js";
import {
  addressOf,
  AS_TRAINED,
  change,
  goTo,
  mh,
  OWN_OUTPUT,
  readAddress,
  savedSetting,
  saveSetting,
  state,
} from "./state.js";
import { languageName, n, t } from "./strings.js";
import { availableViews, TABS } from "./tabs.js";
import { textSummary } from "./textbox.js";
import { buildAlignment } from "./views/alignment.js";
import { buildAttention } from "./views/attention.js";
import { buildBeam } from "./views/beam.js";
import { buildCard } from "./views/card.js";
import { buildClassify } from "./views/classify.js";
import { buildContinue } from "./views/continue.js";
import { buildModel } from "./views/model.js";
import { buildSteps } from "./views/steps.js";
import { buildTraining } from "./views/training.js";
import { buildTranslate } from "./views/translate.js";
import { buildWhole } from "./views/whole.js";
import { buildWords } from "./views/words.js";

/** @type {{ [code: string]: string }} */
const LANGUAGES = { en: "English", ko: "한국어" };

const THEMES = ["auto", "light", "dark"];

const [tabs, panel, settings] = ["tabs", "panel", "settings"].map(byId);

/** What draws the view of each tab.
    @type {{ [tab: string]: (panel: HTMLElement, inspection: Inspection) =>
      Promise<void> | void }} */
const BUILD = {
  translate: buildTranslate,
  whole: buildWhole,
  words: buildWords,
  alignment: buildAlignment,
  attention: buildAttention,
  steps: buildSteps,
  beam: buildBeam,
  training: buildTraining,
  model: buildModel,
  card: buildCard,
  classify: buildClassify,
  continue: buildContinue,
};
let renderCount = 0;

function drawSettings() {
  const models = mh.about.models.map(({ name }) => name);
  const key = h("input", {
    type: "password",
    autocomplete: "off",
    onchange: () => {
      mh.key = key.value.trim();
      render();
    },
  });
  key.value = mh.key;
  settings.replaceChildren(
    canCompute && !hasWorker ? h("a", { href: "docs" }, "API") : "",
    copyButton(t("settings.link"), () => location.href, t("settings.link_hint")),
    models.length > 1
      ? choice(t("settings.model"), models, currentModel().name, (model) =>
          goTo({
            ...OWN_OUTPUT,
            ...AS_TRAINED,
            model,
            q: textFor(model),
            kind: "",
            layer: -1,
            head: "mean",
            other: "",
            beam: "",
            sentence: 0,
          }),
        )
      : "",
    mh.about.key_required ? h("label", { class: "field" }, span("", t("settings.key")), key) : "",
    h(
      "div",
      { class: "segments", role: "group", "aria-label": t("settings.language") },
      Object.entries(LANGUAGES).map(([code, name]) =>
        button(name, () => setLanguage(code), {
          lang: code,
          "aria-pressed": code === mh.language || "false",
        }),
      ),
    ),
    choice(
      t("settings.theme"),
      THEMES.map((theme) => [theme, t(`theme.${theme}`)]),
      document.documentElement.dataset.theme,
      (theme) => {
        saveSetting("theme", theme);
        applyTheme(theme);
      },
    ),
  );
}

/** @type {(theme: string | null) => void} */
const applyTheme = (theme) => {
  document.documentElement.dataset.theme = theme && THEMES.includes(theme) ? theme : "auto";
};

/** Switch to a language and draw the page again.
    @type {(language: string) => Promise<void>} */
async function setLanguage(language) {
  mh.strings[language] ??= await loadStrings(language);
  mh.language = language;
  saveSetting("language", language);
  document.documentElement.lang = language;
  /** @type {Element} */ (document.querySelector(".skip")).textContent = t("skip");
  if (mh.about) {
    const focused = settings.contains(document.activeElement);
    await render(true);
    if (focused) /** @type {HTMLElement} */ (settings.querySelector(`[lang=${language}]`)).focus();
  }
}

function drawTabs() {
  const names = availableViews();
  if (!names.includes(state.tab)) [state.tab] = names;
  const current = names.indexOf(state.tab);
  const focused = tabs.contains(document.activeElement);
  const buttons = names.map((name, i) =>
    button(t(`tab.${name}`), () => open(name), {
      role: "tab",
      id: `tab-${name}`,
      "aria-controls": "panel",
      "aria-selected": i === current || "false",
    }),
  );
  aria(tabs, "label", t("tabs"));
  const row = roving(
    h("div", { class: "tabs-row", role: "presentation" }, buttons),
    buttons,
    current,
    (to) => open(names[to]),
  );
  tabs.replaceChildren(row);
  // scrollIntoView would also scroll a page that embeds this one
  row.scrollLeft =
    buttons[current].offsetLeft -
    row.offsetLeft -
    (row.clientWidth - buttons[current].offsetWidth) / 2;
  if (focused) buttons[current].focus();
  aria(panel, "labelledby", `tab-${state.tab}`);
  const { name, task, source, target } = currentModel();
  const direction = `${languageName(source)} → ${languageName(target)}`;
  const model = task === "translation" ? direction : name;
  document.title = `${t(`tab.${state.tab}`)}: ${model} – manyheads`;
  /** @type {(tab: string) => void} */
  function open(tab) {
    change({ tab });
    render();
  }
}

/** Draw all that depends on the state; `keepScroll` keeps the scroll position.
    @type {(keepScroll?: boolean) => Promise<void>} */
async function render(keepScroll) {
  const number = (renderCount += 1);
  drawSettings();
  drawTabs();
  const view = TABS[state.tab];
  const top = keepScroll ? window.scrollY : 0;
  const { activeElement } = document;
  const focusKey =
    keepScroll &&
    activeElement instanceof HTMLElement &&
    panel.contains(activeElement) &&
    (activeElement.dataset.focus || "-");
  aria(panel, "busy", "true");
  try {
    const inspection = view.needsInspection ? await fetchInspection() : null;
    if (number !== renderCount) return;
    const isFirst = state.tab === availableViews()[0];
    const usesModel = view.needsInspection || view.tasks;
    const isForced = state.prefix || state.target;
    const content = stack(
      hasWorker && isFirst && introduction(),
      usesModel && !(view.hasSwitches && inspection) && changeNotice(),
      view.needsInspection && !inspection && emptyNotice(),
      inspection && (!view.showsText || isForced) && textSummary(inspection),
    );
    panel.replaceChildren(content);
    if (inspection || !view.needsInspection) {
      await BUILD[state.tab](content, /** @type {Inspection} */ (inspection));
    }
  } catch (error) {
    if (number === renderCount) {
      panel.replaceChildren(
        stack(changeNotice(), h("p", { class: "notice wrong", role: "alert" }, error.message)),
      );
    }
  }
  if (number !== renderCount) return;
  if (focusKey) {
    const focused = panel.querySelector(`[data-focus="${CSS.escape(focusKey)}"]`) || panel;
    /** @type {HTMLElement} */ (focused).focus();
  }
  window.scrollTo(0, top);
  aria(panel, "busy", "false");
  showEffect();
}

/** Create the line about the model in an exported page, with a button that opens its card. */
function introduction() {
  const { task, source, target } = currentModel();
  const card =
    availableViews().includes("card") && linkButton(t("intro.card"), () => goTo({ tab: "card" }));
  return para(
    "note intro",
    t(`intro.${task}`, {
      source: languageName(source),
      target: languageName(target),
      size: n((mh.about.weights?.bytes ?? 0) / 2 ** 20, 1),
    }),
    " ",
    card,
  );
}

/** Create the notice of a view without a text. */
function emptyNotice() {
  const [first] = availableViews();
  const {
    examples: [q],
  } = currentModel();
  return div(
    "empty",
    h("p", {}, t("empty")),
    div(
      "controls",
      button(t(`tab.${first}`), () => goTo({ tab: first }), { class: "primary" }),
      q && button(t("translate.example"), () => goTo({ q })),
    ),
  );
}

/** In a frame, report the height of the page to the page around it, which can give the frame this
    height. */
function reportHeight() {
  document.documentElement.classList.add("framed");
  new ResizeObserver(() =>
    window.parent.postMessage({ height: document.body.offsetHeight }, "*"),
  ).observe(document.body);
}

/** Set the state from the address; without a text, show an example, where no key is needed. */
function readState() {
  readAddress();
  if (canCompute && (mh.key || !mh.about.key_required) && !state.prefix) {
    state.q ||= currentModel().examples[0] ?? "";
  }
}

async function start() {
  mh.render = render;
  if (window !== window.top) reportHeight();
  applyTheme(savedSetting("theme"));
  const wanted = [
    new URLSearchParams(location.search).get("lang"),
    savedSetting("language"),
    embedded?.language,
    navigator.language.slice(0, 2),
  ];
  await setLanguage(
    wanted.find((language) => language && Object.keys(LANGUAGES).includes(language)) ?? "en",
  );
  mh.about = await loadAbout();
  readState();
  const { project } = mh.about;
  if (project) {
    document.body.append(h("footer", { class: "footer" }, h("a", { href: project }, project)));
  }
  window.addEventListener("popstate", () => {
    if (location.hash !== addressOf()) {
      readState();
      render();
    }
  });
  if (mh.about.files?.length) acceptDroppedFiles();
  await render();
  byId("starting").remove();
}

start().catch((error) => {
  // Without strings for an error message, the page keeps its first text.
  if (!mh.strings[mh.language]) return;
  panel.replaceChildren(error.message);
  document.getElementById("starting")?.remove();
});
