"use strict";
/* The beam as a tree that grows with a slider: a column for each step, candidates by rank. */
(() => {
  const { h, t, n } = mh;
  const [WIDE, ROW, BOX, GAP] = [104, 44, 36, 36];
  mh.views.beam = { tasks: ["translation"], needs: "inspection", build };

  /** Why a branch ended here, with its numbers; "" where it went on. */
  function reason(node, tree) {
    const values = { total: n(node.total, 2), threshold: n(node.threshold, 2), score: n(node.score, 2), beam: tree.beam_size, stop: t(`stop.${tree.stop}`) };
    return t(`state.${node.state}`, values);
  }

  function build(panel, found) {
    const tree = found.beam;
    if (!tree) return void panel.append(h("p", { class: "note" }, t("beam.none")));
    const { nodes } = tree;
    const last = Math.max(...nodes.map((one) => one.step));
    const seen = new Map();
    const place = nodes.map((one) => {
      const row = seen.get(one.step) || 0;
      seen.set(one.step, row + 1);
      return [one.step * (WIDE + GAP), row * ROW];
    });
    const size = { width: (last + 1) * (WIDE + GAP) - GAP, height: Math.max(...seen.values()) * ROW };
    const gone = (one) => one.state === "pruned" || one.state === "late-end";
    const edges = nodes.map((one) => {
      if (one.parent === null) return null;
      const [x, y, left, top] = [place[one.parent][0] + WIDE, place[one.parent][1] + BOX / 2, place[one.number][0], place[one.number][1] + BOX / 2];
      return mh.s("path", { d: `M${x} ${y}C${x + GAP / 2} ${y} ${left - GAP / 2} ${top} ${left} ${top}`, class: `edge${one.best ? " best" : ""}${gone(one) ? " gone" : ""}` });
    });
    const boxes = nodes.map((one) => h("button", {
      type: "button", tabindex: -1, class: `node ${one.state}${one.best ? " best" : ""}${gone(one) ? " gone" : ""}`, style: { left: `${place[one.number][0]}px`, top: `${place[one.number][1]}px` },
      "aria-label": `${mh.piece(one.piece)} ${n(one.total, 2)}, ${reason(one, tree)}`, onfocus: () => tell(one.number), onpointerenter: () => tell(one.number), onclick: () => tell(one.number),
    }, h("span", { dir: "auto" }, mh.piece(one.piece)), h("small", {}, n(one.total, 2))));
    const canvas = h("div", { class: "tree", role: "group", "aria-label": t("beam.title"), style: { width: `${size.width}px`, height: `${size.height}px` } },
      mh.s("svg", { ...size, "aria-hidden": "true" }, edges), boxes);
    const scroll = h("div", { class: "tree-scroll", onkeydown: walk }, canvas);
    const detail = h("p", { class: "reading" }, " ");
    let step = mh.state.step < 0 ? last : Math.min(last, mh.state.step);
    let current = 0;

    panel.append(mh.figure({
      title: t("beam.title"), note: t("beam.note", { beam: tree.beam_size, penalty: mh.short(tree.length_penalty), stop: t(`stop.${tree.stop}`) }), name: "beam",
      chart: h("div", {}, mh.slider(t("beam.step"), { min: 0, max: last, value: step, show: (value) => `${value + 1} / ${last + 1}` }, upto), scroll, detail, keys(), h("details", {}, h("summary", {}, t("beam.list")), list())),
      table: () => ({
        columns: ["step", "piece", "log_probability", "total", "score", "rank", "before", "reason"].map((one) => t(`column.${one}`)),
        rows: nodes.map((one) => [one.step + 1, one.piece, one.log_probability, one.total, one.score, one.rank, one.parent === null ? "–" : nodes[one.parent].piece, reason(one, tree)]),
      }),
    }));
    upto(step);
    tell(nodes.findLast((one) => one.best && one.step <= step)?.number ?? 0);

    function upto(value) {
      step = value;
      mh.set({ step: step === last ? -1 : step });
      nodes.forEach((one, i) => {
        boxes[i].hidden = one.step > step;
        edges[i]?.classList.toggle("hidden-edge", one.step > step);
        boxes[i].classList.toggle("frontier", one.step === step);
      });
      scroll.scrollLeft = (step + 1) * (WIDE + GAP) - scroll.clientWidth + GAP;
      if (nodes[current].step > step) tell(nodes.find((one) => one.step === step).number);
    }

    function tell(number) {
      boxes[current].tabIndex = -1;
      current = number;
      boxes[current].tabIndex = 0;
      const line = new Set();
      for (let one = nodes[number]; one; one = nodes[one.parent]) line.add(one.number);
      nodes.forEach((one, i) => { boxes[i].classList.toggle("line", line.has(i)); edges[i]?.classList.toggle("line", line.has(i)); });
      const words = [...line].reverse().map((one) => mh.piece(nodes[one].piece)).join(" ");
      const one = nodes[number];
      detail.textContent = `${words} · ${t("column.log_probability")} ${n(one.log_probability, 2)} · ${t("column.total")} ${n(one.total, 2)} · ${t("column.score")} ${n(one.score, 2)} · ${t("column.rank")} ${one.rank} · ${reason(one, tree)}`;
    }

    function walk(event) {
      const one = nodes[current];
      const column = nodes.filter((other) => other.step === one.step);
      const at = column.indexOf(one);
      const child = nodes.find((other) => other.parent === current && other.best) || nodes.find((other) => other.parent === current);
      const to = { ArrowRight: child, ArrowLeft: nodes[one.parent], ArrowDown: column[at + 1], ArrowUp: column[at - 1], Home: column[0], End: column.at(-1) }[event.key];
      if (!(event.key.startsWith("Arrow") || event.key === "Home" || event.key === "End") || event.target.tagName !== "BUTTON") return;
      event.preventDefault();
      if (to && to.step <= step) boxes[to.number].focus();
    }

    /** The same as a list within lists. */
    function list() {
      const children = new Map();
      nodes.forEach((one) => children.set(one.parent, [...(children.get(one.parent) || []), one]));
      const under = (parent) => children.has(parent) && h("ul", {}, children.get(parent).map((one) => h("li", {},
        h("span", { class: one.best ? "strong" : "" }, `${mh.piece(one.piece)} ${n(one.total, 2)} `), h("span", { class: "quiet-text" }, reason(one, tree)), under(one.number))));
      return h("div", { class: "scroll list", tabindex: 0, role: "region", "aria-label": t("beam.list") }, under(null));
    }

    function keys() {
      return h("ul", { class: "keys" }, [["kept", ""], ["pruned", "gone"], ["finished", "finished"], ["best", "best"]].map(([name, look]) => h("li", {}, h("span", { class: `node sample ${look}`, "aria-hidden": "true" }), t(`beam.${name}`))));
    }
  }
})();
