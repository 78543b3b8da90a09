/* Continuation of a text with a language model, and its inspection, as in
   manyheads/inference/generator.py and manyheads/inspection/language_model.py. */

import { bestTokens, contextLength, generateIds } from "../engine/search.js";
import { samplingWeights } from "../engine/sampling.js";
import { BOS, EOS, PAD, UNK } from "../text/base.js";
import {
  attentionOf,
  checkHead,
  checkLength,
  engineChanges,
  headSteps,
  neighboursOf,
  predictionsOf,
  alternativesOf,
  textOf,
  tokensOf,
} from "./inspection.js";
import { logSoftmax } from "./arrays.js";

const SHOWN_TOKENS = 20; // number of next tokens that are shown

/** A language model: a model, its tokenizer, and the settings that Python wrote. */
export class PageGenerator {
  /** @param {EngineModel} model @param {Tokenizer} tokenizer @param {PageSettings} settings */
  constructor(model, tokenizer, settings) {
    this.model = model;
    this.tokenizer = tokenizer;
    this.settings = settings;
  }

  /** Return the ids of a prompt, at least one: the token `first` begins an empty prompt, or every
      prompt if each line is a document.
      @type {(text: string) => number[]} */
  context(text) {
    const { first, lines } = this.settings;
    const ids = this.tokenizer.encode(text);
    return lines || !ids.length ? [first, ...ids] : ids;
  }

  /** Generate the text after a prompt. `sampling`: { temperature, topK, topP, seed }, or null for
      the likeliest tokens.
      @type {(text: string, options?: { sampling?: Sampling | null, maxTokens?: number, changes?:
        ModelChanges } & Control) => Promise<string>} */
  async generate(text, { sampling = null, maxTokens = 100, changes, pause, signal } = {}) {
    const output = await generateIds(this.model, this.context(text), {
      sampling,
      maxTokens,
      pause,
      signal,
      ...engineChanges(this.model, changes),
    });
    return this.tokenizer.decode(output.tokens);
  }

  /** Return the likeliest next tokens, with their probabilities, and their shares after
      temperature, top-k and top-p.
      @param {string} text @param {{ sampling?: Sampling, changes?: ModelChanges }} options */
  next(text, { sampling = {}, changes } = {}) {
    const { model, tokenizer } = this;
    const context = this.context(text);
    const inputs = context.slice(context.length - contextLength(context.length, model.window));
    const { logits } = model.forward(null, inputs, engineChanges(model, changes));
    const values = model.logProbabilities(logits.subarray((inputs.length - 1) * model.vocabulary));
    const suppressed = new Set([UNK, PAD, BOS]);
    const best = bestTokens(values, SHOWN_TOKENS, suppressed);
    const weights = samplingWeights(values, best[0].value, sampling, suppressed);
    const total = weights.reduce((sum, weight) => sum + weight, 0);
    const prompt = tokenizer.decode(context);
    const tokens = best.map(({ token, value }) => {
      const longer = tokenizer.decode([...context, token]);
      return {
        id: token,
        piece: tokenizer.pieces([token])[0],
        text: longer.startsWith(prompt) ? longer.slice(prompt.length) : "",
        probability: Math.exp(value),
        share: weights[token] / total,
      };
    });
    return { tokens, kept: weights.filter((weight) => weight > 0).length };
  }

  /** Return the ids of a text to inspect, continued greedily by up to `max_tokens`, and the number
      of ids before the continuation.
      @param {string} text
      @param {{ prefix?: number[], max_tokens?: number } & Control} options
      @param {EngineOptions} engine */
  async continueText(text, { prefix = [], max_tokens: maxTokens = 0, pause, signal }, engine) {
    const given = [...this.tokenizer.encode(text), ...prefix];
    const ids = [...given];
    if (maxTokens && given.at(-1) !== EOS) {
      const output = await generateIds(this.model, [...this.context(text), ...prefix], {
        maxTokens,
        pause,
        signal,
        ...engine,
      });
      ids.push(...output.tokens, ...(output.ended ? [EOS] : []));
    }
    checkLength(ids.length, "text", this.model.window - 1);
    return { ids, given: given.length };
  }

  /** Compute the intermediate values of a head; options as in POST /api/head.
      @param {string} text @param {HeadRequest & InspectOptions} options */
  async head(text, { changes, ...options }) {
    const name = checkHead(this.model, options);
    const engine = engineChanges(this.model, changes);
    const { ids } = await this.continueText(text, options, engine);
    return headSteps(this.model, name, null, [this.settings.first, ...ids], engine);
  }

  /** Inspect a text; options as in POST /api/inspect.
      @param {string} text @param {InspectOptions} options */
  async inspect(text, { temperature = 1, changes, ...options } = {}) {
    const { model, tokenizer, settings } = this;
    const engine = engineChanges(model, changes);
    const { ids, given } = await this.continueText(text, options, engine);
    const inputs = [settings.first, ...ids];
    const { logits, attention } = model.forward(null, inputs, { ...engine, attention: true });
    const size = model.vocabulary;
    const predictions = predictionsOf(
      logits.subarray(0, ids.length * size),
      ids,
      tokenizer,
      given,
      temperature,
    );
    return {
      kind: "language-modeling",
      run: settings.run,
      model: settings.facts,
      text: textOf(tokenizer, ids, tokenizer.decode(ids), settings.language),
      inputs: tokensOf(tokenizer, inputs.slice(0, -1)),
      attention: [
        attentionOf(
          "decoder",
          attention.decoder,
          [model.layers.decoder, model.heads, inputs.length, inputs.length],
          engine.causal,
        ),
      ],
      predictions,
      next: alternativesOf(logSoftmax(logits.subarray(ids.length * size)), tokenizer),
      log_probability: predictions.reduce((sum, prediction) => sum + prediction.log_probability, 0),
      prefix: given,
      neighbours: neighboursOf(model.embeddingRows("decoder"), model.width, ids, tokenizer),
    };
  }
}
