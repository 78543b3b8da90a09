/* Structs shared with Python (structs.py, the same names) and JavaScript.

   Shapes, in all files: G sentences, W rows (hypotheses in progress) of a sentence, R = G x W rows, D model width,
   H heads, E = D / H head dimension, F feed-forward width, V vocabulary, L layers, S source length, K beam size;
   N tokens of a sentence in the KV cache, of all its rows, C capacity of the cache, T tokens that a row attends to. */

#pragma once

#include "linear.h"

typedef struct {
    const float *weight, *bias; /* (D); weight null: no norm */
} LayerNorm;

typedef struct {
    Linear self_qkv, self_out, cross_query, cross_out, expand, contract; /* an encoder layer has no cross-attention */
} Layer;

/* What a call reports about attention heads, and how it changes them; null: nothing. */
typedef struct {
    float *weights;       /* (L, R, H, N) the attention weights of each row on its N keys */
    const float *factors; /* (L, H) the output of each head is multiplied by its factor; 0 turns the head off */
    float *vectors;       /* (L, R, 3, H, E) queries, keys and values of each row, with rotary positions after the
                             rotation; of cross-attention (L, R, H, E) the queries alone */
} Heads;

/* An encoder or a decoder. A decoder layer whose cross_query has no weight has no cross-attention. */
typedef struct {
    const Layer *layers;    /* (L) */
    const LayerNorm *norms; /* before each sublayer and after the last: 3 L + 1, without cross-attention 2 L + 1 */
    const float *embedding; /* (V, D); null: the weights of `output`, in FLOAT32 or INT8 */
    LayerNorm embedding_norm;
    Linear output; /* of a decoder: D -> V; of an encoder only where `embedding` is null */
    int64_t num_layers, d_model, num_heads, d_ff, vocabulary;
    int64_t format, activation, pre_norm; /* number format of the weights (linear.h), activation (vectors.h) */
    float embedding_scale, norm_epsilon;
} Model;

/* Sentences that an encoder reads side by side, without padding: R tokens, one sentence after the other. */
typedef struct {
    const int64_t *tokens;         /* (R) */
    const int64_t *sentence_ids;   /* (R) the sentence of each token */
    const int64_t *positions;      /* (R) the position of each token in its sentence */
    const int64_t *starts;         /* (G + 1) index of the first token of each sentence, and R */
    const float *position_signals; /* (S, D) added to the embeddings, or null */
    const float *rotary;           /* (S, E / 2, 2) cosines and sines, or null */
    int64_t sentences, max_length; /* G, S */
    Heads heads;                   /* weights (L, R, H, S), behind the end of a sentence not written */
    float *output;                 /* (R, D) the output of the encoder, or null */
} EncoderInput;

/* A decoding step: append a token to each row of some sentences, all at the same position.

   Steps of one call may have the same cache (teacher forcing): with `shared_cache` all of them store their keys and
   values before any of them attends. A step that also attends to `num_later` tokens behind its own, which other steps
   of the call append, has no causal mask. */
typedef struct {
    const int64_t *tokens;        /* (R) */
    const float *position_signal; /* (D) added to the embedding, or null */
    const float *rotary;          /* (E / 2, 2) cosines and sines, or null */
    float *cache;                 /* (L, 2, G, H, C, E) keys and values of the target */
    const float *cache_bias;      /* (G, W, C) 0 where a row attends, -inf elsewhere; null: everywhere */
    const int32_t *visible;       /* (G, W, T) indices of the N that a row attends to; null: see cache_bias */
    const float *const *memory;   /* keys and values of the source, of each layer: 2 L times (G, H, capacity, E) */
    const float *source_bias;     /* (G, S) 0 where rows attend, -inf elsewhere; null: everywhere */
    int64_t sentences, rows;      /* G, W */
    int64_t length, capacity, num_visible; /* N, the tokens of this step included, C, T */
    int64_t source_length, source_capacity;
    int64_t shared_cache, num_later;
    Heads self_heads, cross_heads; /* weights (L, R, H, N), with `visible` (L, R, H, T); (L, R, H, S) */
} Step;

/* A request for the best next tokens of each row. */
typedef struct {
    int64_t count;             /* best tokens of each row */
    int64_t num_suppressed;
    const int64_t *suppressed; /* ids that are never among them */
    float *values;             /* (R, count) log-probabilities */
    int64_t *tokens;           /* (R, count) */
} BestTokens;

/* Options of a beam search; of sampling, with a beam of 1. */
typedef struct {
    int64_t beam_size, n_best, eos;
    int64_t signal_stride, rotary_stride; /* floats from the signal of a position to that of the next */
    const double *divisors;               /* (max_length + 2) for each length: score = log-probability / divisor */
    int64_t no_repeat_ngram;              /* no n-gram of this length occurs twice; 0: it may */
    int64_t top_k;                        /* of sampling; 0: all tokens */
    double temperature, top_p;
} BeamOptions;

/* The reason why a call was refused: the value of a quantity is outside of low..high. */
typedef struct {
    const char *quantity;
    int64_t value, low, high;
} Failure;

/* A token of an open prefix. */
typedef struct {
    int32_t parent, token; /* parent: the row of the prefix before it */
    float log_prob;
} Node;

/* An output: the prefix of a row, and the end symbol if it has ended. */
typedef struct {
    int32_t length, row, ended;
    float log_prob; /* of the end symbol */
    double total;   /* log-probability of all its tokens */
    double score;   /* total / divisor of its length */
} Output;

/* The BeamStatus of a search. BEAM_CACHE_FULL: the KV cache must be enlarged before the next step. */
enum { BEAM_RUNNING, BEAM_ENDED, BEAM_CACHE_FULL, BEAM_NAN, BEAM_INVALID };

/* A continuation of a prefix. */
typedef struct {
    int64_t row, token;
    float log_prob; /* of the token */
    double total;   /* log-probability of the prefix with it */
} Candidate;

/* The beam search of a sentence; W is 1 at first, then K. */
typedef struct {
    Step step;
    int64_t first_row; /* index of its first row among the rows of all sentences */
    int64_t length, max_length;
    int64_t num_outputs;
    int64_t status, cancelled;
    int64_t *latest;       /* (K) tokens that the next step appends */
    double *log_probs;     /* (W) of its prefixes, best first */
    double *best_scores;   /* (K) of its outputs, best first, -inf where there are fewer */
    int32_t *visible;      /* (W, T + 1) tokens of the cache that each row attends to */
    int32_t *next_visible; /* the same of the next step */
    Node *nodes;           /* (max_length + 1, K) */
    Output *outputs;       /* at most (max_length + 1) K; of a search that has ended the n_best, best first */
    int32_t *tokens;       /* (n_best, max_length + 1) of these outputs, without the end symbol */
    float *token_scores;   /* (n_best, max_length + 1) their log-probabilities, with that of the end symbol */
    Candidate *candidates; /* (3 K) 2 K of the last step, best first; those that it kept */
    int64_t *used;         /* (K) workspace of a step */
    int64_t min_length, prefix_length, num_forbidden;
    const int32_t *prefix;         /* (prefix_length) tokens that the output begins with */
    const int32_t *forbidden;      /* sequences that must not occur, one after the other */
    const int64_t *forbidden_ends; /* (num_forbidden) index behind each sequence */
    int32_t *history;              /* (K, max_length + 1) workspace of rules for sequences; null without such rules */
    const double *uniform;         /* (max_length + 1) random numbers in [0, 1), of sampling; else null */
    int32_t *heap;                 /* (V) workspace of sampling with top_k or top_p; else null */
} Beam;
