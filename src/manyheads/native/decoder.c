/* Sentences read, and one step of a decoder: the arithmetic of model/packed.py without an operator call in between.

   A team of threads goes through all stages together: they share the outputs of a product, or the heads of an
   attention, and meet after each stage. The interpreter is not needed meanwhile.

   Shapes: R rows = G sentences x W rows each, D model width, H heads, E = D / H, F inner width, V vocabulary,
   N tokens held of a sentence (of all its rows), C room for them, T tokens of a row, S longest source, P room for it,
   L layers. */

#include "beam.h"
#include "looking.h"

/* A layer norm of rows (R, D); x itself where there is none. */
static const float *normed(Norm norm, const float *x, int64_t rows, int64_t width, float epsilon, float *y) {
    if (!norm.weight) return x;
    for (int64_t r = 0; r < rows; r++) {
        const float *row = x + r * width;
        float mean = 0, square = 0;
#pragma omp simd reduction(+ : mean)
        for (int64_t i = 0; i < width; i++) mean += row[i];
        mean /= width;
#pragma omp simd reduction(+ : square)
        for (int64_t i = 0; i < width; i++) square += (row[i] - mean) * (row[i] - mean);
        const float factor = 1 / sqrtf(square / width + epsilon);
#pragma omp simd
        for (int64_t i = 0; i < width; i++)
            y[r * width + i] = (row[i] - mean) * factor * norm.weight[i] + (norm.bias ? norm.bias[i] : 0);
    }
    return y;
}

/* Gate one half of the inner width by the other, in this thread's columns: (R, 2 F) -> (R, F). */
static void gate(const float *inner, float *gated, int64_t rows, int64_t width, Team team) {
    const int64_t last = share(team, team.id + 1, width, LANES);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t f = share(team, team.id, width, LANES); f < last; f += LANES) {
            const vec opened = activated(some_at(inner + 2 * r * width + f, width - f), SWISH);
            put_some(opened * some_at(inner + (2 * r + 1) * width + f, width - f), gated + r * width + f, width - f);
        }
}

static void embed(const Model *model, int64_t token, const float *signal, float *x) {
    for (int64_t i = 0; i < model->width; i++)
        x[i] = model->table[token * model->width + i] * model->scale + (signal ? signal[i] : 0);
    normed(model->embedding_norm, x, 1, model->width, model->epsilon, x);
}

/* What stands around a sublayer: x is what is read, and `base` what the output is added to. */
#define BEFORE_SUBLAYER()                                                                  \
    read = normed(*norm++, x, rows, width, model->epsilon, ours);                          \
    base = model->pre_norm ? x : read /* with post-norm the residual stream is normed */

/* The two products of a feed-forward sublayer; it ends in a barrier. */
static void feed_forward(const Model *model, const Layer *layer, const float *read, const float *base, int64_t rows,
                         float *inner, float *gated, float *x, Team team) {
    const int swiglu = model->activation == SWIGLU;
    product(&layer->expand, model->format, read, rows, 0, inner, swiglu ? KEEP : model->activation, team);
    meet(team);
    if (swiglu) {
        gate(inner, gated, rows, model->inner, team);
        meet(team);
    }
    product(&layer->contract, model->format, swiglu ? gated : inner, rows, base, x, KEEP, team);
    meet(team);
}

/* How many floats a call works in: R rows, the most keys of an attention. */
int64_t working_room(const Model *model, int64_t rows, int64_t keys, int64_t threads) {
    return rows * (6 * model->width + 3 * model->inner) + threads * (rows * model->width + ROOM_TO_ATTEND(keys));
}

typedef struct {
    const Model *model;
    const Step *const *steps;
    int64_t count, sentences, rows, keys; /* of steps, of their sentences and rows, of the keys that a row may see */
    float *room, *logits;
    const Best *best;
    const Search *search; /* and the beams whose steps these are, or none */
    Beam *const *beams;
} Stepping;

static int64_t rows_of(const Step *step) { return step->sentences * step->rows; }

/* This thread's share of so many things, counted from the one that a step begins with. */
static Range from(int64_t begun, int64_t total, Team team) {
    return (Range){share(team, team.id, total, 1) - begun, share(team, team.id + 1, total, 1) - begun};
}

static void look_at_targets(const Stepping *task, int64_t layer, float *thirds, float *mixed, float *scores, Team team) {
    const int64_t width = task->model->width, heads = task->model->heads, pairs = task->sentences * heads;
    for (int64_t s = 0, row = 0, pair = 0; s < task->count; s++) {
        const Step *step = task->steps[s];
        look_at_target(task->model, step, layer, from(pair, pairs, team), thirds + 3 * row * width, mixed + row * width,
                       scores);
        row += rows_of(step);
        pair += step->sentences * heads;
    }
}

static void look_at_sources(const Stepping *task, int64_t layer, const float *queries, float *mixed, float *scores,
                            Team team) {
    const int64_t width = task->model->width, heads = task->model->heads, pairs = task->sentences * heads;
    for (int64_t s = 0, row = 0, pair = 0; s < task->count; s++) {
        const Step *step = task->steps[s];
        look_at_source(task->model, step, layer, from(pair, pairs, team), queries + row * width, mixed + row * width,
                       scores);
        row += rows_of(step);
        pair += step->sentences * heads;
    }
}

/* Rank what may follow the rows, and go on with the beams whose rows they are. */
static void choose(const Stepping *task, Team team) {
    const int64_t size = task->model->output.outputs, each = task->best->count;
    const Range rows = from(0, task->rows, team), beams = from(0, task->count, team);
    for (int64_t r = rows.first; r < rows.last; r++) rank(task->best, task->logits + r * size, size, r);
    if (!task->beams) return;
    meet(team);
    for (int64_t b = beams.first; b < beams.last; b++) {
        const int64_t row = task->beams[b]->row;
        advance(task->beams[b], task->search, task->best->values + row * each, task->best->tokens + row * each);
    }
}

/* Each step has rows, places and a past of its own; products are those of all rows. */
static void take_steps(Team team, const void *given) {
    const Stepping *task = given;
    const Model *model = task->model;
    const int64_t rows = task->rows, width = model->width, format = model->format;
    float *x = task->room, *thirds = x + rows * width, *mixed = thirds + 3 * rows * width;
    float *queries = mixed + rows * width, *inner = queries + rows * width, *gated = inner + 2 * rows * model->inner;
    float *ours = gated + rows * model->inner + team.id * (rows * width + ROOM_TO_ATTEND(task->keys));
    float *scores = ours + rows * width;
    const Norm *norm = model->norms;
    const float *read, *base;
    for (int64_t s = 0, row = 0; s < task->count; row += rows_of(task->steps[s++])) {
        const Step *step = task->steps[s];
        const Range mine = from(row, rows, team);
        for (int64_t r = within(mine.first, rows_of(step)); r < within(mine.last, rows_of(step)); r++)
            embed(model, step->tokens[r], step->signal, x + (row + r) * width);
    }
    meet(team);
    for (int64_t number = 0; number < model->count; number++) {
        const Layer *layer = model->layers + number;
        BEFORE_SUBLAYER();
        product(&layer->self_in, format, read, rows, 0, thirds, KEEP, team);
        meet(team);
        look_at_targets(task, number, thirds, mixed, scores, team);
        meet(team);
        product(&layer->self_out, format, mixed, rows, base, x, KEEP, team);
        meet(team);
        BEFORE_SUBLAYER();
        product(&layer->cross_query, format, read, rows, 0, queries, KEEP, team);
        meet(team);
        look_at_sources(task, number, queries, mixed, scores, team);
        meet(team);
        product(&layer->cross_out, format, mixed, rows, base, x, KEEP, team);
        meet(team);
        BEFORE_SUBLAYER();
        feed_forward(model, layer, read, base, rows, inner, gated, x, team);
    }
    read = normed(*norm, x, rows, width, model->epsilon, ours);
    product(&model->output, format, read, rows, 0, task->logits, KEEP, team);
    if (!task->best) return;
    meet(team);
    choose(task, team);
}

static void count_rows(Stepping *task) {
    for (int64_t s = 0; s < task->count; s++) {
        task->sentences += task->steps[s]->sentences;
        task->rows += rows_of(task->steps[s]);
    }
}

/* Append a token to each row of some steps: logits (R, V) of the next, R rows of all steps, and the best ones if they
   are asked for, which spoils the logits. No attention has more than so many keys. */
void decoder_steps(const Model *model, const Step *const *steps, int64_t count, int64_t keys, float *room,
                   float *logits, const Best *best, int threads) {
    Stepping task = {model, steps, count, .keys = keys, .room = room, .logits = logits, .best = best};
    count_rows(&task);
    together(threads, take_steps, &task);
}

/* Have some beams take a step. Returns how many of them do not simply go on; -1 where the model gave log-probabilities
   that are not numbers. */
int64_t beam_steps(const Model *model, const Search *search, Beam *const *beams, int64_t count, int64_t keys,
                   float *room, float *logits, const Best *best, int threads) {
    const Step *steps[count];
    Stepping task = {model, steps, count, 0, 0, keys, room, logits, best, search, beams};
    int64_t asking = 0;
    for (int64_t b = 0, row = 0; b < count; row += rows_of(steps[b++])) {
        steps[b] = &beams[b]->step;
        beams[b]->row = row;
    }
    count_rows(&task);
    together(threads, take_steps, &task);
    for (int64_t b = 0; b < count; b++) {
        if (beams[b]->state == NOT_A_NUMBER) return -1;
        asking += beams[b]->state != GOING;
    }
    return asking;
}

typedef struct {
    const Model *model;
    const Linear *memory_in;
    int64_t memories;
    const int64_t *tokens, *owners, *places, *starts;
    int64_t sentences, longest;
    const float *signals, *turns;
    float *const *memory;
    float *room;
} Reading;

/* Put keys and values of one token, (2 D) each, where those of its sentence and head stand. */
static void remember(const Reading *task, int64_t number, int64_t row, const float *both) {
    const int64_t width = task->model->width, heads = task->model->heads, each = width / heads;
    for (int64_t part = 0; part < 2 * heads; part++) {
        const int64_t head = task->owners[row] * heads + part % heads;
        float *to = task->memory[2 * number + part / heads] + (head * task->longest + task->places[row]) * each;
        for (int64_t e = 0; e < each; e++) to[e] = both[part * each + e];
    }
}

static void read_sentences(Team team, const void *given) {
    const Reading *task = given;
    const Model *model = task->model;
    const int64_t rows = task->starts[task->sentences], width = model->width, heads = model->heads;
    const int64_t each = width / heads, format = model->format, pairs = task->sentences * heads;
    float *x = task->room, *thirds = x + rows * width, *mixed = thirds + 3 * rows * width;
    float *inner = mixed + 2 * rows * width, *gated = inner + 2 * rows * model->inner;
    float *ours = gated + rows * model->inner + team.id * (rows * width + ROOM_TO_ATTEND(task->longest));
    float *scores = ours + rows * width;
    const int64_t first = share(team, team.id, rows, 1), last = share(team, team.id + 1, rows, 1);
    const Norm *norm = model->norms;
    const float *read, *base;
    for (int64_t r = first; r < last; r++)
        embed(model, task->tokens[r], task->signals ? task->signals + task->places[r] * width : 0, x + r * width);
    meet(team);
    for (int64_t number = 0; number < model->count; number++) {
        const Layer *layer = model->layers + number;
        BEFORE_SUBLAYER();
        product(&layer->self_in, format, read, rows, 0, thirds, KEEP, team);
        meet(team);
        if (task->turns) {
            for (int64_t r = first; r < last; r++)
                for (int64_t part = 0; part < 2 * heads; part++) /* queries and keys */
                    turn(thirds + 3 * r * width + part * each, task->turns + task->places[r] * each, each);
            meet(team);
        }
        for (int64_t pair = share(team, team.id, pairs, 1); pair < share(team, team.id + 1, pairs, 1); pair++) {
            const int64_t start = task->starts[pair / heads], end = task->starts[pair / heads + 1];
            const float *keys = thirds + (3 * start + 1) * width + pair % heads * each;
            for (int64_t r = start; r < end; r++)
                attend(thirds + 3 * r * width + pair % heads * each, keys, keys + width, end - start, each, 3 * width,
                       0, scores, mixed + r * width + pair % heads * each);
        }
        meet(team);
        product(&layer->self_out, format, mixed, rows, base, x, KEEP, team);
        meet(team);
        BEFORE_SUBLAYER();
        feed_forward(model, layer, read, base, rows, inner, gated, x, team);
    }
    read = normed(*norm, x, rows, width, model->epsilon, ours);
    for (int64_t number = 0; number < task->memories; number++) {
        product(task->memory_in + number, format, read, rows, 0, thirds, KEEP, team);
        meet(team);
        for (int64_t r = first; r < last; r++) remember(task, number, r, thirds + 2 * r * width);
        meet(team);
    }
}

/* Read sentences side by side, R tokens in all without padding: keys and values of each decoder layer, 2 L' times
   (G, H, S, E), of which only the places that a sentence has are written.

   tokens, owners and places (R) are the tokens one sentence after the other, which sentence each is in and where
   there; starts (G + 1) is where each sentence begins. signals (S, D) and turns (S, E / 2, 2) are those of the places,
   or none; memory_in are the L' products (2 D, D) that make keys and values. */
void encode(const Model *model, const Linear *memory_in, int64_t memories, const int64_t *tokens, const int64_t *owners,
            const int64_t *places, const int64_t *starts, int64_t sentences, int64_t longest, const float *signals,
            const float *turns, float *const *memory, float *room, int threads) {
    const Reading task = {model,     memory_in, memories, tokens, owners, places, starts,
                          sentences, longest,   signals,  turns,  memory, room};
    together(threads, read_sentences, &task);
}
