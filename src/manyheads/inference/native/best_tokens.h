/* The best next tokens of a row. */

#pragma once

#include "elementary.h"
#include "rules.h"
#include "sampling.h"

/* Return the logarithm of the sum of the exponentials of x (size). */
double log_sum_exp(const float *x, int64_t size) {
    float largest = -INFINITY;
    Block maxima, sums = {0};
    for (int p = 0; p < PARTS; p++) maxima.parts[p] = broadcast(-INFINITY);
    for (int64_t i = 0; i < size; i += BLOCK)
        UNROLL for (int p = 0; p < PARTS; p++) {
            const vec values = load_floats_or(x + i + p * LANES, size - i - p * LANES, -INFINITY);
            maxima.parts[p] = select_lanes(values > maxima.parts[p], values, maxima.parts[p]);
        }
    for (int k = 0; k < BLOCK; k++) {
        const float value = maxima.parts[k / LANES][k % LANES];
        largest = value > largest ? value : largest;
    }
    for (int64_t i = 0; i < size; i += BLOCK)
        UNROLL for (int p = 0; p < PARTS; p++)
            sums.parts[p] += exp_lanes(load_floats_or(x + i + p * LANES, size - i - p * LANES, -INFINITY) - largest);
    double total = 0;
    for (int k = 0; k < BLOCK; k++) total += (double)sums.parts[k / LANES][k % LANES];
    return (double)largest + logarithm(total);
}

/* Return whether any of LANES floats is above a limit. */
INLINE int any_above(const float *x, float limit) {
    const int_vec above = *(const unaligned_vec *)x > limit;
    int64_t any = 0;
    union { int_vec lanes; int64_t pairs[LANES / 2]; } all = {above};
    for (int pair = 0; pair < LANES / 2; pair++) any |= all.pairs[pair];
    return any != 0;
}

/* Find the `count` largest of x (size), the largest first, the lower index first among equals: values and indices. */
static void top_k(const float *x, int64_t size, int64_t count, float *values, int64_t *indices) {
    int64_t filled = 0;
    for (int64_t i = 0; i < size; i++) {
        while (filled == count && i + LANES <= size && !any_above(x + i, values[count - 1])) i += LANES;
        if (i >= size || (filled == count && !(x[i] > values[count - 1]))) continue;
        int64_t rank = filled < count ? filled++ : count - 1;
        for (; rank > 0 && x[i] > values[rank - 1]; rank--) {
            values[rank] = values[rank - 1];
            indices[rank] = indices[rank - 1];
        }
        values[rank] = x[i];
        indices[rank] = i;
    }
}

/* Find the best next tokens of a row of a beam by its logits (V), which are changed. Its rules apply, and where it
   samples, the drawn token is the only one. */
static void find_best_tokens(const BestTokens *best, float *logits, int64_t vocabulary, int64_t row, const Beam *beam,
                             const BeamOptions *options) {
    const double normalizer = log_sum_exp(logits, vocabulary);
    float *values = best->values + row * best->count;
    int64_t *tokens = best->tokens + row * best->count;
    apply_rules(beam, options, row - beam->first_row, logits, vocabulary);
    for (int64_t i = 0; i < best->num_suppressed; i++) logits[best->suppressed[i]] = -INFINITY;
    if (beam->uniform) {
        tokens[0] = draw_token(options, logits, vocabulary, beam->uniform[beam->length], beam->heap);
        values[0] = logits[tokens[0]];
        tokens[1] = options->eos;
        values[1] = -INFINITY;
    } else
        top_k(logits, vocabulary, best->count, values, tokens);
    for (int64_t i = 0; i < best->count; i++) values[i] = (float)((double)values[i] - normalizer);
}
