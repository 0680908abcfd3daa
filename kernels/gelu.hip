// Gaussian error linear units. y may be x. Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016.
#include "include/functions.h"
#include "include/team.h"

RF_KERNEL(RF_FLAT_BLOCK) gelu_erf(const float *x, float *y, u64 n) {
    u64 i = rf_flat4();
    u32 count = rf_left4(i, n);
    f4 v = rf_load4(x + i, count);
    rf_store4(y + i, f4{rf_gelu_erf(v.x), rf_gelu_erf(v.y), rf_gelu_erf(v.z), rf_gelu_erf(v.w)}, count);
}

RF_KERNEL(RF_FLAT_BLOCK) gelu_tanh(const float *x, float *y, u64 n) {
    u64 i = rf_flat4();
    u32 count = rf_left4(i, n);
    f4 v = rf_load4(x + i, count);
    rf_store4(y + i, f4{rf_gelu_tanh(v.x), rf_gelu_tanh(v.y), rf_gelu_tanh(v.z), rf_gelu_tanh(v.w)}, count);
}

// gelu(gate) * up by the tanh approximation, as Gemma has it.
RF_KERNEL(RF_FLAT_BLOCK) geglu(const float *gate, const float *up, float *y, u64 n) {
    u64 i = rf_flat4();
    u32 count = rf_left4(i, n);
    f4 v = rf_load4(gate + i, count);
    rf_store4(y + i, f4{rf_gelu_tanh(v.x), rf_gelu_tanh(v.y), rf_gelu_tanh(v.z), rf_gelu_tanh(v.w)} * rf_load4(up + i, count), count);
}
