/* Self-attention and cross-attention of decoding steps, over a KV cache and over the keys and values of the source. */

#pragma once

#include "attention.h"
#include "heads.h"

/* Restrict a range to the items 0..count. */
static Range clamp(Range range, int64_t count) {
    const int64_t first = range.first < 0 ? 0 : range.first < count ? range.first : count;
    const int64_t last = range.last < 0 ? 0 : range.last < count ? range.last : count;
    return (Range){first, last};
}

/* Write the keys and values of a sentence's new tokens, qkv (W, 3, H, E), to the cache of a head, and rotate queries
   and keys if positions are rotary. */
static void store_kv(const Step *step, float *qkv, int64_t d_model, int64_t head_dim, float *keys, float *values) {
    for (int64_t w = 0; w < step->rows; w++) {
        float *query = qkv + w * 3 * d_model;
        const int64_t offset = (step->length - step->num_later - step->rows + w) * head_dim;
        if (step->rotary) {
            apply_rotary(query, step->rotary, head_dim);
            apply_rotary(query + d_model, step->rotary, head_dim);
        }
        for (int64_t e = 0; e < head_dim; e++) {
            keys[offset + e] = query[d_model + e];
            values[offset + e] = query[2 * d_model + e];
        }
    }
}

/* Return the keys of head h of the G x H heads of a step in its cache; the values are all_heads * size behind them. */
static float *cached_keys(const Step *step, int64_t layer, int64_t all_heads, int64_t h, int64_t size) {
    return step->cache + (2 * layer * all_heads + h) * size;
}

/* Store the keys and values of a step's new tokens for a range of its G x H heads: qkv (R, 3, H, E). */
static void step_store_kv(const Model *model, const Step *step, int64_t layer, Range heads, float *qkv) {
    const int64_t num_heads = model->num_heads, d_model = model->d_model, head_dim = d_model / num_heads;
    const int64_t all_heads = step->sentences * num_heads, size = step->capacity * head_dim;
    heads = clamp(heads, all_heads);
    for (int64_t h = heads.first; h < heads.last; h++) {
        const int64_t row = h / num_heads * step->rows, offset = h % num_heads * head_dim;
        float *keys = cached_keys(step, layer, all_heads, h, size);
        store_kv(step, qkv + row * 3 * d_model + offset, d_model, head_dim, keys, keys + all_heads * size);
    }
}

/* Compute self-attention for a range of the G x H heads of a step, whose keys and values are stored:
   qkv (R, 3, H, E) -> attn_out (R, H, E). */
static void step_self_attention(const Model *model, const Step *step, int64_t layer, Range heads, const float *qkv,
                                float *attn_out, float *scores) {
    const int64_t num_heads = model->num_heads, d_model = model->d_model, head_dim = d_model / num_heads;
    const int64_t all_heads = step->sentences * num_heads, size = step->capacity * head_dim;
    const int64_t rows = step->sentences * step->rows;
    heads = clamp(heads, all_heads);
    for (int64_t h = heads.first; h < heads.last; h++) {
        const int64_t row = h / num_heads * step->rows, head = h % num_heads, offset = head * head_dim;
        const float *keys = cached_keys(step, layer, all_heads, h, size), *values = keys + all_heads * size;
        for (int64_t r = row; r < row + step->rows; r++) {
            const float *query = qkv + r * 3 * d_model + offset;
            float *out = attn_out + r * d_model + offset;
            float *weights = weights_of(&step->self_heads, layer, rows, r, num_heads, head,
                                        step->visible ? step->num_visible : step->length);
            if (step->visible)
                attend_to_visible(query, keys, values, step->visible + r * step->num_visible, step->num_visible,
                                  head_dim, head_dim, scores, out, weights);
            else
                attend(query, keys, values, step->length, head_dim, head_dim,
                       step->cache_bias ? step->cache_bias + r * step->capacity : 0, scores, out, weights);
            scale_head(&step->self_heads, layer, num_heads, head, out, head_dim);
            report_vectors(&step->self_heads, layer, rows, r, num_heads, head, query, 3, head_dim);
        }
    }
}

/* Compute cross-attention for a range of the G x H heads of a step: queries (R, H, E) -> attn_out (R, H, E). */
static void step_cross_attention(const Model *model, const Step *step, int64_t layer, Range heads,
                                 const float *queries, float *attn_out, float *scores) {
    const int64_t num_heads = model->num_heads, d_model = model->d_model, head_dim = d_model / num_heads;
    const int64_t rows = step->sentences * step->rows;
    heads = clamp(heads, step->sentences * num_heads);
    for (int64_t h = heads.first; h < heads.last; h++) {
        const int64_t sentence = h / num_heads, head = h % num_heads, first = h * step->source_capacity * head_dim;
        const float *keys = step->memory[2 * layer] + first, *values = step->memory[2 * layer + 1] + first;
        const float *bias = step->source_bias ? step->source_bias + sentence * step->source_length : 0;
        for (int64_t w = 0; w < step->rows; w++) {
            const int64_t r = sentence * step->rows + w, offset = r * d_model + head * head_dim;
            attend(queries + offset, keys, values, step->source_length, head_dim, head_dim, bias, scores,
                   attn_out + offset,
                   weights_of(&step->cross_heads, layer, rows, r, num_heads, head, step->source_length));
            scale_head(&step->cross_heads, layer, num_heads, head, attn_out + offset, head_dim);
            report_vectors(&step->cross_heads, layer, rows, r, num_heads, head, queries + offset, 1, head_dim);
        }
    }
}
