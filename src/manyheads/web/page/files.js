/* Files: the server translates one that is chosen or dropped on the page. */

import { button } from "./controls.js";
import { announce, byId, div, download, h, note, para, span } from "./elements.js";
import { tableOf } from "./figure.js";
import { currentModel, fetchAnswer, fetchResponse } from "./source.js";
import { goTo, mh, state } from "./state.js";
import { columnTitles, integer, t } from "./strings.js";
import { availableViews } from "./tabs.js";

/** The newest file.
    @type {FileJob | null} */
let job = null;

const holder = div("figure file");

/** Create the button that chooses a file. */
export function fileButton() {
  const input = h("input", {
    type: "file",
    accept: mh.about.files?.join() ?? "",
    hidden: true,
    onchange: () => {
      translateFile([...(input.files ?? [])]);
      input.value = "";
    },
  });
  const choose = () => input.click();
  return [button(t("file.choose"), choose, { id: "file-choose", title: t("file.drop") }), input];
}

/** Return the element of the newest file, in the language of the page. */
export function fileState() {
  showJob();
  return holder;
}

/** Translate a file that is dropped on the page, where the current model translates. */
export function acceptDroppedFiles() {
  /** @type {(e: DragEvent) => void} */
  const accept = (e) => {
    const { types, files } = e.dataTransfer ?? {};
    if (!types?.includes("Files") || !availableViews().includes("translate")) return;
    e.preventDefault();
    if (e.type !== "drop" || !files) return;
    translateFile([...files]);
    if (state.tab !== "translate") goTo({ tab: "translate" });
  };
  for (const type of /** @type {const} */ (["dragover", "drop"])) addEventListener(type, accept);
}

/** Send a file to the server, and fetch its translation; one that is being translated is cancelled.
    @type {(files: File[]) => Promise<void>} */
async function translateFile([file, ...others]) {
  if (!file) return;
  job?.control.abort();
  const { source = "", target = "" } = currentModel();
  const form = new FormData();
  form.append("source", source);
  form.append("target", target);
  form.append("file", file);
  const control = new AbortController();
  job = { name: file.name, time: span("count"), control };
  const current = job;
  const start = performance.now();
  const timer = setInterval(() => {
    const seconds = integer((performance.now() - start) / 1000);
    current.time.textContent = t("file.seconds", { seconds });
  }, 1000);
  showJob();
  try {
    if (others.length) throw new Error(t("file.one"));
    const answer = await fetchAnswer("translate_file", form, control.signal);
    const { translatedFileUrl, report } =
      /** @type {{ translatedFileUrl: string, report: FileReport }} */ (answer);
    // relative to the page, which a proxy may serve below a path
    const path = `download_file/${translatedFileUrl.split("/").pop()}`;
    const response = await fetchResponse(path, undefined, control.signal);
    const [, name] = (response.headers.get("Content-Disposition") ?? "").split("UTF-8''");
    const content = await response.blob();
    current.result = { ...report, name: decodeURIComponent(name), content };
  } catch (error) {
    current.error = error.message;
  }
  clearInterval(timer);
  if (job !== current) return;
  showJob();
  if (current.result) announce(holder.firstChild?.textContent ?? "");
}

/** Show the newest file: its progress, its error, or its translation and what is doubtful in it. */
function showJob() {
  const isFocused = holder.contains(document.activeElement);
  holder.replaceChildren();
  if (job?.error) {
    holder.append(h("p", { class: "wrong", role: "alert" }, `${job.name}: ${job.error}`));
  } else if (job?.result) {
    const { name, content, units, unchanged, doubtful, notes } = job.result;
    const counts = { units, unchanged, doubtful: doubtful.length };
    const shown = Object.entries(counts).map(([key, count]) => [key, integer(count)]);
    const rows = doubtful.map(([place, text, reasons]) => [place, text, reasons.join("; ")]);
    const save = () => download(name, content.type, content);
    holder.append(
      para("", t("file.done", { name, ...Object.fromEntries(shown) })),
      div("controls", button(t("file.save", { name }), save, { class: "primary" })),
      ...notes.map((text) => note(text)),
      rows.length ? tableOf([columnTitles("place text doubt"), rows], t("file.doubtful")) : "",
    );
  } else if (job) {
    const busy = t("file.busy", { name: job.name });
    const cancel = button(t("correct.cancel"), () => {
      job?.control.abort();
      job = null;
      showJob();
    });
    const progress = h("progress", { "aria-label": busy });
    holder.append(para("", busy), div("controls", progress, job.time, cancel));
  }
  if (isFocused) (holder.querySelector("button") ?? byId("file-choose")).focus();
}
