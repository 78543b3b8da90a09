/* The likeliest next tokens of a row. */

#pragma once

#include "vectors.h"

/* The logarithm of the sum of the exponentials of some numbers. */
static double log_of_sum(const float *x, int64_t size) {
    float largest = -INFINITY;
    int64_t i = 0;
    vec most = (vec){0} - INFINITY, sums = {0};
    for (; i + LANES <= size; i += LANES) {
        const vec values = *(const float_at *)(x + i);
        most = chosen(values > most, values, most);
    }
    for (int lane = 0; lane < LANES; lane++)
        if (most[lane] > largest) largest = most[lane];
    for (; i < size; i++)
        if (x[i] > largest) largest = x[i];
    for (i = 0; i + LANES <= size; i += LANES) sums += exp_of(*(const float_at *)(x + i) - largest);
    double total = 0;
    for (int lane = 0; lane < LANES; lane++) total += sums[lane];
    for (; i < size; i++) total += expf(x[i] - largest);
    return largest + log(total);
}

INLINE int any_above(const float *x, float limit) {
    const whole above = *(const float_at *)x > limit;
    int64_t found = 0;
    union { whole lanes; int64_t pairs[LANES / 2]; } all = {above};
    for (int pair = 0; pair < LANES / 2; pair++) found |= all.pairs[pair];
    return found != 0;
}

/* The largest of some numbers, the largest first, the first first among equals: `count` values and their places. */
static void largest_of(const float *x, int64_t size, int64_t count, float *values, int64_t *places) {
    int64_t held = 0;
    for (int64_t i = 0; i < size; i++) {
        while (held == count && i + LANES <= size && !any_above(x + i, values[count - 1])) i += LANES;
        if (i >= size || (held == count && !(x[i] > values[count - 1]))) continue;
        int64_t at = held < count ? held++ : count - 1;
        for (; at > 0 && x[i] > values[at - 1]; at--) {
            values[at] = values[at - 1];
            places[at] = places[at - 1];
        }
        values[at] = x[i];
        places[at] = i;
    }
}

/* The likeliest next tokens of each row, which are asked for instead of logits. */
typedef struct {
    int64_t count, silent;  /* how many of a row; how many tokens never come out */
    const int64_t *never;   /* those (silent) */
    float *values;          /* log-probabilities (R, count) */
    int64_t *tokens;        /* (R, count) */
} Best;

/* The best tokens of a row by its logits (V). */
static void rank(const Best *best, float *logits, int64_t size, int64_t row) {
    const double all = log_of_sum(logits, size);
    float *values = best->values + row * best->count;
    for (int64_t i = 0; i < best->silent; i++) logits[best->never[i]] = -INFINITY;
    largest_of(logits, size, best->count, values, best->tokens + row * best->count);
    for (int64_t i = 0; i < best->count; i++) values[i] = (float)(values[i] - all);
}
