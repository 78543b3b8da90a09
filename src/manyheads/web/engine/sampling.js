/* Sampling of tokens from the model's distribution (decoding/sampling.py), with a seeded random
   number generator. */

/** Return a random number generator for one sample: numbers in [0, 1) that depend only on the seed,
    the sample's index and the context.

    The key is hashed by FNV-1a to the state of sfc32 (Doty-Humphrey, PractRand), from which each
    number takes 53 bits. The numbers are the same in every browser, but differ from those of
    Python.
    @type {(seed: number, sample: number, context: number[]) => () => number} */
export function makeRandom(seed, sample, context) {
  const key = `${seed},${sample},${context.join(",")}`;
  /** @type {(salt: number) => number} */
  const hash = (salt) => {
    let state = 0x811c9dc5 ^ salt;
    for (let i = 0; i < key.length; i++) state = Math.imul(state ^ key.charCodeAt(i), 0x01000193);
    return state >>> 0;
  };
  let [a, b, c, counter] = [hash(0), hash(1), hash(2), 1];
  const next = () => {
    const sum = (a + b + counter++) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + sum) | 0;
    return sum >>> 0;
  };
  for (let i = 0; i < 15; i++) next();
  return () => ((next() >>> 5) * 67108864 + (next() >>> 6)) / 9007199254740992;
}

/** Return the next token: sampled, or without `sampling` the likeliest (the lowest id among
    equals); -1 if no token is possible.

    values: log-probabilities (V). suppressed: ids that are never generated.
    @type {(values: Float32Array, sampling: Sampling | null, random: (() => number) | null,
      suppressed: number[]) => number} */
export function pickToken(values, sampling, random, suppressed) {
  const excluded = new Set(suppressed);
  let likeliest = -1;
  for (let token = 0; token < values.length; token++) {
    if (!excluded.has(token) && values[token] > (values[likeliest] ?? -Infinity)) likeliest = token;
  }
  if (!sampling || !random || likeliest < 0) return likeliest;
  const weights = samplingWeights(values, values[likeliest], sampling, excluded);
  let total = 0;
  for (const weight of weights) total += weight;
  const target = random() * total;
  let cumulative = 0;
  for (let token = 0; token < weights.length; token++) {
    cumulative += weights[token];
    if (cumulative > target) return token;
  }
  return likeliest; // if rounding leaves the sum below the target
}

/** Return unnormalised probabilities, 1 for the likeliest token, after temperature, then top-k,
    then top-p. Tokens in `excluded` get 0.
    @type {(values: Float32Array, largest: number, sampling: Sampling, excluded?: Set<number>) =>
      Float64Array} */
export function samplingWeights(
  values,
  largest,
  { temperature = 1, topK = 0, topP = 1 },
  excluded = new Set(),
) {
  const weights = Float64Array.from(values, (value, token) =>
    excluded.has(token) ? 0 : Math.exp((value - largest) / temperature),
  );
  if (!topK && topP >= 1) return weights;
  const order = [...weights.keys()]
    .sort((a, b) => weights[b] - weights[a] || a - b)
    .slice(0, topK || weights.length);
  const limit = topP * order.reduce((sum, token) => sum + weights[token], 0);
  const kept = new Float64Array(weights.length);
  let cumulative = 0;
  for (const token of order) {
    if (cumulative >= limit) break;
    kept[token] = weights[token];
    cumulative += weights[token];
  }
  return kept;
}
