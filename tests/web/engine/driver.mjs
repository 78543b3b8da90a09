/* Call functions of web/engine for tests in Python: read JSON lines {"function": ..., "arguments": [...]}, and print a line with each result.
   Numbers that JSON lacks are the strings "Infinity", "-Infinity" and "NaN"; arrays of numbers are lists. */

import { readFile } from "node:fs/promises";
import { createInterface } from "node:readline";

const [folder, wasm] = process.argv.slice(2);
const load = (file) => import(`${folder}/${file}`);
const { DecoderCache, createEngine } = await load("model.js");
const { bestTokens, contextLength, generateIds, translateIds } = await load("search.js");
const { headSteps } = await import(`${folder}/../tasks/inspection.js`);
const { makeRandom, pickToken, samplingWeights } = await load("sampling.js");
const engine = await createEngine(await readFile(wasm));
const { memory } = engine;
const models = new Map();
const memoryState = () => ({ bytes: memory.memory.buffer.byteLength, used: [...memory.blocks.values()].reduce((sum, size) => sum + size, 0), free: memory.free.length });

/* Return the options with a signal that aborts after `cancelAfter` steps. */
function withSignal({ cancelAfter, ...options }) {
  if (cancelAfter === undefined) return options;
  const signal = { aborted: false };
  let steps = 0;
  return { ...options, signal, pause: async () => { steps += 1; signal.aborted = steps >= cancelAfter; } };
}

/* Return the result of an asynchronous function, its wall-clock time and its CPU time in milliseconds. */
async function timed(call) {
  const [start, cpu] = [performance.now(), process.cpuUsage()];
  const result = await call();
  const used = process.cpuUsage(cpu);
  return { result, milliseconds: performance.now() - start, cpu: (used.user + used.system) / 1000 };
}

const FUNCTIONS = {
  load: async (name, header, block) => {
    const bytes = await readFile(block);
    const parts = 1000;
    models.get(name)?.close();
    models.set(name, await engine.loadModel(JSON.parse(await readFile(header, "utf8")), async (write) => {
      for (let part = 0, start = 0; part < parts; part++) {
        const end = Math.floor((bytes.length * (part + 1)) / parts);
        write(start, bytes.subarray(start, end));
        start = end;
      }
    }));
    return memoryState();
  },
  loadBytes: async (header, bytes) => {
    try {
      const model = await engine.loadModel(header, async (write) => { for (const [offset, values] of bytes) write(offset, Uint8Array.from(values)); });
      try {
        await translateIds(model, [5, 6, 7], {});
      } finally {
        model.close();
      }
    } catch (error) {
      return `${error.constructor.name}: ${error.message}`;
    }
    return "";
  },
  close: (name) => {
    models.get(name).close();
    models.delete(name);
    return memoryState();
  },
  state: memoryState,
  panelWidth: () => engine.panelWidth,
  layout: () => [...memory.layout].map(([name, { type }]) => [name, type]),
  translate: (name, ids, options) => translateIds(models.get(name), ids, withSignal(options)),
  translateAll: (name, rows, options) => rows.reduce(async (before, ids) => [...await before, await translateIds(models.get(name), ids, options)], []),
  recorded: async (name, ids, options) => {
    const records = [];
    return { outputs: await translateIds(models.get(name), ids, { ...options, onStep: (record) => records.push(record) }), records };
  },
  together: (name, rows, options) => Promise.all(rows.map((ids) => translateIds(models.get(name), ids, { ...options, pause: () => new Promise(setImmediate) }))),
  failing: async (name, ids, options) => {
    try {
      await translateIds(models.get(name), ids, withSignal(options));
    } catch (error) {
      return `${error.constructor.name}: ${error.message}`;
    }
    return "";
  },
  read: (name, source, target, options) => models.get(name).forward(source, target, options),
  headSteps: (name, head, source, target, options) => headSteps(models.get(name), head, source, target, options),
  append: (name, parts) => {
    const cache = new DecoderCache(models.get(name), null, parts.flat().length);
    const logits = parts.map((tokens) => cache.append(tokens).logits);
    cache.release();
    return logits;
  },
  classify: (name, ids, options) => models.get(name).classify(ids, options),
  generate: (name, context, options) => generateIds(models.get(name), context, withSignal(options)),
  generateUntil: (name, context, options, count) => {
    let generated = 0;
    return generateIds(models.get(name), context, { ...options, onToken: () => { generated += 1; return generated === count; } });
  },
  held: (lengths, window) => lengths.map((length) => contextLength(length, window)),
  weights: (values, sampling, hidden) => samplingWeights(values, Math.max(...values), sampling, new Set(hidden)),
  random: (seed, sample, context, count) => {
    const random = makeRandom(seed, sample, context);
    return Array.from({ length: count }, random);
  },
  pick: (values, sampling, seed, count, hidden) => {
    const random = makeRandom(seed, 0, []);
    return Array.from({ length: count }, () => pickToken(Float32Array.from(values), sampling, random, hidden));
  },
  best: (name, logits, count, hidden) => bestTokens(models.get(name).logProbabilities(logits), count, hidden).map(({ token, value }) => [token, value]),
  allocate: (sizes) => sizes.map((size) => memory.allocate(size)),
  allocateError: (size) => {
    try {
      return String(memory.allocate(size));
    } catch (error) {
      return error.message;
    }
  },
  release: (starts) => {
    for (const start of starts) memory.release(start);
    return memoryState();
  },
  time: async (name, ids, options, rounds) => {
    const times = [];
    for (let round = 0; round < rounds; round++) {
      const { result, ...time } = await timed(() => translateIds(models.get(name), ids, options));
      times.push({ ...time, tokens: result[0].tokenScores.length });
    }
    return times;
  },
};

const jsonValue = (_, value) => {
  if (typeof value === "number" && !Number.isFinite(value)) return String(value);
  return ArrayBuffer.isView(value) ? Array.from(value) : value;
};

for await (const line of createInterface({ input: process.stdin })) {
  const { function: name, arguments: values } = JSON.parse(line);
  let answer;
  try {
    answer = { result: await FUNCTIONS[name](...values) };
  } catch (error) {
    answer = { error: error.stack };
  }
  process.stdout.write(`${JSON.stringify(answer, jsonValue)}\n`);
}
