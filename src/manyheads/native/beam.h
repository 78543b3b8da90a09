/* A beam search of one sentence: how it goes on after each step of its rows. search/beam.py says what is kept and when
   a sentence stops; what is found here are the same bits.

   Shapes: K = beam size, W rows (1 at first, then K), C = K + 1 candidates of a row, T tokens so far. */

#pragma once

#include <string.h>

#include "descriptions.h"
#include "ranking.h"

/* What the beams of a search have in common. */
typedef struct {
    int64_t size, wanted, end; /* K, outputs that are asked for, the end symbol */
    int64_t signal, turns;     /* floats from the signal of a place to that of the next, and from turns to turns */
    const double *divisors;    /* for each length: score = log-probability / divisor */
} Search;

/* A token of an open prefix. */
typedef struct {
    int32_t parent, token; /* the row of the prefix before it */
    float value;           /* its log-probability */
} Node;

/* An output: the prefix of a row, and the end symbol if it has ended. */
typedef struct {
    int32_t length, row, ended;
    float value; /* log-probability of the end */
} Output;

enum { GOING, ENDED, FULL, NOT_A_NUMBER }; /* full: the past must get more room before the next step */

typedef struct {
    Step step;                /* of this one sentence */
    int64_t row;              /* where its rows begin among those of all sentences */
    int64_t length, limit;    /* T and the most of it */
    int64_t found;            /* outputs */
    int64_t state, abandoned; /* whether nobody waits for it any more */
    int64_t *latest;          /* what its rows append next (K) */
    double *totals;           /* log-probabilities of its prefixes (W), best first */
    double *scores;           /* the best of its outputs (K), best first, -INFINITY where there are fewer */
    int32_t *seen, *spare;    /* tokens of the past that each row sees (W, T + 1), and room for the next ones */
    Node *nodes;              /* (limit + 1, K) */
    Output *outputs;          /* (limit + 1) K at most */
} Beam;

typedef struct {
    int64_t row, token;
    float value;
    double total;
} Candidate;

/* The best continuations of all rows, best first; among equals those of earlier rows, then the likelier tokens. */
static void merge(const Beam *beam, int64_t each, const float *values, const int64_t *tokens, int64_t count,
                  Candidate *best) {
    const int64_t rows = beam->step.rows;
    int64_t used[rows];
    memset(used, 0, sizeof used);
    for (int64_t i = 0; i < count; i++) {
        int64_t first = -1;
        double most = 0;
        for (int64_t r = 0; r < rows; r++) {
            if (used[r] == each) continue;
            const double total = beam->totals[r] + values[r * each + used[r]];
            if (first >= 0 && !(total > most)) continue;
            first = r;
            most = total;
        }
        const int64_t at = first * each + used[first]++;
        best[i] = (Candidate){first, tokens[at], values[at], most};
    }
}

/* Take note of an output if it is better than the `worst` of K. */
static void find(Beam *beam, const Search *search, Output output, double total, double worst) {
    const double score = total / search->divisors[output.length + output.ended];
    int64_t at = search->size - 1;
    if (!(score > worst)) return;
    beam->outputs[beam->found++] = output;
    if (!(score > beam->scores[at])) return;
    for (; at > 0 && score > beam->scores[at - 1]; at--) beam->scores[at] = beam->scores[at - 1];
    beam->scores[at] = score;
}

/* Finish every prefix: it ends if the end is its likeliest continuation, or is cut. */
static void close_all(Beam *beam, const Search *search, int64_t each, const float *values, const int64_t *tokens) {
    for (int32_t ended = 1; ended >= 0; ended--) {
        const double worst = beam->scores[search->size - 1];
        for (int64_t r = 0; r < beam->step.rows; r++) {
            const float value = values[r * each];
            if ((tokens[r * each] == search->end && value > -INFINITY) != ended) continue;
            find(beam, search, (Output){(int32_t)beam->length, (int32_t)r, ended, value},
                 beam->totals[r] + (ended ? value : 0), worst);
        }
    }
}

/* Whether no open prefix can make a difference any more; the best has this log-probability with a token more. */
static int settled(const Beam *beam, const Search *search, double best) {
    return beam->scores[search->size - 1] >= best / search->divisors[beam->length + 1] ||
           beam->scores[search->wanted - 1] >= best / search->divisors[beam->limit + 1];
}

/* Append candidates, K of them, to the prefixes; each sees what its parent saw, and itself. */
static void grow(Beam *beam, const Search *search, const Candidate *const *kept) {
    Node *nodes = beam->nodes + beam->length++ * search->size;
    Step *step = &beam->step;
    for (int64_t k = 0; k < search->size; k++) {
        const Candidate *one = kept[k];
        int32_t *sees = beam->spare + k * (step->visible + 1);
        memcpy(sees, beam->seen + one->row * step->visible, (size_t)step->visible * sizeof *sees);
        sees[step->visible] = (int32_t)(step->held + k);
        nodes[k] = (Node){(int32_t)one->row, (int32_t)one->token, one->value};
        beam->totals[k] = one->total;
        /* A prefix of probability 0 fills a place that nothing else can take; its row must still be given a token. */
        beam->latest[k] = one->total > -INFINITY ? one->token : search->end;
    }
    int32_t *before = beam->seen;
    step->seen = beam->seen = beam->spare;
    beam->spare = before;
    step->visible++;
    step->rows = search->size;
    step->held += step->rows;
    if (step->signal) step->signal += search->signal;
    if (step->turns) step->turns += search->turns;
}

/* Go on with the best next tokens of the rows (W, C), log-probabilities and ids. */
static void advance(Beam *beam, const Search *search, float *values, int64_t *tokens) {
    const int64_t size = search->size, each = size + 1, rows = beam->step.rows;
    const int64_t count = rows == 1 ? each : 2 * size;
    const Candidate *kept[size];
    Candidate best[count];
    for (int64_t i = 0; i < rows * each; i++)
        if (isnan(values[i])) {
            beam->state = NOT_A_NUMBER;
            return;
        }
    for (int64_t i = 0; beam->abandoned && i < rows * each; i++) { /* nothing but the end can follow */
        values[i] = i % each ? -INFINITY : 0;
        tokens[i] = search->end;
    }
    merge(beam, each, values, tokens, count, best);
    const double worst = beam->scores[size - 1];
    const int stuck = best[0].total == -INFINITY && beam->scores[0] == -INFINITY;
    if (stuck || beam->limit <= beam->length) {
        close_all(beam, search, each, values, tokens);
        beam->state = ENDED;
        return;
    }
    for (int64_t i = 0, open = 0; i < count && (i < size || open < size); i++) {
        const int ends = best[i].token == search->end && best[i].total > -INFINITY;
        if (!ends && open < size) kept[open++] = best + i;
        else if (ends && i < size)
            find(beam, search, (Output){(int32_t)beam->length, (int32_t)best[i].row, 1, best[i].value}, best[i].total,
                 worst);
    }
    if (settled(beam, search, kept[0]->total)) {
        beam->state = ENDED;
        return;
    }
    grow(beam, search, kept);
    beam->state = beam->step.held > beam->step.room ? FULL : GOING;
}
