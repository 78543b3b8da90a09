/* The encoder-decoder for inference on a CPU: the functions of this library.

   Several threads execute a call together: they share the outputs of a linear layer, or the heads of an attention, and
   wait at a barrier after each stage. The Python interpreter is not needed meanwhile.

   Order of reading: structs.h, sublayers.h, encoder.h, this file, beam_memory.h, beam_search.h; then linear.h,
   attention.h, vectors.h and thread_pool.h. Shapes as in structs.h; R rows of all steps of a call.

   tools/wasm.py compiles the same code to WebAssembly, for one thread (single_thread.h). */

#include "beam_search.h"
#include "checks.h"
#include "decoder_attention.h"
#include "encoder.h"

typedef struct {
    const Model *model;
    const Step *const *steps; /* (num_steps); null: the steps of the beams */
    int64_t num_steps, sentences, rows; /* sentences and rows of all steps */
    int64_t max_keys;                   /* keys that a row attends to at most */
    float *workspace, *logits;
    const BestTokens *best;     /* of a search */
    const BeamOptions *options; /* null: no search */
    Beam *const *beams;         /* (num_steps) or null */
    int shared_cache;           /* whether some steps have the same KV cache */
} DecoderJob;

static const Step *step_of(const DecoderJob *job, int64_t s) {
    return job->beams ? &job->beams[s]->step : job->steps[s];
}

static int64_t rows_of(const Step *step) { return step->sentences * step->rows; }

/* Return this worker's share of `total` items of all steps, counted from the first item of a step. */
static Range share_of_step(int64_t first, int64_t total, Worker worker) {
    const Range own = share(worker, total, 1);
    return (Range){own.first - first, own.last - first};
}

static void embed_targets(const DecoderJob *job, const Workspace *work, Worker worker) {
    for (int64_t s = 0, row = 0; s < job->num_steps; row += rows_of(step_of(job, s++))) {
        const Step *step = step_of(job, s);
        const Range own = clamp(share_of_step(row, job->rows, worker), rows_of(step));
        for (int64_t r = own.first; r < own.last; r++)
            embed(job->model, step->tokens[r], step->position_signal, work->x + (row + r) * job->model->d_model);
    }
    barrier(worker);
}

/* Store the keys and values of all steps, so that a step can attend to those of other steps. */
static void store_all_kv(const DecoderJob *job, int64_t l, const Workspace *work, Worker worker) {
    const int64_t num_heads = job->model->num_heads;
    for (int64_t s = 0, row = 0, head = 0; s < job->num_steps; s++) {
        const Step *step = step_of(job, s);
        step_store_kv(job->model, step, l, share_of_step(head, job->sentences * num_heads, worker),
                      work->qkv + 3 * row * job->model->d_model);
        row += rows_of(step);
        head += step->sentences * num_heads;
    }
    barrier(worker);
}

/* The masked self-attention sublayer: x = residual + self_out(attention(self_qkv(input), KV cache)). */
static void self_attention(const DecoderJob *job, int64_t l, LayerNorm norm, const Workspace *work, Worker worker) {
    const Model *model = job->model;
    const Layer *layer = model->layers + l;
    const int64_t d_model = model->d_model, all_heads = job->sentences * model->num_heads;
    const Sublayer sublayer = begin_sublayer(model, norm, job->rows, work);
    apply_linear(&layer->self_qkv, work->arithmetic, sublayer.input, job->rows, 0, work->qkv, NO_ACTIVATION, worker);
    barrier(worker);
    if (job->shared_cache) store_all_kv(job, l, work, worker);
    for (int64_t s = 0, row = 0, head = 0; s < job->num_steps; s++) {
        const Step *step = step_of(job, s);
        const Range heads = share_of_step(head, all_heads, worker);
        if (!job->shared_cache) step_store_kv(model, step, l, heads, work->qkv + 3 * row * d_model);
        step_self_attention(model, step, l, heads, work->qkv + 3 * row * d_model, work->attn_out + row * d_model,
                            work->scores);
        row += rows_of(step);
        head += step->sentences * model->num_heads;
    }
    barrier(worker);
    apply_linear(&layer->self_out, work->arithmetic, work->attn_out, job->rows, sublayer.residual, work->x, NO_ACTIVATION,
                 worker);
    barrier(worker);
}

/* The cross-attention sublayer: x = residual + cross_out(attention(cross_query(input), memory)). */
static void cross_attention(const DecoderJob *job, int64_t l, LayerNorm norm, const Workspace *work, Worker worker) {
    const Model *model = job->model;
    const Layer *layer = model->layers + l;
    const int64_t d_model = model->d_model, all_heads = job->sentences * model->num_heads;
    const Sublayer sublayer = begin_sublayer(model, norm, job->rows, work);
    apply_linear(&layer->cross_query, work->arithmetic, sublayer.input, job->rows, 0, work->queries, NO_ACTIVATION,
                 worker);
    barrier(worker);
    for (int64_t s = 0, row = 0, head = 0; s < job->num_steps; s++) {
        const Step *step = step_of(job, s);
        step_cross_attention(model, step, l, share_of_step(head, all_heads, worker), work->queries + row * d_model,
                             work->attn_out + row * d_model, work->scores);
        row += rows_of(step);
        head += step->sentences * model->num_heads;
    }
    barrier(worker);
    apply_linear(&layer->cross_out, work->arithmetic, work->attn_out, job->rows, sublayer.residual, work->x,
                 NO_ACTIVATION, worker);
    barrier(worker);
}

/* Find the best next tokens of the rows, and advance the beams whose rows they are. */
static void choose_tokens(const DecoderJob *job, Worker worker) {
    const BestTokens *best = job->best;
    const int64_t vocabulary = job->model->output.outputs;
    const Range rows = share(worker, job->rows, 1), beams = share(worker, job->num_steps, 1);
    for (int64_t r = rows.first, b = 0; r < rows.last; r++) {
        while (b + 1 < job->num_steps && job->beams[b + 1]->first_row <= r) b++;
        find_best_tokens(best, job->logits + r * vocabulary, vocabulary, r, job->beams[b], job->options);
    }
    barrier(worker);
    for (int64_t b = beams.first; b < beams.last; b++) {
        const int64_t first = job->beams[b]->first_row * best->count;
        advance_beam(job->beams[b], job->options, best->values + first, best->tokens + first);
    }
}

/* The decoder (section 3.1). Each step has rows, a position and a KV cache of its own; linear layers are applied to
   the rows of all steps. */
static void run_decoder(Worker worker, const void *argument) {
    const DecoderJob *job = argument;
    const Model *model = job->model;
    const Workspace work = divide_workspace(model, job->rows, job->max_keys, job->workspace, worker);
    const LayerNorm *norm = model->norms;
    embed_targets(job, &work, worker);
    for (int64_t l = 0; l < model->num_layers; l++) {
        self_attention(job, l, *norm++, &work, worker);
        if (model->layers[l].cross_query.weight) cross_attention(job, l, *norm++, &work, worker);
        feed_forward(model, model->layers + l, *norm++, job->rows, &work, worker);
    }
    const float *output = layer_norm(*norm, work.x, job->rows, model->d_model, model->norm_epsilon, work.normed);
    if (!job->logits) return;
    apply_linear(&model->output, work.arithmetic, output, job->rows, 0, job->logits, NO_ACTIVATION, worker);
    if (!job->beams) return;
    barrier(worker);
    choose_tokens(job, worker);
}

static void count_rows(DecoderJob *job) {
    for (int64_t s = 0; s < job->num_steps; s++) {
        job->sentences += step_of(job, s)->sentences;
        job->rows += rows_of(step_of(job, s));
        job->shared_cache |= step_of(job, s)->shared_cache != 0;
    }
}

/* Encode sentences: keys and values of each decoder layer, memory 2 times (G, H, S, E) each, of which the positions
   behind the end of a sentence are not written. Returns 0, or -1 and the failure. */
int64_t encode(const Model *model, const Linear *memory_kv, int64_t num_memories, const EncoderInput *input,
               float *const *memory, float *workspace, int threads, Failure *failure) {
    const EncoderJob job = {model, memory_kv, num_memories, input, memory, workspace};
    if (!check_encoder_input(model, input, threads, failure)) return -1;
    parallel_run(threads, run_encoder, &job);
    return 0;
}

/* Apply a linear layer in one thread: x (R, I) -> y (R, O). `format`: that of its weights (linear.h). `workspace`: of
   INT8, QUANTIZED_SIZE(R, I) floats. */
void linear_layer(const Linear *linear, int64_t format, const float *x, int64_t rows, float *workspace, float *y) {
    apply_linear(linear, (Arithmetic){format, workspace}, x, rows, 0, y, NO_ACTIVATION, (Worker){0, 1, 0});
}

/* Append a token to each row of some steps. Writes the logits of the next tokens (R, V) unless `logits` is null. No row
   attends to more than `max_keys` keys. Returns 0, or -1 and the failure. */
int64_t decoder_steps(const Model *model, const Step *const *steps, int64_t num_steps, int64_t max_keys,
                      float *workspace, float *logits, int threads, Failure *failure) {
    DecoderJob job = {model, steps, num_steps, .max_keys = max_keys, .workspace = workspace, .logits = logits};
    if (!in_range(failure, "threads", threads, 1, INT32_MAX)) return -1;
    for (int64_t s = 0; s < num_steps; s++)
        if (!check_step(model, steps[s], max_keys, failure)) return -1;
    count_rows(&job);
    parallel_run(threads, run_decoder, &job);
    return 0;
}

/* Return how many beams are not BEAM_RUNNING; -1 and the failure, or -2, as beam_steps. */
static int64_t count_stopped(Beam *const *beams, int64_t count, Failure *failure) {
    int64_t stopped = 0;
    for (int64_t b = 0; b < count; b++) {
        if (beams[b]->status == BEAM_NAN) return -2;
        if (!in_range(failure, "status of a beam", beams[b]->status, BEAM_RUNNING, BEAM_CACHE_FULL)) return -1;
        stopped += beams[b]->status != BEAM_RUNNING;
    }
    return stopped;
}

/* Take a step of some beams. Returns how many of them are not BEAM_RUNNING after it; -1 and the failure where an
   argument is refused, -2 where the model gave log-probabilities that are NaN. */
int64_t beam_steps(const Model *model, const BeamOptions *options, Beam *const *beams, int64_t count, int64_t max_keys,
                   float *workspace, float *logits, const BestTokens *best, int threads, Failure *failure) {
    DecoderJob job = {model, 0, count, 0, 0, max_keys, workspace, logits, best, options, beams, 0};
    if (!in_range(failure, "threads", threads, 1, INT32_MAX) || !check_best(model, best, failure) ||
        !check_options(model, options, best, failure))
        return -1;
    for (int64_t b = 0; b < count; b++)
        if (!check_beam(model, beams[b], options, failure) || !check_step(model, &beams[b]->step, max_keys, failure))
            return -1;
    for (int64_t b = 0, row = 0; b < count; row += rows_of(&beams[b++]->step)) beams[b]->first_row = row;
    count_rows(&job);
    parallel_run(threads, run_decoder, &job);
    return count_stopped(beams, count, failure);
}

/* Advance a beam by the best next tokens of its rows, which the caller wrote to `best` (W, K + 1). For a model that is
   computed without its KV cache. Returns as beam_steps. */
int64_t extend_beam(const Model *model, const BeamOptions *options, Beam *beam, const BestTokens *best,
                    Failure *failure) {
    if (!check_best(model, best, failure) || !check_options(model, options, best, failure) ||
        !check_beam(model, beam, options, failure))
        return -1;
    advance_beam(beam, options, best->values, best->tokens);
    return count_stopped(&beam, 1, failure);
}

#include "layout.h" /* names the functions above */
