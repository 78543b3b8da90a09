/* Attention weights and vectors that a call reports, and factors of heads. */

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

/* Report `count` vectors (E) of a head of row r, D floats from each other: its query, or its query, key and value. */
static void report_vectors(const Heads *heads, int64_t layer, int64_t rows, int64_t r, int64_t num_heads, int64_t head,
                           const float *vectors, int64_t count, int64_t head_dim) {
    if (!heads->vectors) return;
    const int64_t d_model = num_heads * head_dim;
    float *to = heads->vectors + (layer * rows + r) * count * d_model + head * head_dim;
    for (int64_t v = 0; v < count * d_model; v += d_model)
        for (int64_t e = 0; e < head_dim; e++) to[v + e] = vectors[v + e];
}
