// Transcendental functions without a device library. Errors are those of f32 with a few units in the last place; the
// exponential's absolute error is what the activations need (near 1e-7 of the largest value).
#pragma once
#include "rf.h"

// e^x. 0 for x below about -87.
RF_DEVICE float rf_exp(float x) { return rf_exp2(x * RF_LOG2E); }

// 1 / (1 + e^-x). Written with e^-|x|, so that no intermediate overflows.
RF_DEVICE float rf_sigmoid(float x) {
    float e = rf_exp(-rf_abs(x));
    return (x >= 0.0f ? 1.0f : e) * rf_rcp(1.0f + e);
}

// cap * tanh(x / cap), with an error near 1e-7 of cap. tanh u is twice the logistic function of 2u, less 1.
RF_DEVICE float rf_softcap(float x, float cap, float inverse) {
    float t = rf_sigmoid(2.0f * x * inverse);
    return cap * rf_fma(2.0f, t, -1.0f);
}

// The error function, within about 1.5 units in the last place. A minimax polynomial in x^2 near 0; beyond 0.9277, one minus the
// exponential of a minimax polynomial.
RF_DEVICE float rf_erf(float x) {
    float t = rf_abs(x);
    float s = x * x;
    float far = rf_fma(-1.72853470e-5f, t, 3.83197126e-4f);
    far = rf_fma(far, s, rf_fma(-3.88396438e-3f, t, 2.42546219e-2f));
    far = rf_fma(far, t, -1.06777877e-1f);
    far = rf_fma(far, t, -6.34846687e-1f);
    far = rf_fma(far, t, -1.28717512e-1f);
    far = rf_fma(far, t, -t);
    far = __builtin_copysignf(1.0f - rf_exp(far), x);
    float near = rf_fma(-5.96761703e-4f, s, 4.99119423e-3f);
    near = rf_fma(near, s, -2.67681349e-2f);
    near = rf_fma(near, s, 1.12819925e-1f);
    near = rf_fma(near, s, -3.76125336e-1f);
    near = rf_fma(near, s, 1.28379166e-1f);
    near = rf_fma(near, x, x);
    return t > 0.927734375f ? far : near;
}
