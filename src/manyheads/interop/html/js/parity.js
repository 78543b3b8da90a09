/* Run by Node.js after an export (interop/html/check.py): computes what the run has computed, to compare both.

   Arguments: the files of { wasm, header } (JSON), of the tensors, and of the requests (JSON), each { source, target, limit } of a
   translator or { ids } of another model. Prints a list of { scores, output }, the fields of interop/parity.py Reference. */

import { createEngine } from "./engine/model.js";
import { bestTokens, logProbabilities, translateIds } from "./engine/search.js";
import { fromBase64 } from "./text/utf8.js";

/** Log-probabilities (T, V) as T arrays, from logits; `hidden` tokens are impossible. */
function rowsOf(logits, size, hidden) {
  return Array.from({ length: logits.length / size }, (_, t) => {
    const row = logits.slice(t * size, (t + 1) * size);
    for (const token of hidden) row[token] = -Infinity;
    return logProbabilities(row);
  });
}

const bestOf = (row) => bestTokens(row, 1)[0].token;

async function answerOf(model, { source, target, limit, ids }) {
  const { bos, eos, pad } = model.special;
  if (model.task === "translation") {
    const { logits } = model.read([...source, eos], [bos, ...target]);
    const rows = rowsOf(logits, model.vocabulary, [pad, bos]);
    const [{ tokens }] = await translateIds(model, source, { beamSize: 1, maxLengthRatio: 0, maxLengthOffset: limit });
    return { scores: [...target, eos].map((token, t) => rows[t][token]), output: tokens };
  }
  if (model.task === "classification") {
    const [row] = rowsOf(model.classify(ids).logits, model.header.head.output.outputs, []);
    return { scores: [...row], output: [bestOf(row)] };
  }
  const rows = rowsOf(model.read(null, ids).logits, model.vocabulary, []);
  return { scores: ids.slice(1).map((token, t) => rows[t][token]), output: rows.map(bestOf) };
}

async function main(paths) {
  const { readFile } = await import("node:fs/promises");
  const [head, tensors, requests] = await Promise.all(paths.map((path) => readFile(path)));
  const { wasm, header } = JSON.parse(head);
  const engine = await createEngine(fromBase64(wasm));
  const model = await engine.loadModel(header, (write) => write(0, tensors));
  const answers = [];
  for (const request of JSON.parse(requests)) answers.push(await answerOf(model, request));
  process.stdout.write(JSON.stringify(answers));
}

main(process.argv.slice(2)).catch((error) => {
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
});
