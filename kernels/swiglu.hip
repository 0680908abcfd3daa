// y = silu(gate) * up, with silu(x) = x / (1 + e^-x), and silu alone. y may be one of the operands.
// Shazeer, "GLU Variants Improve Transformer", 2020; the order of the operands is that of LLaMA and Qwen.
#include "include/math.h"
#include "include/team.h"

RF_KERNEL(RF_FLAT_BLOCK) swiglu(const float *gate, const float *up, float *y, u64 n) {
    u64 i = rf_flat4();
    u32 count = rf_left4(i, n);
    f4 g = rf_load4(gate + i, count);
    f4 s = {rf_sigmoid(g.x), rf_sigmoid(g.y), rf_sigmoid(g.z), rf_sigmoid(g.w)};
    rf_store4(y + i, g * s * rf_load4(up + i, count), count);
}

RF_KERNEL(RF_FLAT_BLOCK) silu(const float *x, float *y, u64 n) {
    u64 i = rf_flat4();
    u32 count = rf_left4(i, n);
    f4 v = rf_load4(x + i, count);
    rf_store4(y + i, v * f4{rf_sigmoid(v.x), rf_sigmoid(v.y), rf_sigmoid(v.z), rf_sigmoid(v.w)}, count);
}
