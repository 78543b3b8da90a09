/* What a token takes from others. */

#pragma once

#include "vectors.h"

/* Floats that `attend` works in, for N keys. */
#define ROOM_TO_ATTEND(keys) (2 * ((keys) + LANES))

#define TOGETHER 4 /* keys whose products are added up together, vectors of a value that are held in registers */

#if defined(__clang__) || __GNUC__ >= 12
#define PICK(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define PICK(a, b, ...) __builtin_shuffle(a, b, (whole){__VA_ARGS__})
#endif
#define HALVES(pick, a, b) (pick(a, b, 0) + pick(a, b, 1))
#define EIGHTS(a, b, k) \
    PICK(a, b, 8 * k, 8 * k + 1, 8 * k + 2, 8 * k + 3, 8 * k + 4, 8 * k + 5, 8 * k + 6, 8 * k + 7, 8 * k + 16, \
         8 * k + 17, 8 * k + 18, 8 * k + 19, 8 * k + 20, 8 * k + 21, 8 * k + 22, 8 * k + 23)
#define FOURS(a, b, k) \
    PICK(a, b, 4 * k, 4 * k + 1, 4 * k + 2, 4 * k + 3, 4 * k + 8, 4 * k + 9, 4 * k + 10, 4 * k + 11, 4 * k + 16, \
         4 * k + 17, 4 * k + 18, 4 * k + 19, 4 * k + 24, 4 * k + 25, 4 * k + 26, 4 * k + 27)

/* Add up the lanes of four vectors together: their sums. */
INLINE void add_up(const vec x[TOGETHER], float sums[TOGETHER]) {
    vec all = HALVES(FOURS, (HALVES(EIGHTS, x[0], x[1])), (HALVES(EIGHTS, x[2], x[3]))); /* four lanes of each */
    all += PICK(all, all, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
    for (int k = 0; k < TOGETHER; k++) sums[k] = all[4 * k] + all[4 * k + 1];
}

/* Of a row of `width` floats those from e on; `even` says that they fill their vectors. */
INLINE vec part_of(const float *row, int64_t e, int64_t width, int even) {
    return some_at(row + e, even ? LANES : width - e);
}

/* e^(score - largest) of each score instead of it, behind them zeros; returns their sum. */
static float soften(float *scores, int64_t count) {
    float largest = -INFINITY;
    vec total = {0};
    for (int64_t n = 0; n < count; n++) largest = scores[n] > largest ? scores[n] : largest;
    for (int k = 0; k < LANES; k++) scores[count + k] = -INFINITY;
    for (int64_t n = 0; n < count; n += LANES) {
        const vec parts = exp_of(*(const float_at *)(scores + n) - largest);
        total += parts;
        *(float_at *)(scores + n) = parts;
    }
    return sum_of(total);
}

INLINE void attend_evenly(const float *query, const float *keys, const float *values, const int32_t *seen,
                          int64_t count, int64_t width, int64_t apart, int even, float *scores, float *out) {
    const float scale = 1 / sqrtf((float)width);
    for (int64_t n = 0; n < count; n += TOGETHER) {
        vec products[TOGETHER] = {0};
        for (int k = 0; k < TOGETHER && n + k < count; k++)
            for (int64_t e = 0; e < width; e += LANES)
                products[k] += part_of(query, e, width, even) * part_of(keys + seen[n + k] * apart, e, width, even);
        add_up(products, scores + n);
        for (int k = 0; k < TOGETHER; k++) scores[n + k] *= scale;
    }
    const float share = 1 / soften(scores, count);
    for (int64_t e = 0; e < width; e += TOGETHER * LANES) {
        vec sums[TOGETHER] = {0};
        for (int64_t n = 0; n < count; n++)
            for (int v = 0; v < TOGETHER && e + v * LANES < width; v++)
                sums[v] += scores[n] * part_of(values + seen[n] * apart, e + v * LANES, width, even);
        for (int v = 0; v < TOGETHER && e + v * LANES < width; v++)
            put_some(sums[v] * share, out + e + v * LANES, width - e - v * LANES);
    }
}

/* What a query takes from the values of some keys, those `seen` (T): (E), (N, E), (N, E) -> (E); keys and values stand
   `apart` floats from each other. */
static void attend_to(const float *query, const float *keys, const float *values, const int32_t *seen, int64_t count,
                      int64_t width, int64_t apart, float *room, float *out) {
    if (width % LANES == 0) attend_evenly(query, keys, values, seen, count, width, apart, 1, room, out);
    else attend_evenly(query, keys, values, seen, count, width, apart, 0, room, out);
}

/* The same of all keys (N), or of those whose bias is 0. */
static void attend(const float *query, const float *keys, const float *values, int64_t count, int64_t width,
                   int64_t apart, const float *bias, float *room, float *out) {
    int32_t *seen = (int32_t *)(room + count + LANES);
    int64_t visible = 0;
    for (int64_t n = 0; n < count; n++) {
        seen[visible] = (int32_t)n;
        visible += !bias || bias[n] == 0;
    }
    attend_to(query, keys, values, seen, visible, width, apart, room, out);
}

/* Turn pairs of numbers by the angles of a place, given as cosines and sines (E / 2, 2). */
static void turn(float *x, const float *turns, int64_t width) {
    for (int64_t e = 0; e + 1 < width; e += 2) {
        const float real = x[e], imaginary = x[e + 1];
        x[e] = real * turns[e] - imaginary * turns[e + 1];
        x[e + 1] = real * turns[e + 1] + imaginary * turns[e];
    }
}
