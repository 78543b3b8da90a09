/* One short sentence read, and steps of a decoder for few rows: the arithmetic of model/packed.py without an
   operator call in between.

   With few rows a step reads every weight once and computes little, so its time is that of the reading, as long as
   nothing else takes any. A team of threads goes through all stages together: they share the outputs of a product,
   or the heads of an attention, and meet after each stage.

   Shapes: R rows = G sentences x W rows each, D model width, H heads, E = D / H, F inner width, V vocabulary,
   N tokens held of a sentence (of all its rows), C room for them, S source length, L layers. */

#include <math.h>
#include <stdint.h>

#include "team.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { FLOAT32, BFLOAT16, INT8 };                      /* how weights are held */
enum { KEEP, RELU, GELU, GELU_TANH, SWISH, SWIGLU };   /* what is done to the outputs of a product */

#define LANES 16
#define ROWS 6 /* rows and outputs whose sums are held in registers */
#define OUTS 4
#define NEAR 6144 /* floats of rows, and weights, that are gone through again and again */
#define FAR 49152
#define INLINE static inline __attribute__((always_inline))

typedef float vec __attribute__((vector_size(4 * LANES)));
typedef int32_t whole __attribute__((vector_size(4 * LANES)));
typedef float float_at __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef float quad __attribute__((vector_size(4 * OUTS)));
typedef int32_t quad_bits __attribute__((vector_size(4 * OUTS)));
typedef float quad_at __attribute__((vector_size(16), aligned(4), may_alias));
typedef uint16_t half_at __attribute__((vector_size(2 * LANES), aligned(2), may_alias));
typedef int8_t byte_at __attribute__((vector_size(LANES), aligned(1), may_alias));

typedef struct {
    const void *weight; /* (outputs, inputs) */
    const float *scale; /* (outputs) of weights in INT8 */
    const float *bias;  /* (outputs) or none */
    int64_t inputs, outputs;
} Linear;

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

typedef struct {
    const int64_t *tokens;     /* (R) */
    const float *signal;       /* (D) of this place, or none */
    const float *turns;        /* (E / 2, 2) cosines and sines of this place, or none */
    float *past;               /* (L, 2, G, H, C, E) */
    const float *past_bias;    /* (G, W, C), or none */
    const float *const *memory; /* keys and values of each layer, 2 L times (G, H, S, E) */
    const float *source_bias;  /* (G, S), or none */
    int64_t sentences, rows, held, room, source; /* G, W, N with those of this step, C, S */
} Step;

/* The first of the `total` things that a thread takes, in pieces of `unit`. */
static int64_t share(Team team, int id, int64_t total, int64_t unit) {
    int64_t first = (total * id / team.size + unit - 1) / unit * unit;
    return first < total ? first : total;
}

#if defined(__clang__) || __GNUC__ >= 12
#define PICK(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define PICK(a, b, ...) __builtin_shuffle(a, b, (whole){__VA_ARGS__})
#endif
#define HALVES(pick, a, b) (pick(a, b, 0) + pick(a, b, 1))
#define EIGHTS(a, b, k) \
    PICK(a, b, 8 * k, 8 * k + 1, 8 * k + 2, 8 * k + 3, 8 * k + 4, 8 * k + 5, 8 * k + 6, 8 * k + 7, 8 * k + 16, \
         8 * k + 17, 8 * k + 18, 8 * k + 19, 8 * k + 20, 8 * k + 21, 8 * k + 22, 8 * k + 23)
#define FOURS(a, b, k) \
    PICK(a, b, 4 * k, 4 * k + 1, 4 * k + 2, 4 * k + 3, 4 * k + 8, 4 * k + 9, 4 * k + 10, 4 * k + 11, 4 * k + 16, \
         4 * k + 17, 4 * k + 18, 4 * k + 19, 4 * k + 24, 4 * k + 25, 4 * k + 26, 4 * k + 27)

/* Add up the lanes of four vectors together: their sums. */
INLINE quad add_up(const vec x[OUTS]) {
    vec all = HALVES(FOURS, (HALVES(EIGHTS, x[0], x[1])), (HALVES(EIGHTS, x[2], x[3]))); /* four lanes of each */
    all += PICK(all, all, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
    all += PICK(all, all, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14);
    const vec each = PICK(all, all, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12);
    return (quad){each[0], each[1], each[2], each[3]};
}

INLINE vec weights_at(const void *weights, int64_t format, int64_t place) {
    if (format == FLOAT32) return *(const float_at *)((const float *)weights + place);
    if (format == BFLOAT16)
        return (vec)(__builtin_convertvector(*(const half_at *)((const uint16_t *)weights + place), whole) << 16);
    const int8_t *bytes = (const int8_t *)weights + place;
#ifdef __AVX512F__ /* compilers take bytes apart one by one */
    return (vec)_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)bytes)));
#else
    return __builtin_convertvector(__builtin_convertvector(*(const byte_at *)bytes, whole), vec);
#endif
}

INLINE float weight_at(const void *weights, int64_t format, int64_t place) {
    union { uint32_t bits; float value; } wide;
    if (format == FLOAT32) return ((const float *)weights)[place];
    if (format == INT8) return ((const int8_t *)weights)[place];
    wide.bits = (uint32_t)((const uint16_t *)weights)[place] << 16;
    return wide.value;
}

static float activated(float x, int64_t activation) {
    switch (activation) {
    case RELU: return x > 0 ? x : 0;
    case GELU: return 0.5f * x * (1 + erff(x * 0.70710678f));
    case GELU_TANH: return 0.5f * x * (1 + tanhf(0.79788456f * (x + 0.044715f * x * x * x)));
    case SWISH: return x / (1 + expf(-x));
    default: return x;
    }
}

INLINE quad all_activated(quad x, int64_t activation) {
    if (activation == KEEP) return x;
    if (activation == RELU) return (quad)((x > 0) & (quad_bits)x); /* a comparison gives -1 or 0 */
    for (int o = 0; o < OUTS; o++) x[o] = activated(x[o], activation);
    return x;
}

/* Some outputs of some rows: y[r][o] = (base[r][o] +) activation(x[r] . weight[o] + bias[o]). */
INLINE void block(const Linear *linear, int64_t format, const float *x, int rows, int64_t first, int outs,
                  const float *base, float *y, int64_t activation) {
    const int64_t inputs = linear->inputs, outputs = linear->outputs;
    vec sums[ROWS][OUTS];
    for (int r = 0; r < rows; r++)
        for (int o = 0; o < OUTS; o++) sums[r][o] = (vec){0};
    int64_t i = 0;
    for (; i + LANES <= inputs; i += LANES) {
        vec weights[OUTS];
        for (int o = 0; o < outs; o++) weights[o] = weights_at(linear->weight, format, (first + o) * inputs + i);
        for (int r = 0; r < rows; r++) {
            vec values = *(const float_at *)(x + r * inputs + i);
            for (int o = 0; o < outs; o++) sums[r][o] += weights[o] * values;
        }
    }
    for (int r = 0; r < rows; r++) {
        quad totals = add_up(sums[r]);
        for (int64_t j = i; j < inputs; j++)
            for (int o = 0; o < outs; o++)
                totals[o] += weight_at(linear->weight, format, (first + o) * inputs + j) * x[r * inputs + j];
        const int64_t place = r * outputs + first;
        if (outs == OUTS) {
            if (format == INT8) totals *= *(const quad_at *)(linear->scale + first);
            if (linear->bias) totals += *(const quad_at *)(linear->bias + first);
            if (base) totals += *(const quad_at *)(base + place);
            *(quad_at *)(y + place) = all_activated(totals, activation);
        } else
            for (int o = 0; o < outs; o++) {
                if (format == INT8) totals[o] *= linear->scale[first + o];
                if (linear->bias) totals[o] += linear->bias[first + o];
                if (base) totals[o] += base[place + o];
                y[place + o] = activated(totals[o], activation);
            }
    }
}

#define BLOCKS(r, o) block(linear, format, x + row * linear->inputs, r, first, o, from, to, activation)

INLINE void outputs_of(const Linear *linear, int64_t format, const float *x, int64_t rows, int64_t first, int outs,
                       const float *base, float *y, int64_t activation) {
    for (int64_t row = 0; row < rows; row += ROWS) {
        const float *from = base ? base + row * linear->outputs : 0;
        float *to = y + row * linear->outputs;
        if (outs == OUTS) {
            switch (rows - row) {
            case 1: BLOCKS(1, OUTS); break;
            case 2: BLOCKS(2, OUTS); break;
            case 3: BLOCKS(3, OUTS); break;
            case 4: BLOCKS(4, OUTS); break;
            case 5: BLOCKS(5, OUTS); break;
            default: BLOCKS(ROWS, OUTS);
            }
        } else
            for (int r = 0; r < ROWS && row + r < rows; r++)
                block(linear, format, x + (row + r) * linear->inputs, 1, first, 1,
                      from ? from + r * linear->outputs : 0, to + r * linear->outputs, activation);
    }
}

/* Some outputs of all rows, for so many rows after each other that they stay in the nearest cache; the weights of these
   outputs stay in the next one. */
INLINE void tile(const Linear *linear, int64_t format, const float *x, int64_t rows, int64_t first, int64_t last,
                 const float *base, float *y, int64_t activation) {
    const int64_t fitting = NEAR / linear->inputs / ROWS * ROWS, most = fitting > ROWS ? fitting : ROWS;
    for (int64_t row = 0; row < rows; row += most) {
        const int64_t count = rows - row < most ? rows - row : most;
        const float *from = base ? base + row * linear->outputs : 0, *values = x + row * linear->inputs;
        float *to = y + row * linear->outputs;
        int64_t o = first;
        for (; o + OUTS <= last; o += OUTS) outputs_of(linear, format, values, count, o, OUTS, from, to, activation);
        for (; o < last; o++) outputs_of(linear, format, values, count, o, 1, from, to, activation);
    }
}

INLINE void product_in(const Linear *linear, int64_t format, const float *x, int64_t rows, const float *base,
                       float *y, int64_t activation, Team team) {
    const int64_t first = share(team, team.id, linear->outputs, OUTS);
    const int64_t end = share(team, team.id + 1, linear->outputs, OUTS), fitting = FAR / linear->inputs / OUTS * OUTS;
    const int64_t most = fitting > OUTS ? fitting : OUTS;
    for (int64_t o = first; o < end; o += most)
        tile(linear, format, x, rows, o, o + most < end ? o + most : end, base, y, activation);
}

/* A linear layer: x (R, I) -> y (R, O), to which `base` is added, if any. */
static void product(const Linear *linear, int64_t format, const float *x, int64_t rows, const float *base, float *y,
                    int64_t activation, Team team) {
    if (format == FLOAT32) product_in(linear, FLOAT32, x, rows, base, y, activation, team);
    else if (format == BFLOAT16) product_in(linear, BFLOAT16, x, rows, base, y, activation, team);
    else product_in(linear, INT8, x, rows, base, y, activation, team);
}

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

/* What a query takes from the values of the keys that it may see: (E), (N, E), (N, E) -> (E); keys and values stand
   `apart` floats from each other. */
static void attend(const float *query, const float *keys, const float *values, int64_t count, int64_t width,
                   int64_t apart, const float *bias, float *scores, float *out) {
    const float scale = 1 / sqrtf((float)width);
    float largest = -INFINITY, total = 0;
    for (int64_t n = 0; n < count; n++) {
        float score = 0;
        if (bias && bias[n] == -INFINITY) {
            scores[n] = -INFINITY;
            continue;
        }
#pragma omp simd reduction(+ : score)
        for (int64_t e = 0; e < width; e++) score += query[e] * keys[n * apart + e];
        scores[n] = score * scale;
        if (scores[n] > largest) largest = scores[n];
    }
    for (int64_t e = 0; e < width; e++) out[e] = 0;
    for (int64_t n = 0; n < count; n++) {
        if (scores[n] == -INFINITY) continue;
        const float part = expf(scores[n] - largest);
        total += part;
#pragma omp simd
        for (int64_t e = 0; e < width; e++) out[e] += part * values[n * apart + e];
    }
    for (int64_t e = 0; e < width; e++) out[e] /= total;
}

static void turn(float *x, const float *turns, int64_t width) {
    for (int64_t e = 0; e + 1 < width; e += 2) {
        const float real = x[e], imaginary = x[e + 1];
        x[e] = real * turns[e] - imaginary * turns[e + 1];
        x[e + 1] = real * turns[e + 1] + imaginary * turns[e];
    }
}

/* Self-attention of a layer for this thread's heads: thirds (R, 3, H, E) -> mixed (R, H, E), those of the step's first
   row; the past grows. */
static void look_at_target(const Model *model, const Step *step, int64_t layer, float *thirds, float *mixed,
                           float *scores, Team team) {
    const int64_t heads = model->heads, width = model->width, each = width / heads, rows = step->rows;
    const int64_t pairs = step->sentences * heads, size = step->room * each;
    const int64_t last = share(team, team.id + 1, pairs, 1);
    for (int64_t pair = share(team, team.id, pairs, 1); pair < last; pair++) {
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
            attend(thirds + row * 3 * width + head * each, keys, values, step->held, each, each,
                   step->past_bias ? step->past_bias + row * step->room : 0, scores, mixed + row * width + head * each);
        }
    }
}

/* Cross-attention of a layer for this thread's heads: queries (R, H, E) -> mixed (R, H, E). */
static void look_at_source(const Model *model, const Step *step, int64_t layer, const float *queries, float *mixed,
                           float *scores, Team team) {
    const int64_t heads = model->heads, width = model->width, each = width / heads, rows = step->rows;
    const int64_t pairs = step->sentences * heads, last = share(team, team.id + 1, pairs, 1);
    for (int64_t pair = share(team, team.id, pairs, 1); pair < last; pair++) {
        const int64_t sentence = pair / heads, place = pair * step->source * each;
        for (int64_t w = 0; w < rows; w++) {
            const int64_t at = (sentence * rows + w) * width + pair % heads * each;
            attend(queries + at, step->memory[2 * layer] + place, step->memory[2 * layer + 1] + place, step->source,
                   each, each, step->source_bias ? step->source_bias + sentence * step->source : 0, scores, mixed + at);
        }
    }
}

/* Gate one half of the inner width by the other, in this thread's columns: (R, 2 F) -> (R, F) in place. */
static void gate(float *inner, float *gated, int64_t rows, int64_t width, Team team) {
    const int64_t last = share(team, team.id + 1, width, 1);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t f = share(team, team.id, width, 1); f < last; f++)
            gated[r * width + f] = activated(inner[2 * r * width + f], SWISH) * inner[(2 * r + 1) * width + f];
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

INLINE vec picked(whole which, vec a, vec b) { return (vec)((which & (whole)a) | (~which & (whole)b)); }

#define SMALLEST -87.0f /* whose exponential is a float without loss */

/* e to the power of x, which is at most 0, by 2^k e^f with |f| <= ln 2 / 2 and eight terms of the series of e^f. */
INLINE vec exponential(vec x) {
    const vec least = (vec){0} + SMALLEST;
    x = picked(x < least, least, x); /* what is not a number stays so */
    const whole k = __builtin_convertvector(x * 1.44269504f - 0.5f, whole);
    const vec whole_part = __builtin_convertvector(k, vec);
    const vec f = x - whole_part * 0.693145752f - whole_part * 1.42860677e-6f; /* ln 2 in two parts */
    vec sum = 1.0f / 5040 + (vec){0};
    sum = sum * f + 1.0f / 720;
    sum = sum * f + 1.0f / 120;
    sum = sum * f + 1.0f / 24;
    sum = sum * f + 1.0f / 6;
    sum = sum * f + 0.5f;
    sum = sum * f + 1.0f;
    sum = sum * f + 1.0f;
    return sum * (vec)((k + 127) << 23);
}

/* The logarithm of the sum of the exponentials of some numbers. */
static double log_of_sum(const float *x, int64_t size) {
    float largest = -INFINITY;
    int64_t i = 0;
    vec most = (vec){0} - INFINITY, sums = {0};
    for (; i + LANES <= size; i += LANES) {
        const vec values = *(const float_at *)(x + i);
        most = picked(values > most, values, most);
    }
    for (int lane = 0; lane < LANES; lane++)
        if (most[lane] > largest) largest = most[lane];
    for (; i < size; i++)
        if (x[i] > largest) largest = x[i];
    for (i = 0; i + LANES <= size; i += LANES) sums += exponential(*(const float_at *)(x + i) - largest);
    double total = 0;
    for (int lane = 0; lane < LANES; lane++) total += sums[lane];
    for (; i < size; i++) total += expf(x[i] - largest);
    return largest + log(total);
}

INLINE int any_above(const float *x, float limit) {
    const whole above = *(const float_at *)x > limit;
    int64_t found = 0;
    union { whole lanes; int64_t pairs[LANES / 2]; } all = {above};
    for (int pair = 0; pair < LANES / 2; pair++) found |= all.pairs[pair];
    return found != 0;
}

/* The largest of some numbers, the largest first, the first first among equals: `count` values and their places. */
static void largest_of(const float *x, int64_t size, int64_t count, float *values, int64_t *places) {
    int64_t held = 0;
    for (int64_t i = 0; i < size; i++) {
        while (held == count && i + LANES <= size && !any_above(x + i, values[count - 1])) i += LANES;
        if (i >= size || (held == count && !(x[i] > values[count - 1]))) continue;
        int64_t at = held < count ? held++ : count - 1;
        for (; at > 0 && x[i] > values[at - 1]; at--) {
            values[at] = values[at - 1];
            places[at] = places[at - 1];
        }
        values[at] = x[i];
        places[at] = i;
    }
}

/* The likeliest next tokens of each row, which are asked for instead of logits. */
typedef struct {
    int64_t count, silent;  /* how many of a row; how many tokens never come out */
    const int64_t *never;   /* those (silent) */
    float *values;          /* log-probabilities (R, count) */
    int64_t *tokens;        /* (R, count) */
} Best;

/* A call works in R (6 D + 3 F) floats, and for each thread in R D + N more, N the most keys of an attention. */
typedef struct {
    const Model *model;
    const Step *steps;
    int64_t count, rows, keys; /* of steps, of their rows together, of the keys that one of them may see */
    float *room, *logits;
    const Best *best;
} Stepping;

/* The best tokens of a row by its logits (V). */
static void rank(const Best *best, float *logits, int64_t size, int64_t row) {
    const double all = log_of_sum(logits, size);
    float *values = best->values + row * best->count;
    for (int64_t i = 0; i < best->silent; i++) logits[best->never[i]] = -INFINITY;
    largest_of(logits, size, best->count, values, best->tokens + row * best->count);
    for (int64_t i = 0; i < best->count; i++) values[i] = (float)(values[i] - all);
}

static int64_t rows_of(const Step *step) { return step->sentences * step->rows; }

/* Each step has rows, places and a past of its own; products are those of all rows. */
static void take_steps(Team team, const void *given) {
    const Stepping *task = given;
    const Model *model = task->model;
    const Step *const end = task->steps + task->count;
    const int64_t rows = task->rows, width = model->width, format = model->format, keys = task->keys;
    float *x = task->room, *thirds = x + rows * width, *mixed = thirds + 3 * rows * width;
    float *queries = mixed + rows * width, *inner = queries + rows * width, *gated = inner + 2 * rows * model->inner;
    float *ours = gated + rows * model->inner + team.id * (rows * width + keys), *scores = ours + rows * width;
    const Norm *norm = model->norms;
    const float *read, *base;
    int64_t done = 0; /* rows of the steps before this one */
    for (const Step *step = task->steps; step < end; done += rows_of(step++)) {
        const int64_t last = share(team, team.id + 1, rows_of(step), 1);
        for (int64_t r = share(team, team.id, rows_of(step), 1); r < last; r++)
            embed(model, step->tokens[r], step->signal, x + (done + r) * width);
    }
    meet(team);
    for (int64_t number = 0; number < model->count; number++) {
        const Layer *layer = model->layers + number;
        BEFORE_SUBLAYER();
        product(&layer->self_in, format, read, rows, 0, thirds, KEEP, team);
        meet(team);
        done = 0;
        for (const Step *step = task->steps; step < end; done += rows_of(step++))
            look_at_target(model, step, number, thirds + 3 * done * width, mixed + done * width, scores, team);
        meet(team);
        product(&layer->self_out, format, mixed, rows, base, x, KEEP, team);
        meet(team);
        BEFORE_SUBLAYER();
        product(&layer->cross_query, format, read, rows, 0, queries, KEEP, team);
        meet(team);
        done = 0;
        for (const Step *step = task->steps; step < end; done += rows_of(step++))
            look_at_source(model, step, number, queries + done * width, mixed + done * width, scores, team);
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
    const int64_t last = share(team, team.id + 1, rows, 1), size = model->output.outputs;
    for (int64_t r = share(team, team.id, rows, 1); r < last; r++) rank(task->best, task->logits + r * size, size, r);
}

/* Append a token to each row of some steps: logits (R, V) of the next, R rows of all steps, and the best ones if they
   are asked for, which spoils the logits. No attention has more than so many keys. */
void decoder_steps(const Model *model, const Step *steps, int64_t count, int64_t rows, int64_t keys, float *room,
                   float *logits, const Best *best, int threads) {
    const Stepping task = {model, steps, count, rows, keys, room, logits, best};
    together(threads, take_steps, &task);
}

typedef struct {
    const Model *model;
    const Linear *memory_in;
    int64_t memories;
    const int64_t *tokens;
    int64_t rows;
    const float *signals, *turns;
    float *const *memory;
    float *room;
} Reading;

static void read_sentence(Team team, const void *given) {
    const Reading *task = given;
    const Model *model = task->model;
    const int64_t rows = task->rows, width = model->width, heads = model->heads, each = width / heads;
    const int64_t format = model->format;
    float *x = task->room, *thirds = x + rows * width, *mixed = thirds + 3 * rows * width;
    float *inner = mixed + 2 * rows * width, *gated = inner + 2 * rows * model->inner;
    float *ours = gated + rows * model->inner + team.id * (rows * width + rows), *scores = ours + rows * width;
    const int64_t first = share(team, team.id, rows, 1), last = share(team, team.id + 1, rows, 1);
    const Norm *norm = model->norms;
    const float *read, *base;
    for (int64_t r = first; r < last; r++)
        embed(model, task->tokens[r], task->signals ? task->signals + r * width : 0, x + r * width);
    meet(team);
    for (int64_t number = 0; number < model->count; number++) {
        const Layer *layer = model->layers + number;
        BEFORE_SUBLAYER();
        product(&layer->self_in, format, read, rows, 0, thirds, KEEP, team);
        meet(team);
        if (task->turns) {
            for (int64_t r = first; r < last; r++)
                for (int64_t part = 0; part < 2 * heads; part++) /* queries and keys */
                    turn(thirds + 3 * r * width + part * each, task->turns + r * each, each);
            meet(team);
        }
        for (int64_t r = first; r < last; r++)
            for (int64_t h = 0; h < heads; h++)
                attend(thirds + 3 * r * width + h * each, thirds + width + h * each, thirds + 2 * width + h * each,
                       rows, each, 3 * width, 0, scores, mixed + r * width + h * each);
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
        for (int64_t r = first; r < last; r++)
            for (int64_t i = 0; i < 2 * width; i++)
                task->memory[2 * number + i / width][(i % width / each * rows + r) * each + i % each] =
                    thirds[2 * r * width + i];
        meet(team);
    }
}

/* Read one sentence of S tokens: keys and values of each decoder layer, 2 L' times (H, S, E).

   signals (S, D) and turns (S, E / 2, 2) are those of its places, or none; memory_in are the L' products (2 D, D)
   that make keys and values. */
void encode(const Model *model, const Linear *memory_in, int64_t memories, const int64_t *tokens, int64_t rows,
            const float *signals, const float *turns, float *const *memory, float *room, int threads) {
    const Reading task = {model, memory_in, memories, tokens, rows, signals, turns, memory, room};
    together(threads, read_sentence, &task);
}
