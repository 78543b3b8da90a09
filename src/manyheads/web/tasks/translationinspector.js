/* Inspection of a translation, as in manyheads/inspection/translation.py. */

import { makeOutput, translateIds } from "../engine/search.js";
import { BOS, EOS } from "../text/base.js";
import { pharaoh, wordAlignment } from "../translation/alignment.js";
import { packArray } from "./arrays.js";
import { BeamRecorder } from "./beam.js";
import {
  attentionOf,
  checkHead,
  checkLength,
  engineChanges,
  headSteps,
  meanHeads,
  neighboursOf,
  predictionsOf,
  textOf,
  tokensOf,
  withEndSymbol,
  withoutEachWord,
} from "./inspection.js";

/** The inspection of a sentence by a translator, as one part. */
export class TranslationInspector {
  /** @param {PageTranslator} translator */
  constructor({ model, tokenizers, settings, prefix, longest }) {
    this.model = model;
    this.tokenizers = tokenizers;
    this.settings = settings;
    this.prefix = prefix;
    this.longest = longest;
  }

  /** Encode a sentence as one part and find its outputs. Returns its ids, the result of
      findOutputs, the best hypothesis and its ids, and the inputs of encoder and decoder.
      @param {string} text @param {InspectOptions & { engine: EngineOptions }} options */
  async prepareInspection(text, options) {
    const ids = this.tokenizers.source.encode(text);
    checkLength(ids.length, "sentence", this.longest);
    const result = await this.findOutputs(ids, options);
    const [best] = result.hypotheses;
    checkLength(best.tokens.length, "output", this.longest, true);
    const output = withEndSymbol(best);
    return {
      ids,
      result,
      best,
      output,
      source: [...ids, EOS],
      inputs: [BOS, ...output.slice(0, -1)],
    };
  }

  /** Compute the intermediate values of a head; options as in POST /api/head.
      @param {string} text @param {HeadRequest & InspectOptions} options */
  async head(text, { changes, ...options }) {
    const name = checkHead(this.model, options);
    const engine = engineChanges(this.model, changes);
    const { source, inputs } = await this.prepareInspection(text, { ...options, engine });
    return headSteps(this.model, name, source, inputs, engine);
  }

  /** Inspect a sentence; options as in POST /api/inspect.
      @param {string} text @param {InspectOptions} options */
  async inspect(text, { occlusion = true, temperature = 1, changes, ...options } = {}) {
    const { model, tokenizers, settings } = this;
    const { pause, signal } = options;
    const engine = engineChanges(model, changes);
    const { ids, result, best, output, source, inputs } = await this.prepareInspection(text, {
      ...options,
      engine,
    });
    const { logits, attention } = model.forward(source, inputs, { ...engine, attention: true });
    const sourceText = textOf(tokenizers.source, source, text, settings.source);
    const targetText = textOf(
      tokenizers.target,
      output,
      tokenizers.target.outputText(best.tokens, text),
      settings.target,
      text,
    );
    const cross = meanHeads(model, attention.cross, output.length, source.length);
    return {
      kind: "translation",
      run: settings.run,
      model: settings.facts,
      source: sourceText,
      target: targetText,
      inputs: tokensOf(tokenizers.target, inputs, text),
      attention: [
        attentionOf(
          "encoder",
          attention.encoder,
          [model.layers.encoder, model.heads, source.length, source.length],
          false,
        ),
        attentionOf(
          "decoder",
          attention.decoder,
          [model.layers.decoder, model.heads, output.length, output.length],
          engine.causal,
        ),
        attentionOf(
          "cross",
          attention.cross,
          [model.layers.decoder, model.heads, output.length, source.length],
          false,
        ),
      ],
      predictions: predictionsOf(logits, output, tokenizers.target, result.given, temperature),
      score: best.score,
      log_probability: best.logProbability,
      ended: best.ended,
      forced: !result.tree,
      prefix: result.given,
      hypotheses: result.tree
        ? result.hypotheses.map((hypothesis) => this.outputOf(hypothesis, text))
        : [],
      beam: result.tree,
      alignment: this.alignWords(cross, sourceText, targetText),
      occlusion: occlusion
        ? await this.leaveOutWords(ids, output, { pause, signal, engine })
        : null,
      source_neighbours: neighboursOf(
        model.embeddingRows("encoder"),
        model.width,
        source,
        tokenizers.source,
      ),
      target_neighbours: neighboursOf(
        model.embeddingRows("decoder"),
        model.width,
        output,
        tokenizers.target,
      ),
    };
  }

  /** Search for the outputs, or score a given one; `given` of the result is the number of output
      tokens that were forced.
      @type {(ids: number[], options: InspectOptions & { engine: EngineOptions }) => Promise<{
        hypotheses: Output[], tree: BeamTree | null, given: number }>} */
  async findOutputs(
    ids,
    { beam = this.model.search.beam_size, prefix = [], target, pause, signal, engine },
  ) {
    const { model, tokenizers } = this;
    const complete = prefix.at(-1) === EOS;
    const given = complete ? prefix.slice(0, -1) : prefix;
    const forcedIds = this.prefix.every((token, t) => given[t] === token)
      ? given
      : [...this.prefix, ...given];
    checkLength(forcedIds.length, "prefix", this.longest, true);
    if (target === undefined && !complete) {
      const lengthPenalty = model.search.length_penalty;
      const recorder = new BeamRecorder({
        beamSize: beam,
        lengthPenalty,
        eos: EOS,
        piece: (token) => tokenizers.target.pieces([token])[0],
      });
      const hypotheses = await translateIds(model, ids, {
        beamSize: beam,
        nBest: beam,
        prefix: forcedIds,
        onStep: (record) => recorder.step(record),
        pause,
        signal,
        ...engine,
      });
      return {
        hypotheses,
        tree: recorder.tree(withEndSymbol(hypotheses[0])),
        given: forcedIds.length,
      };
    }
    const forced =
      target === undefined ? forcedIds : [...this.prefix, ...tokenizers.target.encode(target)];
    checkLength(forced.length, "target", this.longest, true);
    const tokenScores = this.tokenScores([...ids, EOS], [...forced, EOS], engine);
    return {
      hypotheses: [makeOutput([...forced, EOS], tokenScores, true, model.search.length_penalty)],
      tree: null,
      given: forced.length + 1,
    };
  }

  /** Return the log-probability of each token of an output, by teacher forcing.
      @type {(source: number[], output: number[], engine: EngineOptions) => number[]} */
  tokenScores(source, output, engine) {
    const { logits } = this.model.forward(source, [BOS, ...output.slice(0, -1)], engine);
    const size = this.model.vocabulary;
    return output.map((token, t) => {
      const row = logits.subarray(t * size, (t + 1) * size);
      return this.model.logProbabilities(row)[token];
    });
  }

  /** Leave out each source word in turn: score the output without it, and translate greedily
      without it.
      @param {number[]} ids
      @param {number[]} output
      @param {Control & { engine: EngineOptions }} control */
  async leaveOutWords(ids, output, { pause, signal, engine }) {
    const { source, target } = this.tokenizers;
    const baseline = this.tokenScores([...ids, EOS], output, engine);
    const words = [];
    for (const { word, ids: rest } of withoutEachWord(source, ids)) {
      const drops = this.tokenScores([...rest, EOS], output, engine).map(
        (score, t) => baseline[t] - score,
      );
      const [best] = rest.length
        ? await translateIds(this.model, rest, {
            beamSize: 1,
            nBest: 1,
            prefix: this.prefix,
            pause,
            signal,
            ...engine,
          })
        : [null];
      words.push({
        word,
        drop: drops.reduce((sum, drop) => sum + drop, 0),
        drops,
        output: best ? target.decode(best.tokens) : "",
      });
    }
    return { columns: target.pieces(output), words };
  }

  /** Align words by cross-attention (T, S); return null if a side has no words.
      @param {Float64Array[]} cross @param {ShownText} source @param {ShownText} target */
  alignWords(cross, source, target) {
    /** @type {(text: ShownText) => number[]} */
    const wordsOf = ({ tokens }) => tokens.flatMap((token) => token.word ?? []);
    const [sourceWords, targetWords] = [wordsOf(source), wordsOf(target)];
    if (!source.words.length || !target.words.length) return null;
    const { layers } = this.model;
    const links = wordAlignment(cross, sourceWords, targetWords);
    const [rows, columns] = [Math.max(...targetWords) + 1, Math.max(...sourceWords) + 1];
    const sums = new Float32Array(rows * columns);
    const tokens = new Float32Array(rows);
    targetWords.forEach((to, t) => {
      tokens[to] += 1;
      sourceWords.forEach((from, s) => {
        sums[to * columns + from] += cross[t][s];
      });
    });
    return {
      layer: layers.decoder - 1,
      pharaoh: pharaoh(links),
      links,
      weights: packArray(
        [rows, columns],
        sums.map((sum, i) => sum / Math.max(1, tokens[Math.floor(i / columns)])),
      ),
    };
  }

  /** Return the JSON value of a hypothesis for a source, for the page.
      @param {Output} output @param {string} source */
  outputOf(output, source) {
    const { target } = this.tokenizers;
    const ids = withEndSymbol(output);
    return {
      text: target.outputText(output.tokens, source),
      score: output.score,
      log_probability: output.logProbability,
      ids,
      pieces: target.pieces(ids),
      token_scores: [...output.tokenScores],
      ended: output.ended,
    };
  }
}
