/* Parts of both encoder and decoder layers: embedding, layer norm, feed-forward, residual connections. */

#pragma once

#include "attention.h"
#include "structs.h"

/* The intermediate results of a call. The workers share all arrays but `normed`, `scores` and
   those of `arithmetic`. */
typedef struct {
    float *x;        /* (R, D) the residual stream */
    float *qkv;      /* (R, 3, H, E) */
    float *attn_out; /* (R, H, E) */
    float *queries;  /* (R, H, E) of cross-attention */
    float *inner;    /* (R, F), of SwiGLU (R, 2 F) */
    float *gated;    /* (R, F) */
    float *normed;   /* (R, D) of this worker */
    float *scores;   /* of one attention head, of this worker */
    Arithmetic arithmetic;
} Workspace;

/* Return the floats of workspace of one worker. */
static int64_t worker_size(const Model *model, int64_t rows, int64_t max_keys) {
    const int64_t widest = model->d_model > model->d_ff ? model->d_model : model->d_ff;
    return rows * model->d_model + ATTENTION_WORKSPACE(max_keys) +
           QUANTIZED_SIZE(rows < ROW_BLOCK ? rows : ROW_BLOCK, widest);
}

/* Return the floats of workspace for R rows, each of which attends to at most `max_keys` keys. */
int64_t workspace_size(const Model *model, int64_t rows, int64_t max_keys, int64_t threads) {
    return rows * (6 * model->d_model + 3 * model->d_ff) + threads * worker_size(model, rows, max_keys);
}

static Workspace divide_workspace(const Model *model, int64_t rows, int64_t max_keys, float *floats, Worker worker) {
    const int64_t size = rows * model->d_model;
    Workspace work = {.x = floats};
    work.qkv = work.x + size;
    work.attn_out = work.qkv + 3 * size;
    work.queries = work.attn_out + size;
    work.inner = work.queries + size;
    work.gated = work.inner + 2 * rows * model->d_ff;
    work.normed = work.gated + rows * model->d_ff + worker.id * worker_size(model, rows, max_keys);
    work.scores = work.normed + size;
    work.arithmetic = (Arithmetic){model->format, work.scores + ATTENTION_WORKSPACE(max_keys)};
    return work;
}

/* Return the sum of the differences of x (size) from a number, or of their squares. */
INLINE float sum_differences(const float *x, int64_t size, float from, int squared) {
    Block sums = {0};
    for (int64_t i = 0; i < size; i += BLOCK)
        UNROLL for (int p = 0; p < PARTS; p++) {
            const vec difference = load_floats_or(x + i + p * LANES, size - i - p * LANES, from) - from;
            sums.parts[p] += squared ? difference * difference : difference;
        }
    return sum_block(sums);
}

/* Normalize rows (R, D) to y; return y, or x itself where there is no norm. A row whose variance overflows is NaN. */
static const float *layer_norm(LayerNorm norm, const float *x, int64_t rows, int64_t width, float epsilon, float *y) {
    if (!norm.weight) return x;
    for (int64_t r = 0; r < rows; r++) {
        const float *row = x + r * width;
        const float mean = sum_differences(row, width, 0, 0) / (float)width;
        const float square = sum_differences(row, width, mean, 1);
        const float factor = square < INFINITY ? 1 / sqrtf(square / (float)width + epsilon) : NAN;
        for (int64_t i = 0; i < width; i++)
            y[r * width + i] = (row[i] - mean) * factor * norm.weight[i] + (norm.bias ? norm.bias[i] : 0);
    }
    return y;
}

/* Return element `i` of the embedding of a token, which may be the weights of the output layer too. */
INLINE float embedding_at(const Model *model, int64_t token, int64_t i) {
    if (model->embedding) return model->embedding[token * model->d_model + i];
    return weight_at(&model->output, model->format, token, i);
}

/* Embed a token: x (D) = scale x embedding + positional signal, then the norm of embeddings if there is one. */
static void embed(const Model *model, int64_t token, const float *signal, float *x) {
    for (int64_t i = 0; i < model->d_model; i++)
        x[i] = embedding_at(model, token, i) * model->embedding_scale + (signal ? signal[i] : 0);
    layer_norm(model->embedding_norm, x, 1, model->d_model, model->norm_epsilon, x);
}

/* The input of a sublayer, and the residual to which its output is added, (R, D) each. */
typedef struct {
    const float *input, *residual;
} Sublayer;

/* Normalize the residual stream; each worker normalizes all rows for itself. With post-norm the norm belongs to the
   sublayer before, so that the normalized stream is the residual too. */
static Sublayer begin_sublayer(const Model *model, LayerNorm norm, int64_t rows, const Workspace *work) {
    const float *input = layer_norm(norm, work->x, rows, model->d_model, model->norm_epsilon, work->normed);
    return (Sublayer){input, model->pre_norm ? work->x : input};
}

/* SwiGLU: gate one half of the inner width by the other, in this worker's columns: (R, 2 F) -> (R, F). */
static void swiglu(const float *inner, float *gated, int64_t rows, int64_t width, Worker worker) {
    const Range own = share(worker, width, LANES);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t f = own.first; f < own.last; f += LANES) {
            const vec gate = activate(load_floats(inner + 2 * r * width + f, width - f), SWISH);
            const vec product = gate * load_floats(inner + (2 * r + 1) * width + f, width - f);
            store_floats(product, gated + r * width + f, width - f);
        }
}

/* The position-wise feed-forward sublayer (section 3.3): x = residual + contract(activation(expand(input))). */
static void feed_forward(const Model *model, const Layer *layer, LayerNorm norm, int64_t rows, const Workspace *work,
                         Worker worker) {
    const Sublayer sublayer = begin_sublayer(model, norm, rows, work);
    const int gated = model->activation == SWIGLU;
    apply_linear(&layer->expand, work->arithmetic, sublayer.input, rows, 0, work->inner,
                 gated ? NO_ACTIVATION : model->activation, worker);
    barrier(worker);
    if (gated) {
        swiglu(work->inner, work->gated, rows, model->d_ff, worker);
        barrier(worker);
    }
    apply_linear(&layer->contract, work->arithmetic, gated ? work->gated : work->inner, rows, sublayer.residual, work->x,
                 NO_ACTIVATION, worker);
    barrier(worker);
}
