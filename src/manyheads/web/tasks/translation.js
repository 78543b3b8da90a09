/* Translation of lines, as in manyheads/inference/translation. */

import { lengthDivisor, translateIds } from "../engine/search.js";
import { lineAlignment, pharaoh } from "../translation/alignment.js";
import { Confidence } from "../translation/confidence.js";
import { Direction, settingsByLanguages, settingsByName } from "../translation/directions.js";
import { Placeholders } from "../translation/literals.js";
import { OutputChecks } from "../translation/outputchecks.js";
import { Splitter } from "../translation/parts.js";
import { UnlikeTraining } from "../translation/unliketraining.js";
import { engineChanges, meanHeads, withEndSymbol } from "./inspection.js";
import { TranslationInspector } from "./translationinspector.js";

/** The features of a translation, in their order.
    @type {(new (translator: PageTranslator) => Stage)[]} */
export const STAGES = [Direction, UnlikeTraining, Placeholders, OutputChecks, Confidence];

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
    this.stages = STAGES.map((Feature) => new Feature(this));
    this.splitter = new Splitter({
      tokenizer: tokenizers.source,
      language: settings.source,
      target: settings.target,
      trainedLength: settings.max_length,
      longest: this.longest,
      lowerCapitals: settings.lower_capitals,
      ...Object.assign({}, ...this.stages.map(({ splitting }) => splitting)),
    });
  }

  /** Return the translator of a direction by the name that the page gives it; the same without
      several directions.
      @type {(name: string | undefined) => PageTranslator} */
  direction(name) {
    return this.withSettings(settingsByName(this.settings, name));
  }

  /** Return the translator of a direction by its languages; "" leaves out the choice. Throw an
      error unless exactly one direction fits.
      @type {(source: string, target: string) => PageTranslator} */
  to(source, target) {
    return this.withSettings(settingsByLanguages(this.settings, source, target));
  }

  /** Return the translator with other settings.
      @type {(settings: PageSettings) => PageTranslator} */
  withSettings(settings) {
    if (settings === this.settings) return this;
    return new PageTranslator(this.model, this.tokenizers, settings);
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
    const options = {
      beamSize: Math.max(beam, nBest),
      nBest,
      crossAttention: alignment,
      pause,
      signal,
      ...engineChanges(this.model, changes),
    };
    /** @type {Draft} */
    let draft = { line: this.splitter.line(text), options, outputs: [] };
    for (const stage of this.stages) draft = stage.before?.(draft) ?? draft;
    draft = await this.search(draft);
    const outputs = draft.outputs.map((ranked) => ranked.slice(0, nBest));
    return this.assemble({ ...draft, outputs }, alignment);
  }

  /** Search for the outputs of the parts of a line; if the stages accept none of a part, search for
      all of the line again with what a stage changes.
      @type {(draft: Draft) => Promise<Draft>} */
  async search(draft) {
    const outputs = [];
    for (const part of draft.line.parts) {
      /** @type {(output: Output) => boolean} */
      const accept = (output) =>
        this.stages.every((stage) => stage.accepts?.(part, output) ?? true);
      const ids = part.ids.slice(0, this.longest);
      outputs.push(await translateIds(this.model, ids, { ...draft.options, accept }));
    }
    if (outputs.every((ranked) => ranked.length)) return { ...draft, outputs };
    for (const stage of this.stages) draft = stage.change?.(draft) ?? draft;
    return this.search(draft);
  }

  /** Return the JSON value of the translation of a line.
      @type {(draft: Draft, alignment: boolean) => Translation} */
  assemble(draft, alignment) {
    const { line, outputs } = draft;
    const best = outputs.map(([first]) => first);
    const ranks = Math.max(0, ...outputs.map((ranked) => ranked.length));
    const hypotheses = Array.from({ length: ranks }, (_, rank) =>
      this.joinOutputs(
        line,
        outputs.map((ranked) => ranked[Math.min(rank, ranked.length - 1)]),
      ),
    );
    if (!ranks && line.text) {
      hypotheses.push({
        text: line.text,
        score: 0,
        tokens: [],
        token_scores: [],
        log_probability: 0,
      });
    }
    const truncated =
      line.parts.some(({ ids }) => ids.length > this.longest) ||
      best.some((output) => !output.ended);
    const warnings = Object.assign({}, ...this.stages.map((stage) => stage.warnings?.(draft)));
    const translation = {
      source: line.text,
      translation: hypotheses[0]?.text ?? "",
      score: hypotheses[0]?.score ?? 0,
      hypotheses,
      alignment: alignment && hypotheses.length ? pharaoh(this.align(draft)) : null,
      truncated,
      sentences: line.parts.length || 1,
      warnings: ranks ? Object.keys(warnings).filter((name) => warnings[name]) : [],
    };
    return Object.assign(
      translation,
      ...this.stages.map((stage) => stage.fields?.(translation, draft)),
    );
  }

  /** Join the outputs of the parts of a line to one hypothesis.
      @type {(line: Line, outputs: Output[]) => Hypothesis} */
  joinOutputs(line, outputs) {
    const tokenizer = this.tokenizers.target;
    const scores = outputs.flatMap((output) => [...output.tokenScores]);
    const total = outputs.reduce((sum, output) => sum + output.logProbability, 0);
    return {
      text: line.join(
        outputs.map(({ tokens }, index) => line.parts[index].outputText(tokenizer, tokens)),
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

  /** Return the links between the words of a line and of its best outputs.
      @type {(draft: Draft) => Link[]} */
  align({ line, outputs, options }) {
    const skip = options.skip ?? 0;
    const attended = outputs.map(([{ tokens, crossAttention }], index) => {
      const rows = Math.max(1, tokens.length + skip);
      const columns = Math.min(line.parts[index].ids.length, this.longest) + 1;
      const weights = /** @type {Float32Array} */ (crossAttention);
      return { tokens, attention: meanHeads(this.model, weights, rows, columns).slice(skip) };
    });
    return lineAlignment(line, attended, this.tokenizers, this.longest);
  }

  /** Inspect a sentence; options as in POST /api/inspect.
      @param {string} text @param {InspectOptions} options */
  inspect(text, options) {
    return new TranslationInspector(this).inspect(text, options);
  }

  /** Compute the intermediate values of a head; options as in POST /api/head.
      @param {string} text @param {HeadRequest & InspectOptions} options */
  head(text, options) {
    return new TranslationInspector(this).head(text, options);
  }
}
