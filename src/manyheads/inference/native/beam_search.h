/* Beam search of one sentence: the bookkeeping after each decoding step. The rules (which prefixes and outputs are
   kept, when a sentence ends) are those of decoding/beam.py; the results are the same bits.

   Shapes: K beam size, W rows (1 at first, then K), C = K + 1 candidates of a row, T tokens so far. */

#pragma once

#include <string.h>

#include "beam_memory.h"
#include "best_tokens.h"

/* Merge the candidates of all rows, values and tokens (W, C), to the `count` best, best first; among equals those of
   earlier rows, then the likelier tokens. */
static void merge_candidates(const Beam *beam, int64_t per_row, const float *values, const int64_t *tokens,
                             int64_t count, Candidate *best) {
    const int64_t rows = beam->step.rows;
    int64_t *used = beam->used; /* candidates of each row */
    memset(used, 0, (size_t)rows * sizeof *used);
    for (int64_t i = 0; i < count; i++) {
        int64_t best_row = -1;
        double best_total = 0;
        for (int64_t r = 0; r < rows; r++) {
            if (used[r] == per_row) continue;
            const double total = beam->log_probs[r] + (double)values[r * per_row + used[r]];
            if (best_row >= 0 && !(total > best_total)) continue;
            best_row = r;
            best_total = total;
        }
        const int64_t candidate = best_row * per_row + used[best_row]++;
        best[i] = (Candidate){best_row, tokens[candidate], values[candidate], best_total};
    }
}

/* Add an output, whose score is computed, if it is better than `worst`, the K-th best before this step. */
static void add_output(Beam *beam, const BeamOptions *options, Output output, double worst) {
    const double score = output.total / options->divisors[output.length + output.ended];
    int64_t rank = options->beam_size - 1;
    if (!(score > worst)) return;
    output.score = score;
    beam->outputs[beam->num_outputs++] = output;
    if (!(score > beam->best_scores[rank])) return;
    for (; rank > 0 && score > beam->best_scores[rank - 1]; rank--)
        beam->best_scores[rank] = beam->best_scores[rank - 1];
    beam->best_scores[rank] = score;
}

/* Finish every prefix: with the end symbol if that is its likeliest continuation, else cut. */
static void finish_all(Beam *beam, const BeamOptions *options, int64_t per_row, const float *values,
                       const int64_t *tokens) {
    for (int32_t ended = 1; ended >= 0; ended--) {
        const double worst = beam->best_scores[options->beam_size - 1];
        for (int64_t r = 0; r < beam->step.rows; r++) {
            const float log_prob = values[r * per_row];
            if ((tokens[r * per_row] == options->eos && log_prob > -INFINITY) != ended) continue;
            const double total = beam->log_probs[r] + (ended ? (double)log_prob : 0);
            add_output(beam, options, (Output){(int32_t)beam->length, (int32_t)r, ended, log_prob, total, 0}, worst);
        }
    }
}

/* End the search: leave the n_best outputs, best first, of equal scores the earlier first, and write their tokens. */
static void end_search(Beam *beam, const BeamOptions *options) {
    const int64_t length = beam->max_length + 1, found = beam->num_outputs;
    Output *outputs = beam->outputs;
    beam->num_outputs = found < options->n_best ? found : options->n_best;
    for (int64_t rank = 0; rank < beam->num_outputs; rank++) {
        int64_t best = rank;
        for (int64_t o = rank + 1; o < found; o++)
            if (outputs[o].score > outputs[best].score) best = o;
        const Output output = outputs[best];
        memmove(outputs + rank + 1, outputs + rank, (size_t)(best - rank) * sizeof *outputs);
        outputs[rank] = output;
        float *scores = beam->token_scores + rank * length;
        read_prefix(beam, options, output.length, output.row, beam->tokens + rank * length, scores);
        if (output.ended) scores[output.length] = output.log_prob;
    }
    beam->status = BEAM_ENDED;
}

/* Return whether no open prefix can change the outputs any more. `best` is the largest log-probability of a prefix
   with one more token. */
static int is_settled(const Beam *beam, const BeamOptions *options, double best) {
    return beam->best_scores[options->beam_size - 1] >= best / options->divisors[beam->length + 1] ||
           beam->best_scores[options->n_best - 1] >= best / options->divisors[beam->max_length + 1];
}

/* Append K candidates to the prefixes; each row attends to what its parent attended to, and to itself. */
static void append_tokens(Beam *beam, const BeamOptions *options, const Candidate *kept) {
    Node *nodes = beam->nodes + beam->length++ * options->beam_size;
    Step *step = &beam->step;
    for (int64_t k = 0; k < options->beam_size; k++) {
        const Candidate *candidate = kept + k;
        int32_t *visible = beam->next_visible + k * (step->num_visible + 1);
        memcpy(visible, beam->visible + candidate->row * step->num_visible,
               (size_t)step->num_visible * sizeof *visible);
        visible[step->num_visible] = (int32_t)(step->length + k);
        nodes[k] = (Node){(int32_t)candidate->row, (int32_t)candidate->token, candidate->log_prob};
        beam->log_probs[k] = candidate->total;
        /* A prefix of probability 0 takes a row that no other prefix can take; the row still appends a token. */
        beam->latest[k] = candidate->total > -INFINITY ? candidate->token : options->eos;
    }
    int32_t *before = beam->visible;
    step->visible = beam->visible = beam->next_visible;
    beam->next_visible = before;
    step->num_visible++;
    step->rows = options->beam_size;
    step->length += step->rows;
    if (step->position_signal) step->position_signal += options->signal_stride;
    if (step->rotary) step->rotary += options->rotary_stride;
}

/* Advance a beam by the best next tokens of its rows (W, C), log-probabilities and ids, which a cancelled beam
   changes. */
static void advance_beam(Beam *beam, const BeamOptions *options, float *values, int64_t *tokens) {
    const int64_t size = options->beam_size, per_row = size + 1, rows = beam->step.rows;
    const int64_t count = rows == 1 ? per_row : 2 * size;
    Candidate *best = beam->candidates, *kept = best + 2 * size;
    int64_t open = 0; /* candidates that are kept: they do not end */
    for (int64_t i = 0; i < rows * per_row; i++)
        if (isnan(values[i])) {
            beam->status = BEAM_NAN;
            return;
        }
    for (int64_t i = 0; beam->cancelled && i < rows * per_row; i++) { /* only the end symbol can follow */
        values[i] = i % per_row ? -INFINITY : 0;
        tokens[i] = options->eos;
    }
    if (rows * per_row < count) { /* fewer candidates than are merged */
        beam->status = BEAM_INVALID;
        return;
    }
    merge_candidates(beam, per_row, values, tokens, count, best);
    const double worst = beam->best_scores[size - 1];
    const int dead_end = best[0].total == -INFINITY && beam->best_scores[0] == -INFINITY;
    if (dead_end || beam->max_length <= beam->length) {
        finish_all(beam, options, per_row, values, tokens);
        end_search(beam, options);
        return;
    }
    for (int64_t i = 0; i < count && (i < size || open < size); i++) {
        const int ends = best[i].token == options->eos && best[i].total > -INFINITY;
        if (!ends && open < size) kept[open++] = best[i];
        else if (ends && i < size)
            add_output(beam, options,
                       (Output){(int32_t)beam->length, (int32_t)best[i].row, 1, best[i].log_prob, best[i].total, 0},
                       worst);
    }
    if (open < size) { /* tokens of a row were not distinct */
        beam->status = BEAM_INVALID;
        return;
    }
    if (is_settled(beam, options, kept[0].total)) {
        end_search(beam, options);
        return;
    }
    append_tokens(beam, options, kept);
    beam->status = beam->step.length > beam->step.capacity ? BEAM_CACHE_FULL : BEAM_RUNNING;
}
