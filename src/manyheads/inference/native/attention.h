/* Scaled dot-product attention of one query and one head (Vaswani et al. 2017, section 3.2.1), and rotary positions. */

#pragma once

#include "vectors.h"

/* Floats of workspace for N keys: scores, and the indices of visible keys, each with BLOCK more. */
#define ATTENTION_WORKSPACE(keys) (2 * ((keys) + BLOCK))

#define KEYS_PER_PASS 4 /* keys whose scores are computed at a time, and vectors of a value that are in registers */

#if defined(__clang__) || __GNUC__ >= 12
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (int_quad){__VA_ARGS__})
#endif

/* Return the sum of each of four quads, ((0) + (2)) + ((1) + (3)) as in sum_block. */
INLINE quad sums_of_four(const quad x[KEYS_PER_PASS]) {
    const quad first = SHUFFLE(x[0], x[1], 0, 1, 4, 5) + SHUFFLE(x[0], x[1], 2, 3, 6, 7);
    const quad second = SHUFFLE(x[2], x[3], 0, 1, 4, 5) + SHUFFLE(x[2], x[3], 2, 3, 6, 7);
    return SHUFFLE(first, second, 0, 2, 4, 6) + SHUFFLE(first, second, 1, 3, 5, 7);
}

/* Load a vector from a row of `width` floats, from float e on; `even`: width is a multiple of BLOCK. */
INLINE vec load_part(const float *row, int64_t e, int64_t width, int even) {
    return load_floats(row + e, even ? LANES : width - e);
}

/* Return the partial sums of the product of two rows of `width` floats. */
INLINE quad multiply_rows(const float *x, const float *y, int64_t width, int even) {
    Block products = {0};
    for (int64_t e = 0; e < width; e += BLOCK)
        UNROLL for (int p = 0; p < PARTS; p++)
            products.parts[p] += load_part(x, e + p * LANES, width, even) * load_part(y, e + p * LANES, width, even);
    return fold_block(products);
}

/* Replace each score by e^(score - largest score), and the BLOCK behind them by zeros; return their sum. */
static float softmax_numerators(float *scores, int64_t count) {
    float largest = -INFINITY;
    Block total = {0};
    for (int64_t n = 0; n < count; n++) largest = scores[n] > largest ? scores[n] : largest;
    for (int k = 0; k < BLOCK; k++) scores[count + k] = -INFINITY;
    for (int64_t n = 0; n < count; n += BLOCK)
        UNROLL for (int p = 0; p < PARTS; p++) {
            unaligned_vec *part = (unaligned_vec *)(scores + n) + p;
            total.parts[p] += *part = exp_lanes(*part - largest);
        }
    return sum_block(total);
}

INLINE void attend_in_vectors(const float *query, const float *keys, const float *values, const int32_t *visible,
                              int64_t count, int64_t head_dim, int64_t stride, int even, float *scores, float *out,
                              float *weights) {
    const float scale = 1 / sqrtf((float)head_dim);
    for (int64_t n = 0; n < count; n += KEYS_PER_PASS) {
        quad products[KEYS_PER_PASS] = {0};
        for (int k = 0; k < KEYS_PER_PASS && n + k < count; k++)
            products[k] = multiply_rows(query, keys + visible[n + k] * stride, head_dim, even);
        *(unaligned_quad *)(scores + n) = sums_of_four(products) * scale;
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
    if (head_dim % BLOCK == 0)
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
    int32_t *visible = (int32_t *)(workspace + count + BLOCK);
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
