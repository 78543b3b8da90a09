/* What the rows of a step take from its target so far and from its source; shapes as in decoder.c. */

#pragma once

#include "attention.h"
#include "descriptions.h"

/* What a thread does of things that are numbered through all steps, from the first on; negative where they belong to
   steps before this one. */
typedef struct {
    int64_t first, last;
} Range;

static int64_t within(int64_t number, int64_t count) { return number < 0 ? 0 : number < count ? number : count; }

/* Self-attention of a layer for some heads: thirds (R, 3, H, E) -> mixed (R, H, E), those of the step's first row; the
   past grows. */
static void look_at_target(const Model *model, const Step *step, int64_t layer, Range ours, float *thirds,
                           float *mixed, float *scores) {
    const int64_t heads = model->heads, width = model->width, each = width / heads, rows = step->rows;
    const int64_t pairs = step->sentences * heads, size = step->room * each, last = within(ours.last, pairs);
    for (int64_t pair = within(ours.first, pairs); pair < last; pair++) {
        const int64_t sentence = pair / heads, head = pair % heads;
        float *keys = step->past + (2 * layer * pairs + pair) * size, *values = keys + pairs * size;
        for (int64_t w = 0; w < rows; w++) {
            float *query = thirds + (sentence * rows + w) * 3 * width + head * each;
            const int64_t place = (step->held - rows + w) * each;
            for (int64_t e = 0; e < each; e++) {
                keys[place + e] = query[width + e];
                values[place + e] = query[2 * width + e];
            }
            if (step->turns) {
                turn(query, step->turns, each);
                turn(keys + place, step->turns, each);
            }
        }
        for (int64_t w = 0; w < rows; w++) {
            const int64_t row = sentence * rows + w;
            const float *query = thirds + row * 3 * width + head * each;
            float *out = mixed + row * width + head * each;
            if (step->seen)
                attend_to(query, keys, values, step->seen + row * step->visible, step->visible, each, each, scores, out);
            else
                attend(query, keys, values, step->held, each, each,
                       step->past_bias ? step->past_bias + row * step->room : 0, scores, out);
        }
    }
}

/* Cross-attention of a layer for some heads: queries (R, H, E) -> mixed (R, H, E). */
static void look_at_source(const Model *model, const Step *step, int64_t layer, Range ours, const float *queries,
                           float *mixed, float *scores) {
    const int64_t heads = model->heads, width = model->width, each = width / heads, rows = step->rows;
    const int64_t pairs = step->sentences * heads, last = within(ours.last, pairs);
    for (int64_t pair = within(ours.first, pairs); pair < last; pair++) {
        const int64_t sentence = pair / heads, place = pair * step->source_room * each;
        for (int64_t w = 0; w < rows; w++) {
            const int64_t at = (sentence * rows + w) * width + pair % heads * each;
            attend(queries + at, step->memory[2 * layer] + place, step->memory[2 * layer + 1] + place, step->source,
                   each, each, step->source_bias ? step->source_bias + sentence * step->source : 0, scores, mixed + at);
        }
    }
}
