// Functions of one element beyond those of math.h, for the ops that graphs have: exact to a few units in the last place where nothing
// else is said. NaN stays NaN.
#pragma once
#include "math.h"

// e^x. The rounding of x * log2 e is made good, so that large results keep their digits.
RF_DEVICE float rf_exp_exact(float x) {
    x = x > 150.0f ? 150.0f : (x < -150.0f ? -150.0f : x);
    float t = x * RF_LOG2E;
    float rest = rf_fma(x, 1.92596299e-8f, rf_fma(x, RF_LOG2E, -t));
    float y = rf_exp2(t);
    return rf_fma(y, rest * 0.693147181f, y);
}

// e^x - 1. Its series near 0, where the difference would lose digits.
RF_DEVICE float rf_expm1(float x) {
    float p = rf_fma(x, 2.48015873e-5f, 1.98412698e-4f);
    p = rf_fma(x, p, 1.38888889e-3f);
    p = rf_fma(x, p, 8.33333333e-3f);
    p = rf_fma(x, p, 4.16666667e-2f);
    p = rf_fma(x, p, 1.66666667e-1f);
    p = rf_fma(x, p, 0.5f);
    return rf_abs(x) < 0.5f ? rf_fma(x * x, p, x) : rf_exp_exact(x) - 1.0f;
}

// ln(1 + f) for -1/3 <= f <= 1/3: a minimax polynomial.
RF_DEVICE float rf_log1p_near(float f) {
    float s = f * f;
    float r = rf_fma(-0.130187988f, s, -0.121489584f), t = rf_fma(0.140889585f, s, 0.139809534f);
    r = rf_fma(r, s, -0.166845679f);
    t = rf_fma(t, s, 0.200121149f);
    r = rf_fma(r, s, -0.249996364f);
    r = rf_fma(t, f, r);
    r = rf_fma(r, f, 0.333331943f);
    r = rf_fma(r, f, -0.5f);
    return rf_fma(r, s, f);
}

// The natural logarithm: x is 2^e m with m in 2/3 .. 4/3.
RF_DEVICE float rf_log(float x) {
    bool tiny = x < 1.17549435e-38f;
    float a = tiny ? x * 8388608.0f : x;
    u32 bits = __builtin_bit_cast(u32, a);
    u32 e = (bits - 0x3f2aaaabu) & 0xff800000u;
    float m = __builtin_bit_cast(float, bits - e);
    float exponent = rf_fma((float)(i32)e, 1.1920929e-7f, tiny ? -23.0f : 0.0f);
    float y = rf_fma(exponent, 0.693147182f, rf_log1p_near(m - 1.0f));
    if (x > 0.0f && x < RF_INF) return y;
    if (x == 0.0f) return -RF_INF;
    return x < 0.0f ? __builtin_nanf("") : x;
}

// ln(1 + e^x) = max(x, 0) + ln(1 + e^-|x|).
RF_DEVICE float rf_softplus(float x) {
    float e = rf_exp_exact(-rf_abs(x));
    bool near = e < 0.333333f;
    float y = rf_log1p_near(near ? e : 0.5f * (e - 1.0f));
    return (x < 0.0f ? 0.0f : x) + (near ? y : y + 0.693147182f);
}

// tanh |x| = -d / (d + 2) with d = e^(-2 |x|) - 1.
RF_DEVICE float rf_tanh(float x) {
    float d = rf_expm1(-2.0f * rf_abs(x));
    return __builtin_copysignf(-d * rf_rcp(d + 2.0f), x);
}

// x * Phi(x) with the error function, as BERT has it.
RF_DEVICE float rf_gelu_erf(float x) {
    float half = 0.5f * x;
    return rf_fma(half, rf_erf(x * 0.70710678118654752440f), half);
}

// The tanh approximation, as GPT-2 has it: 0.5 (1 + tanh u) is the logistic function of 2u.
RF_DEVICE float rf_gelu_tanh(float x) {
    float u = 0.79788456080286535588f * rf_fma(0.044715f * x * x, x, x);
    return x * rf_sigmoid(2.0f * u);
}

// x / (1 + e^-x)
RF_DEVICE float rf_silu(float x) { return x * rf_sigmoid(x); }

// 2/pi in words, the highest first, after the point.
RF_DEVICE u32 rf_two_over_pi(u32 word) {
    u32 w = word == 0 ? 0x28be60dbu : 0;
    w = word == 1 ? 0x9391054au : w;
    w = word == 2 ? 0x7f09d5f4u : w;
    w = word == 3 ? 0x7d4d3770u : w;
    w = word == 4 ? 0x36d8a566u : w;
    return word == 5 ? 0x4f10e410u : w;
}

// x less its nearest multiple of pi/2; `quadrant` is which, of four. Cody and Waite's three steps, and for large x the product with as
// many bits of 2/pi as matter (Payne and Hanek, 1983).
RF_DEVICE float rf_reduced(float x, u32 &quadrant) {
    if (rf_abs(x) < 48000.0f) {
        float j = __builtin_rintf(x * 0.636619747f);
        quadrant = (u32)(i32)j;
        float r = rf_fma(j, -1.57079601e+0f, x);
        r = rf_fma(j, -3.13916473e-7f, r);
        return rf_fma(j, -5.39030253e-15f, r);
    }
    u32 bits = __builtin_bit_cast(u32, x);
    u32 mantissa = bits << 8 | 0x80000000u;
    u32 e = (bits >> 23 & 255) - 126;
    u32 word = e / 32, shift = e % 32;
    u32 high = word ? rf_two_over_pi(word - 1) : 0, middle = rf_two_over_pi(word), low = rf_two_over_pi(word + 1);
    u32 rest = rf_two_over_pi(word + 2);
    if (shift) {
        high = high << shift | middle >> (32 - shift);
        middle = middle << shift | low >> (32 - shift);
        low = low << shift | rest >> (32 - shift);
    }
    u64 p = (u64)mantissa * low;
    p = (u64)mantissa * middle + (p >> 32);
    p += (u64)(mantissa * high) << 32;
    // Two bits of whole quarter turns, then the fraction; from a half on the next quarter is nearer.
    u32 q = (u32)(p >> 62) + (u32)(p >> 61 & 1);
    i64 fraction = (i64)(p << 2);
    float r = (float)fraction * 8.51530395021638e-20f; // pi/2 / 2^64
    bool negative = bits >> 31;
    quadrant = negative ? 0 - q : q;
    return negative ? -r : r;
}

// sin(x + turns * pi/2)
RF_DEVICE float rf_sine(float x, u32 turns) {
    if (!(rf_abs(x) < RF_INF)) return x - x;
    u32 quadrant;
    float r = rf_reduced(x, quadrant);
    quadrant += turns;
    float s = r * r;
    float sine = rf_fma(2.86567956e-6f, s, -1.98559923e-4f);
    sine = rf_fma(sine, s, 8.33338592e-3f);
    sine = rf_fma(sine, s, -1.66666672e-1f);
    sine = rf_fma(sine, r * s, r);
    float cosine = rf_fma(2.44677067e-5f, s, -1.38877297e-3f);
    cosine = rf_fma(cosine, s, 4.16666567e-2f);
    cosine = rf_fma(cosine, s, -0.5f);
    cosine = rf_fma(cosine, s, 1.0f);
    float y = quadrant & 1 ? cosine : sine;
    return quadrant & 2 ? -y : y;
}

// x limited to low .. high.
RF_DEVICE float rf_clamp(float x, float low, float high) { return x < low ? low : (x > high ? high : x); }
RF_DEVICE float rf_hard_sigmoid(float x) { return rf_clamp((x + 3.0f) * 0.166666672f, 0.0f, 1.0f); }
RF_DEVICE float rf_sign(float x) { return x > 0.0f ? 1.0f : (x < 0.0f ? -1.0f : x * 0.0f); }
