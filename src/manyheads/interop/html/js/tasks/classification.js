/* Classify a text, and inspect it: as manyheads/tasks/classification.py and inspecting/classification.py. */

import { BOS, EOS } from "../text/base.js";
import { attentionOf, checkHead, checkLength, engineChanges, headSteps, neighboursOf, textOf, withoutEachWord } from "./reading.js";
import { logSoftmax } from "./arrays.js";

const SMALLEST_LOG = Math.log(2.2250738585072014e-308); // of a probability

/** A classifier: a model, its tokenizer, and the settings that Python wrote. */
export class PageClassifier {
  constructor(model, tokenizer, settings) {
    Object.assign(this, { model, tokenizer, settings });
  }

  /** The log-probabilities of the classes, and the attention if requested. */
  read(ids, options) {
    const marked = [BOS, ...ids, EOS];
    const { logits, attention } = this.model.classify(marked, { ...options, types: this.types(marked) });
    return { logs: logSoftmax(logits), attention };
  }

  /** The type of each token, 1 after the first end mark; null if the model has no types. */
  types(marked) {
    if (this.model.settings.token_types <= 1) return null;
    const first = marked.indexOf(EOS);
    return marked.map((_, i) => (i > first ? 1 : 0));
  }

  /** The ids of a text, or of two texts after each other with the marks of the tokenizer between them. */
  encode(text) {
    const { tokenizer, settings } = this;
    const texts = settings.texts === 2 ? text.split("\t").slice(0, 2) : [text];
    return texts.flatMap((one, i) => [...(i ? Array(tokenizer.marksBetween ?? 1).fill(EOS) : []), ...tokenizer.encode(one)]);
  }

  /** The classes of a text with their probabilities, the likeliest first. */
  classify(text) {
    const { logs } = this.read(this.encode(text).slice(0, this.settings.longest), {});
    const classes = this.settings.labels.map((label, i) => ({ label, probability: Math.exp(logs[i]) }));
    return classes.sort((one, other) => other.probability - one.probability);
  }

  /** The ids of a text that is looked at. */
  inspected(text) {
    const ids = this.encode(text);
    checkLength(ids.filter((id) => id !== EOS).length, "text", this.settings.longest);
    return ids;
  }

  /** What one head computes; options as those of POST /api/head. */
  head(text, { changes, ...options }) {
    const name = checkHead(this.model, options);
    const marked = [BOS, ...this.inspected(text), EOS];
    return headSteps(this.model, name, marked, null, { ...engineChanges(this.model, changes), types: this.types(marked) });
  }

  /** The inspection of a text; options as those of POST /api/inspect. */
  inspect(text, { occlusion = true, changes } = {}) {
    const { model, tokenizer, settings } = this;
    const ids = this.inspected(text);
    const engine = engineChanges(model, changes);
    const { logs, attention } = this.read(ids, { ...engine, attention: true });
    const best = logs.indexOf(logs.reduce((a, b) => Math.max(a, b))), marked = [BOS, ...ids, EOS];
    return {
      kind: "classification", run: settings.run, model: settings.facts,
      text: textOf(tokenizer, marked, text, settings.language),
      attention: [attentionOf("encoder", attention.encoder, [model.layers.encoder, model.heads, marked.length, marked.length], false)],
      label: settings.labels[best],
      classes: settings.labels.map((label, i) => ({ label, probability: Math.exp(logs[i]) })),
      pooling: model.settings.pooling,
      occlusion: occlusion ? this.leaveOutWords(ids, logs, best, engine) : null,
      neighbours: neighboursOf(model.embeddingRows("encoder"), model.width, marked, tokenizer),
    };
  }

  /** Leave out each word: the drop of each class, and the likeliest class without the word. */
  leaveOutWords(ids, whole, label, engine) {
    const { labels } = this.settings;
    const words = withoutEachWord(this.tokenizer, ids).map(({ word, ids: rest }) => {
      const { logs } = this.read(rest, engine);
      const drops = labels.map((_, i) => Math.max(whole[i], SMALLEST_LOG) - Math.max(logs[i], SMALLEST_LOG));
      return { word, drop: drops[label], drops, output: labels[logs.indexOf(logs.reduce((a, b) => Math.max(a, b)))] };
    });
    return { columns: labels, words };
  }
}
