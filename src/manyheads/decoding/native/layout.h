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
#define STRUCT(type) {#type, 0, sizeof(type), #type}
#define FIELD(type, name) \
    {#type "." #name, offsetof(type, name), sizeof(((type *)0)->name), TYPE(((type *)0)->name)}
#define CONSTANT(type, name) {#name, name, 0, #type}

static const Field LAYOUT[] = {
    STRUCT(Linear),
    FIELD(Linear, weight),
    FIELD(Linear, scale),
    FIELD(Linear, bias),
    FIELD(Linear, inputs),
    FIELD(Linear, outputs),
    STRUCT(LayerNorm),
    FIELD(LayerNorm, weight),
    FIELD(LayerNorm, bias),
    STRUCT(Layer),
    FIELD(Layer, self_qkv),
    FIELD(Layer, self_out),
    FIELD(Layer, cross_query),
    FIELD(Layer, cross_out),
    FIELD(Layer, expand),
    FIELD(Layer, contract),
    STRUCT(Heads),
    FIELD(Heads, weights),
    FIELD(Heads, factors),
    FIELD(Heads, vectors),
    STRUCT(Model),
    FIELD(Model, layers),
    FIELD(Model, norms),
    FIELD(Model, embedding),
    FIELD(Model, embedding_norm),
    FIELD(Model, output),
    FIELD(Model, num_layers),
    FIELD(Model, d_model),
    FIELD(Model, num_heads),
    FIELD(Model, d_ff),
    FIELD(Model, vocabulary),
    FIELD(Model, format),
    FIELD(Model, activation),
    FIELD(Model, pre_norm),
    FIELD(Model, embedding_scale),
    FIELD(Model, norm_epsilon),
    STRUCT(EncoderInput),
    FIELD(EncoderInput, tokens),
    FIELD(EncoderInput, sentence_ids),
    FIELD(EncoderInput, positions),
    FIELD(EncoderInput, starts),
    FIELD(EncoderInput, position_signals),
    FIELD(EncoderInput, rotary),
    FIELD(EncoderInput, sentences),
    FIELD(EncoderInput, max_length),
    FIELD(EncoderInput, heads),
    FIELD(EncoderInput, output),
    STRUCT(Step),
    FIELD(Step, tokens),
    FIELD(Step, position_signal),
    FIELD(Step, rotary),
    FIELD(Step, cache),
    FIELD(Step, cache_bias),
    FIELD(Step, visible),
    FIELD(Step, memory),
    FIELD(Step, source_bias),
    FIELD(Step, sentences),
    FIELD(Step, rows),
    FIELD(Step, length),
    FIELD(Step, capacity),
    FIELD(Step, num_visible),
    FIELD(Step, source_length),
    FIELD(Step, source_capacity),
    FIELD(Step, shared_cache),
    FIELD(Step, num_later),
    FIELD(Step, self_heads),
    FIELD(Step, cross_heads),
    STRUCT(BestTokens),
    FIELD(BestTokens, count),
    FIELD(BestTokens, num_suppressed),
    FIELD(BestTokens, suppressed),
    FIELD(BestTokens, values),
    FIELD(BestTokens, tokens),
    STRUCT(BeamOptions),
    FIELD(BeamOptions, beam_size),
    FIELD(BeamOptions, n_best),
    FIELD(BeamOptions, eos),
    FIELD(BeamOptions, signal_stride),
    FIELD(BeamOptions, rotary_stride),
    FIELD(BeamOptions, divisors),
    FIELD(BeamOptions, no_repeat_ngram),
    FIELD(BeamOptions, top_k),
    FIELD(BeamOptions, temperature),
    FIELD(BeamOptions, top_p),
    STRUCT(Failure),
    FIELD(Failure, quantity),
    FIELD(Failure, value),
    FIELD(Failure, low),
    FIELD(Failure, high),
    STRUCT(Node),
    FIELD(Node, parent),
    FIELD(Node, token),
    FIELD(Node, log_prob),
    STRUCT(Output),
    FIELD(Output, length),
    FIELD(Output, row),
    FIELD(Output, ended),
    FIELD(Output, log_prob),
    STRUCT(Candidate),
    FIELD(Candidate, row),
    FIELD(Candidate, token),
    FIELD(Candidate, log_prob),
    FIELD(Candidate, total),
    STRUCT(Beam),
    FIELD(Beam, step),
    FIELD(Beam, first_row),
    FIELD(Beam, length),
    FIELD(Beam, max_length),
    FIELD(Beam, num_outputs),
    FIELD(Beam, status),
    FIELD(Beam, cancelled),
    FIELD(Beam, latest),
    FIELD(Beam, log_probs),
    FIELD(Beam, best_scores),
    FIELD(Beam, visible),
    FIELD(Beam, next_visible),
    FIELD(Beam, nodes),
    FIELD(Beam, outputs),
    FIELD(Beam, candidates),
    FIELD(Beam, used),
    FIELD(Beam, min_length),
    FIELD(Beam, prefix_length),
    FIELD(Beam, num_forbidden),
    FIELD(Beam, prefix),
    FIELD(Beam, forbidden),
    FIELD(Beam, forbidden_ends),
    FIELD(Beam, history),
    FIELD(Beam, uniform),
    FIELD(Beam, heap),
    CONSTANT(Format, FLOAT32),
    CONSTANT(Format, BFLOAT16),
    CONSTANT(Format, INT8),
    CONSTANT(Activation, NO_ACTIVATION),
    CONSTANT(Activation, RELU),
    CONSTANT(Activation, GELU),
    CONSTANT(Activation, GELU_TANH),
    CONSTANT(Activation, SWISH),
    CONSTANT(Activation, SWIGLU),
    CONSTANT(BeamStatus, BEAM_RUNNING),
    CONSTANT(BeamStatus, BEAM_ENDED),
    CONSTANT(BeamStatus, BEAM_CACHE_FULL),
    CONSTANT(BeamStatus, BEAM_NAN),
    CONSTANT(BeamStatus, BEAM_INVALID),
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
