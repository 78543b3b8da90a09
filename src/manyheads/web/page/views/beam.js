/* The beam search as a tree: a column for each step, candidates by rank; a slider sets the
   last step. */

import { stepper } from "../controls.js";
import { div, h, note, para, span, svg } from "../elements.js";
import { figure } from "../figure.js";
import { max, min } from "../numbers.js";
import { change, state } from "../state.js";
import { columnTitles, compact, n, pieceText, t } from "../strings.js";

const [NODE, NODE_ROW, NODE_HEIGHT, NODE_GAP] = [104, 54, 46, 36];

/* Milliseconds from step to step of Play. */
const STEP_TIME = 900;

/** @type {(panel: HTMLElement, inspection: Inspection) => void} */
export function buildBeam(panel, { beam }) {
  if (!beam) {
    panel.append(note(t("beam.none")));
    return;
  }
  const { nodes } = beam;
  const stop = t(`stop.${beam.stop}`);
  /** @type {(node: BeamNode) => string} */
  const reason = (node) =>
    t(`state.${node.state}`, {
      total: n(node.total, 2),
      threshold: n(node.threshold, 2),
      score: n(node.score, 2),
      beam: beam.beam_size,
      stop,
    });
  /** @type {(node: BeamNode) => string} */
  const styleOf = (node) =>
    (["pruned", "outranked", "late-end"].includes(node.state) ? " discarded" : "") +
    (node.best ? " best" : "");
  /** @type {BeamNode[][]} */
  const columns = [];
  for (const node of nodes) (columns[node.step] ||= []).push(node);
  const last = columns.length - 1;
  /** @type {(node: BeamNode) => [number, number]} */
  const position = (node) => [
    node.step * (NODE + NODE_GAP),
    columns[node.step].indexOf(node) * NODE_ROW,
  ];
  const edges = nodes.map((node) => {
    if (node.parent === null) return svg("path");
    const [[x, y], [left, top]] = [position(nodes[node.parent]), position(node)];
    const [from, start, to] = [y + NODE_HEIGHT / 2, x + NODE, top + NODE_HEIGHT / 2];
    const half = NODE_GAP / 2;
    return svg("path", {
      d: `M${start} ${from}C${start + half} ${from} ${left - half} ${to} ${left} ${to}`,
    });
  });
  const boxes = nodes.map((node, i) => {
    const [left, top] = position(node);
    const select = () => selectNode(i);
    return h(
      "button",
      {
        type: "button",
        tabindex: -1,
        class: `node ${node.state}${styleOf(node)}`,
        style: { left: `${left}px`, top: `${top}px` },
        "aria-label": `${pieceText(node.piece)} ${n(node.total, 2)}, ${reason(node)}`,
        onfocus: select,
        onpointerenter: select,
      },
      h("span", { dir: "auto" }, pieceText(node.piece)),
      " ",
      h("small", {}, n(node.total, 2)),
    );
  });
  const size = {
    width: columns.length * (NODE + NODE_GAP) - NODE_GAP,
    height: max(...columns.map((column) => column.length)) * NODE_ROW,
  };
  const scroll = h(
    "div",
    { class: "tree-scroll", onkeydown: moveFocus },
    h(
      "div",
      {
        class: "tree",
        role: "group",
        "aria-label": t("beam.tree"),
        style: { width: `${size.width}px`, height: `${size.height}px` },
      },
      svg("svg", size, edges),
      boxes,
    ),
  );
  const detail = para("reading", " ");
  let step = min(last, state.step);
  let current = 0;

  const keys = h(
    "ul",
    { class: "keys" },
    ["kept", "pruned", "finished", "best"].map((name) =>
      h("li", {}, span(`node sample ${name}`), t(`beam.${name}`)),
    ),
  );
  panel.append(
    figure({
      key: "beam.tree",
      values: { beam: beam.beam_size, penalty: compact(beam.length_penalty), stop },
      chart: div(
        "",
        stepper({ label: t("column.step"), last, value: step, time: STEP_TIME }, showSteps).field,
        scroll,
        detail,
        keys,
        h("details", {}, h("summary", {}, t("beam.list")), list()),
      ),
      table: () => [
        columnTitles("step piece log_probability total score rank before reason"),
        nodes.map((node) => [
          node.step + 1,
          node.piece,
          node.log_probability,
          node.total,
          node.score,
          node.rank,
          node.parent === null ? "–" : nodes[node.parent].piece,
          reason(node),
        ]),
      ],
    }),
  );
  showSteps(step);
  selectNode(nodes.findLast((node) => node.best && node.step <= step)?.number ?? 0);

  /** Show the tree up to a step.
      @type {(value: number) => void} */
  function showSteps(value) {
    step = value;
    change({ step });
    nodes.forEach((node, i) => {
      boxes[i].hidden = node.step > step;
    });
    scroll.scrollLeft = (step + 1) * (NODE + NODE_GAP) - scroll.clientWidth;
    selectNode(nodes[current].step > step ? columns[step][0].number : current);
  }

  /** Mark the path to a node, and describe the node.
      @type {(i: number) => void} */
  function selectNode(i) {
    boxes[current].tabIndex = -1;
    current = i;
    boxes[i].tabIndex = 0;
    /** @type {BeamNode[]} */
    const path = [];
    for (let node = nodes[i]; node; node = nodes[node.parent ?? -1]) path.unshift(node);
    nodes.forEach((node, k) => {
      const onPath = path.includes(node);
      boxes[k].classList.toggle("on-path", onPath);
      edges[k].setAttribute("class", `edge${styleOf(node)}`);
      edges[k].classList.toggle("on-path", onPath);
      edges[k].classList.toggle("hidden-edge", node.step > step);
    });
    const node = nodes[i];
    const values = /** @type {const} */ (["log_probability", "total", "score"]).map(
      (name) => `${t(`column.${name}`)} ${n(node[name], 2)}`,
    );
    detail.textContent = [
      path.map((ancestor) => pieceText(ancestor.piece)).join(" "),
      ...values,
      `${t("column.rank")} ${node.rank}`,
      reason(node),
    ].join(" · ");
  }

  /** Move the focus along the tree by the arrow keys.
      @type {(e: KeyboardEvent) => void} */
  function moveFocus(e) {
    const node = nodes[current];
    const column = columns[node.step];
    const index = column.indexOf(node);
    const children = nodes.filter((child) => child.parent === current);
    /** @type {{ [key: string]: BeamNode | undefined }} */
    const targets = {
      ArrowRight: children.find((child) => child.best) || children[0],
      ArrowLeft: nodes[node.parent ?? -1],
      ArrowDown: column[index + 1],
      ArrowUp: column[index - 1],
      Home: column[0],
      End: column.at(-1),
    };
    if (!(e.key in targets)) return;
    e.preventDefault();
    const to = targets[e.key];
    if (to && to.step <= step) boxes[to.number].focus();
  }

  /** Create the tree as nested lists. */
  function list() {
    /** @type {(parent: number | null) => Child} */
    const childList = (parent) => {
      const children = nodes.filter((child) => child.parent === parent);
      return (
        children.length > 0 &&
        h(
          "ul",
          {},
          children.map((child) =>
            h(
              "li",
              {},
              span(child.best && "strong", `${pieceText(child.piece)} ${n(child.total, 2)} `),
              h("small", {}, reason(child)),
              childList(child.number),
            ),
          ),
        )
      );
    };
    return h(
      "div",
      { class: "scroll list", tabindex: 0, role: "region", "aria-label": t("beam.list") },
      childList(null) || "",
    );
  }
}
