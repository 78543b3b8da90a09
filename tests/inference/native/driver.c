/* Run decoder.c without an interpreter: tiny models whose weights are the same numbers on every processor read four
   sentences and continue them, by greedy search and by beam search. Prints every logit and every output; of models in
   int8 the bits of numbers, which are equal on every processor. With a number as argument it only translates this many
   sentences in int8, greedily and with beam 5.

   Ends with 1 if the number of threads, other callers, the sentences beside a sentence, or reading its output in one
   call change a bit of its results.
   Arrays have exactly the size that the library may use, so that a sanitizer finds every access outside.

   Shapes: G sentences, K beam size, L layers, H heads, V vocabulary, D width, E = D / H, S longest source. */

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#define GUARD(end) guard(end)

/* Forbid access to the bytes behind an array in a block. */
static long guard(char *end) {
    if (end) ASAN_POISON_MEMORY_REGION(end, 16);
    return 16;
}
#endif

#include "decoder.c"

#include <stdio.h>
#include <stdlib.h>

enum { G = 4, L = 2, H = 3, S = 9, STEPS = 7, CALLERS = 3, BOS = 1, EOS = 2 };

static const char *const FORMATS[] = {"float32", "bfloat16", "int8"};
static const int64_t LENGTHS[G] = {4, 9, 1, 6};
static int64_t failures, batch; /* batch: number of the G sentences, whose tokens depend on it */

/* Return the next random number from -1 to 1; the same sequence on every processor. */
static float next_random(void) {
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (float)(state >> 40) / 8388608 - 1;
}

/* Return zeroed memory, which is not freed before the end. */
static void *allocate(int64_t count, size_t size) {
    void *memory = calloc((size_t)count, size);
    if (!memory) abort();
    return memory;
}

static float *randoms(int64_t count, float scale) {
    float *numbers = allocate(count, sizeof *numbers);
    for (int64_t i = 0; i < count; i++) numbers[i] = scale * next_random();
    return numbers;
}

static void store_weight(void *weights, int64_t format, int64_t index, float value, float scale) {
    if (format == INT8) ((int8_t *)weights)[index] = (int8_t)(127 * value);
    else if (format == FLOAT32) ((float *)weights)[index] = scale * value;
    else {
        const float scaled = scale * value;
        uint32_t bits;
        memcpy(&bits, &scaled, sizeof bits);
        ((uint16_t *)weights)[index] = (uint16_t)(bits >> 16);
    }
}

/* Return a linear layer with random weights, packed into panels as linear.h reads them. */
static Linear random_linear(int64_t inputs, int64_t outputs, int64_t format) {
    static const size_t sizes[] = {sizeof(float), sizeof(uint16_t), sizeof(int8_t)};
    const int64_t padded = (outputs + PANEL - 1) / PANEL * PANEL;
    const float scale = 2 / sqrtf((float)inputs);
    const int64_t depth = format == INT8 ? WORD_INPUTS : 1, groups = (inputs + depth - 1) / depth;
    void *weights = allocate(padded * groups * depth, sizes[format]);
    float *scales = allocate(padded, sizeof *scales), *bias = allocate(padded, sizeof *bias);
    for (int64_t o = 0; o < outputs; o++) {
        scales[o] = scale / 127;
        bias[o] = next_random() / 4;
        for (int64_t i = 0; i < inputs; i++)
            store_weight(weights, format, ((o / PANEL * groups + i / depth) * PANEL + o % PANEL) * depth + i % depth,
                         next_random(), scale);
    }
    return (Linear){weights, scales, bias, inputs, outputs};
}

typedef struct {
    int64_t width, vocabulary, beam_size; /* D, V, K */
    int64_t format, activation;
    int pre_norm, rotary;
} Config;

static Model random_model(const Config *config) {
    const int64_t width = config->width, format = config->format, inner = width + 11;
    const int64_t expanded = config->activation == SWIGLU ? 2 * inner : inner;
    Layer *layers = allocate(L, sizeof *layers);
    LayerNorm *norms = allocate(3 * L + 1, sizeof *norms);
    for (int l = 0; l < L; l++)
        layers[l] = (Layer){random_linear(width, 3 * width, format), random_linear(width, width, format),
                            random_linear(width, width, format),     random_linear(width, width, format),
                            random_linear(width, expanded, format),  random_linear(inner, width, format)};
    for (int n = 0; n < 3 * L + 1; n++) norms[n] = (LayerNorm){randoms(width, 2), randoms(width, 0.5f)};
    return (Model){layers, norms, randoms(config->vocabulary * width, 1), {0, 0},
                   random_linear(width, config->vocabulary, format), L, width, H, inner, config->vocabulary, format,
                   config->activation, config->pre_norm, 2, 1e-5f};
}

typedef struct {
    Config config;
    Model encoder, decoder;
    Linear memory_kv[L];
    float *signals, *rotary; /* (STEPS + S, D), and (STEPS + S, E / 2, 2) or null */
} Translator;

static Translator random_translator(Config config) {
    Translator model = {.config = config, .encoder = random_model(&config), .decoder = random_model(&config)};
    const int64_t head_dim = config.width / H;
    for (int l = 0; l < L; l++) model.memory_kv[l] = random_linear(config.width, 2 * config.width, config.format);
    model.signals = randoms((STEPS + S) * config.width, !config.rotary);
    if (!config.rotary) return model;
    model.rotary = allocate((STEPS + S) * head_dim, sizeof(float));
    rotary_positions(STEPS + S, head_dim, model.rotary);
    return model;
}

/* Encode `count` sentences from `first` on: keys and values of each layer, 2 L times (count, H, S, E). */
static void encode_some(const Translator *model, int64_t first, int64_t count, int threads, float **memory) {
    int64_t rows = 0, starts[G + 1] = {0};
    for (int64_t g = 0; g < count; g++) starts[g + 1] = rows += LENGTHS[first + g];
    int64_t *tokens = allocate(rows, sizeof *tokens), *positions = allocate(rows, sizeof *positions);
    int64_t *sentence_ids = allocate(rows, sizeof *sentence_ids);
    for (int64_t g = 0; g < count; g++)
        for (int64_t row = starts[g]; row < starts[g + 1]; row++) {
            sentence_ids[row] = g;
            positions[row] = row - starts[g];
            tokens[row] = (5 * (first + g) + 7 * positions[row] + (31 + positions[row]) * batch) %
                          model->config.vocabulary;
        }
    for (int l = 0; l < 2 * L; l++) memory[l] = allocate(count * S * model->config.width, sizeof **memory);
    float *workspace = allocate(workspace_size(&model->encoder, rows, S, threads), sizeof *workspace);
    float *vectors = allocate(L * rows * 3 * model->config.width, sizeof *vectors);
    const EncoderInput input = {.tokens = tokens, .sentence_ids = sentence_ids, .positions = positions, .starts = starts,
                                .position_signals = model->signals, .rotary = model->rotary, .sentences = count,
                                .max_length = S, .heads = {0, 0, vectors}};
    Failure failure;
    if (encode(&model->encoder, model->memory_kv, L, &input, memory, workspace, threads, &failure) < 0) abort();
    free(workspace);
}

/* Greedy search of some sentences: logits (STEPS, count, V). */
static void search_greedily(const Translator *model, int64_t first, int64_t count, int threads, float *logits) {
    const int64_t width = model->config.width, vocabulary = model->config.vocabulary;
    float *memory[2 * L], *bias = allocate(count * S, sizeof *bias);
    float *cache = allocate(2 * L * count * STEPS * width, sizeof *cache);
    int64_t *latest = allocate(count, sizeof *latest);
    encode_some(model, first, count, threads, memory);
    for (int64_t g = 0; g < count; g++) {
        latest[g] = BOS;
        for (int64_t s = 0; s < S; s++) bias[g * S + s] = s < LENGTHS[first + g] ? 0 : -INFINITY;
    }
    float *workspace = allocate(workspace_size(&model->decoder, count, S, threads), sizeof *workspace);
    for (int64_t t = 0; t < STEPS; t++, logits += count * vocabulary) {
        const Step step = {.tokens = latest, .position_signal = model->signals + t * width,
                           .rotary = model->rotary ? model->rotary + t * (width / H) : 0, .cache = cache,
                           .memory = (const float *const *)memory, .source_bias = bias, .sentences = count,
                           .rows = 1, .length = t + 1, .capacity = STEPS, .source_length = S, .source_capacity = S};
        const Step *steps[] = {&step};
        Failure failure;
        if (decoder_steps(&model->decoder, steps, 1, S, workspace, logits, threads, &failure) < 0) abort();
        for (int64_t g = 0; g < count; g++) {
            int64_t best = 0;
            for (int64_t v = 1; v < vocabulary; v++)
                best = logits[g * vocabulary + v] > logits[g * vocabulary + best] ? v : best;
            latest[g] = best;
        }
    }
    free(workspace);
}

/* Read the greedy output of sentence g in one call, by steps that share a KV cache; the logits (STEPS, V) and the sums
   of the attention weights. Returns whether the logits are those of the search, `expected`, to the bit. */
static int read_together(const Translator *model, int64_t g, int threads, const float *expected) {
    const int64_t width = model->config.width, vocabulary = model->config.vocabulary, length = LENGTHS[g];
    float *memory[2 * L], *cache = allocate(2 * L * STEPS * width, sizeof *cache), *factors = allocate(L * H, sizeof *factors);
    float *self = allocate(STEPS * L * H * STEPS, sizeof *self), *cross = allocate(STEPS * L * H * length, sizeof *cross);
    float *qkv = allocate(STEPS * L * 3 * width, sizeof *qkv), *queries = allocate(STEPS * L * width, sizeof *queries);
    float *logits = allocate(STEPS * vocabulary, sizeof *logits);
    int64_t tokens[STEPS] = {BOS};
    Step steps[STEPS];
    const Step *pointers[STEPS];
    encode_some(model, g, 1, threads, memory);
    for (int i = 0; i < L * H; i++) factors[i] = 1;
    for (int64_t t = 0; t < STEPS; t++) {
        const float *row = expected + t * vocabulary;
        int64_t best = 0;
        for (int64_t v = 1; v < vocabulary; v++) best = row[v] > row[best] ? v : best;
        if (t + 1 < STEPS) tokens[t + 1] = best;
        steps[t] = (Step){.tokens = tokens + t, .position_signal = model->signals + t * width,
                          .rotary = model->rotary ? model->rotary + t * (width / H) : 0, .cache = cache,
                          .memory = (const float *const *)memory, .sentences = 1, .rows = 1, .length = t + 1,
                          .capacity = STEPS, .source_length = length, .source_capacity = S, .shared_cache = 1,
                          .self_heads = {self + t * L * H * STEPS, factors, qkv + t * L * 3 * width},
                          .cross_heads = {cross + t * L * H * length, factors, queries + t * L * width}};
        pointers[t] = steps + t;
    }
    const int64_t max_keys = STEPS > S ? STEPS : S;
    float *workspace = allocate(workspace_size(&model->decoder, STEPS, max_keys, threads), sizeof *workspace);
    Failure failure;
    if (decoder_steps(&model->decoder, pointers, STEPS, max_keys, workspace, logits, threads, &failure) < 0) abort();
    free(workspace);
    float sum = 0;
    for (int64_t i = 0; i < STEPS * L * H * STEPS; i++) sum += self[i];
    for (int64_t i = 0; i < STEPS * L * H * length; i++) sum += cross[i];
    return memcmp(logits, expected, (size_t)(STEPS * vocabulary) * sizeof *logits) == 0 &&
           fabsf(sum - 2 * STEPS * L * H) < 1e-3f;
}

/* A thread that searches while others do. */
typedef struct {
    const Translator *model;
    float *logits;
    pthread_t thread;
} Caller;

static void *call(void *argument) {
    const Caller *caller = argument;
    search_greedily(caller->model, 0, G, 2, caller->logits);
    return 0;
}

/* Search by several threads at a time; count the results that differ from `logits` (STEPS, G, V). */
static void search_from_several_threads(const Translator *model, const float *logits) {
    const int64_t size = STEPS * G * model->config.vocabulary;
    Caller callers[CALLERS];
    for (int c = 0; c < CALLERS; c++) {
        callers[c].model = model;
        callers[c].logits = allocate(size, sizeof *logits);
        if (pthread_create(&callers[c].thread, 0, call, callers + c)) abort();
    }
    for (int c = 0; c < CALLERS; c++) {
        pthread_join(callers[c].thread, 0);
        failures += memcmp(logits, callers[c].logits, (size_t)size * sizeof *logits) != 0;
    }
}

/* The beam search of a sentence whose keys and values are given; its cache is too small for the second step. */
static Beam start_beam(const Translator *model, const BeamOptions *options, int64_t g, const float *const *memory) {
    Beam beam = {.step = {.position_signal = model->signals, .rotary = model->rotary, .memory = memory,
                          .source_length = LENGTHS[g], .source_capacity = S,
                          .cache = allocate(2 * L * model->config.width, sizeof(float)), .capacity = 1},
                 .max_length = STEPS};
    void *block = allocate(begin_beam(&model->decoder, options, BOS, &beam, 0), 1);
    begin_beam(&model->decoder, options, BOS, &beam, block);
    return beam;
}

/* Move the KV cache of a beam to a larger one. */
static void move_cache(const Translator *model, const BeamOptions *options, Beam *beam) {
    float *before = beam->step.cache;
    enlarge_cache(&model->decoder, options, beam,
                  allocate(enlarge_cache(&model->decoder, options, beam, 0), sizeof(float)));
    free(before);
}

/* Beam search (continuous batching): sentence g joins after `delay` x g steps, and leaves when it has ended. */
static void search_with_beams(const Translator *model, int threads, int64_t delay, Beam *beams) {
    const int64_t width = model->config.width, beam_size = model->config.beam_size, max_rows = G * beam_size;
    const int64_t per_row = beam_size + 1, max_keys = S > STEPS + 1 ? S : STEPS + 1;
    static const int64_t suppressed[] = {0, BOS};
    float *memory[2 * L];
    const float *sources[G][2 * L];
    double *divisors = allocate(STEPS + 2, sizeof *divisors);
    Beam *running[G];
    int64_t joined = 0, count = 0;
    encode_some(model, 0, G, threads, memory);
    for (int t = 0; t < STEPS + 2; t++) divisors[t] = t ? t : 1;
    const BeamOptions options = {beam_size, beam_size, EOS, width, width / H, divisors, 0, 0, 1, 1};
    for (int64_t step = 0; joined < G || count; step++) {
        for (; joined < G && joined * delay <= step; joined++) {
            for (int l = 0; l < 2 * L; l++) sources[joined][l] = memory[l] + joined * S * width;
            beams[joined] = start_beam(model, &options, joined, sources[joined]);
            running[count++] = beams + joined;
        }
        const int64_t rows = count * beam_size;
        const BestTokens best = {per_row, 2, suppressed, allocate(rows * per_row, sizeof(float)),
                                 allocate(rows * per_row, sizeof(int64_t))};
        float *workspace = allocate(workspace_size(&model->decoder, rows, max_keys, threads), sizeof *workspace);
        float *logits = allocate(rows * model->config.vocabulary, sizeof *logits);
        Failure failure;
        if (rows > max_rows || beam_steps(&model->decoder, &options, running, count, max_keys, workspace, logits,
                                          &best, threads, &failure) < 0)
            abort();
        int64_t left = 0;
        for (int64_t b = 0; b < count; b++) {
            if (running[b]->status == BEAM_CACHE_FULL) move_cache(model, &options, running[b]);
            if (running[b]->status != BEAM_ENDED) running[left++] = running[b];
        }
        count = left;
        free(workspace);
        free(logits);
        free(best.values);
        free(best.tokens);
    }
}

/* Print a number with its decimals, or its bits. */
static void print_number(double number, int bits, char end) {
    if (bits) printf("%016llx%c", (unsigned long long)(Double){number}.bits, end);
    else printf("%.6f%c", number, end);
}

/* Print the tokens and the log-probability of each output. */
static void print_outputs(const Translator *model, const Beam *beams) {
    for (int64_t g = 0; g < G; g++)
        for (int64_t o = 0; o < beams[g].num_outputs; o++) {
            const Output output = beams[g].outputs[o];
            printf("output %d:", (int)g);
            for (int32_t t = 0; t < output.length; t++) printf(" %d", (int)beams[g].tokens[o * (STEPS + 1) + t]);
            printf(" %s ", output.ended ? "ended" : "cut");
            print_number(output.total, model->config.format == INT8, '\n');
        }
}

/* Count the sentences whose beam search gave other outputs. */
static int64_t count_different(const Beam *left, const Beam *right) {
    int64_t different = 0;
    for (int64_t g = 0; g < G; g++) {
        const int64_t outputs = left[g].num_outputs;
        different += left[g].length != right[g].length || outputs != right[g].num_outputs ||
                     memcmp(left[g].outputs, right[g].outputs, (size_t)outputs * sizeof(Output)) != 0;
        for (int64_t o = 0; o < outputs; o++) {
            const size_t count = (size_t)left[g].outputs[o].length, first = (size_t)(o * (STEPS + 1));
            different += memcmp(left[g].tokens + first, right[g].tokens + first, count * sizeof(int32_t)) != 0;
        }
    }
    return different;
}

static void run_model(int number, Config config) {
    const int64_t vocabulary = config.vocabulary, size = STEPS * G * vocabulary;
    const Translator model = random_translator(config);
    float *logits = allocate(size, sizeof *logits), *other = allocate(size, sizeof *other);
    Beam beams[G], delayed[G];
    search_greedily(&model, 0, G, 1, logits);
    printf("model %d: %s, width %d, activation %d\n", number, FORMATS[config.format], (int)config.width,
           (int)config.activation);
    for (int64_t i = 0; i < size; i++)
        print_number((double)logits[i], config.format == INT8, i % vocabulary == vocabulary - 1 ? '\n' : ' ');
    for (int threads = 2; threads <= 8; threads *= 4) {
        search_greedily(&model, 0, G, threads, other);
        failures += memcmp(logits, other, (size_t)size * sizeof *logits) != 0;
    }
    for (int64_t g = 0; g < G; g++) {
        search_greedily(&model, g, 1, 1, other);
        for (int64_t t = 0; t < STEPS; t++)
            failures += memcmp(logits + (t * G + g) * vocabulary, other + t * vocabulary,
                               (size_t)vocabulary * sizeof *logits) != 0;
        failures += !read_together(&model, g, 1, other) + !read_together(&model, g, 3, other);
    }
    search_from_several_threads(&model, logits);
    search_with_beams(&model, 1 + number % 2, 0, beams);
    print_outputs(&model, beams);
    search_with_beams(&model, 3, 2, delayed);
    failures += count_different(beams, delayed);
}

/* Print the outputs of many sentences. */
static void translate(int64_t sentences, Config config) {
    const Translator model = random_translator(config);
    for (batch = 0; G * batch < sentences; batch++) {
        Beam beams[G];
        search_with_beams(&model, 1, 0, beams);
        print_outputs(&model, beams);
    }
}

int main(int count, char **arguments) {
    if (count == 2) {
        translate(atoi(arguments[1]), (Config){48, 151, 1, INT8, GELU, 1, 1});
        translate(atoi(arguments[1]), (Config){48, 151, 5, INT8, SWIGLU, 0, 0});
        return 0;
    }
    for (int number = 0; number < 12; number++) /* each format with each kind of norm and position, and activations */
        run_model(number, (Config){number % 2 ? 48 : 30, 71, 3, number % 3, 1 + number % 5, number / 2 % 2,
                                   number >= 6});
    run_model(12, (Config){3, 5, 1, FLOAT32, RELU, 1, 0}); /* heads of one number, a vocabulary within a vector */
    run_model(13, (Config){96, 17, 6, FLOAT32, SWIGLU, 0, 1});
    run_model(14, (Config){192, 307, 5, INT8, SWIGLU, 1, 1});
    run_model(15, (Config){96, 89, 5, INT8, RELU, 0, 0});
    if (failures) fprintf(stderr, "%d results differ with threads, neighbours or calls\n", (int)failures);
    return failures != 0;
}
