/* Scaled dot-product attention of one query and one head (Vaswani et al. 2017, section 3.2.1), and rotary positions. */

#pragma once

#include "vectors.h"

/* Floats of workspace for N keys: scores, and the indices of visible keys, each with LANES more. */
#define ATTENTION_WORKSPACE(keys) (2 * ((keys) + LANES))

#define KEYS_PER_PASS 4 /* keys whose scores are computed at a time, and vectors of a value that are in registers */

#if defined(__clang__) || __GNUC__ >= 12
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (int_vec){__VA_ARGS__})
#endif

/* Return the sums of the lanes of each of four vectors. Each line halves the remaining lanes of a vector. */
INLINE void sum_lanes_of_four(const vec x[KEYS_PER_PASS], float sums[KEYS_PER_PASS]) {
#define ADD(a, b, low, high) (SHUFFLE(a, b, low) + SHUFFLE(a, b, high))
#define LIST(...) __VA_ARGS__
#if LANES == 16
#define LOW_EIGHTS LIST(0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23)
#define HIGH_EIGHTS LIST(8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31)
#define LOW_FOURS LIST(0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27)
#define HIGH_FOURS LIST(4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31)
    const vec first = ADD(x[0], x[1], LOW_EIGHTS, HIGH_EIGHTS), second = ADD(x[2], x[3], LOW_EIGHTS, HIGH_EIGHTS);
    vec all = ADD(first, second, LOW_FOURS, HIGH_FOURS); /* four lanes of each */
    all += SHUFFLE(all, all, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
    for (int k = 0; k < KEYS_PER_PASS; k++) sums[k] = all[4 * k] + all[4 * k + 1];
#elif LANES == 8
#define LOW_FOURS LIST(0, 1, 2, 3, 8, 9, 10, 11)
#define HIGH_FOURS LIST(4, 5, 6, 7, 12, 13, 14, 15)
#define LOW_PAIRS LIST(0, 1, 4, 5, 8, 9, 12, 13)
#define HIGH_PAIRS LIST(2, 3, 6, 7, 10, 11, 14, 15)
    const vec first = ADD(x[0], x[1], LOW_FOURS, HIGH_FOURS), second = ADD(x[2], x[3], LOW_FOURS, HIGH_FOURS);
    const vec all = ADD(first, second, LOW_PAIRS, HIGH_PAIRS); /* two lanes of each */
    for (int k = 0; k < KEYS_PER_PASS; k++) sums[k] = all[2 * k] + all[2 * k + 1];
#else
    const vec first = ADD(x[0], x[1], LIST(0, 1, 4, 5), LIST(2, 3, 6, 7));
    const vec second = ADD(x[2], x[3], LIST(0, 1, 4, 5), LIST(2, 3, 6, 7));
    *(unaligned_vec *)sums = ADD(first, second, LIST(0, 2, 4, 6), LIST(1, 3, 5, 7));
#endif
#undef ADD
#undef LIST
}

/* Load a vector from a row of `width` floats, from float e on; `even`: width is a multiple of LANES. */
INLINE vec load_part(const float *row, int64_t e, int64_t width, int even) {
    return load_floats(row + e, even ? LANES : width - e);
}

/* Replace each score by e^(score - largest score), and the LANES behind them by zeros; return their sum. */
static float softmax_numerators(float *scores, int64_t count) {
    float largest = -INFINITY;
    vec total = {0};
    for (int64_t n = 0; n < count; n++) largest = scores[n] > largest ? scores[n] : largest;
    for (int k = 0; k < LANES; k++) scores[count + k] = -INFINITY;
    for (int64_t n = 0; n < count; n += LANES) {
        const vec numerators = exp_lanes(*(const unaligned_vec *)(scores + n) - largest);
        total += numerators;
        *(unaligned_vec *)(scores + n) = numerators;
    }
    return sum_lanes(total);
}

INLINE void attend_in_vectors(const float *query, const float *keys, const float *values, const int32_t *visible,
                              int64_t count, int64_t head_dim, int64_t stride, int even, float *scores, float *out,
                              float *weights) {
    const float scale = 1 / sqrtf((float)head_dim);
    for (int64_t n = 0; n < count; n += KEYS_PER_PASS) {
        vec products[KEYS_PER_PASS] = {0};
        for (int k = 0; k < KEYS_PER_PASS && n + k < count; k++)
            for (int64_t e = 0; e < head_dim; e += LANES)
                products[k] += load_part(query, e, head_dim, even) *
                               load_part(keys + visible[n + k] * stride, e, head_dim, even);
        sum_lanes_of_four(products, scores + n);
        for (int k = 0; k < KEYS_PER_PASS; k++) scores[n + k] *= scale;
    }
    const float normalizer = count ? 1 / softmax_numerators(scores, count) : 0;
    for (int64_t e = 0; e < head_dim; e += KEYS_PER_PASS * LANES) {
        vec sums[KEYS_PER_PASS] = {0};
        for (int64_t n = 0; n < count; n++)
            for (int v = 0; v < KEYS_PER_PASS && e + v * LANES < head_dim; v++)
                sums[v] += scores[n] * load_part(values + visible[n] * stride, e + v * LANES, head_dim, even);
        for (int v = 0; v < KEYS_PER_PASS && e + v * LANES < head_dim; v++)
            store_floats(sums[v] * normalizer, out + e + v * LANES, head_dim - e - v * LANES);
    }
    for (int64_t n = 0; weights && n < count; n++) weights[n] = scores[n] * normalizer;
}

/* Attend with a query to the visible keys (T indices): (E), (N, E), (N, E) -> (E), zeros without a visible key, as in
   torch. Keys and values are `stride` floats from each other. Also writes the weights (T) of the visible keys, unless `weights` is null. */
static void attend_to_visible(const float *query, const float *keys, const float *values, const int32_t *visible,
                              int64_t count, int64_t head_dim, int64_t stride, float *workspace, float *out,
                              float *weights) {
    if (head_dim % LANES == 0)
        attend_in_vectors(query, keys, values, visible, count, head_dim, stride, 1, workspace, out, weights);
    else
        attend_in_vectors(query, keys, values, visible, count, head_dim, stride, 0, workspace, out, weights);
}

/* Move the weights of the visible keys to their indices among all N keys, and write 0 for the other keys. */
static void spread_weights(const int32_t *visible, int64_t num_visible, int64_t count, float *weights) {
    for (int64_t n = count - 1, from = num_visible - 1; n >= 0; n--)
        weights[n] = from >= 0 && visible[from] == n ? weights[from--] : 0;
}

/* Attend with a query to all N keys, or with a bias (N) to those whose bias is 0. Also writes the weights (N) of all
   keys, unless `weights` is null. */
static void attend(const float *query, const float *keys, const float *values, int64_t count, int64_t head_dim,
                   int64_t stride, const float *bias, float *workspace, float *out, float *weights) {
    int32_t *visible = (int32_t *)(workspace + count + LANES);
    int64_t num_visible = 0;
    for (int64_t n = 0; n < count; n++) {
        visible[num_visible] = (int32_t)n;
        num_visible += !bias || bias[n] == 0;
    }
    attend_to_visible(query, keys, values, visible, num_visible, head_dim, stride, workspace, out, weights);
    if (weights) spread_weights(visible, num_visible, count, weights);
}

/* Rotate pairs of numbers by the angles of a position (Su et al. 2021), given as cosines and sines (E / 2, 2). */
static void apply_rotary(float *x, const float *cos_sin, int64_t head_dim) {
    for (int64_t e = 0; e + 1 < head_dim; e += 2) {
        const float real = x[e], imaginary = x[e + 1];
        x[e] = real * cos_sin[e] - imaginary * cos_sin[e + 1];
        x[e + 1] = real * cos_sin[e + 1] + imaginary * cos_sin[e];
    }
}
