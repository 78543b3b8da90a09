"use strict";
/* The whole model as in figure 1 of the paper: the encoder at the left, the decoder at the right, and what each part computes for the text, step by step. */
const [BLOCK_HEIGHT, THIN_HEIGHT, ATTENTION_HEIGHT, BLOCK_GAP, FRAME_TOP, FRAME_BOTTOM] = [23, 18, 48, 7, 15, 5];
/* Milliseconds for each step of Play, which is time to read it. */
const READING_TIME = 2600;
/* The parts of an attention block: name, share of its width, stage of the view of a head. */
const ATTENTION_CELLS = /** @type {const} */ ([["qkv", 24, 0], ["scores", 24, 0], ["softmax", 32, 2], ["output", 20, 3]]);
views.whole = { needsInspection: true, showsText: true, build: buildWhole };

/** Shorten a text for a block; `fromEnd` keeps its end.
    @type {(text: string, fromEnd?: boolean) => string} */
function shortened(text, fromEnd) {
  const longest = innerWidth < 700 ? 16 : 32;
  return isolate(text.length <= longest ? text : fromEnd ? `… ${text.slice(2 - longest)}` : `${text.slice(0, longest - 2)} …`);
}
/** @type {(tokens: { piece: string }[]) => string} */
const piecesText = (tokens) => tokens.map(({ piece }) => pieceText(piece)).join(" ");

/** Return the largest weight of a kind of attention in the last layer, of one row or of all, to a token of a word other than the row's own.
    @type {(inspection: Inspection, kind: AttentionKind, keys: ShownToken[], only?: number) => StrongestWeight} */
function strongestWeight(inspection, kind, keys, only) {
  const attention = attentionOfKind(inspection, kind);
  const [layers, heads, rows] = unpack(attention.weights).shape;
  const layer = layers - 1;
  const places = range(heads).flatMap((head) => (only === undefined ? range(rows) : [only]).flatMap((row) => keys.map((_, column) => ({ layer, head, row, column, weight: weightsOf(attention, layer, head)(row, column) }))));
  /** @type {(place: StrongestWeight) => boolean} */
  const isTelling = ({ row, column }) => keys[column].word !== null && (kind === "cross" || (row !== column && (only !== undefined || keys[row]?.word !== null)));
  const telling = places.filter(isTelling);
  return (telling.length ? telling : places).reduce((best, place) => (place.weight > best.weight ? place : best));
}

/** Return the steps of the computation, in order, and the columns of blocks, each from the bottom to the top; a block belongs to a step.
    @type {(inspection: Inspection) => Promise<{ steps: ModelStep[], columns: ModelBlock[][] }>} */
async function modelSteps(inspection) {
  const { kind: task, model: { d_model, d_ff, num_heads, num_encoder_layers, num_decoder_layers, norm, positions }, text, inputs, source, target, predictions } = inspection;
  const at = task === "translation" ? clamp(state.at, predictions.length - 1) : 0;
  const prediction = predictions?.[at];
  const available = availableViews();
  const first = ["translate", "classify", "continue"].find((name) => available.includes(name));
  /** @type {ModelStep[]} */
  const steps = [];
  /** @type {(name: string, door: Partial<PageState>, values?: { [name: string]: unknown }, chart?: () => Child) => number} */
  const step = (name, door, values = {}, chart = () => "") => steps.push({ name, door: available.includes(door.tab ?? "") ? door : { part: steps.length }, note: t(`whole.${name}_note`, values), chart }) - 1;
  /** @type {(label: string, step: number, value?: string, more?: Partial<ModelBlock>) => ModelBlock} */
  const block = (label, number, value = "", more = {}) => ({ label: label && t(`whole.${label}`), step: number, value, ...more });
  /** @type {(tokens: { piece: string }[], weight: (column: number) => number, to: number) => HTMLElement} */
  const topWeights = (tokens, weight, to) => bars(tokens.map((token, i) => ({ i, label: pieceText(token.piece), value: weight(i) })).sort((a, b) => b.value - a.value).slice(0, 4).map(({ i, label, value }) => [label, value, n(value, 2), "", i === to]), 1);

  /** Add the blocks and steps from a text to the top of a stack of layers, with the numbers of the strongest attention of a head.
      @type {(kind: AttentionKind, tokens: ShownToken[], text: string, layers: number) => Promise<ModelBlock[]>} */
  async function detailedStack(kind, tokens, text, layers) {
    const strongest = strongestWeight(inspection, kind, tokens, kind === "decoder" ? tokens.length - 1 : undefined);
    const { layer, head, row, column, weight } = strongest;
    const [piece, to] = [row, column].map((i) => pieceText(tokens[i].piece));
    const values = { piece, to, layer, head, heads: num_heads, width: d_model, weight: n(weight, 2), root: d_model / num_heads };
    const near = (inspection.source_neighbours ?? inspection.neighbours ?? []).find(({ id }) => id === tokens[row].id);
    const computed = canCompute ? await headSteps(inspection, kind, layer, head) : null;
    /** @type {(names: ["queries" | "keys" | "values" | "outputs", string][]) => Child} */
    const strips = (names) => computed && facts(names.map(([name, letter]) => [letter, colourStrip(computed.vector(name, row), largestOf([computed.vector(name, row)]))]), "strip-facts");
    /** @type {(stage: number) => Partial<PageState>} */
    const inHead = (stage) => ({ tab: available.includes("steps") ? "steps" : "attention", kind, layer, head: String(head), query: row, stage });
    const weights = weightsOf(attentionOfKind(inspection, kind), layer, head);
    const reading = step("text", { tab: first });
    const cutting = step("pieces", { tab: "model" }, { count: tokens.length });
    const embedding = step("embedding", { tab: "model", symbol: "E(w)" }, values, () => near && note(t("whole.near", { piece, near: near.near.slice(0, 3).map((other) => pieceText(other.piece)).join("  ") })));
    const placing = step("positions", { tab: "model", symbol: "PE" }, {}, () => note(t(`whole.${positions}`)));
    const cells = [
      step("qkv", inHead(0), values, () => strips([["queries", `q ${piece}`], ["keys", `k ${piece}`], ["values", `v ${piece}`]])),
      step("scores", inHead(0), values, () => computed && bars(tokens.map((token, i) => [pieceText(token.piece), computed.at("scores", row, i), n(computed.at("scores", row, i), 2), "", i === column]))),
      step("softmax", inHead(2), values, () => topWeights(tokens, (i) => weights(row, i), column)),
      step("output", inHead(3), values, () => strips([["outputs", `o ${piece}`]])),
    ];
    const adding = step(norm === "pre" ? "pre_norm" : "add_norm", { tab: "model", symbol: "residual, norm" });
    const mapping = step("ffn", { tab: "model", symbol: "FFN" }, { width: d_model, inner: d_ff, layers });
    const blocks = [block("", reading, shortened(text)), block("", cutting, shortened(piecesText(tokens), kind === "decoder"), { tokens: true }), block("embedding", embedding, `${tokens.length} × ${d_model}`), block("positions", placing)];
    return [...blocks, ...layerBlocks(layers, [[kind === "decoder" ? "masked" : "self", cells[0], cells]], adding, mapping)];
  }

  /** Return the blocks of a stack of layers, of which one is drawn; `sublayers` are its attentions.
      @type {(layers: number, sublayers: [label: string, step: number, cells?: number[]][], adding: number, mapping: number) => ModelBlock[]} */
  function layerBlocks(layers, sublayers, adding, mapping) {
    const isPre = norm === "pre";
    const attentions = sublayers.map(([label, number, cells]) => block(label, number, `${num_heads} ×`, { cells: cells ?? ATTENTION_CELLS.map(() => number), readsEncoder: label === "cross" }));
    const blocks = [...attentions, block("ffn", mapping, `${d_model} → ${d_ff} → ${d_model}`)].flatMap((sublayer, i, all) => [
      sublayer, block(isPre && i === all.length - 1 ? "add" : "add_norm", sublayers.length > 1 ? sublayer.step : adding, "", { thin: true })]);
    if (isPre) blocks.unshift(block("norm", sublayers.length > 1 ? sublayers[0][1] : adding, "", { thin: true }));
    blocks[0].layers = layers;
    blocks[blocks.length - 1].endsLayers = true;
    return isPre ? [...blocks, block("norm", mapping, "", { thin: true })] : blocks;
  }

  /** Add the blocks and steps from logits to the next token.
      @type {(alternatives: { piece: string, probability: number }[], door: Partial<PageState>, chosen: string, last: Partial<PageState>) => ModelBlock[]} */
  function predictionBlocks(alternatives, door, chosen, last) {
    const linear = step("linear", door, { width: d_model });
    const softmax = step("probabilities", door, {}, () => bars(alternatives.map(({ piece, probability }, i) => [pieceText(piece), probability, n(probability), "", !i]), 1));
    const next = step(task === "translation" ? "next" : "append", last, { piece: chosen, probability: n(alternatives[0].probability, 2) });
    return [block("linear", linear, `${d_model} → V`), block("softmax", softmax, alternatives.slice(0, 2).map(({ piece, probability }) => `${isolate(pieceText(piece))} ${n(probability, 2)}`).join("  ")), block("", next, `→ ${isolate(chosen)}`, { tokens: true })];
  }

  if (task === "classification") {
    const blocks = await detailedStack("encoder", text.tokens, text.text, num_encoder_layers);
    const classes = [...inspection.classes].sort((a, b) => b.probability - a.probability);
    const pool = step(`pool_${inspection.pooling}`, { tab: first });
    const softmax = step("label", { tab: first }, { label: inspection.label }, () => bars(classes.map(({ label, probability }, i) => [label, probability, n(probability), "", !i]), 1));
    return { steps, columns: [[...blocks, block("pool", pool), block("softmax", softmax, classes.slice(0, 2).map(({ label, probability }) => `${label} ${n(probability, 2)}`).join("  ")), block("", softmax, `→ ${inspection.label}`, { tokens: true })]] };
  }
  if (task === "language-modeling") {
    const read = [...inputs, ...text.tokens.slice(-1)];
    const blocks = await detailedStack("decoder", read, text.text, num_decoder_layers);
    return { steps, columns: [[...blocks, ...predictionBlocks(inspection.next, { tab: first }, pieceText(inspection.next[0].piece), { tab: first })]] };
  }
  const encoder = await detailedStack("encoder", source.tokens, source.text, num_encoder_layers);
  const read = inputs.slice(0, at + 1);
  const [self, cross] = [strongestWeight(inspection, "decoder", read, at), strongestWeight(inspection, "cross", source.tokens, at)];
  /** @type {(kind: AttentionKind, place: StrongestWeight) => Partial<PageState>} */
  const inAttention = (kind, { layer, head }) => ({ tab: "attention", kind, layer, head: String(head) });
  /** @type {(kind: AttentionKind, place: StrongestWeight, keys: ShownToken[]) => [{ [name: string]: unknown }, () => Child]} */
  const looking = (kind, { layer, head, row, column, weight }, keys) => [{ layer, head, to: pieceText(keys[column].piece), weight: n(weight, 2), before: pieceText(read[at].piece) },
    () => topWeights(keys, (i) => weightsOf(attentionOfKind(inspection, kind), layer, head)(row, i), column)];
  const reading = step("read", { tab: "words" }, { place: at + 1, count: target.tokens.length, pieces: piecesText(read) });
  const selfStep = step("masked", inAttention("decoder", self), ...looking("decoder", self, read));
  const crossStep = step("cross", inAttention("cross", cross), ...looking("cross", cross, source.tokens));
  const mapping = step("decoder_ffn", { tab: "model", symbol: "FFN" }, { layers: num_decoder_layers });
  const decoder = [block("", reading, shortened(piecesText(read), true), { tokens: true }), block("embedding", reading, `${read.length} × ${d_model}`), block("positions", reading),
    ...layerBlocks(num_decoder_layers, [["masked", selfStep], ["cross", crossStep]], mapping, mapping),
    ...predictionBlocks([prediction, ...prediction.alternatives].sort((a, b) => b.probability - a.probability), { tab: "words", at }, pieceText(prediction.piece), { tab: inspection.beam ? "beam" : "words" })];
  return { steps, columns: [encoder, decoder] };
}

/** @type {(panel: HTMLElement, inspection: Inspection) => Promise<void>} */
async function buildWhole(panel, inspection) {
  const tokens = inspection.target?.tokens ?? [];
  let { steps, columns } = await modelSteps(inspection);
  let picture = modelPicture(steps, columns);
  const last = steps.length - 1;
  const chosen = tokens.map((token, i) => button(pieceText(token.piece), () => chooseToken(i), { class: "token", dir: "auto" }));
  const [drawing, detail] = [div("whole"), h("div", { class: "whole-detail", "aria-live": "polite" })];
  const control = stepper({ label: t("column.step"), last, value: min(state.part, last), time: READING_TIME, onEnd: tokens.length ? nextToken : undefined }, showStep);
  panel.append(figure({
    key: "whole.model", chart: div("whole-figure", control.field, drawing, detail,
      tokens.length > 0 && div("", note(t("whole.tokens")), tokenRow(t("whole.tokens"), chosen, tokens.map(({ piece }) => piece), state.at))),
    table: () => [columnTitles("step name meaning"), steps.map(({ name, note: text }, i) => [i + 1, t(`whole.${name}_title`), text])],
  }));
  draw();

  function draw() {
    const titles = columns.length > 1 ? ["encoder", "decoder"] : [inspection.attention[0].kind];
    const { links, blocks } = picture;
    links.forEach((link, i) => link.addEventListener("focus", () => { if (blocks[i].step !== state.part) control.set(blocks[i].step); }));
    drawing.replaceChildren(div("whole-titles", titles.map((name) => span("", t(`whole.${name}`)))), roving(div("", picture.element), [...links].reverse(), links.length - 1 - max(0, blocks.findIndex(({ step }) => step === state.part))));
    setPressed(chosen, min(state.at, tokens.length - 1));
    showStep(min(state.part, last));
  }

  /** Show the computation of an output token.
      @type {(at: number) => Promise<void>} */
  async function chooseToken(at) {
    change({ at });
    ({ steps, columns } = await modelSteps(inspection));
    picture = modelPicture(steps, columns);
    draw();
  }

  /** Choose the next token of the output; return the step at which its computation begins, 0 after the last token.
      @type {() => number} */
  function nextToken() {
    const hasNext = state.at < tokens.length - 1;
    chooseToken(hasNext ? state.at + 1 : 0);
    return hasNext ? steps.findIndex(({ name }) => name === "read") : 0;
  }

  /** Mark the blocks of a step, and explain it.
      @type {(to: number) => void} */
  function showStep(to) {
    change({ part: to });
    const { name, note: text, chart, door } = steps[to];
    picture.links.forEach((link, i) => {
      const { step } = picture.blocks[i];
      link.setAttribute("class", `block${step === to ? " now" : step < to ? " done" : ""}`);
    });
    detail.replaceChildren(stack(div("", h("h3", {}, t(`whole.${name}_title`)), para("", text)), chart(),
      door.tab && h("a", { href: addressOf(door) }, t("whole.open", { view: t(`tab.${door.tab}`) }))));
  }
}

/** Draw the columns of blocks; return the picture, and its links with their blocks.
    @type {(steps: ModelStep[], columns: ModelBlock[][]) => { element: Element, links: HTMLElement[], blocks: ModelBlock[] }} */
function modelPicture(steps, columns) {
  /** @type {HTMLElement[]} */
  const links = [];
  /** @type {ModelBlock[]} */
  const blocks = [];
  /** @type {(block: ModelBlock) => number} */
  const heightOf = ({ cells, thin }) => (cells ? ATTENTION_HEIGHT : thin ? THIN_HEIGHT : BLOCK_HEIGHT);
  const heights = columns.map((column) => column.reduce((sum, block) => sum + heightOf(block) + BLOCK_GAP + (block.layers ? FRAME_BOTTOM : block.endsLayers ? FRAME_TOP : 0), 0));
  const height = max(...heights) + BLOCK_GAP;
  const width = columns.length > 1 ? 46 : 100;
  let [memory, crossing] = [0, 0];

  /** Add the link of a block, or of a part of an attention block, with its accessible name if that is not its text.
      @type {(block: ModelBlock, children: Element[], label?: string) => Element} */
  const link = (block, children, label) => {
    const element = svg("a", { class: "block", href: addressOf(steps[block.step].door), "aria-label": label }, children);
    links.push(/** @type {HTMLElement} */ (element));
    blocks.push(block);
    return element;
  };
  /** @type {(x1: number, y1: number, x2: number, y2: number, arrow?: boolean) => Element} */
  const wire = (x1, y1, x2, y2, arrow) => svg("line", { class: "wire", x1: `${x1}%`, y1, x2: `${x2}%`, y2, "marker-end": arrow && "url(#arrow)" });
  /** @type {(x: number, y: number, content: string, style: string) => Element} */
  const text = (x, y, content, style) => svg("text", { class: style, x: `${x}%`, y, "dominant-baseline": "central" }, content);

  /** @type {(column: ModelBlock[], index: number) => Element} */
  const drawColumn = (column, index) => {
    let [y, below, bottom, layers, isPre] = [height - BLOCK_GAP, 0, 0, 0, false];
    /** The place at which the current residual connection begins.
        @type {[x: number, y: number] | null} */
    let start = null;
    /** @type {Element[]} */
    const wires = [];
    /** @type {Element[]} */
    const boxes = [];
    column.forEach((block, i) => {
      const size = heightOf(block);
      if (block.layers) {
        [bottom, layers, isPre, start] = [y + BLOCK_GAP / 2, block.layers, Boolean(block.thin), [53, y - FRAME_BOTTOM + BLOCK_GAP / 2 + 1]];
        y -= FRAME_BOTTOM;
      }
      y -= size;
      const middle = y + size / 2;
      if (i) wires.push(wire(53, below, 53, y + size + 1, true));
      const label = block.label || block.value;
      const lineAt = block.cells ? y + 13 : middle;
      boxes.push(link(block, [svg("rect", { x: "8%", y, width: "90%", height: size, rx: 5, class: !block.label && !block.tokens && "text-box" }),
        text(block.label ? 11 : 53, lineAt, label, block.label ? "label" : "middle"), ...(block.label && block.value ? [text(96, lineAt, block.value, "value")] : [])]));
      let left = 10;
      ATTENTION_CELLS.slice(0, block.cells?.length ?? 0).forEach(([name, share], k) => {
        const cellWidth = (share / 100) * 86;
        boxes.push(link({ ...block, step: block.cells?.[k] ?? 0 },
          [svg("rect", { x: `${left}%`, y: y + size - 23, width: `${cellWidth - 1}%`, height: 19, rx: 4 }), text(left + (cellWidth - 1) / 2, y + size - 13, t(`whole.${name}`), "middle small")], `${label}: ${t(`whole.${name}`)}`));
        left += cellWidth;
      });
      if (start && block.thin && !block.layers) {
        wires.push(wire(start[0], start[1], 4, start[1]), wire(4, start[1], 4, middle), wire(4, middle, 8, middle, true));
        start = isPre ? [4, middle] : [53, y - BLOCK_GAP / 2];
      }
      if (block.readsEncoder) crossing = y + size - 13;
      below = y;
      y -= BLOCK_GAP;
      if (block.endsLayers) {
        start = null;
        y -= FRAME_TOP;
        wires.unshift(svg("rect", { class: "frame", x: "1%", y: y + BLOCK_GAP / 2, width: "98.5%", height: bottom - y - BLOCK_GAP / 2, rx: 8 }), text(97, y + FRAME_TOP - 3, `${layers} ×`, "value"));
      }
    });
    if (!index) memory = below;
    return svg("svg", { x: index ? `${100 - width}%` : 0, y: 0, width: `${width}%`, height, "aria-hidden": false }, wires, boxes);
  };
  const drawn = columns.map(drawColumn);
  const between = columns.length > 1 ? [wire(width / 2 + 1.4, memory, width / 2 + 1.4, memory - 8), wire(width / 2 + 1.4, memory - 8, 50, memory - 8), wire(50, memory - 8, 50, crossing), wire(50, crossing, 57.6, crossing, true)] : [];
  const element = svg("svg", { class: "whole-model", width: "100%", height, role: "group", "aria-label": t("whole.model"), "aria-hidden": false },
    svg("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" }, svg("path", { d: "M0 0L8 4L0 8Z", class: "arrow" })), drawn, between);
  return { element, links, blocks };
}
