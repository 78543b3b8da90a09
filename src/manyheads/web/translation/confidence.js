/* How sure a translator is of a translation: an estimate of its chrF, as in
   manyheads/inference/translation/confidence.py. */

import { UnlikeTraining } from "./unliketraining.js";

const LEVELS = ["low", "medium", "high"];
const SIGNS_OF_FAILURE = ["unlike-training", "repetition", "length-ratio", "broken-character"];

/** The model of the confidence, from the JSON value that Python wrote. */
export class ConfidenceModel {
  /** @param {ConfidenceDescription} description */
  constructor({ bias, weights, usual_ratio: usualRatio, limits }) {
    this.bias = bias;
    this.weights = weights;
    this.usualRatio = usualRatio;
    this.limits = limits;
  }

  /** Return the confidence in the translation of a line, from 0 to 1. `tokenScores` are those of
      all parts, `rows` the ids of the parts, `sources` the model of the training sources, if there
      is one.
      @param {number[]} tokenScores
      @param {number[][]} rows
      @param {SourceModel | null | undefined} sources
      @param {string[]} warnings
      @param {boolean} truncated */
  estimate(tokenScores, rows, sources, warnings, truncated) {
    const count = tokenScores.length;
    const pieces = rows.reduce((sum, row) => sum + row.length + 1, 0);
    /** @type {(values: number[]) => number} */
    const total = (values) => values.reduce((sum, value) => sum + value, 0);
    const surprise = sources ? total(rows.map((row) => sources.surprise(row))) / pieces : 0;
    const ratio = Math.abs(Math.log(count / pieces) - this.usualRatio);
    const terms = [
      total(tokenScores) / count,
      total(tokenScores.map(Math.exp)) / count,
      surprise,
      ratio,
    ];
    let value = this.bias + total(terms.map((term, index) => this.weights[index] * term));
    if (truncated || warnings.some((name) => SIGNS_OF_FAILURE.includes(name))) {
      value = Math.min(value, this.limits[0] / 2);
    }
    return Math.min(1, Math.max(0, value));
  }

  /** Return the word for a confidence.
      @type {(confidence: number) => string} */
  level(confidence) {
    return LEVELS[this.limits.filter((limit) => confidence > limit).length];
  }
}

/** The confidence in each translation.
    @implements {Stage} */
export class Confidence {
  /** @param {PageTranslator} translator */
  constructor(translator) {
    const { confidence } = translator.settings;
    this.translator = translator;
    this.model = confidence && new ConfidenceModel(confidence);
  }

  /** @type {(translation: PlainTranslation, draft: Draft) => Partial<Translation>} */
  fields(translation, { line }) {
    if (!this.model || !line.parts.length) return { confidence: null, confidence_level: null };
    const training = this.translator.stages.find((stage) => stage instanceof UnlikeTraining);
    const confidence = this.model.estimate(
      translation.hypotheses[0].token_scores,
      line.rows,
      training?.sources,
      translation.warnings,
      translation.truncated,
    );
    return { confidence, confidence_level: this.model.level(confidence) };
  }
}
