/* Rules for the next token of an open prefix: forced prefixes, minimum lengths, no repeated n-grams and forbidden
   sequences. A token that they forbid has log-probability -infinity; the others stay unchanged (decoding/rules.py). */

#pragma once

#include <string.h>

#include "structs.h"

/* Write the tokens of a prefix, the first one first, and their log-probabilities unless `log_probs` is null. `row`: the
   row that had the prefix when it had `length` tokens. */
void read_prefix(const Beam *beam, const BeamOptions *options, int64_t length, int64_t row, int32_t *tokens,
                 float *log_probs) {
    for (int64_t t = length - 1; t >= 0; t--) {
        const Node node = beam->nodes[t * options->beam_size + row];
        tokens[t] = node.token;
        if (log_probs) log_probs[t] = node.log_prob;
        row = node.parent;
    }
}

/* Return whether the last `count` of `length` tokens are those of a sequence. */
static int ends_with(const int32_t *tokens, int64_t length, const int32_t *sequence, int64_t count) {
    return count <= length && !memcmp(tokens + length - count, sequence, (size_t)count * sizeof *tokens);
}

/* Set the logits (V) of the tokens that must not follow a row of a beam to -infinity. */
static void apply_rules(const Beam *beam, const BeamOptions *options, int64_t row, float *logits, int64_t vocabulary) {
    const int64_t length = beam->length, n = options->no_repeat_ngram;
    if (length < beam->prefix_length) {
        const float forced = logits[beam->prefix[length]];
        for (int64_t i = 0; i < vocabulary; i++) logits[i] = -INFINITY;
        logits[beam->prefix[length]] = forced;
        return;
    }
    if (length < beam->min_length) logits[options->eos] = -INFINITY;
    if (!beam->history) return;
    int32_t *tokens = beam->history + row * (beam->max_length + 1);
    read_prefix(beam, options, length, row, tokens, 0);
    for (int64_t end = n; n && end <= length; end++)
        if (ends_with(tokens, length, tokens + end - n, n - 1)) logits[tokens[end - 1]] = -INFINITY;
    for (int64_t f = 0, start = 0; f < beam->num_forbidden; start = beam->forbidden_ends[f++]) {
        const int64_t last = beam->forbidden_ends[f] - 1;
        if (ends_with(tokens, length, beam->forbidden + start, last - start))
            logits[beam->forbidden[last]] = -INFINITY;
    }
}
