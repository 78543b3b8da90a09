/* Translation of lines, and inspection of a sentence, as in manyheads/tasks/translation.py and
   inspecting/translation.py. */

import { lengthDivisor, makeOutput, translateIds } from "../engine/search.js";
import { BOS, EOS } from "../text/base.js";
import { isComplete, outputOf } from "../text/kepttexts.js";
import { Splitter } from "../text/parts.js";
import { ConfidenceModel } from "../text/confidence.js";
import { SourceModel } from "../text/sourcemodel.js";
import { lineAlignment, pharaoh, translationWarnings, wordAlignment } from "../text/words.js";
import { packArray } from "./arrays.js";
import { BeamRecorder } from "./beam.js";
import {
  attentionOf,
  checkHead,
  checkLength,
  engineChanges,
  headSteps,
  neighboursOf,
  predictionsOf,
  textOf,
  tokensOf,
  withoutEachWord,
} from "./inspection.js";

// outputs among which one with all symbols is looked for, where the best has not
const WIDE_BEAM = 10;

/** Return the ids of an output, with the end symbol if it ended.
    @type {(output: { tokens: number[], ended: boolean }) => number[]} */
const withEndSymbol = ({ tokens, ended }) => (ended ? [...tokens, EOS] : [...tokens]);

/** A translator: a model, the tokenizers of both sides, and the settings that Python wrote
    (web/html_export.py). */
export class PageTranslator {
  /** @param {EngineModel} model @param {Tokenizers} tokenizers @param {PageSettings} settings */
  constructor(model, tokenizers, settings) {
    this.model = model;
    this.tokenizers = tokenizers;
    this.settings = settings;
    // the symbol of the target language, in a vocabulary that has it
    this.prefix = settings.prefix ?? [];
    this.longest = model.settings.max_positions - 1;
    this.sources = settings.sources ? new SourceModel(settings.sources) : undefined;
    this.confidence = settings.confidence && new ConfidenceModel(settings.confidence);
    const {
      source: language,
      target,
      literals,
      lower_capitals: lowerCapitals,
      max_length: trainedLength,
    } = settings;
    const split = this.sources?.singleSentences ? "sentences" : "auto";
    this.splitter = new Splitter({
      tokenizer: tokenizers.source,
      language,
      split,
      trainedLength,
      longest: this.longest,
      literals,
      lowerCapitals,
      target,
    });
  }

  /** Return the translator of a direction by the name that the page gives it; the same without
      several directions.
      @type {(name: string | undefined) => PageTranslator} */
  direction(name) {
    const found = this.settings.directions?.find(({ run }) => run === name);
    return found
      ? new PageTranslator(this.model, this.tokenizers, {
          ...this.settings,
          ...found,
          directions: null,
        })
      : this;
  }

  /** Return the translator of a direction by its languages; "" leaves out the choice. Throw an
      error unless exactly one direction fits.
      @type {(source: string, target: string) => PageTranslator} */
  to(source, target) {
    const own = this.settings.directions ?? [this.settings];
    const fitting = own.filter(
      (one) => [one.source, ""].includes(source) && [one.target, ""].includes(target),
    );
    if (fitting.length !== 1) {
      const directions = own.map((one) => `${one.source}-${one.target}`).join(", ");
      throw new RangeError(
        `${source || "any"} to ${target || "any"} is not one of the directions ${directions}.`,
      );
    }
    return this.direction(fitting[0].run);
  }

  /** Translate a line; return what `translate --json` prints. `options`: beam, nBest, alignment
      (whether to align the words), changes (see engineChanges), pause and signal (see
      engine/search.js).
      @param {string} text @param {TranslateOptions} options */
  async translate(
    text,
    {
      beam = this.model.search.beam_size,
      nBest = 1,
      alignment = false,
      changes,
      pause,
      signal,
    } = {},
  ) {
    const { prefix } = this;
    const options = {
      beamSize: Math.max(beam, nBest),
      nBest,
      prefix,
      skip: prefix.length,
      crossAttention: alignment,
      pause,
      signal,
      ...engineChanges(this.model, changes),
    };
    const { source, target } = this.tokenizers;
    const cut = this.splitter.line(text);
    const marked =
      source.keepIds.length && target.keepIds.length ? this.splitter.withMarks(cut) : cut;
    const wide = Math.max(WIDE_BEAM, options.beamSize);
    for (const tried of [options, { ...options, beamSize: wide, nBest: wide }]) {
      const outputs = await this.outputsOf(marked, tried);
      if (outputs.every((found) => found.length)) {
        return this.assemble(
          marked,
          outputs.map((found) => found.slice(0, nBest)),
          alignment,
        );
      }
    }
    return this.assemble(cut, await this.outputsOf(cut, options), alignment);
  }

  /** Return the outputs of the parts of a line, without those that lack the symbol of a literal.
      @param {Line} line @param {SearchOptions} options */
  async outputsOf(line, options) {
    const outputs = [];
    for (const [part, ids] of line.parts.entries()) {
      const sentence = line.kept[part];
      /** @type {(output: Output) => boolean} */
      const accept = ({ tokens }) =>
        !sentence || isComplete(sentence, this.tokenizers.target, tokens);
      outputs.push(
        await translateIds(this.model, ids.slice(0, this.longest), { ...options, accept }),
      );
    }
    return outputs;
  }

  /** Return the JSON value of a translation from the outputs of its parts, as in
      manyheads/inference/translation/assembly.py.
      @param {Line} line @param {Output[][]} outputs @param {boolean} alignment */
  assemble(line, outputs, alignment) {
    const ranks = Math.max(0, ...outputs.map((hypotheses) => hypotheses.length));
    const hypotheses = Array.from({ length: ranks }, (_, rank) =>
      this.joinOutputs(
        line,
        outputs.map((ranked) => ranked[Math.min(rank, ranked.length - 1)]),
      ),
    );
    const best = outputs.map((ranked) => ranked[0]);
    if (!ranks && line.text) {
      hypotheses.push({
        text: line.text,
        score: 0,
        tokens: [],
        token_scores: [],
        log_probability: 0,
      });
    }
    const attended =
      alignment &&
      best.map((output, part) => ({
        ...output,
        attention: this.alignmentWeights(line.parts[part], output),
      }));
    const truncated =
      line.parts.some((ids) => ids.length > this.longest) || best.some((output) => !output.ended);
    const warnings = !ranks
      ? []
      : translationWarnings(line, best, this.tokenizers.target, this.sources);
    const confidence =
      ranks && this.confidence
        ? this.confidence.estimate(
            hypotheses[0].token_scores,
            line.parts,
            this.sources,
            warnings,
            truncated,
          )
        : null;
    return {
      source: line.text,
      translation: hypotheses[0]?.text ?? "",
      score: hypotheses[0]?.score ?? 0,
      hypotheses,
      alignment:
        attended && hypotheses.length
          ? pharaoh(lineAlignment(line, attended, this.tokenizers, this.longest))
          : null,
      truncated,
      sentences: line.parts.length || 1,
      warnings,
      confidence,
      confidence_level:
        confidence === null || !this.confidence ? null : this.confidence.level(confidence),
    };
  }

  /** Join the outputs of the parts of a line to one hypothesis.
      @type {(line: Line, outputs: Output[]) => Hypothesis} */
  joinOutputs(line, outputs) {
    const tokenizer = this.tokenizers.target;
    const scores = outputs.flatMap((output) => [...output.tokenScores]);
    const total = outputs.reduce((sum, output) => sum + output.logProbability, 0);
    return {
      text: line.join(
        outputs.map(({ tokens }, part) =>
          outputOf(tokenizer, tokens, line.partText(part), line.kept[part]),
        ),
      ),
      score:
        outputs.length === 1
          ? outputs[0].score
          : total / lengthDivisor(scores.length, this.model.search.length_penalty),
      tokens: outputs.flatMap((output) => tokenizer.pieces(withEndSymbol(output))),
      token_scores: scores,
      log_probability: total,
    };
  }

  /** Return the attention of each token of an output to the source and its end symbol, averaged
      over the heads of a layer.
      @type {(ids: number[], output: Output) => Float64Array[]} */
  alignmentWeights(ids, output) {
    const skip = this.prefix.length;
    const rows = Math.max(1, output.tokens.length + skip);
    return this.meanHeads(
      /** @type {Float32Array} */ (output.crossAttention),
      rows,
      Math.min(ids.length, this.longest) + 1,
    ).slice(skip);
  }

  /** Average weights (L, H, T, S) over the heads of the layer that aligns words: rows (T, S).
      @type {(weights: Float32Array, rows: number, columns: number) => Float64Array[]} */
  meanHeads(weights, rows, columns) {
    const { heads, layers } = this.model;
    const layer = layers.decoder - 1;
    return Array.from({ length: rows }, (_, t) =>
      Float64Array.from({ length: columns }, (__, s) => {
        let sum = 0;
        for (let head = 0; head < heads; head += 1) {
          sum += weights[((layer * heads + head) * rows + t) * columns + s];
        }
        return sum / heads;
      }),
    );
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
    const cross = this.meanHeads(attention.cross, output.length, source.length);
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
