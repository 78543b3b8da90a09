/* What a call is told of a model and of a step (model/descriptions.py); shapes as in decoder.c. */

#pragma once

#include "product.h"

typedef struct {
    const float *weight, *bias; /* (D); no weight: no norm */
} Norm;

typedef struct {
    Linear self_in, self_out, cross_query, cross_out, expand, contract;
} Layer;

typedef struct {
    const Layer *layers;  /* L */
    const Norm *norms;    /* before each sublayer and after the last: 3 L + 1, of an encoder 2 L + 1 */
    const float *table;   /* embeddings (V, D) */
    Norm embedding_norm;
    Linear output;
    int64_t count, width, heads, inner; /* L, D, H, F */
    int64_t format, activation, pre_norm;
    float scale, epsilon; /* of embeddings, of norms */
} Model;

/* The rows of some sentences, which append a token. */
typedef struct {
    const int64_t *tokens;      /* (R) */
    const float *signal;        /* (D) of this place, or none */
    const float *turns;         /* (E / 2, 2) cosines and sines of this place, or none */
    float *past;                /* (L, 2, G, H, C, E) */
    const float *past_bias;     /* (G, W, C), or none */
    const int32_t *seen;        /* (G, W, T) what each row may see of the N; none: all, but for the bias */
    const float *const *memory; /* keys and values of each layer, 2 L times (G, H, P, E) */
    const float *source_bias;   /* (G, S), or none */
    int64_t sentences, rows, held, room, visible, source, source_room; /* G, W, N with those of this step, C, T, S, P */
} Step;
