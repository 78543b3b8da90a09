/* A token drawn from the distribution of a row: temperature, top_k, top_p (decoding/sampling.py). */

#pragma once

#include "elementary.h"
#include "structs.h"

/* Return whether token a is likelier than token b; of equal ones the lower id is. */
static int is_likelier(const float *logits, int32_t a, int32_t b) {
    return logits[a] > logits[b] || (logits[a] == logits[b] && a < b);
}

/* Move the token at `index` of a heap down to its place; the likeliest token is first. */
static void sift_down(const float *logits, int32_t *heap, int64_t size, int64_t index) {
    for (int64_t child; (child = 2 * index + 1) < size; index = child) {
        if (child + 1 < size && is_likelier(logits, heap[child + 1], heap[child])) child++;
        if (is_likelier(logits, heap[index], heap[child])) return;
        const int32_t token = heap[index];
        heap[index] = heap[child];
        heap[child] = token;
    }
}

/* Return the weight of a token in the drawing: 1 for the likeliest. */
static double weight_of(const BeamOptions *options, double logit, double largest) {
    return logit > -INFINITY ? exponential((logit - largest) / options->temperature) : 0;
}

/* Set the logits (V) of all tokens to -infinity except the top_k likeliest, and of these the fewest whose share of
   the weights is top_p. `heap` (V) is workspace. */
static void keep_likeliest(const BeamOptions *options, float *logits, int64_t vocabulary, double largest,
                           int32_t *heap) {
    const int64_t most = options->top_k && options->top_k < vocabulary ? options->top_k : vocabulary;
    int64_t size = vocabulary, kept = 0;
    double total = 0, mass = 0;
    for (int64_t i = 0; i < vocabulary; i++) heap[i] = (int32_t)i;
    for (int64_t i = vocabulary / 2; i-- > 0;) sift_down(logits, heap, size, i);
    if (most == vocabulary)
        for (int64_t i = 0; i < vocabulary; i++) total += weight_of(options, logits[i], largest);
    for (; kept < most && (most < vocabulary || mass < options->top_p * total); kept++) { /* the likeliest go to the end */
        const int32_t token = heap[0];
        heap[0] = heap[--size];
        heap[size] = token;
        sift_down(logits, heap, size, 0);
        mass += weight_of(options, logits[token], largest);
    }
    if (most < vocabulary) {
        total = mass;
        mass = 0;
        kept = 0;
        for (; kept < most && mass < options->top_p * total; kept++)
            mass += weight_of(options, logits[heap[vocabulary - 1 - kept]], largest);
    }
    if (!kept) return;
    const int32_t last = heap[vocabulary - kept];
    const float least = logits[last];
    for (int64_t i = 0; i < vocabulary; i++)
        if (logits[i] < least || (logits[i] == least && i > last)) logits[i] = -INFINITY;
}

/* Draw a token by its logits (V), which are changed, and a random number in [0, 1): the first whose cumulative weight
   exceeds this share of the total, in the order of ids. */
static int64_t draw_token(const BeamOptions *options, float *logits, int64_t vocabulary, double uniform,
                          int32_t *heap) {
    double largest = -INFINITY, total = 0, cumulative = 0;
    for (int64_t i = 0; i < vocabulary; i++)
        if (logits[i] > largest) largest = logits[i];
    if (heap) keep_likeliest(options, logits, vocabulary, largest, heap);
    for (int64_t i = 0; i < vocabulary; i++) total += weight_of(options, logits[i], largest);
    const double target = uniform * total;
    int64_t token = vocabulary - 1; /* the last possible one, if rounding leaves no other */
    for (int64_t i = 0; i < vocabulary; i++) {
        const double weight = weight_of(options, logits[i], largest);
        if (weight > 0) token = i;
        cumulative += weight;
        if (cumulative > target) break;
    }
    return token;
}
