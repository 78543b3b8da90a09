/* Attention weights that a call reports, and factors of heads. */

#pragma once

#include "structs.h"

/* Return where the weights of a head of row r on its keys are written; null: nowhere. */
static float *weights_of(const Heads *heads, int64_t layer, int64_t rows, int64_t r, int64_t num_heads, int64_t head,
                         int64_t keys) {
    return heads->weights ? heads->weights + (((layer * rows + r) * num_heads + head) * keys) : 0;
}

/* Multiply the output of a head (E) by its factor. */
static void scale_head(const Heads *heads, int64_t layer, int64_t num_heads, int64_t head, float *out,
                       int64_t head_dim) {
    if (!heads->factors) return;
    for (int64_t e = 0; e < head_dim; e++) out[e] *= heads->factors[layer * num_heads + head];
}
