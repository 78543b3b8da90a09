/* Rows quantized to 8 bits, and their products with weights of 8 bits, which are exact in 32 bits: the same integers on
   every processor.

   Four inputs of a row are a word of 32 bits, and so are the weights of these inputs to one output (in WebAssembly two
   inputs, of 16 bits). A vector of weights holds a word of LANES outputs. */

#pragma once

#include "vectors.h"

#ifdef __wasm__
typedef int16_t Quantized;
#else
typedef int8_t Quantized;
#endif

#define WORD_INPUTS ((int64_t)(4 / sizeof(Quantized)))
#define WORDS(inputs) (((inputs) + WORD_INPUTS - 1) / WORD_INPUTS)
#define QUANTIZED_SIZE(rows, inputs) ((rows) * (WORDS(inputs) + 2) + BLOCK) /* in floats */

typedef int32_t Word __attribute__((may_alias));
typedef int_vec unaligned_words __attribute__((aligned(4), may_alias));

/* Rows (R, I) as integers from -127 to 127 times a scale; zeros fill the last word. */
typedef struct {
    float *scales; /* (R) */
    Word *starts;  /* (R) initial value of sums: -DOT_OFFSET times the sum of the integers, where `dot` */
    Word *words;   /* (R, WORDS(I)), and BLOCK words that are written */
} QuantizedRows;

#if defined(__wasm__) || defined(NO_DOT_PRODUCTS)
#define DOT_PRODUCTS 0
#elif defined(__AVX2__) || (defined(__aarch64__) && (defined(__linux__) || defined(__ARM_FEATURE_DOTPROD)))
#define DOT_PRODUCTS 1 /* the processor may multiply and add four bytes in one instruction */
#else
#define DOT_PRODUCTS 0
#endif

/* The instruction of x86 multiplies by weights without a sign: weights + 128. */
#ifdef __x86_64__
#define DOT_OFFSET 128
#else
#define DOT_OFFSET 0
#endif

#if DOT_PRODUCTS && defined(__x86_64__)
#include <cpuid.h>
#elif DOT_PRODUCTS && defined(__linux__)
#include <sys/auxv.h>
#endif

#if DOT_PRODUCTS
static int has_dot_products; /* set when the library is loaded */

__attribute__((constructor)) static void find_dot_products(void) {
#if defined(__x86_64__)
    unsigned a = 0, b = 0, c = 0, d = 0;
#if defined(__AVX512F__)
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) has_dot_products = c >> 11 & 1; /* AVX512_VNNI */
#else
    if (__get_cpuid_count(7, 1, &a, &b, &c, &d)) has_dot_products = a >> 4 & 1; /* AVX-VNNI */
#endif
#elif defined(__ARM_FEATURE_DOTPROD)
    has_dot_products = 1;
#else
    has_dot_products = getauxval(AT_HWCAP) >> 20 & 1; /* ASIMDDP */
#endif
}
#endif

/* Return sums + the products of the words of weights and inputs, whose bytes are from -127 to 127. `dot`: by the
   instruction that has_dot_products found. */
INLINE int_vec add_products(int_vec sums, int_vec weights, int_vec inputs, int dot) {
#if DOT_PRODUCTS && defined(__AVX512F__)
    if (dot) {
        __asm__("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(weights ^ (int_vec)_mm512_set1_epi8(-128)), "v"(inputs));
        return sums;
    }
#elif DOT_PRODUCTS && defined(__AVX2__)
    if (dot) {
        __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sums) : "x"(weights ^ (int_vec)_mm256_set1_epi8(-128)), "x"(inputs));
        return sums;
    }
#elif DOT_PRODUCTS && defined(__ARM_FEATURE_DOTPROD)
    if (dot) return (int_vec)vdotq_s32((int32x4_t)sums, (int8x16_t)weights, (int8x16_t)inputs);
#elif DOT_PRODUCTS
    if (dot) {
        __asm__(".arch armv8.2-a+dotprod\n\tsdot %0.4s, %1.16b, %2.16b" : "+w"(sums) : "w"(weights), "w"(inputs));
        return sums;
    }
#else
    (void)dot;
#endif
    /* Without it, x86 multiplies magnitudes by signed numbers and adds pairs, at most 2 x 127 x 127 < 2^15. */
#if defined(__AVX512F__)
    const __m512i w = (__m512i)weights, x = (__m512i)inputs;
    const __m512i signed_x = _mm512_mask_sub_epi8(x, _mm512_movepi8_mask(w), _mm512_setzero_si512(), x);
    const __m512i pairs = _mm512_maddubs_epi16(_mm512_abs_epi8(w), signed_x);
    return sums + (int_vec)_mm512_madd_epi16(pairs, _mm512_set1_epi16(1));
#elif defined(__AVX2__)
    const __m256i w = (__m256i)weights;
    const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8((__m256i)inputs, w));
    return sums + (int_vec)_mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
#elif defined(__SSSE3__)
    const __m128i w = (__m128i)weights;
    const __m128i pairs = _mm_maddubs_epi16(_mm_abs_epi8(w), _mm_sign_epi8((__m128i)inputs, w));
    return sums + (int_vec)_mm_madd_epi16(pairs, _mm_set1_epi16(1));
#elif defined(__aarch64__)
    const int8x16_t w = (int8x16_t)weights, x = (int8x16_t)inputs;
    const int32x4_t low = vpaddlq_s16(vmull_s8(vget_low_s8(w), vget_low_s8(x)));
    return sums + (int_vec)vpaddq_s32(low, vpaddlq_s16(vmull_high_s8(w, x)));
#elif defined(__wasm_simd128__)
    return sums + (int_vec)wasm_i32x4_dot_i16x8((v128_t)weights, (v128_t)inputs);
#else
    union { int_vec words; int8_t bytes[4 * LANES]; } w = {weights}, x = {inputs};
    for (int k = 0; k < 4 * LANES; k++) sums[k / 4] += w.bytes[k] * x.bytes[k];
    return sums;
#endif
}

/* Store LANES integers from -127 to 127. */
INLINE void store_quantized(int_vec x, Quantized *to) {
#if defined(__AVX512F__)
    _mm_storeu_si128((__m128i *)to, _mm512_cvtepi32_epi8((__m512i)x));
#elif defined(__AVX2__)
    const __m128i low = _mm256_castsi256_si128((__m256i)x), high = _mm256_extracti128_si256((__m256i)x, 1);
    const __m128i eight = _mm_packs_epi32(low, high);
    _mm_storel_epi64((__m128i *)to, _mm_packs_epi16(eight, eight));
#elif defined(__SSE2__)
    const __m128i four = _mm_packs_epi32((__m128i)x, (__m128i)x);
    *(Word *)to = _mm_cvtsi128_si32(_mm_packs_epi16(four, four));
#elif defined(__wasm_simd128__)
    wasm_v128_store64_lane(to, wasm_i16x8_narrow_i32x4((v128_t)x, (v128_t)x), 0);
#else
    for (int k = 0; k < LANES; k++) to[k] = (Quantized)x[k];
#endif
}

/* Quantize rows (R, I): integer = input x 127 / largest magnitude of the row, rounded, ties to even. A row with an
   input that is not finite gets the scale NaN. `floats`: workspace, QUANTIZED_SIZE(rows, inputs). */
static QuantizedRows quantize_rows(const float *x, int64_t rows, int64_t inputs, int dot, float *floats) {
    const QuantizedRows to = {floats, (Word *)(floats + rows), (Word *)(floats + 2 * rows)};
    for (int64_t r = 0; r < rows; r++) {
        const float *row = x + r * inputs;
        Quantized *integers = (Quantized *)(to.words + r * WORDS(inputs));
        union { int_vec lanes; int32_t numbers[LANES]; } largest = {{0}}, total = {{0}};
        for (int64_t i = 0; i < inputs; i += LANES) {
            const int_vec bits = (int_vec)load_floats(row + i, inputs - i) & 0x7fffffff;
            largest.lanes = (int_vec)select_lanes(bits > largest.lanes, (vec)bits, (vec)largest.lanes);
        }
        union { int32_t bits; float value; } magnitude = {0};
        for (int k = 0; k < LANES; k++)
            if (largest.numbers[k] > magnitude.bits) magnitude.bits = largest.numbers[k];
        const int finite = magnitude.bits < 0x7f800000;
        const float divisor = finite && magnitude.value > 1e-30f ? magnitude.value : 1e-30f;
        const float factor = finite ? 127 / divisor : 0;
        for (int64_t i = 0; i < inputs; i += LANES) { /* adding 1.5 x 2^23 rounds to an integer, in the low bits */
            const vec rounded = load_floats(row + i, inputs - i) * factor + 12582912.0f;
            const int_vec quantized = (int_vec)rounded - 0x4b400000;
            total.lanes += quantized;
            store_quantized(quantized, integers + i);
        }
        int32_t sum = 0;
        for (int k = 0; k < LANES; k++) sum += total.numbers[k];
        to.scales[r] = finite ? divisor / 127 : NAN;
        to.starts[r] = finite && dot ? -DOT_OFFSET * sum : 0;
    }
    return to;
}
