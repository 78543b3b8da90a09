/* The tabs of the page. */

import { canCompute, currentModel } from "./source.js";
import { mh } from "./state.js";

/** The tabs in their order, and what the view of each needs.
    @type {{ [name: string]: Tab }} */
export const TABS = {
  translate: { tasks: ["translation"], needsEngine: true },
  classify: { tasks: ["classification"] },
  continue: { tasks: ["language-modeling"] },
  whole: { needsInspection: true, showsText: true },
  words: { tasks: ["translation", "language-modeling"], needsInspection: true },
  alignment: { tasks: ["translation"], needsInspection: true },
  attention: { needsInspection: true, hasSwitches: true },
  steps: { needsInspection: true, needsEngine: true },
  beam: { tasks: ["translation"], needsInspection: true },
  training: { part: "curves" },
  model: { part: "model" },
  card: { part: "model" },
};

/** Return the tabs for the task of the model: on a server all, in a document those with data.
    @type {() => string[]} */
export function availableViews() {
  const { task, watched } = currentModel();
  return Object.entries(TABS)
    .filter(([, tab]) => {
      if (!(tab.tasks?.includes(task) ?? true)) return false;
      if (canCompute) return watched || !(tab.needsInspection || tab.part === "model");
      return !tab.needsEngine && mh.about.parts.includes(tab.part ?? "inspection");
    })
    .map(([name]) => name);
}
