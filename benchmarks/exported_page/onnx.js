/* Greedy search with the two graphs of an ONNX export in onnxruntime-web, one thread: `startOnnx` loads, `translateOnnx` decodes. */

let encoder, decoder, description;

/** Load the runtime and the graphs; returns the milliseconds since navigation. */
async function startOnnx() {
  ort.env.wasm.numThreads = 1;
  ort.env.logLevel = "error";
  description = await (await fetch("onnx.json")).json();
  [encoder, decoder] = await Promise.all(["encoder", "decoder"].map((name) => (
    ort.InferenceSession.create(description[name].file, { executionProviders: ["wasm"], logSeverityLevel: 3 }))));
  return performance.now();
}

/** Translate ids with their end mark; returns the ids of the output without it. */
async function translateOnnx(ids, limit) {
  const { begin: bos, end: eos, never: suppressedIds, decoder_layers: layers, heads, head_width: headDimension } = description;
  const int64Tensor = (values, shape) => new ort.Tensor("int64", BigInt64Array.from(values, BigInt), shape);
  const memory = await encoder.run({ source: int64Tensor(ids, [1, ids.length]) });
  let cache = {};
  for (let layer = 0; layer < layers; layer += 1) {
    for (const kind of ["keys", "values"]) cache[`past_${kind}_${layer}`] = new ort.Tensor("float32", new Float32Array(0), [1, heads, 0, headDimension]);
  }
  const output = [];
  for (let token = bos; output.length <= limit; output.push(token)) {
    const { log_probabilities: logProbabilities, ...newCache } = await decoder.run({ ...memory, ...cache, tokens: int64Tensor([token], [1]), place: int64Tensor([output.length], []) });
    cache = Object.fromEntries(Object.entries(newCache).map(([name, tensor]) => [name.replace("new_", "past_"), tensor]));
    const scores = logProbabilities.data;
    token = -1;
    for (let id = 0; id < scores.length; id += 1) if (!suppressedIds.includes(id) && (token < 0 || scores[id] > scores[token])) token = id;
    if (token === eos) break;
  }
  return output.slice(0, limit);
}

/** Translate ids `count` times; returns the milliseconds and the output ids of each translation. */
async function timeOnnx(ids, limit, count) {
  const results = [];
  for (let i = 0; i < count; i += 1) {
    const start = performance.now();
    const output = await translateOnnx(ids, limit);
    results.push([performance.now() - start, output]);
  }
  return results;
}
