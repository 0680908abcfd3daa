// Gaussian error linear units. y may be x. Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016.
#include "include/math.h"
#include "include/team.h"

// x * Phi(x) with the error function, as BERT has it.
RF_DEVICE float by_erf(float x) {
    float half = 0.5f * x;
    return rf_fma(half, rf_erf(x * 0.70710678118654752440f), half);
}

// The tanh approximation, as GPT-2 has it: 0.5 (1 + tanh u) is the logistic function of 2u.
RF_DEVICE float by_tanh(float x) {
    float u = 0.79788456080286535588f * rf_fma(0.044715f * x * x, x, x);
    return x * rf_sigmoid(2.0f * u);
}

RF_KERNEL(RF_FLAT_BLOCK) gelu_erf(const float *x, float *y, u64 n) {
    u64 i = rf_flat4();
    u32 count = rf_left4(i, n);
    f4 v = rf_load4(x + i, count);
    rf_store4(y + i, f4{by_erf(v.x), by_erf(v.y), by_erf(v.z), by_erf(v.w)}, count);
}

RF_KERNEL(RF_FLAT_BLOCK) gelu_tanh(const float *x, float *y, u64 n) {
    u64 i = rf_flat4();
    u32 count = rf_left4(i, n);
    f4 v = rf_load4(x + i, count);
    rf_store4(y + i, f4{by_tanh(v.x), by_tanh(v.y), by_tanh(v.z), by_tanh(v.w)}, count);
}

// gelu(gate) * up by the tanh approximation, as Gemma has it.
RF_KERNEL(RF_FLAT_BLOCK) geglu(const float *gate, const float *up, float *y, u64 n) {
    u64 i = rf_flat4();
    u32 count = rf_left4(i, n);
    f4 v = rf_load4(gate + i, count);
    rf_store4(y + i, f4{by_tanh(v.x), by_tanh(v.y), by_tanh(v.z), by_tanh(v.w)} * rf_load4(up + i, count), count);
}
