/* Classification of a text, and its inspection, as in manyheads/inference/classifier.py and
   manyheads/inspection/classification.py. */

import { SearchCancelled } from "../engine/search.js";
import { BOS, EOS } from "../text/base.js";
import {
  attentionOf,
  checkHead,
  checkLength,
  engineChanges,
  headSteps,
  neighboursOf,
  textOf,
  withoutEachWord,
} from "./inspection.js";
import { logSoftmax } from "./arrays.js";

const MIN_LOG_PROBABILITY = Math.log(2.2250738585072014e-308); // smallest normal float64

/** Return the index of the likeliest class.
    @type {(logProbabilities: Float64Array) => number} */
const likeliest = (logProbabilities) => logProbabilities.indexOf(Math.max(...logProbabilities));

/** A classifier: a model, its tokenizer, and the settings that Python wrote. */
export class PageClassifier {
  /** @param {EngineModel} model @param {Tokenizer} tokenizer @param {PageSettings} settings */
  constructor(model, tokenizer, settings) {
    this.model = model;
    this.tokenizer = tokenizer;
    this.settings = settings;
  }

  /** Return the log-probabilities of the classes, and the attention if requested.
      @param {number[]} ids @param {EngineOptions} options */
  forward(ids, options) {
    const input = [BOS, ...ids, EOS];
    const { logits, attention } = this.model.classify(input, {
      ...options,
      types: this.types(input),
    });
    return { logProbabilities: logSoftmax(logits), attention };
  }

  /** Return the type of each token, 1 after the first end symbol; null if the model has no types.
      @type {(input: number[]) => number[] | null} */
  types(input) {
    if (this.model.settings.token_types <= 1) return null;
    const first = input.indexOf(EOS);
    return input.map((_, i) => (i > first ? 1 : 0));
  }

  /** Return the ids of a text, or of two texts (separated by a tab) with the end symbols of the
      tokenizer between them.
      @type {(text: string) => number[]} */
  encode(text) {
    const { tokenizer, settings } = this;
    const texts = settings.texts === 2 ? text.split("\t").slice(0, 2) : [text];
    return texts.flatMap((part, i) => [
      ...(i ? Array(tokenizer.marksBetween).fill(EOS) : []),
      ...tokenizer.encode(part),
    ]);
  }

  /** Return the classes of a text with their probabilities, the likeliest first.
      @type {(text: string) => { label: string, probability: number }[]} */
  classify(text) {
    const { logProbabilities } = this.forward(
      this.encode(text).slice(0, this.settings.longest),
      {},
    );
    const classes = this.settings.labels.map((label, i) => ({
      label,
      probability: Math.exp(logProbabilities[i]),
    }));
    return classes.sort((a, b) => b.probability - a.probability);
  }

  /** Return the ids of a text to inspect; throw a RequestError if it is too long.
      @type {(text: string) => number[]} */
  checkedIds(text) {
    const ids = this.encode(text);
    checkLength(ids.filter((id) => id !== EOS).length, "text", this.settings.longest);
    return ids;
  }

  /** Compute the intermediate values of a head; options as in POST /api/head.
      @param {string} text @param {HeadRequest} options */
  head(text, { changes, ...options }) {
    const name = checkHead(this.model, options);
    const input = [BOS, ...this.checkedIds(text), EOS];
    return headSteps(this.model, name, input, [], {
      ...engineChanges(this.model, changes),
      types: this.types(input),
    });
  }

  /** Inspect a text; options as in POST /api/inspect.
      @param {string} text @param {InspectOptions} options */
  async inspect(text, { occlusion = true, changes, ...control } = {}) {
    const { model, tokenizer, settings } = this;
    const ids = this.checkedIds(text);
    const engine = engineChanges(model, changes);
    const { logProbabilities, attention } = this.forward(ids, { ...engine, attention: true });
    const best = likeliest(logProbabilities);
    const input = [BOS, ...ids, EOS];
    return {
      kind: "classification",
      run: settings.run,
      model: settings.facts,
      text: textOf(tokenizer, input, text, settings.language),
      attention: [
        attentionOf(
          "encoder",
          attention.encoder,
          [model.layers.encoder, model.heads, input.length, input.length],
          false,
        ),
      ],
      label: settings.labels[best],
      classes: settings.labels.map((label, i) => ({
        label,
        probability: Math.exp(logProbabilities[i]),
      })),
      pooling: model.settings.pooling,
      occlusion: occlusion
        ? await this.leaveOutWords(ids, logProbabilities, best, engine, control)
        : null,
      neighbours: neighboursOf(model.embeddingRows("encoder"), model.width, input, tokenizer),
    };
  }

  /** Leave out each word in turn; return the drop in log-probability of each class, and the
      likeliest class without the word.
      @param {number[]} ids
      @param {Float64Array} baseline
      @param {number} label
      @param {EngineOptions} engine
      @param {Control} control */
  async leaveOutWords(ids, baseline, label, engine, { pause, signal }) {
    const { labels } = this.settings;
    const words = [];
    for (const { word, ids: rest } of withoutEachWord(this.tokenizer, ids)) {
      await pause?.();
      if (signal?.aborted) throw new SearchCancelled("the inspection was cancelled");
      const { logProbabilities } = this.forward(rest, engine);
      const drops = labels.map(
        (_, i) =>
          Math.max(baseline[i], MIN_LOG_PROBABILITY) -
          Math.max(logProbabilities[i], MIN_LOG_PROBABILITY),
      );
      words.push({
        word,
        drop: drops[label],
        drops,
        output: labels[likeliest(logProbabilities)],
      });
    }
    return { columns: labels, words };
  }
}
