/* Vectors of floats, as wide as the processor's registers.

   A vector of 64 bytes would be valid C everywhere, but gcc keeps such a vector in memory where registers are
   narrower. So LANES is the number of floats in one register, and the tiles of linear.h are sized by the number of
   registers.

   Each lane is computed in the same order whatever the index of a row, so that a row's results are the same bits
   whatever is computed beside it. Sums over lanes add BLOCK numbers side by side whatever the register (Block), and
   nothing is contracted to a fused multiply-add (-ffp-contract=off), so that the results are the same bits on every
   processor; only linear layers of weights in float32 and bfloat16 fuse, where the processor can. */

#pragma once

#include <math.h>
#include <stdint.h>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#elif defined(__wasm_simd128__)
#include <wasm_simd128.h>
#endif

/* LANES: floats in a register. TILE_ROWS x TILE_VECS: accumulators of a tile; with TILE_VECS vectors of weights and a
   broadcast input they fill the 16 registers of AVX2 and SSE, and at most the 32 of AVX-512 and NEON. clang keeps
   more than 16 accumulators in memory, and browsers more than 8 of WebAssembly. */
#if defined(__AVX512F__)
#define LANES 16
#define TILE_VECS 4
#ifdef __clang__
#define TILE_ROWS 4
#else
#define TILE_ROWS 6
#endif
#elif defined(__AVX2__)
#define LANES 8
#define TILE_VECS 2
#define TILE_ROWS 6
#elif defined(__aarch64__)
#define LANES 4
#define TILE_VECS 4
#define TILE_ROWS 4
#elif defined(__wasm__)
#define LANES 4
#define TILE_VECS 2
#define TILE_ROWS 4
#else
#define LANES 4
#define TILE_VECS 2
#define TILE_ROWS 6
#endif

#ifdef __clang__
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 32")
#endif
#define INLINE static inline __attribute__((always_inline))

#define BLOCK 16              /* numbers that a sum adds side by side on every processor */
#define PARTS (BLOCK / LANES) /* registers of a block */

typedef float vec __attribute__((vector_size(4 * LANES)));
typedef int32_t int_vec __attribute__((vector_size(4 * LANES)));
typedef float unaligned_vec __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef uint16_t unaligned_uint16 __attribute__((vector_size(2 * LANES), aligned(2), may_alias));
typedef float quad __attribute__((vector_size(16)));
typedef float unaligned_quad __attribute__((vector_size(16), aligned(4), may_alias));
typedef int32_t int_quad __attribute__((vector_size(16)));

enum { NO_ACTIVATION, RELU, GELU, GELU_TANH, SWISH, SWIGLU }; /* Activation, applied to the outputs of a linear layer */

/* Widen LANES numbers of 16 bits to floats, by intrinsics: compilers convert the general form lane by lane. */
INLINE vec from_bfloat16(const uint16_t *x) {
#if defined(__AVX512F__)
    return (vec)_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)x)), 16);
#elif defined(__AVX2__)
    return (vec)_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)x)), 16);
#elif defined(__SSE2__)
    return (vec)_mm_unpacklo_epi16(_mm_setzero_si128(), _mm_loadl_epi64((const __m128i *)x));
#elif defined(__aarch64__)
    return (vec)vshll_n_u16(vld1_u16(x), 16);
#elif defined(__wasm_simd128__)
    return (vec)wasm_i32x4_shl(wasm_u32x4_load16x4(x), 16);
#else
    return (vec)(__builtin_convertvector(*(const unaligned_uint16 *)x, int_vec) << 16);
#endif
}

INLINE vec broadcast(float x) { return x - (vec){0}; }

/* Load LANES floats, or `count` floats and a value for the others where count < LANES. */
INLINE vec load_floats_or(const float *x, int64_t count, float missing) {
    if (count >= LANES) return *(const unaligned_vec *)x;
    vec loaded = broadcast(missing);
    for (int k = 0; k < count; k++) loaded[k] = x[k];
    return loaded;
}

INLINE vec load_floats(const float *x, int64_t count) { return load_floats_or(x, count, 0); }

/* Store LANES floats, or the first `count` where count < LANES. */
INLINE void store_floats(vec values, float *y, int64_t count) {
    if (count >= LANES) {
        *(unaligned_vec *)y = values;
        return;
    }
    for (int k = 0; k < count; k++) y[k] = values[k];
}

INLINE vec select_lanes(int_vec mask, vec yes, vec no) { return (vec)((mask & (int_vec)yes) | (~mask & (int_vec)no)); }

/* Return sum + a b, fused where the processor can. */
INLINE vec multiply_add(vec sum, vec a, float b) {
#if defined(__AVX512F__)
    return (vec)_mm512_fmadd_ps((__m512)a, _mm512_set1_ps(b), (__m512)sum);
#elif defined(__FMA__)
    return (vec)_mm256_fmadd_ps((__m256)a, _mm256_set1_ps(b), (__m256)sum);
#elif defined(__aarch64__)
    return (vec)vfmaq_n_f32((float32x4_t)sum, (float32x4_t)a, b);
#else
    return sum + a * b;
#endif
}

typedef struct {
    vec parts[PARTS];
} Block;

/* Return four partial sums of a block: lane k is ((k) + (k + 8)) + ((k + 4) + (k + 12)). */
INLINE quad fold_block(Block x) {
#if LANES == 16
    const __m512 all = (__m512)x.parts[0];
    const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(all), _mm512_extractf32x8_ps(all, 1));
    return (quad)_mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
#elif LANES == 8
    const __m256 eight = (__m256)(x.parts[0] + x.parts[1]);
    return (quad)_mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
#else
    return (x.parts[0] + x.parts[2]) + (x.parts[1] + x.parts[3]);
#endif
}

INLINE float sum_block(Block x) {
    const quad four = fold_block(x);
    return (four[0] + four[2]) + (four[1] + four[3]);
}

/* Return e^x with a relative error of 2e-7, 0 below -87, infinity above 88, NaN of NaN: e^x = 2^n e^r with n an integer and
   |r| <= ln 2 / 2 (Cody and Waite 1980), e^r by its Taylor series to the sixth power. */
INLINE vec exp_lanes(vec x) {
    const vec large = broadcast(12582912.0f); /* 1.5 x 2^23: adding and subtracting it rounds to an integer */
    const vec n = (x * 1.44269504f + large) - large;
    const vec r = x - n * 0.693359375f + n * 2.12194440e-4f;
    const vec series = 1 + r * (1 + r * (1 / 2.f + r * (1 / 6.f + r * (1 / 24.f + r * (1 / 120.f + r * (1 / 720.f))))));
    const vec power = (vec)((__builtin_convertvector(n, int_vec) + 127) << 23);
    const vec finite = select_lanes(x < broadcast(-87.0f), (vec){0}, series * power);
    return select_lanes(x > broadcast(88.0f), broadcast(INFINITY), finite);
}

/* Return the error function with an error of 2e-7 (Abramowitz and Stegun 1964, 7.1.26). */
INLINE vec erf_lanes(vec x) {
    const vec magnitude = select_lanes(x < broadcast(0), -x, x), t = 1 / (1 + 0.3275911f * magnitude);
    const vec high = 1.421413741f + t * (-1.453152027f + t * 1.061405429f);
    const vec erf = 1 - t * (0.254829592f + t * (-0.284496736f + t * high)) * exp_lanes(-magnitude * magnitude);
    return select_lanes(x < broadcast(0), -erf, erf);
}

#ifdef __wasm__ /* once in a small module, instead of once in each tile of linear.h */
static __attribute__((noinline))
#else
INLINE
#endif
vec activate(vec x, int64_t activation) {
    switch (activation) {
    case RELU: return select_lanes(x < broadcast(0), (vec){0}, x); /* NaN stays NaN */
    case GELU: return 0.5f * x * (1 + erf_lanes(x * 0.70710678f));
    case GELU_TANH: /* 1 + tanh a = 2 / (1 + e^-2a) */
        return x / (1 + exp_lanes(-1.59576912f * (x + 0.044715f * x * x * x)));
    case SWISH: return x / (1 + exp_lanes(-x));
    default: return x;
    }
}
