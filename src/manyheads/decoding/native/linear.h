/* Linear layers, for one row or a thousand.

   Weights are stored in panels of PANEL outputs: the weights from the first input to each output, then those from the
   second input. A tile, a few rows times the outputs of a few panels, is accumulated in registers, one input after the
   other: the sums of a row are the same bits in every tile. */

#pragma once

#ifdef __wasm__
#include "single_thread.h"
#else
#include "thread_pool.h"
#endif
#include "vectors.h"

enum { FLOAT32, BFLOAT16, INT8 }; /* Format of the weights */

#define PANEL (TILE_VECS * LANES) /* outputs side by side */
#define ROW_BLOCK (8 * TILE_ROWS) /* rows whose inputs stay in the second-level cache while all panels are read */

typedef struct {
    const void *weight; /* (outputs / PANEL, inputs, PANEL), the last panel padded */
    const float *scale; /* (outputs) of weights in INT8; like bias, padded to whole panels */
    const float *bias;  /* (outputs) or null */
    int64_t inputs, outputs;
} Linear;

/* Return the number of outputs in a panel. */
int64_t panel_width(void) { return PANEL; }

/* Load the next LANES weights as floats. */
INLINE vec load_weights(const void *weights, int64_t format, int64_t index) {
    if (format == FLOAT32) return *(const unaligned_vec *)((const float *)weights + index);
    if (format == BFLOAT16) return from_bfloat16((const uint16_t *)weights + index);
    return from_int8((const int8_t *)weights + index);
}

/* Compute a tile, `rows` rows and the outputs of `panels` panels from panel `first` on:
   y[r][o] = (base[r][o] +) activation(x[r] . weight[o] + bias[o]). */
INLINE void tile(const Linear *linear, int64_t format, const float *x, int rows, int panels, int64_t first,
                 const float *base, float *y, int64_t activation) {
    const int64_t inputs = linear->inputs, outputs = linear->outputs, panel_size = inputs * PANEL;
    const int vecs = panels * TILE_VECS; /* at most TILE_ROWS * TILE_VECS accumulators, all in registers */
    vec sums[TILE_ROWS * TILE_VECS];
    UNROLL for (int k = 0; k < rows * vecs; k++) sums[k] = (vec){0};
    for (int64_t i = 0; i < inputs; i++) {
        vec weights[TILE_ROWS * TILE_VECS];
        UNROLL for (int v = 0; v < vecs; v++)
            weights[v] = load_weights(linear->weight, format,
                                      (first + v / TILE_VECS) * panel_size + i * PANEL + v % TILE_VECS * LANES);
        UNROLL for (int k = 0; k < rows * vecs; k++) sums[k] = multiply_add(sums[k], weights[k % vecs], x[k / vecs * inputs + i]);
    }
    for (int v = 0; v < vecs; v++) {
        const int64_t output = first * PANEL + v * LANES, count = outputs - output;
        if (count <= 0) break;
        for (int r = 0; r < rows; r++) {
            vec total = sums[r * vecs + v];
            if (format == INT8) total *= *(const unaligned_vec *)(linear->scale + output);
            if (linear->bias) total += *(const unaligned_vec *)(linear->bias + output);
            if (base) total += load_floats(base + r * outputs + output, count);
            store_floats(activate(total, activation), y + r * outputs + output, count);
        }
    }
}

/* A tile of constant size at the `row` and `panel` of the loops of linear_block. */
#define TILE(rows, panels) tile(linear, format, x + row * inputs, rows, panels, panel, from, to, activation)

/* Compute the panels first..last for the rows of a block, in tiles of TILE_ROWS rows. One or two rows take several
   panels at a time: eight accumulators are needed to hide the latency of a multiply-add. */
INLINE void linear_block(const Linear *linear, int64_t format, const float *x, int64_t rows, int64_t first,
                         int64_t last, const float *base, float *y, int64_t activation) {
    const int64_t inputs = linear->inputs, outputs = linear->outputs;
    const int64_t panels_per_tile = rows < 3 ? 8 / TILE_VECS / rows : 1;
    for (int64_t panel = first, step; panel < last; panel += step) {
        step = last - panel >= panels_per_tile ? panels_per_tile : 1;
        for (int64_t row = 0; row < rows; row += TILE_ROWS) {
            const float *from = base ? base + row * outputs : 0;
            float *to = y + row * outputs;
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

INLINE void linear_in_format(const Linear *linear, int64_t format, const float *x, int64_t rows, const float *base,
                             float *y, int64_t activation, Worker worker) {
    const int64_t panels = (linear->outputs + PANEL - 1) / PANEL;
    const Range own = share(worker, panels, 1);
    for (int64_t row = 0; row < rows; row += ROW_BLOCK)
        linear_block(linear, format, x + row * linear->inputs, rows - row < ROW_BLOCK ? rows - row : ROW_BLOCK,
                     own.first, own.last, base ? base + row * linear->outputs : 0, y + row * linear->outputs,
                     activation);
}

/* Apply a linear layer: x (R, I) -> y (R, O), y = activation(x W + b), plus `base` (R, O) if given. Each worker
   computes its share of the outputs. */
static void apply_linear(const Linear *linear, int64_t format, const float *x, int64_t rows, const float *base,
                         float *y, int64_t activation, Worker worker) {
    if (format == FLOAT32) linear_in_format(linear, FLOAT32, x, rows, base, y, activation, worker);
#ifndef __wasm__ /* pages have no weights in bfloat16 (interop/html/pack.py), and load a smaller module */
    else if (format == BFLOAT16) linear_in_format(linear, BFLOAT16, x, rows, base, y, activation, worker);
#endif
    else linear_in_format(linear, INT8, x, rows, base, y, activation, worker);
}
