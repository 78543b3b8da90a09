/* Warnings about an output, as in manyheads/inference/translation/output_checks.py. */

const MAX_PERIOD = 16; // tokens of a repeated passage
const MIN_REPETITIONS = 4;
const MIN_LOOP_LENGTH = 8; // tokens of all repetitions together

/** Warnings about a line that was cut, and about outputs that repeat themselves, have an unusual
    length or hold bytes that form no character.
    @implements {Stage} */
export class OutputChecks {
  /** @param {PageTranslator} translator */
  constructor({ tokenizers: { target } }) {
    this.tokenizer = target;
  }

  /** @type {(draft: Draft) => { [name: string]: boolean }} */
  warnings({ line, outputs }) {
    const best = outputs.map(([first]) => first);
    const pairs = line.rows.map((ids, index) => /** @type {const} */ ([ids, best[index].tokens]));
    return {
      "sentence-cut": line.cutSentences > 0,
      repetition: pairs.some(([source, output]) => repeatsItself(source, output)),
      "length-ratio": pairs.some(([source, output]) => unusualLength(source.length, output.length)),
      "broken-character": best.some(
        ({ tokens }) => this.tokenizer.wholeCharacters(tokens).broken > 0,
      ),
    };
  }
}

/** Return the largest number of times that a passage of at most 16 tokens occurs in a row;
    repetitions with fewer than 8 tokens in all do not count.
    @type {(tokens: number[]) => number} */
function maxRepetitions(tokens) {
  let most = 1;
  for (let period = 1; period <= Math.min(MAX_PERIOD, Math.floor(tokens.length / 2)); period += 1) {
    let run = 0;
    for (let index = period; index < tokens.length; index += 1) {
      run = tokens[index] === tokens[index - period] ? run + 1 : 0;
      if (run + period >= MIN_LOOP_LENGTH) most = Math.max(most, Math.floor(run / period) + 1);
    }
  }
  return most;
}

/** Return whether an output repeats itself, and more often than its source does.
    @type {(source: number[], output: number[]) => boolean} */
function repeatsItself(source, output) {
  const repetitions = maxRepetitions(output);
  return repetitions >= MIN_REPETITIONS && repetitions > maxRepetitions(source) + 1;
}

/** Return whether the longer of two lengths exceeds 3 times the shorter by more than 10 tokens.
    @type {(source: number, output: number) => boolean} */
const unusualLength = (source, output) =>
  Math.max(source, output) > 3 * Math.min(source, output) + 10;
