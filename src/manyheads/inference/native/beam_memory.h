/* The memory of a beam: one block of its arrays, and the KV cache, which the caller allocates.

   Shapes as in structs.h: K beam size, P length of the forced prefix, E head dimension. */

#pragma once

#include <string.h>

#include "structs.h"

#ifndef GUARD
#define GUARD(end) 0 /* bytes behind an array, which no code may touch: tests reserve them */
#endif

enum { ALIGNMENT = 16, CACHE_MARGIN = 8 }; /* CACHE_MARGIN: tokens by which an output may be longer than its source
                                              before the KV cache is enlarged */

/* Return the next array of a block, or null without a block, and add its bytes to `size`. */
static void *take(char *block, int64_t *size, int64_t count, size_t bytes) {
    void *array = block ? block + *size : 0;
    *size += count * (int64_t)bytes;
    *size += GUARD(block ? block + *size : 0);
    *size += (ALIGNMENT - *size % ALIGNMENT) % ALIGNMENT;
    return array;
}

/* Begin the search of a sentence: divide a block of memory among the arrays of a beam, which has one empty prefix. Its
   source, first position, longest output, rules and random numbers are set. Returns the size of the block in bytes;
   with `block` null, nothing else. */
int64_t begin_beam(const Model *model, const BeamOptions *options, int64_t bos, Beam *beam, void *block) {
    const int64_t K = options->beam_size, length = beam->max_length + 1;
    const int has_rules = options->no_repeat_ngram || beam->num_forbidden;
    const int ranks = beam->uniform && (options->top_k || options->top_p < 1);
    int64_t size = 0;
    beam->latest = take(block, &size, K, sizeof *beam->latest);
    beam->log_probs = take(block, &size, K, sizeof *beam->log_probs);
    beam->best_scores = take(block, &size, K, sizeof *beam->best_scores);
    beam->visible = take(block, &size, K * length, sizeof *beam->visible);
    beam->next_visible = take(block, &size, K * length, sizeof *beam->next_visible);
    beam->nodes = take(block, &size, K * length, sizeof *beam->nodes);
    beam->outputs = take(block, &size, K * length, sizeof *beam->outputs);
    beam->tokens = take(block, &size, options->n_best * length, sizeof *beam->tokens);
    beam->token_scores = take(block, &size, options->n_best * length, sizeof *beam->token_scores);
    beam->candidates = take(block, &size, 3 * K, sizeof *beam->candidates);
    beam->used = take(block, &size, K, sizeof *beam->used);
    beam->history = has_rules ? take(block, &size, K * length, sizeof *beam->history) : 0;
    beam->heap = ranks ? take(block, &size, model->output.outputs, sizeof *beam->heap) : 0;
    if (!block) return size;
    for (int64_t k = 0; k < K; k++) {
        beam->latest[k] = bos;
        beam->log_probs[k] = 0;
        beam->best_scores[k] = -INFINITY;
    }
    beam->visible[0] = 0;
    Step *step = &beam->step;
    step->tokens = beam->latest;
    step->visible = beam->visible;
    step->sentences = step->rows = step->length = step->num_visible = 1;
    return size;
}

/* Give a beam its first KV cache, or one of twice its length, with what is stored. Returns the size of the cache in
   floats; with `cache` null, nothing else. */
int64_t enlarge_cache(const Model *model, const BeamOptions *options, Beam *beam, float *cache) {
    Step *step = &beam->step;
    const int64_t E = model->d_model / model->num_heads, heads = 2 * model->num_layers * model->num_heads;
    const int64_t reach = step->source_length + CACHE_MARGIN;
    const int64_t longest = beam->max_length < reach ? beam->max_length : reach;
    const int64_t capacity = step->cache ? 2 * step->length : beam->prefix_length + 1 + options->beam_size * longest;
    const size_t stored = (size_t)((step->length - step->rows) * E) * sizeof *cache;
    if (!cache) return heads * capacity * E;
    for (int64_t h = 0; stored && h < heads; h++)
        memcpy(cache + h * capacity * E, step->cache + h * step->capacity * E, stored);
    step->cache = cache;
    step->capacity = capacity;
    return heads * capacity * E;
}

/* Begin a beam with its forced prefix, whose log-probabilities (P) are given, and whose keys and values but those of
   the last token are in the KV cache. */
void skip_prefix(const BeamOptions *options, Beam *beam, const float *log_probs) {
    const int64_t count = beam->prefix_length;
    double total = 0;
    for (int64_t t = 0; t < count; t++) {
        beam->nodes[t * options->beam_size] = (Node){0, beam->prefix[t], log_probs[t]};
        total += (double)log_probs[t];
        beam->latest[0] = beam->prefix[t];
        beam->visible[t + 1] = (int32_t)(t + 1);
    }
    beam->log_probs[0] = total;
    beam->length = count;
    beam->step.length = beam->step.num_visible = count + 1;
}
