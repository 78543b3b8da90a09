/* Linear layers, for one row or a thousand.

   Weights are stored in panels of PANEL outputs: the weights from the first input to each output, then those from the
   second input; in INT8 the next word of inputs (integers.h). A tile, a few rows times the outputs of a few panels, is
   accumulated in registers, one input after the other: the sums of a row are the same bits in every tile. */

#pragma once

#ifdef __wasm__
#include "single_thread.h"
#else
#include "thread_pool.h"
#endif
#include "integers.h"
#include "vectors.h"

enum { FLOAT32, BFLOAT16, INT8, INT8_DOT }; /* Format of the weights; INT8_DOT: INT8, multiplied by has_dot_products */

#define PANEL (TILE_VECS * LANES) /* outputs side by side */
#define ROW_BLOCK (8 * TILE_ROWS) /* rows whose inputs stay in the second-level cache while all panels are read */

typedef struct {
    const void *weight; /* (outputs / PANEL, inputs, PANEL), in INT8 (outputs / PANEL, WORDS(inputs), PANEL) words, but in
                           WebAssembly as the others; the last panel and the last words padded */
    const float *scale; /* (outputs) of weights in INT8; like bias, padded to whole panels */
    const float *bias;  /* (outputs) or null */
    int64_t inputs, outputs;
} Linear;

/* How linear layers compute. */
typedef struct {
    int64_t format;   /* of the weights */
    float *quantized; /* workspace of INT8, QUANTIZED_SIZE(rows, inputs) for at most ROW_BLOCK rows; of this worker */
} Arithmetic;

/* Return the number of outputs in a panel. */
int64_t panel_width(void) { return PANEL; }

/* Return the number of inputs whose weights in INT8 lie side by side. */
int64_t panel_depth(void) {
#ifdef __wasm__
    return 1;
#else
    return WORD_INPUTS;
#endif
}

/* Return the weight of an input to an output, in FLOAT32 or INT8. */
INLINE float weight_at(const Linear *linear, int64_t format, int64_t output, int64_t input) {
    const int64_t depth = format == INT8 ? panel_depth() : 1;
    const int64_t group = output / PANEL * ((linear->inputs + depth - 1) / depth) + input / depth;
    const int64_t index = (group * PANEL + output % PANEL) * depth + input % depth;
    if (format == INT8) return (float)((const int8_t *)linear->weight)[index] * linear->scale[output];
    return ((const float *)linear->weight)[index];
}

/* Load the weights of an input to LANES outputs of a panel, as floats. */
INLINE vec load_weights(const Linear *linear, int64_t format, int64_t panel, int64_t input, int v) {
    const int64_t index = (panel * linear->inputs + input) * PANEL + v * LANES;
    if (format == FLOAT32) return *(const unaligned_vec *)((const float *)linear->weight + index);
    return from_bfloat16((const uint16_t *)linear->weight + index);
}

/* Load the weights of a word of inputs to LANES outputs of a panel. */
INLINE int_vec load_words(const Linear *linear, int64_t panel, int64_t word, int v) {
#ifdef __wasm__ /* two inputs of 8 outputs, widened to 16 bits */
    const int8_t *weights = (const int8_t *)linear->weight + (panel * linear->inputs + 2 * word) * PANEL;
    const v128_t two = 2 * word + 1 < linear->inputs ? wasm_v128_load(weights) : wasm_v128_load64_zero(weights);
    const v128_t mixed = wasm_i8x16_shuffle(two, two, 0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15);
    return (int_vec)(v ? wasm_i16x8_extend_high_i8x16(mixed) : wasm_i16x8_extend_low_i8x16(mixed));
#else
    const Word *weights = (const Word *)linear->weight + (panel * WORDS(linear->inputs) + word) * PANEL;
    return *(const unaligned_words *)(weights + v * LANES);
#endif
}

/* Accumulate the products of a tile in floats. */
INLINE void sum_floats(const Linear *linear, int64_t format, const float *x, int rows, int vecs, int64_t first,
                       vec *sums) {
    const int64_t inputs = linear->inputs;
    UNROLL for (int k = 0; k < rows * vecs; k++) sums[k] = (vec){0};
    for (int64_t i = 0; i < inputs; i++) {
        vec weights[TILE_ROWS * TILE_VECS];
        UNROLL for (int v = 0; v < vecs; v++)
            weights[v] = load_weights(linear, format, first + v / TILE_VECS, i, v % TILE_VECS);
        UNROLL for (int k = 0; k < rows * vecs; k++)
            sums[k] = multiply_add(sums[k], weights[k % vecs], x[k / vecs * inputs + i]);
    }
}

/* Accumulate the products of a tile in integers, from row `row` on, and multiply them by the scales. */
INLINE void sum_integers(const Linear *linear, int dot, const QuantizedRows *x, int64_t row, int rows, int vecs,
                         int64_t first, vec *sums) {
    const int64_t count = WORDS(linear->inputs);
    const Word *words = x->words + row * count;
    int_vec integers[TILE_ROWS * TILE_VECS];
    UNROLL for (int k = 0; k < rows * vecs; k++) integers[k] = x->starts[row + k / vecs] - (int_vec){0};
    for (int64_t i = 0; i < count; i++) {
        int_vec weights[TILE_ROWS * TILE_VECS];
        UNROLL for (int v = 0; v < vecs; v++)
            weights[v] = load_words(linear, first + v / TILE_VECS, i, v % TILE_VECS);
        UNROLL for (int k = 0; k < rows * vecs; k++)
            integers[k] = add_products(integers[k], weights[k % vecs], words[k / vecs * count + i] - (int_vec){0}, dot);
    }
    UNROLL for (int k = 0; k < rows * vecs; k++) {
        const vec scales = *(const unaligned_vec *)(linear->scale + first * PANEL + k % vecs * LANES);
        sums[k] = __builtin_convertvector(integers[k], vec) * (x->scales[row + k / vecs] * scales);
    }
}

/* The rows of a block: floats, or integers in INT8. */
typedef struct {
    const float *floats;
    QuantizedRows quantized;
} Inputs;

/* Compute a tile, `rows` rows from row `row` on and the outputs of `panels` panels from panel `first` on:
   y[r][o] = (base[r][o] +) activation(x[r] . weight[o] + bias[o]). */
INLINE void tile(const Linear *linear, int64_t format, const Inputs *x, int64_t row, int rows, int panels,
                 int64_t first, const float *base, float *y, int64_t activation) {
    const int64_t outputs = linear->outputs;
    const int vecs = panels * TILE_VECS; /* at most TILE_ROWS * TILE_VECS accumulators, all in registers */
    vec sums[TILE_ROWS * TILE_VECS];
    if (format < INT8) sum_floats(linear, format, x->floats + row * linear->inputs, rows, vecs, first, sums);
    else sum_integers(linear, format == INT8_DOT, &x->quantized, row, rows, vecs, first, sums);
    for (int v = 0; v < vecs; v++) {
        const int64_t output = first * PANEL + v * LANES, count = outputs - output;
        if (count <= 0) break;
        for (int r = 0; r < rows; r++) {
            vec total = sums[r * vecs + v];
            if (linear->bias) total += *(const unaligned_vec *)(linear->bias + output);
            if (base) total += load_floats(base + (row + r) * outputs + output, count);
            store_floats(activate(total, activation), y + (row + r) * outputs + output, count);
        }
    }
}

/* A tile of constant size at the `row` and `panel` of the loops of linear_block. */
#define TILE(rows, panels) tile(linear, format, x, row, rows, panels, panel, base, y, activation)

/* Compute the panels first..last for the rows of a block, in tiles of TILE_ROWS rows. One or two rows take several
   panels at a time: eight accumulators are needed to hide the latency of a multiply-add. */
INLINE void linear_block(const Linear *linear, int64_t format, const Inputs *x, int64_t rows, int64_t first,
                         int64_t last, const float *base, float *y, int64_t activation) {
    const int64_t panels_per_tile = rows < 3 ? 8 / TILE_VECS / rows : 1;
    for (int64_t panel = first, step; panel < last; panel += step) {
        step = last - panel >= panels_per_tile ? panels_per_tile : 1;
        for (int64_t row = 0; row < rows; row += TILE_ROWS) {
            switch (rows - row < TILE_ROWS ? rows - row : TILE_ROWS) {
            case 1:
                if (step > 1) TILE(1, 8 / TILE_VECS);
                else TILE(1, 1);
                break;
            case 2:
                if (step > 1) TILE(2, 4 / TILE_VECS);
                else TILE(2, 1);
                break;
            case 3: TILE(3, 1); break;
            case 4: TILE(4, 1); break;
#if TILE_ROWS > 4
            case 5: TILE(5, 1); break;
            case 6: TILE(6, 1); break;
#endif
            }
        }
    }
}
#undef TILE

INLINE void linear_in_format(const Linear *linear, int64_t format, float *quantized, const float *x, int64_t rows,
                             const float *base, float *y, int64_t activation, Worker worker) {
    const int64_t panels = (linear->outputs + PANEL - 1) / PANEL;
    const Range own = share(worker, panels, 1);
    for (int64_t row = 0; row < rows; row += ROW_BLOCK) {
        const int64_t count = rows - row < ROW_BLOCK ? rows - row : ROW_BLOCK;
        Inputs inputs = {.floats = x + row * linear->inputs};
        if (format >= INT8)
            inputs.quantized = quantize_rows(inputs.floats, count, linear->inputs, format == INT8_DOT, quantized);
        linear_block(linear, format, &inputs, count, own.first, own.last, base ? base + row * linear->outputs : 0,
                     y + row * linear->outputs, activation);
    }
}

/* Apply a linear layer: x (R, I) -> y (R, O), y = activation(x W + b), plus `base` (R, O) if given. Each worker
   computes its share of the outputs. */
static void apply_linear(const Linear *linear, Arithmetic arithmetic, const float *x, int64_t rows, const float *base,
                         float *y, int64_t activation, Worker worker) {
#define IN_FORMAT(format) \
    linear_in_format(linear, format, arithmetic.quantized, x, rows, base, y, activation, worker)
    if (arithmetic.format == FLOAT32) IN_FORMAT(FLOAT32);
#ifndef __wasm__ /* pages have no weights in bfloat16 (web/pack.py), and load a smaller module */
    else if (arithmetic.format == BFLOAT16) IN_FORMAT(BFLOAT16);
#endif
#if DOT_PRODUCTS
    else if (has_dot_products) IN_FORMAT(INT8_DOT);
#endif
    else IN_FORMAT(INT8);
#undef IN_FORMAT
}
