/* The encoder: sentences are read side by side without padding, and its output is projected to the keys and values of
   each decoder layer. Shapes as in structs.h; R tokens of all sentences. */

#pragma once

#include "heads.h"
#include "sublayers.h"

typedef struct {
    const Model *model;
    const Linear *memory_kv; /* a projection D -> 2 D of each decoder layer */
    int64_t num_memories;
    const EncoderInput *input;
    float *const *memory; /* keys and values of each decoder layer: 2 times (G, H, S, E) each */
    float *workspace;
} EncoderJob;

static void embed_sources(const EncoderJob *job, const Workspace *work, Worker worker) {
    const EncoderInput *input = job->input;
    const int64_t d_model = job->model->d_model;
    const Range own = share(worker, input->starts[input->sentences], 1);
    for (int64_t r = own.first; r < own.last; r++) {
        const float *signals = input->position_signals;
        embed(job->model, input->tokens[r], signals ? signals + input->positions[r] * d_model : 0,
              work->x + r * d_model);
    }
    barrier(worker);
}

/* Rotate the queries and keys of this worker's tokens: qkv (R, 3, H, E). */
static void rotate_queries_keys(const EncoderJob *job, float *qkv, Worker worker) {
    const EncoderInput *input = job->input;
    const int64_t num_heads = job->model->num_heads, d_model = job->model->d_model, head_dim = d_model / num_heads;
    const Range own = share(worker, input->starts[input->sentences], 1);
    for (int64_t r = own.first; r < own.last; r++)
        for (int64_t h = 0; h < 2 * num_heads; h++)
            apply_rotary(qkv + 3 * r * d_model + h * head_dim, input->rotary + input->positions[r] * head_dim,
                         head_dim);
    barrier(worker);
}

/* The self-attention sublayer: x = residual + self_out(attention(self_qkv(input))). */
static void encoder_self_attention(const EncoderJob *job, int64_t l, LayerNorm norm, const Workspace *work,
                                   Worker worker) {
    const Model *model = job->model;
    const Layer *layer = model->layers + l;
    const Heads *options = &job->input->heads;
    const int64_t *starts = job->input->starts;
    const int64_t rows = starts[job->input->sentences], num_heads = model->num_heads;
    const int64_t d_model = model->d_model, head_dim = d_model / num_heads;
    const Sublayer sublayer = begin_sublayer(model, norm, rows, work);
    apply_linear(&layer->self_qkv, work->arithmetic, sublayer.input, rows, 0, work->qkv, NO_ACTIVATION, worker);
    barrier(worker);
    if (job->input->rotary) rotate_queries_keys(job, work->qkv, worker);
    const Range heads = share(worker, job->input->sentences * num_heads, 1);
    for (int64_t h = heads.first; h < heads.last; h++) {
        const int64_t start = starts[h / num_heads], end = starts[h / num_heads + 1];
        const int64_t head = h % num_heads, offset = head * head_dim;
        const float *keys = work->qkv + (3 * start + 1) * d_model + offset;
        for (int64_t r = start; r < end; r++) {
            attend(work->qkv + 3 * r * d_model + offset, keys, keys + d_model, end - start, head_dim, 3 * d_model, 0,
                   work->scores, work->attn_out + r * d_model + offset,
                   weights_of(options, l, rows, r, num_heads, head, job->input->max_length));
            scale_head(options, l, num_heads, head, work->attn_out + r * d_model + offset, head_dim);
            report_vectors(options, l, rows, r, num_heads, head, work->qkv + 3 * r * d_model + offset, 3, head_dim);
        }
    }
    barrier(worker);
    apply_linear(&layer->self_out, work->arithmetic, work->attn_out, rows, sublayer.residual, work->x, NO_ACTIVATION,
                 worker);
    barrier(worker);
}

/* Copy the keys and values of this worker's tokens, kv (R, 2, H, E), to the memory of a decoder layer. */
static void store_memory(const EncoderJob *job, int64_t layer, const float *kv, Worker worker) {
    const EncoderInput *input = job->input;
    const int64_t num_heads = job->model->num_heads, d_model = job->model->d_model, head_dim = d_model / num_heads;
    const Range own = share(worker, input->starts[input->sentences], 1);
    for (int64_t r = own.first; r < own.last; r++)
        for (int64_t h = 0; h < 2 * num_heads; h++) {
            const int64_t head = input->sentence_ids[r] * num_heads + h % num_heads;
            float *to = job->memory[2 * layer + h / num_heads] +
                        (head * input->max_length + input->positions[r]) * head_dim;
            for (int64_t e = 0; e < head_dim; e++) to[e] = kv[2 * r * d_model + h * head_dim + e];
        }
}

/* Copy the output of this worker's tokens, (R, D). */
static void store_output(const EncoderJob *job, const float *output, Worker worker) {
    const int64_t d_model = job->model->d_model;
    const Range own = share(worker, job->input->starts[job->input->sentences], 1);
    for (int64_t i = own.first * d_model; i < own.last * d_model; i++) job->input->output[i] = output[i];
}

/* The encoder (section 3.1), then the keys and values of each decoder layer. */
static void run_encoder(Worker worker, const void *argument) {
    const EncoderJob *job = argument;
    const Model *model = job->model;
    const int64_t rows = job->input->starts[job->input->sentences];
    const Workspace work = divide_workspace(model, rows, job->input->max_length, job->workspace, worker);
    const LayerNorm *norm = model->norms;
    embed_sources(job, &work, worker);
    for (int64_t l = 0; l < model->num_layers; l++, norm += 2) {
        encoder_self_attention(job, l, norm[0], &work, worker);
        feed_forward(model, model->layers + l, norm[1], rows, &work, worker);
    }
    const float *output = layer_norm(*norm, work.x, rows, model->d_model, model->norm_epsilon, work.normed);
    if (job->input->output) store_output(job, output, worker);
    for (int64_t l = 0; l < job->num_memories; l++) {
        apply_linear(job->memory_kv + l, work.arithmetic, output, rows, 0, work.qkv, NO_ACTIVATION, worker);
        barrier(worker);
        store_memory(job, l, work.qkv, worker);
        barrier(worker);
    }
}
