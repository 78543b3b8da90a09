"use strict";
/* The beam as a tree that grows with a slider: a column for each step, candidates by rank. */
const [NODE, NODE_ROW, NODE_HEIGHT, NODE_GAP] = [104, 54, 46, 36];
views.beam = { tasks: ["translation"], inside: true, build: buildBeam };

function buildBeam(panel, { beam }) {
  if (!beam) return void panel.append(note(t("beam.none")));
  const { nodes } = beam;
  const stop = t(`stop.${beam.stop}`);
  const reason = (one) => t(`state.${one.state}`, { total: n(one.total, 2), threshold: n(one.threshold, 2), score: n(one.score, 2), beam: beam.beam_size, stop });
  const look = (one) => `${["pruned", "outranked", "late-end"].includes(one.state) ? " gone" : ""}${one.best ? " best" : ""}`;
  const columns = [];
  for (const one of nodes) (columns[one.step] ||= []).push(one);
  const last = columns.length - 1;
  const place = (one) => [one.step * (NODE + NODE_GAP), columns[one.step].indexOf(one) * NODE_ROW];
  const edges = nodes.map((one) => {
    if (one.parent === null) return svg("path");
    const [[x, y], [left, top]] = [place(nodes[one.parent]), place(one)];
    const [from, start, to] = [y + NODE_HEIGHT / 2, x + NODE, top + NODE_HEIGHT / 2];
    return svg("path", { d: `M${start} ${from}C${start + NODE_GAP / 2} ${from} ${left - NODE_GAP / 2} ${to} ${left} ${to}` });
  });
  const boxes = nodes.map((one, i) => {
    const [left, top] = place(one);
    const told = () => tell(i);
    return h("button", {
      type: "button", tabindex: -1, class: `node ${one.state}${look(one)}`, style: { left: `${left}px`, top: `${top}px` }, "aria-label": `${spell(one.piece)} ${n(one.total, 2)}, ${reason(one)}`,
      onfocus: told, onpointerenter: told,
    }, h("span", { dir: "auto" }, spell(one.piece)), " ", h("small", {}, n(one.total, 2)));
  });
  const size = { width: columns.length * (NODE + NODE_GAP) - NODE_GAP, height: max(...columns.map((one) => one.length)) * NODE_ROW };
  const scroll = h("div", { class: "tree-scroll", onkeydown: walk }, h("div", { class: "tree", role: "group", "aria-label": t("beam.tree"), style: { width: `${size.width}px`, height: `${size.height}px` } },
    svg("svg", size, edges), boxes));
  const detail = para("reading", " ");
  let step = state.step < 0 ? last : min(last, state.step);
  let current = 0;

  const keys = h("ul", { class: "keys" }, ["kept", "pruned", "finished", "best"].map((name) => h("li", {}, span(`node sample ${name}`), t(`beam.${name}`))));
  panel.append(figure({
    key: "beam.tree", values: { beam: beam.beam_size, penalty: brief(beam.length_penalty), stop },
    chart: div("", slider(t("column.step"), { min: 0, max: last, value: step, show: (value) => `${value + 1} / ${last + 1}` }, grow), scroll, detail, keys, h("details", {}, h("summary", {}, t("beam.list")), list())),
    table: () => [heads("step piece log_probability total score rank before reason"),
      nodes.map((one) => [one.step + 1, one.piece, one.log_probability, one.total, one.score, one.rank, one.parent === null ? "–" : nodes[one.parent].piece, reason(one)])],
  }));
  grow(step);
  tell(nodes.findLast((one) => one.best && one.step <= step)?.number ?? 0);

  function grow(value) {
    step = value;
    change({ step: step === last ? -1 : step });
    nodes.forEach((one, i) => { boxes[i].hidden = one.step > step; });
    scroll.scrollLeft = (step + 1) * (NODE + NODE_GAP) - scroll.clientWidth;
    tell(nodes[current].step > step ? columns[step][0].number : current);
  }

  function tell(i) {
    boxes[current].tabIndex = -1;
    current = i;
    boxes[i].tabIndex = 0;
    const line = [];
    for (let one = nodes[i]; one; one = nodes[one.parent]) line.unshift(one);
    nodes.forEach((one, k) => {
      boxes[k].classList.toggle("line", line.includes(one));
      edges[k].setAttribute("class", `edge${look(one)}${line.includes(one) ? " line" : ""}${one.step > step ? " hidden-edge" : ""}`);
    });
    const one = nodes[i];
    const values = ["log_probability", "total", "score"].map((name) => `${t(`column.${name}`)} ${n(one[name], 2)}`);
    detail.textContent = [line.map((other) => spell(other.piece)).join(" "), ...values, `${t("column.rank")} ${one.rank}`, reason(one)].join(" · ");
  }

  function walk(e) {
    const one = nodes[current];
    const column = columns[one.step];
    const at = column.indexOf(one);
    const children = nodes.filter((other) => other.parent === current);
    const ways = { ArrowRight: children.find((other) => other.best) || children[0], ArrowLeft: nodes[one.parent], ArrowDown: column[at + 1], ArrowUp: column[at - 1], Home: column[0], End: column.at(-1) };
    if (!(e.key in ways)) return;
    e.preventDefault();
    const to = ways[e.key];
    if (to && to.step <= step) boxes[to.number].focus();
  }

  /** The same as lists within lists. */
  function list() {
    const under = (parent) => {
      const children = nodes.filter((one) => one.parent === parent);
      return children.length > 0 && h("ul", {}, children.map((one) => h("li", {}, span(one.best && "strong", `${spell(one.piece)} ${n(one.total, 2)} `), h("small", {}, reason(one)), under(one.number))));
    };
    return h("div", { class: "scroll list", tabindex: 0, role: "region", "aria-label": t("beam.list") }, under(null) || "");
  }
}
