/* The interface of the library: the layout of the structs and the values of the enumerations, which Python compares
   with structs.py when it loads the library, and the types of the functions, which Python reads. */

#pragma once

#include <stddef.h>

#include "structs.h"

typedef struct {
    const char *name;
    int64_t offset, size; /* in bytes; of a struct as a whole the offset is 0; of a constant the value, and 0 */
    const char *type;     /* float, double, int32, int64, pointer, or the name of a struct or an enumeration */
} Field;

#define TYPE(value)                                                                                          \
    _Generic((value), float: "float", double: "double", int32_t: "int32", int64_t: "int64", Linear: "Linear", \
             LayerNorm: "LayerNorm", Heads: "Heads", Step: "Step", default: "pointer")
#define STRUCT(type, ...) {#type, 0, sizeof(type), #type}, EACH(FIELD, type, __VA_ARGS__)
#define FIELD(type, name) \
    {#type "." #name, offsetof(type, name), sizeof(((type *)0)->name), TYPE(((type *)0)->name)},
#define ENUMERATION(type, ...) EACH(CONSTANT, type, __VA_ARGS__)
#define CONSTANT(type, name) {#name, name, 0, #type},

/* EACH(F, type, a, b) is F(type, a) F(type, b). A macro is not expanded inside itself: EACH_NEXT names it only after
   its expansion, and each SCAN expands what was named before it, at least 64 names in all. */
#define EACH(F, type, ...) SCAN(EACH_OF(F, type, __VA_ARGS__))
#define EACH_OF(F, type, name, ...) F(type, name) __VA_OPT__(EACH_NEXT PARENTHESES (F, type, __VA_ARGS__))
#define EACH_NEXT() EACH_OF
#define PARENTHESES ()
#define SCAN(...) SCAN_16(SCAN_16(SCAN_16(SCAN_16(__VA_ARGS__))))
#define SCAN_16(...) SCAN_4(SCAN_4(SCAN_4(SCAN_4(__VA_ARGS__))))
#define SCAN_4(...) SCAN_1(SCAN_1(SCAN_1(SCAN_1(__VA_ARGS__))))
#define SCAN_1(...) __VA_ARGS__

static const Field LAYOUT[] = {
    STRUCT(Linear, weight, scale, bias, inputs, outputs)
    STRUCT(LayerNorm, weight, bias)
    STRUCT(Layer, self_qkv, self_out, cross_query, cross_out, expand, contract)
    STRUCT(Heads, weights, factors, vectors)
    STRUCT(Model, layers, norms, embedding, embedding_norm, output, num_layers, d_model, num_heads, d_ff,
           vocabulary, format, activation, pre_norm, embedding_scale, norm_epsilon)
    STRUCT(EncoderInput, tokens, sentence_ids, positions, starts, position_signals, rotary, sentences, max_length,
           heads, output)
    STRUCT(Step, tokens, position_signal, rotary, cache, cache_bias, visible, memory, source_bias, sentences, rows,
           length, capacity, num_visible, source_length, source_capacity, shared_cache, num_later, self_heads,
           cross_heads)
    STRUCT(BestTokens, count, num_suppressed, suppressed, values, tokens)
    STRUCT(BeamOptions, beam_size, n_best, eos, signal_stride, rotary_stride, divisors, no_repeat_ngram, top_k,
           temperature, top_p)
    STRUCT(Failure, quantity, value, low, high)
    STRUCT(Output, length, row, ended, log_prob, total, score)
    STRUCT(Candidate, row, token, log_prob, total)
    STRUCT(Beam, step, first_row, length, max_length, num_outputs, status, cancelled, latest, log_probs,
           best_scores, visible, next_visible, nodes, outputs, tokens, token_scores, candidates, used, min_length,
           prefix_length, num_forbidden, prefix, forbidden, forbidden_ends, history, uniform, heap)
    ENUMERATION(Format, FLOAT32, BFLOAT16, INT8)
    ENUMERATION(Activation, NO_ACTIVATION, RELU, GELU, GELU_TANH, SWISH, SWIGLU)
    ENUMERATION(BeamStatus, BEAM_RUNNING, BEAM_ENDED, BEAM_CACHE_FULL, BEAM_NAN, BEAM_INVALID)
};

/* Return the layout of all shared structs and the enumerations, and write the number of its entries to `count`. */
const Field *struct_layout(int64_t *count) {
    *count = sizeof LAYOUT / sizeof *LAYOUT;
    return LAYOUT;
}

#ifndef __wasm__ /* JavaScript's functions have no types */
/* The types of a function as text; another type than that of the function does not compile. */
#define FUNCTION(name, result, ...) {#name, _Generic(&name, result (*)(__VA_ARGS__): #result "(" #__VA_ARGS__ ")")}

typedef struct {
    const char *name, *types;
} Function;

static const Function SIGNATURES[] = {
    FUNCTION(panel_width, int64_t, void),
    FUNCTION(panel_depth, int64_t, void),
    FUNCTION(workspace_size, int64_t, const Model *, int64_t, int64_t, int64_t),
    FUNCTION(encode, int64_t, const Model *, const Linear *, int64_t, const EncoderInput *, float *const *, float *,
             int, Failure *),
    FUNCTION(linear_layer, void, const Linear *, int64_t, const float *, int64_t, float *, float *),
    FUNCTION(decoder_steps, int64_t, const Model *, const Step *const *, int64_t, int64_t, float *, float *, int,
             Failure *),
    FUNCTION(begin_beam, int64_t, const Model *, const BeamOptions *, int64_t, Beam *, void *),
    FUNCTION(enlarge_cache, int64_t, const Model *, const BeamOptions *, Beam *, float *),
    FUNCTION(beam_steps, int64_t, const Model *, const BeamOptions *, Beam *const *, int64_t, int64_t, float *,
             float *, const BestTokens *, int, Failure *),
    FUNCTION(sinusoidal_positions, void, int64_t, int64_t, float *),
    FUNCTION(rotary_positions, void, int64_t, int64_t, float *),
    FUNCTION(extend_beam, int64_t, const Model *, const BeamOptions *, Beam *, const BestTokens *, Failure *),
};

/* Return the types of all functions but this and struct_layout, and write their number to `count`. */
const Function *function_types(int64_t *count) {
    *count = sizeof SIGNATURES / sizeof *SIGNATURES;
    return SIGNATURES;
}
#endif
