/* Elementary functions in double precision, and tables of positions.

   The functions of a system's C library differ in the last bits from system to system. These are sums and products in
   one order, so that their results are the same bits on every processor and in WebAssembly. */

#pragma once

#include <math.h>
#include <stdint.h>

#define LN_10000 9.210340371976184

typedef union {
    double value;
    int64_t bits; /* sign, 11 bits of the exponent, 52 of the mantissa */
} Double;

/* Round to an integer, ties to even; |x| < 2^51. */
static double round_to_integer(double x) { return (x + 6755399441055744.0) - 6755399441055744.0; }

/* Return e^x: 0 below -708, infinity above 709. e^x = 2^n e^r with an integer n and |r| <= ln 2 / 2. */
static double exponential(double x) {
    if (x < -708) return 0;
    if (!(x < 709)) return x > 0 ? INFINITY : x; /* NaN */
    const double n = round_to_integer(x * 1.4426950408889634);
    const double r = (x - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10;
    const Double power = {.bits = ((int64_t)n + 1023) << 52};
    double series = 1;
    for (int k = 13; k > 0; k--) series = 1 + series * r / k;
    return series * power.value;
}

/* Return the natural logarithm of a number from 1 on; NaN of NaN. ln m = 2 artanh((m - 1) / (m + 1)). */
static double logarithm(double x) {
    if (!(x < INFINITY)) return x;
    Double mantissa = {x};
    int64_t exponent = (mantissa.bits >> 52) - 1023;
    mantissa.bits = (mantissa.bits & 0xfffffffffffff) | (int64_t)1023 << 52;
    if (mantissa.value > 1.4142135623730951) {
        mantissa.value /= 2;
        exponent++;
    }
    const double t = (mantissa.value - 1) / (mantissa.value + 1);
    double series = 0;
    for (int k = 21; k > 0; k -= 2) series = series * t * t + 1.0 / k;
    return (double)exponent * 0.6931471805599453 + 2 * t * series;
}

/* Write cosine and sine of an angle from 0 to 10^6: of the rest of its division by pi / 2, three numbers of 33 bits. */
static void cosine_sine(double angle, float *cosine, float *sine) {
    const double n = round_to_integer(angle * 0.6366197723675814);
    const double r = ((angle - n * 1.57079632673412561417) - n * 6.07710050630396597660e-11) -
                     n * 2.02226624871116645580e-21;
    double c = 1, s = 1;
    for (int k = 16; k > 0; k -= 2) {
        c = 1 - c * r * r / (k * (k - 1));
        s = 1 - s * r * r / (k * (k + 1));
    }
    s *= r;
    const int quarter = (int)n & 3;
    *cosine = (float)(quarter == 0 ? c : quarter == 1 ? -s : quarter == 2 ? -c : s);
    *sine = (float)(quarter == 0 ? s : quarter == 1 ? c : quarter == 2 ? -s : -c);
}

/* Write the sinusoids (count, width) of the positions from 0 on (section 3.5), computed in double precision. */
void sinusoidal_positions(int64_t count, int64_t width, float *table) {
    for (int64_t i = 0; i + 1 < width; i += 2) {
        const double frequency = exponential((double)i * (-LN_10000 / (double)width));
        for (int64_t p = 0; p < count; p++)
            cosine_sine((double)p * frequency, table + p * width + i + 1, table + p * width + i);
    }
}

/* Write the cosines and sines (count, E / 2, 2) of rotary positions from 0 on (Su et al. 2021), of angles in float. */
void rotary_positions(int64_t count, int64_t head_dim, float *table) {
    for (int64_t e = 0; e + 1 < head_dim; e += 2) {
        const float exponent = (float)e * (float)(-LN_10000 / (double)head_dim);
        const float frequency = (float)exponential((double)exponent);
        for (int64_t p = 0; p < count; p++)
            cosine_sine((double)((float)p * frequency), table + p * head_dim + e, table + p * head_dim + e + 1);
    }
}
