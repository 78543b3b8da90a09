/* Run by Node.js after an export (web/check.py): recompute the reference outputs of the run for
   comparison.

   Arguments: the paths of { wasm, header } (JSON), of the tensors, and of the requests (JSON), each
   { source, target, limit, prefix } for a translator or { ids } for another model. Prints a list of
   { scores, output }, the fields of Reference in inference/parity.py. A request { text } is
   translated greedily as by the page, and its answer is the translation. */

const { readFile } = require("node:fs/promises");
const { bestTokens, createEngine, fromBase64, pageModel, translateIds } = manyheads;

/** Return the log-probabilities (T, V) of logits as T arrays; `suppressed` tokens get -Infinity.
    @type {(model: EngineModel, logits: Float32Array, size: number, suppressed: number[]) =>
      Float32Array[]} */
function logProbabilityRows(model, logits, size, suppressed) {
  return Array.from({ length: logits.length / size }, (_, t) => {
    const row = logits.slice(t * size, (t + 1) * size);
    for (const token of suppressed) row[token] = -Infinity;
    return model.logProbabilities(row);
  });
}

/** @type {(row: Float32Array) => number} */
const argmax = (row) => bestTokens(row, 1)[0].token;

/** Compute { scores, output } of a request.
    @type {(model: EngineModel, request: ParityRequest) =>
      Promise<{ scores: number[], output: number[] }>} */
async function computeReference(model, { source, target, limit, prefix, ids }) {
  const { bos, eos, pad } = model.special;
  if (model.task === "translation") {
    const { logits } = model.forward([...source, eos], [bos, ...target]);
    const rows = logProbabilityRows(model, logits, model.vocabulary, [pad, bos]);
    const [{ tokens }] = await translateIds(model, source, {
      beamSize: 1,
      maxLengthRatio: 0,
      maxLengthOffset: limit,
      prefix,
    });
    return { scores: [...target, eos].map((token, t) => rows[t][token]), output: tokens };
  }
  if (model.task === "classification") {
    const [row] = logProbabilityRows(
      model,
      model.classify(ids).logits,
      model.header.head?.output.outputs ?? 0,
      [],
    );
    return { scores: [...row], output: [argmax(row)] };
  }
  const rows = logProbabilityRows(model, model.forward(null, ids).logits, model.vocabulary, []);
  return { scores: ids.slice(1).map((token, t) => rows[t][token]), output: rows.map(argmax) };
}

/** @type {(paths: string[]) => Promise<void>} */
async function main(paths) {
  const [head, tensors, requests] = await Promise.all(paths.map((path) => readFile(path)));
  const { wasm, header } = JSON.parse(String(head));
  const engine = await createEngine(fromBase64(wasm));
  const model = await engine.loadModel(header, (write) => write(0, tensors));
  const results = [];
  for (const request of JSON.parse(String(requests))) {
    const { text } = request;
    results.push(
      text === undefined
        ? await computeReference(model, request)
        : (
            await /** @type {PageTranslator} */ (pageModel(model, header))
              .direction(request.model)
              .translate(text, { beam: 1 })
          ).translation,
    );
  }
  process.stdout.write(JSON.stringify(results));
}

main(process.argv.slice(2)).catch((error) => {
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
});
