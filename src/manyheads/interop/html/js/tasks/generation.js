/* Continue a text with a language model, and inspect it: as manyheads/tasks/language_modeling.py and inspecting. */

import { bestTokens, generateIds, heldTokens, logProbabilities } from "../engine/search.js";
import { samplingWeights } from "../engine/sampling.js";
import { BOS, EOS, PAD, UNK } from "../text/base.js";
import { attentionOf, checkHead, checkLength, engineChanges, headSteps, neighboursOf, predictionsOf, rivalsOf, textOf, tokensOf } from "./reading.js";
import { logSoftmax } from "./arrays.js";

const SHOWN_TOKENS = 20; // most probable next tokens

/** A language model: a model, its tokenizer, and the settings that Python wrote. */
export class PageGenerator {
  constructor(model, tokenizer, settings) {
    Object.assign(this, { model, tokenizer, settings });
  }

  /** The ids of the beginning of a text, at least one: `first` begins an empty text, or every text where a line is a document. */
  context(text) {
    const { first, lines } = this.settings;
    const ids = this.tokenizer.encode(text);
    return lines || !ids.length ? [first, ...ids] : ids;
  }

  /** The text after a prompt. `sampling`: { temperature, topK, topP, seed }, or null for the likeliest tokens. */
  async generate(text, { sampling = null, maxTokens = 100, changes, pause, signal } = {}) {
    const output = await generateIds(this.model, this.context(text), { sampling, maxTokens, pause, signal, ...engineChanges(this.model, changes) });
    return this.tokenizer.decode(output.tokens);
  }

  /** The likeliest next tokens, with their chance to be sampled. */
  next(text, { sampling, changes } = {}) {
    const { model, tokenizer } = this;
    const context = this.context(text);
    const held = context.slice(context.length - heldTokens(context.length, model.window));
    const { logits } = model.read(null, held, engineChanges(model, changes));
    const own = logProbabilities(logits.subarray((held.length - 1) * model.vocabulary));
    const hidden = new Set([UNK, PAD, BOS]);
    const possible = bestTokens(own, SHOWN_TOKENS, hidden);
    const weights = samplingWeights(own, possible[0].value, sampling, hidden);
    const total = weights.reduce((sum, weight) => sum + weight, 0);
    const written = tokenizer.decode(context);
    const tokens = possible.map(({ token, value }) => {
      const whole = tokenizer.decode([...context, token]);
      return { id: token, piece: tokenizer.pieces([token])[0], text: whole.startsWith(written) ? whole.slice(written.length) : "", probability: Math.exp(value), share: weights[token] / total };
    });
    return { tokens, kept: weights.filter((weight) => weight > 0).length };
  }

  /** The ids of a text that is looked at, greedily continued by `max_tokens`, and the number of those that were given. */
  async inspected(text, { prefix = [], max_tokens: maxTokens = 0, pause, signal }, engine) {
    const given = [...this.tokenizer.encode(text), ...prefix];
    const ids = [...given];
    if (maxTokens && given.at(-1) !== EOS) {
      const more = await generateIds(this.model, [...this.context(text), ...prefix], { maxTokens, pause, signal, ...engine });
      ids.push(...more.tokens, ...(more.ended ? [EOS] : []));
    }
    checkLength(ids.length, "text", this.model.window - 1);
    return { ids, given: given.length };
  }

  /** What one head computes; options as those of POST /api/head. */
  async head(text, { changes, ...options }) {
    const name = checkHead(this.model, options);
    const engine = engineChanges(this.model, changes);
    const { ids } = await this.inspected(text, options, engine);
    return headSteps(this.model, name, null, [this.settings.first, ...ids], engine);
  }

  /** The inspection of a text; options as those of POST /api/inspect. */
  async inspect(text, { temperature = 1, changes, ...options } = {}) {
    const { model, tokenizer, settings } = this;
    const engine = engineChanges(model, changes);
    const { ids, given } = await this.inspected(text, options, engine);
    const inputs = [settings.first, ...ids];
    const { logits, attention } = model.read(null, inputs, { ...engine, attention: true });
    const size = model.vocabulary;
    const predictions = predictionsOf(logits.subarray(0, ids.length * size), ids, tokenizer, given, temperature);
    return {
      kind: "language-modeling", run: settings.run, model: settings.facts,
      text: textOf(tokenizer, ids, tokenizer.decode(ids), settings.language),
      inputs: tokensOf(tokenizer, inputs.slice(0, -1)),
      attention: [attentionOf("decoder", attention.decoder, [model.layers.decoder, model.heads, inputs.length, inputs.length], engine.causal)],
      predictions,
      next: rivalsOf(logSoftmax(logits.subarray(ids.length * size)), tokenizer),
      log_probability: predictions.reduce((sum, one) => sum + one.log_probability, 0),
      prefix: given,
      neighbours: neighboursOf(model.embeddingRows("decoder"), model.width, ids, tokenizer),
    };
  }
}
