/* Checks of the arguments of a call, before any memory is read or written through them. */

#pragma once

#include "structs.h"

static int in_range(Failure *failure, const char *quantity, int64_t value, int64_t low, int64_t high) {
    if (low <= value && value <= high) return 1;
    *failure = (Failure){quantity, value, low, high};
    return 0;
}

static int ids_in_range(Failure *failure, const char *quantity, const int64_t *ids, int64_t count, int64_t limit) {
    for (int64_t i = 0; i < count; i++)
        if (!in_range(failure, quantity, ids[i], 0, limit - 1)) return 0;
    return 1;
}

/* Check the tokens of the sentences that the encoder reads, and the position of each token. */
static int check_encoder_input(const Model *model, const EncoderInput *input, int threads, Failure *failure) {
    const int64_t *starts = input->starts;
    if (!in_range(failure, "threads", threads, 1, INT32_MAX) ||
        !in_range(failure, "sentences", input->sentences, 0, INT32_MAX) ||
        !in_range(failure, "longest source", input->max_length, 0, INT32_MAX) ||
        !in_range(failure, "start of a sentence", starts[0], 0, 0))
        return 0;
    for (int64_t g = 0; g < input->sentences; g++)
        if (!in_range(failure, "end of a sentence", starts[g + 1], starts[g], starts[g] + input->max_length)) return 0;
    const int64_t rows = starts[input->sentences];
    return ids_in_range(failure, "token id", input->tokens, rows, model->vocabulary) &&
           ids_in_range(failure, "sentence", input->sentence_ids, rows, input->sentences) &&
           ids_in_range(failure, "position", input->positions, rows, input->max_length);
}

/* Check a decoding step. No row may attend to more than `max_keys` keys. */
static int check_step(const Model *model, const Step *step, int64_t max_keys, Failure *failure) {
    if (!in_range(failure, "sentences", step->sentences, 0, INT32_MAX) ||
        !in_range(failure, "rows of a sentence", step->rows, 1, INT32_MAX) ||
        !in_range(failure, "capacity of the KV cache", step->capacity, 1, INT32_MAX) ||
        !in_range(failure, "length of the KV cache", step->length, step->rows, step->capacity) ||
        !in_range(failure, "later tokens", step->num_later, 0, step->length - step->rows) ||
        !in_range(failure, "keys of the target", step->visible ? step->num_visible : step->length, 1, max_keys) ||
        !in_range(failure, "length of the source", step->source_length, 0, max_keys) ||
        !in_range(failure, "length of the source", step->source_length, 0, step->source_capacity))
        return 0;
    const int64_t rows = step->sentences * step->rows;
    if (!in_range(failure, "rows of all sentences", rows, 0, INT32_MAX)) return 0;
    for (int64_t i = 0; step->visible && i < rows * step->num_visible; i++)
        if (!in_range(failure, "visible token", step->visible[i], 0, step->length - 1)) return 0;
    return ids_in_range(failure, "token id", step->tokens, rows, model->vocabulary);
}

/* Check a request for the best next tokens. */
static int check_best(const Model *model, const BestTokens *best, Failure *failure) {
    const int64_t vocabulary = model->output.outputs;
    return in_range(failure, "best tokens of a row", best->count, 1, vocabulary) &&
           in_range(failure, "suppressed ids", best->num_suppressed, 0, vocabulary) &&
           ids_in_range(failure, "suppressed id", best->suppressed, best->num_suppressed, vocabulary);
}

/* Check the options of a search, which needs K + 1 candidates of each row. */
static int check_options(const Model *model, const BeamOptions *options, const BestTokens *best, Failure *failure) {
    return in_range(failure, "beam size", options->beam_size, 1, INT32_MAX) &&
           in_range(failure, "n_best", options->n_best, 1, options->beam_size) &&
           in_range(failure, "end symbol", options->eos, 0, model->output.outputs - 1) &&
           in_range(failure, "no_repeat_ngram", options->no_repeat_ngram, 0, INT32_MAX) &&
           in_range(failure, "top_k", options->top_k, 0, INT32_MAX) &&
           in_range(failure, "best tokens of a row", best->count, options->beam_size + 1, options->beam_size + 1);
}

static int tokens_in_range(Failure *failure, const char *quantity, const int32_t *tokens, int64_t count,
                           int64_t vocabulary) {
    for (int64_t i = 0; i < count; i++)
        if (!in_range(failure, quantity, tokens[i], 0, vocabulary - 1)) return 0;
    return 1;
}

/* Check the constraints on a beam, and that it has the workspace of its rules. */
static int check_constraints(const Beam *beam, const BeamOptions *options, int64_t vocabulary, Failure *failure) {
    int64_t start = 0;
    const int needs_history = options->no_repeat_ngram || beam->num_forbidden;
    if (!in_range(failure, "length of a prefix", beam->prefix_length, 0, INT32_MAX) ||
        !in_range(failure, "forbidden sequences", beam->num_forbidden, 0, beam->history ? INT32_MAX : 0) ||
        !in_range(failure, "workspace of rules", beam->history != 0, needs_history, 1) ||
        !in_range(failure, "beam size of sampling", options->beam_size, 1, beam->uniform ? 1 : options->beam_size) ||
        !tokens_in_range(failure, "token of a prefix", beam->prefix, beam->prefix_length, vocabulary))
        return 0;
    for (int64_t f = 0; f < beam->num_forbidden; start = beam->forbidden_ends[f++])
        if (!in_range(failure, "end of a forbidden sequence", beam->forbidden_ends[f], start + 1, INT32_MAX)) return 0;
    return tokens_in_range(failure, "forbidden token", beam->forbidden, start, vocabulary);
}

/* Check a beam before its step. */
static int check_beam(const Model *model, const Beam *beam, const BeamOptions *options, Failure *failure) {
    return check_constraints(beam, options, model->output.outputs, failure) &&
           in_range(failure, "longest output", beam->max_length, 0, INT32_MAX - 1) &&
           in_range(failure, "length of an output", beam->length, 0, beam->max_length) &&
           in_range(failure, "visible tokens", beam->step.num_visible, beam->length + 1, beam->length + 1) &&
           in_range(failure, "sentences of a beam", beam->step.sentences, 1, 1) &&
           in_range(failure, "rows of a beam", beam->step.rows, 1, options->beam_size) &&
           in_range(failure, "outputs", beam->num_outputs, 0, (beam->max_length + 1) * options->beam_size);
}
