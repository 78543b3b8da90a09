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

/* The next of the same numbers everywhere, from -1 to 1. */
static float next_random(void) {
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (float)(state >> 40) / 8388608 - 1;
}

static float *randoms(int64_t count, float scale) {
    float *found = calloc(count, sizeof *found);
    for (int64_t i = 0; i < count; i++) found[i] = scale * next_random();
    return found;
}

/* A linear layer with random weights, packed into panels as product.h reads them. */
static Linear random_linear(int64_t inputs, int64_t outputs, int64_t format) {
    const int64_t filled = (outputs + PANEL - 1) / PANEL * PANEL;
    const float scale = 2 / sqrtf((float)inputs);
    float *floats = calloc(filled * inputs, sizeof *floats);
    float *scales = calloc(filled, sizeof *scales), *bias = calloc(filled, sizeof *bias);
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
    Layer *layers = calloc(L, sizeof *layers);
    Norm *norms = calloc(3 * L + 1, sizeof *norms);
    for (int l = 0; l < L; l++)
        layers[l] = (Layer){random_linear(width, 3 * width, format), random_linear(width, width, format),
                            random_linear(width, width, format),     random_linear(width, width, format),
                            random_linear(width, expanded, format),  random_linear(inner, width, format)};
    for (int n = 0; n < 3 * L + 1; n++) norms[n] = (Norm){randoms(width, 2), randoms(width, 0.5f)};
    return (Model){layers, norms, randoms(V * width, 1), {0}, random_linear(width, V, format), L, width, H, inner,
                   format, activation, pre_norm, 2, 1e-5f};
}

typedef struct {
    Model encoder, decoder;
    Linear memory_in[L];
    float *signals, *turns; /* (STEPS + S, D), and (STEPS + S, E / 2, 2) or none */
    int64_t width;
} Translator;

/* Keys and values of each layer, 2 L times (count, H, S, E), of some sentences from `first` on. */
static void read_some(const Translator *it, int64_t first, int64_t count, int threads, float **memory) {
    int64_t tokens[G * S], owners[G * S], places[G * S], starts[G + 1] = {0};
    for (int64_t g = 0, row = 0; g < count; g++) {
        for (int64_t place = 0; place < LENGTHS[first + g]; place++, row++) {
            tokens[row] = (5 * (first + g) + 7 * place) % V;
            owners[row] = g;
            places[row] = place;
        }
        starts[g + 1] = row;
    }
    for (int l = 0; l < 2 * L; l++) memory[l] = calloc(count * S * it->width, sizeof **memory);
    float *room = malloc(working_room(&it->encoder, starts[count], S, threads) * sizeof *room);
    encode(&it->encoder, it->memory_in, L, tokens, owners, places, starts, count, S, it->signals, it->turns,
           memory, room, threads);
    free(room);
}

/* Greedy search of some sentences: logits (STEPS, count, V). */
static void search_greedily(const Translator *it, int64_t first, int64_t count, int threads, float *logits) {
    float *memory[2 * L], bias[G * S], *past = calloc(2 * L * count * STEPS * it->width, sizeof *past);
    int64_t latest[G];
    read_some(it, first, count, threads, memory);
    for (int64_t g = 0; g < count; g++) {
        latest[g] = BOS;
        for (int64_t s = 0; s < S; s++) bias[g * S + s] = s < LENGTHS[first + g] ? 0 : -INFINITY;
    }
    float *room = malloc(working_room(&it->decoder, count, S, threads) * sizeof *room);
    for (int64_t t = 0; t < STEPS; t++, logits += count * V) {
        const Step step = {latest, it->signals + t * it->width, it->turns ? it->turns + t * (it->width / H) : 0,
                           past,   .memory = (const float *const *)memory, .source_bias = bias, .sentences = count,
                           .rows = 1, .held = t + 1, .room = STEPS, .source = S, .source_room = S};
        decoder_steps(&it->decoder, (const Step *[]){&step}, 1, S, room, logits, 0, threads);
        for (int64_t g = 0; g < count; g++) {
            int64_t best = 0;
            for (int64_t v = 1; v < V; v++) best = logits[g * V + v] > logits[g * V + best] ? v : best;
            latest[g] = best;
        }
    }
    free(room);
}

/* Beam search of all sentences; prints the tokens and the log-probability of each output. */
static void search_with_beam(const Translator *it, int threads) {
    float *memory[2 * L];
    double divisors[STEPS + 2];
    const float *ones[G][2 * L];
    Beam beams[G], *open[G];
    read_some(it, 0, G, threads, memory);
    for (int t = 0; t < STEPS + 2; t++) divisors[t] = t ? t : 1;
    for (int64_t g = 0; g < G; g++) {
        const int64_t room = 1 + K * STEPS;
        for (int l = 0; l < 2 * L; l++) ones[g][l] = memory[l] + g * S * it->width;
        int64_t *latest = calloc(K, sizeof *latest);
        int32_t *seen = calloc(K * (STEPS + 1), sizeof *seen), *spare = calloc(K * (STEPS + 1), sizeof *spare);
        double *scores = calloc(K, sizeof *scores);
        for (int k = 0; k < K; k++) scores[k] = -INFINITY;
        latest[0] = BOS;
        open[g] = beams + g;
        beams[g] = (Beam){{latest, it->signals, it->turns, calloc(2 * L * room * it->width, sizeof(float)),
                           .seen = seen, .memory = ones[g], .sentences = 1, .rows = 1, .held = 1, .room = room,
                           .visible = 1, .source = LENGTHS[g], .source_room = S},
                          .limit = STEPS, .latest = latest, .totals = calloc(K, sizeof(double)), .scores = scores,
                          .seen = seen, .spare = spare, .nodes = calloc((STEPS + 1) * K, sizeof(Node)),
                          .outputs = calloc((STEPS + 1) * K, sizeof(Output))};
    }
    const Search search = {K, K, EOS, it->width, it->width / H, divisors};
    const int64_t never[] = {0, BOS};
    float values[G * K * (K + 1)], *logits = calloc(G * K * V, sizeof *logits);
    int64_t tokens[G * K * (K + 1)], count = G;
    float *room = malloc(working_room(&it->decoder, G * K, STEPS + S, threads) * sizeof *room);
    const Best best = {K + 1, 2, never, values, tokens};
    while (count) {
        if (beam_steps(&it->decoder, &search, open, count, STEPS + S, room, logits, &best, threads) < 0) abort();
        for (int64_t b = count = 0; b < G; b++)
            if (beams[b].state != ENDED) open[count++] = beams + b;
    }
    for (int64_t g = 0; g < G; g++)
        for (int64_t o = 0; o < beams[g].found; o++) {
            const Output output = beams[g].outputs[o];
            double total = output.ended ? output.value : 0;
            printf("output %d:", (int)g);
            for (int32_t t = output.length - 1, row = output.row; t >= 0; t--) {
                const Node node = beams[g].nodes[t * K + row];
                printf(" %d", (int)node.token);
                total += node.value;
                row = node.parent;
            }
            printf(" %s %.6f\n", output.ended ? "ended" : "cut", total);
        }
    free(room);
}

int main(void) {
    for (int number = 0; number < 12; number++) { /* each format with each kind of norm and position, and activations */
        const int64_t width = number % 2 ? 48 : 30, format = number % 3, activation = 1 + number % 5;
        Translator it = {random_model(width, format, activation, number / 2 % 2),
                         random_model(width, format, activation, number / 2 % 2), .width = width};
        for (int l = 0; l < L; l++) it.memory_in[l] = random_linear(width, 2 * width, format);
        it.signals = randoms((STEPS + S) * width, number < 6);
        if (number >= 6) {
            it.turns = calloc((STEPS + S) * (width / H), sizeof(float));
            for (int64_t i = 0; i < (STEPS + S) * (width / H); i++) {
                const double angle = (i / (width / H)) * (i % (width / H) / 2 + 1) * 0.3;
                it.turns[i] = (float)(i % 2 ? sin(angle) : cos(angle));
            }
        }
        static float logits[STEPS * G * V], other[STEPS * G * V];
        search_greedily(&it, 0, G, 1, logits);
        printf("model %d: %s, width %d, activation %d\n", number, FORMATS[format], (int)width, (int)activation);
        for (int64_t i = 0; i < STEPS * G * V; i++) printf("%.6f%c", logits[i], i % V == V - 1 ? '\n' : ' ');
        for (int threads = 2; threads <= 8; threads *= 4) {
            search_greedily(&it, 0, G, threads, other);
            failures += memcmp(logits, other, sizeof logits) != 0;
        }
        for (int64_t g = 0; g < G; g++) {
            search_greedily(&it, g, 1, 1, other);
            for (int64_t t = 0; t < STEPS; t++)
                failures += memcmp(logits + (t * G + g) * V, other + t * V, V * sizeof *logits) != 0;
        }
        search_with_beam(&it, 1 + number % 2);
    }
    if (failures) fprintf(stderr, "%d results differ with threads or neighbours\n", (int)failures);
    return failures != 0;
}
