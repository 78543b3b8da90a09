/* Vectors of floats, as wide as the processor's registers.

   A vector of 64 bytes would be valid C everywhere, but gcc keeps such a vector in memory where registers are
   narrower. So LANES is what one register holds, and the tiles of product.h are sized by the number of registers.

   Each lane is computed in the same order wherever a row stands, so that a row's results are the same bits whatever
   is computed beside it. */

#pragma once

#include <math.h>
#include <stdint.h>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

/* LANES: floats in a register. TILE_ROWS x TILE_VECS: accumulators of a tile; with TILE_VECS vectors of weights and a
   broadcast input they fill the 16 registers of AVX2 and SSE, and at most the 32 of AVX-512 and NEON. clang keeps
   more than 16 accumulators in memory. */
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

typedef float vec __attribute__((vector_size(4 * LANES)));
typedef int32_t whole __attribute__((vector_size(4 * LANES)));
typedef float float_at __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef uint16_t half_at __attribute__((vector_size(2 * LANES), aligned(2), may_alias));
typedef int32_t int_at __attribute__((aligned(1), may_alias));
typedef int8_t byte_at __attribute__((vector_size(LANES), aligned(1), may_alias));

enum { KEEP, RELU, GELU, GELU_TANH, SWISH, SWIGLU }; /* what is done to the outputs of a product */

/* Widen LANES numbers of 16 or 8 bits; compilers take the general form apart number by number. */
INLINE vec from_bfloat16(const uint16_t *x) {
#if defined(__AVX512F__)
    return (vec)_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)x)), 16);
#elif defined(__AVX2__)
    return (vec)_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)x)), 16);
#elif defined(__SSE2__)
    return (vec)_mm_unpacklo_epi16(_mm_setzero_si128(), _mm_loadl_epi64((const __m128i *)x));
#elif defined(__aarch64__)
    return (vec)vshll_n_u16(vld1_u16(x), 16);
#else
    return (vec)(__builtin_convertvector(*(const half_at *)x, whole) << 16);
#endif
}

INLINE vec from_int8(const int8_t *x) {
#if defined(__AVX512F__)
    return (vec)_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)x)));
#elif defined(__AVX2__)
    return (vec)_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)x)));
#elif defined(__SSE2__)
    const __m128i four = _mm_cvtsi32_si128(*(const int_at *)x), pairs = _mm_unpacklo_epi8(four, four);
    return (vec)_mm_cvtepi32_ps(_mm_srai_epi32(_mm_unpacklo_epi16(pairs, pairs), 24));
#elif defined(__aarch64__)
    const int8x8_t eight = vreinterpret_s8_s32(vdup_n_s32(*(const int_at *)x));
    return (vec)vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(eight))));
#else
    return __builtin_convertvector(__builtin_convertvector(*(const byte_at *)x, whole), vec);
#endif
}

/* The first of a row's next `count` floats; zeros where there are fewer. */
INLINE vec some_at(const float *x, int64_t count) {
    if (count >= LANES) return *(const float_at *)x;
    vec found = {0};
    for (int k = 0; k < count; k++) found[k] = x[k];
    return found;
}

INLINE void put_some(vec values, float *y, int64_t count) {
    if (count >= LANES) {
        *(float_at *)y = values;
        return;
    }
    for (int k = 0; k < count; k++) y[k] = values[k];
}

INLINE vec chosen(whole where, vec yes, vec no) { return (vec)((where & (whole)yes) | (~where & (whole)no)); }

INLINE vec all_of(float x) { return (vec){0} + x; }

INLINE float sum_of(vec x) {
    float sum = 0;
    for (int k = 0; k < LANES; k++) sum += x[k];
    return sum;
}

/* e^x to 2e-7 of it, 0 below -87, no number of what is none: e^x = 2^n e^r with n whole and |r| <= ln 2 / 2 (Cody and
   Waite 1980), e^r by its series to the sixth power. */
INLINE vec exp_of(vec x) {
    const vec large = all_of(12582912.0f); /* 1.5 x 2^23: what is added to it and taken off again is rounded */
    const vec bounded = chosen(x > all_of(88.0f), all_of(88.0f), x);
    const vec n = (bounded * 1.44269504f + large) - large;
    const vec r = bounded - n * 0.693359375f + n * 2.12194440e-4f;
    const vec series = 1 + r * (1 + r * (1 / 2.f + r * (1 / 6.f + r * (1 / 24.f + r * (1 / 120.f + r * (1 / 720.f))))));
    const vec power = (vec)((__builtin_convertvector(n, whole) + 127) << 23);
    return chosen(x < all_of(-87.0f), (vec){0}, series * power);
}

/* The error function to 2e-7 (Abramowitz and Stegun 1964, 7.1.26). */
INLINE vec erf_of(vec x) {
    const vec size = chosen(x < all_of(0), -x, x), t = 1 / (1 + 0.3275911f * size);
    const vec high = 1.421413741f + t * (-1.453152027f + t * 1.061405429f);
    const vec found = 1 - t * (0.254829592f + t * (-0.284496736f + t * high)) * exp_of(-size * size);
    return chosen(x < all_of(0), -found, found);
}

INLINE vec activated(vec x, int64_t activation) {
    switch (activation) {
    case RELU: return chosen(x < all_of(0), (vec){0}, x); /* what is no number stays none */
    case GELU: return 0.5f * x * (1 + erf_of(x * 0.70710678f));
    case GELU_TANH: /* 1 + tanh a = 2 / (1 + e^-2a) */
        return x / (1 + exp_of(-1.59576912f * (x + 0.044715f * x * x * x)));
    case SWISH: return x / (1 + exp_of(-x));
    default: return x;
    }
}
