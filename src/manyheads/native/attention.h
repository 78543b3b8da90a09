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

/* Add up the lanes of four vectors together: their sums. Each line halves the lanes that are left of a vector. */
INLINE void add_up(const vec x[TOGETHER], float sums[TOGETHER]) {
#define ADD(a, b, low, high) (PICK(a, b, low) + PICK(a, b, high))
#define LIST(...) __VA_ARGS__
#if LANES == 16
#define LOW_EIGHTS LIST(0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23)
#define HIGH_EIGHTS LIST(8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31)
#define LOW_FOURS LIST(0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27)
#define HIGH_FOURS LIST(4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31)
    const vec first = ADD(x[0], x[1], LOW_EIGHTS, HIGH_EIGHTS), second = ADD(x[2], x[3], LOW_EIGHTS, HIGH_EIGHTS);
    vec all = ADD(first, second, LOW_FOURS, HIGH_FOURS); /* four lanes of each */
    all += PICK(all, all, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
    for (int k = 0; k < TOGETHER; k++) sums[k] = all[4 * k] + all[4 * k + 1];
#elif LANES == 8
#define LOW_FOURS LIST(0, 1, 2, 3, 8, 9, 10, 11)
#define HIGH_FOURS LIST(4, 5, 6, 7, 12, 13, 14, 15)
#define LOW_PAIRS LIST(0, 1, 4, 5, 8, 9, 12, 13)
#define HIGH_PAIRS LIST(2, 3, 6, 7, 10, 11, 14, 15)
    const vec first = ADD(x[0], x[1], LOW_FOURS, HIGH_FOURS), second = ADD(x[2], x[3], LOW_FOURS, HIGH_FOURS);
    const vec all = ADD(first, second, LOW_PAIRS, HIGH_PAIRS); /* two lanes of each */
    for (int k = 0; k < TOGETHER; k++) sums[k] = all[2 * k] + all[2 * k + 1];
#else
    const vec first = ADD(x[0], x[1], LIST(0, 1, 4, 5), LIST(2, 3, 6, 7));
    const vec second = ADD(x[2], x[3], LIST(0, 1, 4, 5), LIST(2, 3, 6, 7));
    *(float_at *)sums = ADD(first, second, LIST(0, 2, 4, 6), LIST(1, 3, 5, 7));
#endif
#undef ADD
#undef LIST
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
