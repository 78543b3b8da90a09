/* Translate lines, and inspect the translation of a sentence: as manyheads/tasks/translation.py and inspecting/translation.py. */

import { translateIds } from "../engine/search.js";
import { BOS, EOS } from "../text/base.js";
import { Splitter } from "../text/parts.js";
import { lineAlignment, pharaoh, translationWarnings, wordAlignment } from "../text/words.js";
import { logSoftmax, packArray } from "./arrays.js";
import { BeamRecorder } from "./beam.js";
import { attentionOf, checkHead, checkLength, engineChanges, headSteps, neighboursOf, predictionsOf, textOf, tokensOf, withoutEachWord } from "./reading.js";

const withEndMark = ({ tokens, ended }) => (ended ? [...tokens, EOS] : [...tokens]);

/** A translator: a model, the tokenizers of both sides, and the settings that Python wrote (interop/html/describe.py). */
export class PageTranslator {
  constructor(model, tokenizers, settings) {
    Object.assign(this, { model, tokenizers, settings, longest: model.settings.max_positions - 1 });
    const { source: language, copy_literals: copyLiterals, lower_capitals: lowerCapitals, max_length: trainedLength } = settings;
    this.splitter = new Splitter({ tokenizer: tokenizers.source, language, split: "auto", trainedLength, longest: this.longest, copyLiterals, lowerCapitals });
  }

  /**
   * The translation of a line as `translate --json` prints it. `options`: beam, nBest, alignment (whether to align the words),
   * changes (see engineChanges), pause and signal (see engine/search.js).
   */
  async translate(text, { beam = this.model.search.beam_size, nBest = 1, alignment = false, changes, pause, signal } = {}) {
    const line = this.splitter.line(text);
    const options = { beamSize: Math.max(beam, nBest), nBest, crossAttention: alignment, pause, signal, ...engineChanges(this.model, changes) };
    const outputs = [];
    for (const ids of line.parts) outputs.push(ids.length ? await translateIds(this.model, ids.slice(0, this.longest), options) : []);
    return this.assemble(line, outputs, alignment);
  }

  /** The JSON value of a translation from the outputs of its parts: as manyheads/tasks/assembly.py. */
  assemble(line, outputs, alignment) {
    const ranks = Math.max(0, ...outputs.map((hypotheses) => hypotheses.length));
    const hypotheses = Array.from({ length: ranks }, (_, rank) => this.candidate(line, outputs.map((found) => found[Math.min(rank, found.length - 1)] ?? null)));
    const best = outputs.map((found) => found[0] ?? null);
    const copied = !hypotheses.length && line.join([]);
    if (copied) hypotheses.push({ text: copied, score: 0, tokens: [], token_scores: [], log_probability: 0 });
    const attended = alignment && best.map((output, part) => output && { ...output, attention: this.alignmentWeights(line.parts[part], output) });
    return {
      source: line.text,
      translation: hypotheses[0]?.text ?? "",
      score: hypotheses[0]?.score ?? 0,
      hypotheses,
      alignment: attended && hypotheses.length ? pharaoh(lineAlignment(line, attended, this.tokenizers, this.longest)) : null,
      truncated: line.parts.some((ids) => ids.length > this.longest) || best.some((output) => output && !output.ended),
      sentences: copied ? 1 : line.parts.length,
      warnings: copied || !ranks ? [] : translationWarnings(line, best, hypotheses[0].text),
    };
  }

  /** One output of a line from those of its parts, null for a part without tokens. */
  candidate(line, parts) {
    const tokenizer = this.tokenizers.target;
    const outputs = parts.filter(Boolean);
    const scores = outputs.flatMap((output) => [...output.tokenScores]);
    const total = outputs.reduce((sum, output) => sum + output.logProbability, 0);
    return {
      text: line.join(parts.map((output) => (output ? tokenizer.decode(output.tokens) : ""))),
      score: outputs.length === 1 ? outputs[0].score : total / Math.max(scores.length, 1) ** this.model.search.length_penalty,
      tokens: outputs.flatMap((output) => tokenizer.pieces(withEndMark(output))),
      token_scores: scores,
      log_probability: total,
    };
  }

  /** The attention of each token of an output to the source and its end mark, the mean of the heads of a layer. */
  alignmentWeights(ids, output) {
    return this.meanHeads(output.crossAttention, Math.max(1, output.tokens.length), Math.min(ids.length, this.longest) + 1);
  }

  /** Rows (T, S) of the mean of the heads of the layer that aligns words, from weights (L, H, T, S). */
  meanHeads(weights, rows, columns) {
    const { heads, search, layers } = this.model;
    const layer = ((search.attention_layer % layers.decoder) + layers.decoder) % layers.decoder;
    return Array.from({ length: rows }, (_, t) => Float64Array.from({ length: columns }, (__, s) => {
      let sum = 0;
      for (let head = 0; head < heads; head += 1) sum += weights[((layer * heads + head) * rows + t) * columns + s];
      return sum / heads;
    }));
  }

  /** A sentence that is looked at, taken as one part: its ids, and what findOutputs returns; what the model reads of both. */
  async inspected(text, options) {
    const ids = this.tokenizers.source.encode(text);
    checkLength(ids.length, "sentence", this.longest);
    const found = await this.findOutputs(ids, options);
    const [best] = found.hypotheses;
    checkLength(best.tokens.length, "output", this.longest, true);
    const output = withEndMark(best);
    return { ids, found, best, output, source: [...ids, EOS], inputs: [BOS, ...output.slice(0, -1)] };
  }

  /** What one head computes; options as those of POST /api/head. */
  async head(text, { changes, ...options }) {
    const name = checkHead(this.model, options);
    const engine = engineChanges(this.model, changes);
    const { source, inputs } = await this.inspected(text, { ...options, engine });
    return headSteps(this.model, name, source, inputs, engine);
  }

  /** The inspection of a sentence; options as those of POST /api/inspect. */
  async inspect(text, { occlusion = true, temperature = 1, changes, ...options } = {}) {
    const { model, tokenizers, settings } = this;
    const { pause, signal } = options;
    const engine = engineChanges(model, changes);
    const { ids, found, best, output, source, inputs } = await this.inspected(text, { ...options, engine });
    const { logits, attention } = model.read(source, inputs, { ...engine, attention: true });
    const sourceText = textOf(tokenizers.source, source, text, settings.source);
    const targetText = textOf(tokenizers.target, output, tokenizers.target.decode(best.tokens), settings.target);
    const cross = this.meanHeads(attention.cross, output.length, source.length);
    return {
      kind: "translation", run: settings.run, model: settings.facts, source: sourceText, target: targetText,
      inputs: tokensOf(tokenizers.target, inputs),
      attention: [
        attentionOf("encoder", attention.encoder, [model.layers.encoder, model.heads, source.length, source.length], false),
        attentionOf("decoder", attention.decoder, [model.layers.decoder, model.heads, output.length, output.length], engine.causal),
        attentionOf("cross", attention.cross, [model.layers.decoder, model.heads, output.length, source.length], false),
      ],
      predictions: predictionsOf(logits, output, tokenizers.target, found.given, temperature),
      score: best.score, log_probability: best.logProbability, ended: best.ended, forced: !found.tree, prefix: found.given,
      hypotheses: found.tree ? found.hypotheses.map((one) => this.outputOf(one)) : [],
      beam: found.tree,
      alignment: this.alignWords(cross, sourceText, targetText),
      occlusion: occlusion ? await this.leaveOutWords(ids, output, { pause, signal, engine }) : null,
      source_neighbours: neighboursOf(model.embeddingRows("encoder"), model.width, source, tokenizers.source),
      target_neighbours: neighboursOf(model.embeddingRows("decoder"), model.width, output, tokenizers.target),
    };
  }

  /** Search for the output, or score a given one; `given` counts the tokens of the output that were given. */
  async findOutputs(ids, { beam = this.model.search.beam_size, prefix = [], target, pause, signal, engine }) {
    const { model, tokenizers } = this;
    const ends = prefix.at(-1) === EOS, before = ends ? prefix.slice(0, -1) : prefix;
    checkLength(before.length, "prefix", this.longest, true);
    if (target === undefined && !ends) {
      const lengthPenalty = model.search.length_penalty;
      const recorder = new BeamRecorder({ beamSize: beam, lengthPenalty, eos: EOS, piece: (token) => tokenizers.target.pieces([token])[0] });
      const hypotheses = await translateIds(model, ids, { beamSize: beam, nBest: beam, prefix: before, onStep: (record) => recorder.step(record), pause, signal, ...engine });
      return { hypotheses, tree: recorder.tree(withEndMark(hypotheses[0])), given: before.length };
    }
    const forced = target === undefined ? before : tokenizers.target.encode(target);
    checkLength(forced.length, "target", this.longest, true);
    const tokenScores = this.tokenScores([...ids, EOS], [...forced, EOS], engine);
    const logProbability = tokenScores.reduce((sum, score) => sum + score, 0);
    const score = logProbability / tokenScores.length ** model.search.length_penalty;
    return { hypotheses: [{ tokens: forced, tokenScores, logProbability, score, ended: true }], tree: null, given: forced.length + 1 };
  }

  /** The log-probability of each token of an output, by teacher forcing. */
  tokenScores(source, output, engine) {
    const { logits } = this.model.read(source, [BOS, ...output.slice(0, -1)], engine);
    const size = this.model.vocabulary;
    return output.map((token, t) => logSoftmax(logits.subarray(t * size, (t + 1) * size))[token]);
  }

  /** Leave out each source word: score the output and translate greedily without it. */
  async leaveOutWords(ids, output, { pause, signal, engine }) {
    const { source, target } = this.tokenizers;
    const whole = this.tokenScores([...ids, EOS], output, engine);
    const words = [];
    for (const { word, ids: rest } of withoutEachWord(source, ids)) {
      const drops = this.tokenScores([...rest, EOS], output, engine).map((score, t) => whole[t] - score);
      const [best] = rest.length ? await translateIds(this.model, rest, { beamSize: 1, nBest: 1, pause, signal, ...engine }) : [null];
      words.push({ word, drop: drops.reduce((sum, drop) => sum + drop, 0), drops, output: best ? target.decode(best.tokens) : "" });
    }
    return { columns: target.pieces(output), words };
  }

  /** Align words by cross-attention (T, S); null if a side has no words. */
  alignWords(cross, source, target) {
    const wordsOf = ({ tokens }) => tokens.map((token) => token.word).filter((word) => word !== null);
    const [sourceWords, targetWords] = [wordsOf(source), wordsOf(target)];
    if (!source.words.length || !target.words.length) return null;
    const { layers, search } = this.model;
    const links = wordAlignment(cross, sourceWords, targetWords);
    const [rows, columns] = [Math.max(...targetWords) + 1, Math.max(...sourceWords) + 1];
    const sums = new Float32Array(rows * columns), tokens = new Float32Array(rows);
    targetWords.forEach((to, t) => {
      tokens[to] += 1;
      sourceWords.forEach((from, s) => { sums[to * columns + from] += cross[t][s]; });
    });
    return {
      layer: ((search.attention_layer % layers.decoder) + layers.decoder) % layers.decoder,
      pharaoh: pharaoh(links), links, weights: packArray([rows, columns], sums.map((sum, i) => sum / Math.max(1, tokens[Math.floor(i / columns)]))),
    };
  }

  /** An output of the search as the page shows it. */
  outputOf(output) {
    const { target } = this.tokenizers;
    const ids = withEndMark(output);
    return { text: target.decode(output.tokens), score: output.score, log_probability: output.logProbability, ids, pieces: target.pieces(ids), token_scores: [...output.tokenScores], ended: output.ended };
  }
}
