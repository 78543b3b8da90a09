/* Products with the weights of linear layers, for one row or a thousand.

   Weights lie in panels of 64 outputs: the weights of the first input to each of them, then those of the second. A
   tile of a few rows and the outputs of a panel is summed up in registers, one input after the other: a row's sums
   are the same bits in every tile. */

#pragma once

#include "team.h"
#include "vectors.h"

enum { FLOAT32, BFLOAT16, INT8 }; /* how weights are held */

#define PANEL 64 /* outputs side by side; as compiled.py lays them */
#define ROWS 6   /* rows and vectors of outputs whose sums are held in registers */
#if defined(__AVX512F__)
#define VECS 4
#else
#define VECS 1
#endif

typedef struct {
    const void *weight; /* (outputs / PANEL, inputs, PANEL), the last panel filled up */
    const float *scale; /* (outputs) of weights in INT8; like bias filled up to whole panels */
    const float *bias;  /* (outputs) or none */
    int64_t inputs, outputs;
} Linear;

INLINE vec weights_at(const void *weights, int64_t format, int64_t place) {
    if (format == FLOAT32) return *(const float_at *)((const float *)weights + place);
    if (format == BFLOAT16)
        return (vec)(__builtin_convertvector(*(const half_at *)((const uint16_t *)weights + place), whole) << 16);
    const int8_t *bytes = (const int8_t *)weights + place;
#ifdef __AVX512F__ /* compilers take bytes apart one by one */
    return (vec)_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)bytes)));
#else
    return __builtin_convertvector(__builtin_convertvector(*(const byte_at *)bytes, whole), vec);
#endif
}

/* Some rows, and the outputs from `first` on: y[r][o] = (base[r][o] +) activation(x[r] . weight[o] + bias[o]). */
INLINE void tile(const Linear *linear, int64_t format, const float *x, int rows, int64_t first, const float *base,
                 float *y, int64_t activation) {
    const int64_t inputs = linear->inputs, outputs = linear->outputs;
    const int64_t start = first / PANEL * PANEL * inputs + first % PANEL;
    vec sums[ROWS][VECS];
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < VECS; v++) sums[r][v] = (vec){0};
    for (int64_t i = 0; i < inputs; i++) {
        vec weights[VECS];
        for (int v = 0; v < VECS; v++) weights[v] = weights_at(linear->weight, format, start + i * PANEL + v * LANES);
        for (int r = 0; r < rows; r++)
            for (int v = 0; v < VECS; v++) sums[r][v] += weights[v] * x[r * inputs + i];
    }
    for (int v = 0; v < VECS && first + v * LANES < outputs; v++) {
        const int64_t place = first + v * LANES, count = outputs - place;
        for (int r = 0; r < rows; r++) {
            vec total = sums[r][v];
            if (format == INT8) total *= *(const float_at *)(linear->scale + place);
            if (linear->bias) total += *(const float_at *)(linear->bias + place);
            if (base) total += some_at(base + r * outputs + place, count);
            put_some(activated(total, activation), y + r * outputs + place, count);
        }
    }
}

#define TILE(r) tile(linear, format, x + row * linear->inputs, r, first, from, to, activation)

INLINE void product_in(const Linear *linear, int64_t format, const float *x, int64_t rows, const float *base,
                       float *y, int64_t activation, Team team) {
    const int64_t last = share(team, team.id + 1, linear->outputs, PANEL);
    for (int64_t first = share(team, team.id, linear->outputs, PANEL); first < last; first += VECS * LANES)
        for (int64_t row = 0; row < rows; row += ROWS) {
            const float *from = base ? base + row * linear->outputs : 0;
            float *to = y + row * linear->outputs;
            switch (rows - row) {
            case 1: TILE(1); break;
            case 2: TILE(2); break;
            case 3: TILE(3); break;
            case 4: TILE(4); break;
            case 5: TILE(5); break;
            default: TILE(ROWS);
            }
        }
}

/* A linear layer: x (R, I) -> y (R, O), to which `base` is added, if any. */
static void product(const Linear *linear, int64_t format, const float *x, int64_t rows, const float *base, float *y,
                    int64_t activation, Team team) {
    if (format == FLOAT32) product_in(linear, FLOAT32, x, rows, base, y, activation, team);
    else if (format == BFLOAT16) product_in(linear, BFLOAT16, x, rows, base, y, activation, team);
    else product_in(linear, INT8, x, rows, base, y, activation, team);
}
