/* Run decoder.c without an interpreter: tiny models whose weights are the same numbers on every processor read four
   sentences and continue them, greedily and with a beam. Prints every logit and every output.

   Ends with 1 if the number of threads or the sentences beside a sentence change a bit of its results.

   Shapes: G sentences, K beam size, L layers, H heads, V vocabulary, D width, E = D / H, S longest source. */

#include "decoder.c"

#include <stdio.h>
#include <stdlib.h>

enum { G = 4, K = 3, L = 2, H = 3, V = 71, S = 9, STEPS = 7, BOS = 1, EOS = 2 };

static const char *const FORMATS[] = {"float32", "bfloat16", "int8"};
static const int64_t LENGTHS[G] = {4, 9, 1, 6};
static int64_t failures;
static Failure failure;

/* The next of the same numbers everywhere, from -1 to 1. */
static float next_random(void) {
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (float)(state >> 40) / 8388608 - 1;
}

/* Zeroed memory, which the system takes back at the end. */
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

/* A linear layer with random weights, packed into panels as linear.h reads them. */
static Linear random_linear(int64_t inputs, int64_t outputs, int64_t format) {
    const int64_t filled = (outputs + PANEL - 1) / PANEL * PANEL;
    const float scale = 2 / sqrtf((float)inputs);
    float *floats = allocate(filled * inputs, sizeof *floats);
    float *scales = allocate(filled, sizeof *scales), *bias = allocate(filled, sizeof *bias);
    for (int64_t o = 0; o < outputs; o++) {
        scales[o] = scale / 127;
        bias[o] = next_random() / 4;
        for (int64_t i = 0; i < inputs; i++) {
            const int64_t at = (o / PANEL * inputs + i) * PANEL + o % PANEL;
            const float value = next_random();
            if (format == INT8) ((int8_t *)floats)[at] = (int8_t)(127 * value);
            else floats[at] = scale * value;
        }
    }
    if (format == BFLOAT16)
        for (int64_t i = 0; i < filled * inputs; i++) { /* in place: what is read stands behind what is written */
            uint32_t bits;
            memcpy(&bits, floats + i, sizeof bits);
            ((uint16_t *)floats)[i] = (uint16_t)(bits >> 16);
        }
    return (Linear){floats, scales, bias, inputs, outputs};
}

static Model random_model(int64_t width, int64_t format, int64_t activation, int pre_norm) {
    const int64_t inner = width + 11, expanded = activation == SWIGLU ? 2 * inner : inner;
    Layer *layers = allocate(L, sizeof *layers);
    LayerNorm *norms = allocate(3 * L + 1, sizeof *norms);
    for (int l = 0; l < L; l++)
        layers[l] = (Layer){random_linear(width, 3 * width, format), random_linear(width, width, format),
                            random_linear(width, width, format),     random_linear(width, width, format),
                            random_linear(width, expanded, format),  random_linear(inner, width, format)};
    for (int n = 0; n < 3 * L + 1; n++) norms[n] = (LayerNorm){randoms(width, 2), randoms(width, 0.5f)};
    return (Model){layers, norms, randoms(V * width, 1), {0}, random_linear(width, V, format), L, width, H, inner,
                   V, format, activation, pre_norm, 2, 1e-5f};
}

typedef struct {
    Model encoder, decoder;
    Linear memory_kv[L];
    float *signals, *rotary; /* (STEPS + S, D), and (STEPS + S, E / 2, 2) or null */
    int64_t width;
} Translator;

/* Keys and values of each layer, 2 L times (count, H, S, E), of some sentences from `first` on. */
static void encode_some(const Translator *model, int64_t first, int64_t count, int threads, float **memory) {
    int64_t tokens[G * S], sentence_ids[G * S], positions[G * S], starts[G + 1] = {0};
    for (int64_t g = 0, row = 0; g < count; g++) {
        for (int64_t position = 0; position < LENGTHS[first + g]; position++, row++) {
            tokens[row] = (5 * (first + g) + 7 * position) % V;
            sentence_ids[row] = g;
            positions[row] = position;
        }
        starts[g + 1] = row;
    }
    for (int l = 0; l < 2 * L; l++) memory[l] = allocate(count * S * model->width, sizeof **memory);
    float *workspace = allocate(workspace_size(&model->encoder, starts[count], S, threads), sizeof *workspace);
    const EncoderInput input = {tokens, sentence_ids, positions, starts, model->signals, model->rotary, count, S};
    encode(&model->encoder, model->memory_kv, L, &input, memory, workspace, threads, &failure);
    free(workspace);
}

/* Greedy search of some sentences: logits (STEPS, count, V). */
static void search_greedily(const Translator *model, int64_t first, int64_t count, int threads, float *logits) {
    float *memory[2 * L], bias[G * S], *cache = allocate(2 * L * count * STEPS * model->width, sizeof *cache);
    int64_t latest[G];
    encode_some(model, first, count, threads, memory);
    for (int64_t g = 0; g < count; g++) {
        latest[g] = BOS;
        for (int64_t s = 0; s < S; s++) bias[g * S + s] = s < LENGTHS[first + g] ? 0 : -INFINITY;
    }
    float *workspace = malloc((size_t)workspace_size(&model->decoder, count, S, threads) * sizeof *workspace);
    for (int64_t t = 0; t < STEPS; t++, logits += count * V) {
        const float *rotary = model->rotary ? model->rotary + t * (model->width / H) : 0;
        const Step step = {latest, model->signals + t * model->width, rotary, cache,
                           .memory = (const float *const *)memory, .source_bias = bias, .sentences = count,
                           .rows = 1, .length = t + 1, .capacity = STEPS, .source_length = S, .source_capacity = S};
        decoder_steps(&model->decoder, (const Step *[]){&step}, 1, S, workspace, logits, 0, threads, &failure);
        for (int64_t g = 0; g < count; g++) {
            int64_t best = 0;
            for (int64_t v = 1; v < V; v++) best = logits[g * V + v] > logits[g * V + best] ? v : best;
            latest[g] = best;
        }
    }
    free(workspace);
}

/* Beam search of all sentences; prints the tokens and the log-probability of each output. */
static void search_with_beam(const Translator *model, int threads) {
    float *memory[2 * L];
    double divisors[STEPS + 2];
    const float *ones[G][2 * L];
    Beam beams[G], *open[G];
    encode_some(model, 0, G, threads, memory);
    for (int t = 0; t < STEPS + 2; t++) divisors[t] = t ? t : 1;
    for (int64_t g = 0; g < G; g++) {
        const int64_t capacity = 1 + K * STEPS;
        for (int l = 0; l < 2 * L; l++) ones[g][l] = memory[l] + g * S * model->width;
        int64_t *latest = allocate(K, sizeof *latest);
        int32_t *visible = allocate(K * (STEPS + 1), sizeof *visible);
        int32_t *next_visible = allocate(K * (STEPS + 1), sizeof *next_visible);
        float *cache = allocate(2 * L * capacity * model->width, sizeof *cache);
        double *scores = allocate(K, sizeof *scores);
        for (int k = 0; k < K; k++) scores[k] = -INFINITY;
        latest[0] = BOS;
        open[g] = beams + g;
        beams[g] = (Beam){{latest, model->signals, model->rotary, cache,
                           .visible = visible, .memory = ones[g], .sentences = 1, .rows = 1, .length = 1,
                           .capacity = capacity, .num_visible = 1, .source_length = LENGTHS[g], .source_capacity = S},
                          .max_length = STEPS, .latest = latest, .log_probs = allocate(K, sizeof(double)),
                          .best_scores = scores, .visible = visible, .next_visible = next_visible,
                          .candidates = allocate(2 * K, sizeof(Candidate)),
                          .used = allocate(K, sizeof(int64_t)), .nodes = allocate((STEPS + 1) * K, sizeof(Node)),
                          .outputs = allocate((STEPS + 1) * K, sizeof(Output))};
    }
    const BeamOptions options = {K, K, EOS, model->width, model->width / H, divisors};
    const int64_t suppressed[] = {0, BOS};
    float values[G * K * (K + 1)], *logits = allocate(G * K * V, sizeof *logits);
    int64_t tokens[G * K * (K + 1)], count = G;
    float *workspace = allocate(workspace_size(&model->decoder, G * K, STEPS + S, threads), sizeof *workspace);
    const BestTokens best = {K + 1, 2, suppressed, values, tokens};
    while (count) {
        if (beam_steps(&model->decoder, &options, open, count, STEPS + S, workspace, logits, &best, threads, &failure) < 0)
            abort();
        for (int64_t b = count = 0; b < G; b++)
            if (beams[b].status != BEAM_ENDED) open[count++] = beams + b;
    }
    for (int64_t g = 0; g < G; g++)
        for (int64_t o = 0; o < beams[g].num_outputs; o++) {
            const Output output = beams[g].outputs[o];
            double total = output.ended ? output.log_prob : 0;
            printf("output %d:", (int)g);
            for (int32_t t = output.length - 1, row = output.row; t >= 0; t--) {
                const Node node = beams[g].nodes[t * K + row];
                printf(" %d", (int)node.token);
                total += node.log_prob;
                row = node.parent;
            }
            printf(" %s %.6f\n", output.ended ? "ended" : "cut", total);
        }
    free(workspace);
}

int main(void) {
    for (int number = 0; number < 12; number++) { /* each format with each kind of norm and position, and activations */
        const int64_t width = number % 2 ? 48 : 30, format = number % 3, activation = 1 + number % 5;
        Translator model = {random_model(width, format, activation, number / 2 % 2),
                         random_model(width, format, activation, number / 2 % 2), .width = width};
        for (int l = 0; l < L; l++) model.memory_kv[l] = random_linear(width, 2 * width, format);
        model.signals = randoms((STEPS + S) * width, number < 6);
        if (number >= 6) {
            model.rotary = allocate((STEPS + S) * (width / H), sizeof(float));
            for (int64_t i = 0; i < (STEPS + S) * (width / H); i++) {
                const double angle = (double)(i / (width / H)) * (double)(i % (width / H) / 2 + 1) * 0.3;
                model.rotary[i] = (float)(i % 2 ? sin(angle) : cos(angle));
            }
        }
        static float logits[STEPS * G * V], other[STEPS * G * V];
        search_greedily(&model, 0, G, 1, logits);
        printf("model %d: %s, width %d, activation %d\n", number, FORMATS[format], (int)width, (int)activation);
        for (int64_t i = 0; i < STEPS * G * V; i++) printf("%.6f%c", logits[i], i % V == V - 1 ? '\n' : ' ');
        for (int threads = 2; threads <= 8; threads *= 4) {
            search_greedily(&model, 0, G, threads, other);
            failures += memcmp(logits, other, sizeof logits) != 0;
        }
        for (int64_t g = 0; g < G; g++) {
            search_greedily(&model, g, 1, 1, other);
            for (int64_t t = 0; t < STEPS; t++)
                failures += memcmp(logits + (t * G + g) * V, other + t * V, (size_t)V * sizeof *logits) != 0;
        }
        search_with_beam(&model, 1 + number % 2);
    }
    if (failures) fprintf(stderr, "%d results differ with threads or neighbours\n", (int)failures);
    return failures != 0;
}
