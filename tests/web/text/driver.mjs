/* Call functions of web/text and web/translation for tests in Python: read JSON lines {"function": ..., "arguments": [...]}, and print a line with each result. */

import { createInterface } from "node:readline";

const folder = process.argv[2];
const load = (file) => import(`${folder}/${file}`);
const { capitalize, lowerCase, upperCase, characterBefore, hasLetters, hasText, isAlphanumeric, isBlank, isCombining, isDigits, isUpper, isWide, known, moveOffset,
  onKnown, splitBlanks, strip } =
  await load("unicode.js");
const { lower, normalize, normalizeTarget, sourceForm, unify } = await load("normalize.js");
const { sentenceCase, sentenceSpans } = await load("sentences.js");
const { loadTokenizer } = await load("tokenizer.js");
const { LiteralKinds, SentenceWithPlaceholders, withPlaceholders } = await load("../translation/literals.js");
const { Line, Part, Splitter } = await load("../translation/parts.js");
const { copiedLinks, lineAlignment, pharaoh, wordAlignment, wordIndices } = await load("../translation/alignment.js");
const { OutputChecks } = await load("../translation/outputchecks.js");
const { SourceModel, UnlikeTraining } = await load("../translation/unliketraining.js");
const { ConfidenceModel } = await load("../translation/confidence.js");

/* Convert spans from UTF-16 units to characters, as Python counts them. */
function inCharacters(text, spans) {
  const numbers = [];
  let count = 0;
  for (const character of text) {
    for (let unit = 0; unit < character.length; unit += 1) numbers.push(count);
    count += 1;
  }
  numbers.push(count);
  return spans.map((span) => span.map((offset) => numbers[offset]));
}

const tokenizers = new Map();
const splitterOf = ({ tokenizer, literals, ...options }) => {
  const kinds = new LiteralKinds(literals);
  return new Splitter({ ...options, tokenizer: tokenizers.get(tokenizer), spansToTranslate: (line) => kinds.spansToTranslate(line) });
};
const spansOf = (line) => inCharacters(line.text, line.parts.map(({ start, end }) => [start, end]));
const lines = (options, texts) => {
  const splitter = splitterOf(options);
  return texts.map((text) => splitter.line(text));
};
const pair = ({ source, target }) => ({ source: tokenizers.get(source), target: tokenizers.get(target) });

const FUNCTIONS = {
  properties: (codes) => codes.map((code) => {
    const c = String.fromCodePoint(code);
    const flags = [/\P{Cn}/u.test(c), hasText(c), hasLetters(c), isAlphanumeric(c), isDigits(c), /\p{Nd}/u.test(c), /\p{Lowercase}/u.test(c)];
    return [...flags, isUpper(c), isBlank(c), isCombining(c), isWide(c), c.toUpperCase(), c.toLowerCase(), capitalize(c)];
  }),
  known: (texts) => texts.map((text) => [...known(text)].map((c) => (c === "\u{f0000}" ? "\ue000" : c)).join("")),
  changed: (texts) => texts.map((text) => [onKnown((c) => c.toUpperCase(), text), onKnown(capitalize, text)]),
  normalized: (texts, marks) => {
    const patterns = Object.fromEntries(Object.entries(marks).map(([name, pattern]) => [name, new RegExp(pattern, "gu")]));
    return texts.map((text) => [normalize(text), unify(text), lower(text), normalizeTarget(text), sourceForm(text, patterns)]);
  },
  stripped: (texts) => texts.map((text) => [strip(text), splitBlanks(text), capitalize(text)]),
  cased: (texts, language) => texts.map((text) => [lowerCase(text, language), upperCase(text, language), capitalize(text, language)]),
  moved: (text, index, characters) => [moveOffset(text, index, characters), characterBefore(text, index)],
  sentences: (texts, language) => texts.map((text) => [inCharacters(text, sentenceSpans(text, language)), sentenceCase(text, language)]),
  literals: (kinds, texts) => {
    const literals = new LiteralKinds(kinds);
    return texts.map((text) => inCharacters(text, literals.spansToTranslate(text)));
  },
  load: (name, description) => {
    const tokenizer = loadTokenizer(description);
    tokenizers.set(name, tokenizer);
    return [tokenizer.kind, tokenizer.size];
  },
  encode: (name, texts) => texts.map((text) => tokenizers.get(name).encode(text)),
  decode: (name, rows) => rows.map((ids) => tokenizers.get(name).decode(ids)),
  pieces: (name, rows) => rows.map((ids) => tokenizers.get(name).pieces(ids)),
  words: (name, texts) => texts.map((text) => tokenizers.get(name).words(text)),
  outside: (name, ids) => {
    try {
      return tokenizers.get(name).decode(ids);
    } catch (error) {
      return `${error.name}: ${error.message}`;
    }
  },
  lines: (options, texts) => lines(options, texts).map((line) => {
    const { text, rows, cutSentences, target } = line;
    return { text, spans: spansOf(line), rows, cutSentences, capitals: line.parts.map(({ capitals }) => capitals), target };
  }),
  placeholders: (options, texts) => texts.map((text) => {
    const splitter = splitterOf(options), { tokenizer } = splitter;
    const line = withPlaceholders(splitter.line(text), splitter, new LiteralKinds(options.literals));
    return [spansOf(line), line.rows, line.parts.map(({ capitals }) => capitals), line.parts.flatMap((part, number) => {
      if (!(part instanceof SentenceWithPlaceholders)) return [];
      const symbols = part.ids.filter((id) => tokenizer.placeholderIds.includes(id));
      const output = part.ids.map((id) => (tokenizer.placeholderIds.includes(id) ? symbols.pop() : id));
      const words = wordIndices(tokenizer, output, part.text, (tokens) => part.decode(tokenizer, tokens));
      return [[number, part.isComplete(tokenizer, output), part.outputText(tokenizer, output), words]];
    })];
  }),
  units: (options, texts) => texts.map((text) => inCharacters(text, splitterOf(options).units(text))),
  knowsLetters: (name) => tokenizers.get(name).knowsLetters,
  joined: (options, texts, outputs) => lines(options, texts).map((line, index) => line.join(line.parts.map((_, part) => outputs[index][part % outputs[index].length]))),
  wordNumbers: (name, rows) => rows.map((ids) => wordIndices(tokenizers.get(name), ids)),
  wordAlignment: (attention, source, target) => pharaoh(wordAlignment(attention, source, target)),
  copiedLinks: (triples) => triples.map((texts) => copiedLinks(...texts)),
  lineAlignment: (options, text, outputs, names, longest) => pharaoh(lineAlignment(lines(options, [text])[0], outputs, pair(names), longest)),
  warnings: (name, { spans, rows, ...fields }, outputs, sources) => {
    const parts = rows.map((ids, index) => new Part(spans[index][0], [...fields.text].slice(...spans[index]).join(""), ids));
    const translator = { tokenizers: pair({ source: name, target: name }), settings: { sources } };
    const draft = { line: new Line({ ...fields, parts }), outputs: outputs.map((output) => [output]) };
    const stages = [new UnlikeTraining(translator), new OutputChecks(translator)];
    const found = Object.assign({}, ...stages.map((stage) => stage.warnings(draft)));
    return Object.keys(found).filter((warning) => found[warning]);
  },
  confidence: (description, sources, outputs) => {
    const model = new ConfidenceModel(description), surprise = sources && new SourceModel(sources);
    return outputs.map(([scores, rows, warnings, truncated]) => {
      const confidence = model.estimate(scores, rows, surprise, warnings, truncated);
      return [confidence, model.level(confidence)];
    });
  },
  whole: (name, rows, source) => rows.map((ids) => {
    const { whole, broken } = tokenizers.get(name).wholeCharacters(ids, source);
    return [whole, broken];
  }),
};

for await (const line of createInterface({ input: process.stdin })) {
  const { function: name, arguments: values } = JSON.parse(line);
  let answer;
  try {
    answer = { result: FUNCTIONS[name](...values) };
  } catch (error) {
    answer = { error: error.stack };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
