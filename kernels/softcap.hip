// y = cap * tanh(x / cap): keeps x between -cap and cap, as Gemma 2 does with its logits. y may be x.
#include "include/math.h"
#include "include/team.h"

RF_KERNEL(RF_FLAT_BLOCK) softcap(const float *x, float *y, u64 n, float cap) {
    u64 i = rf_flat4();
    u32 count = rf_left4(i, n);
    f4 v = rf_load4(x + i, count);
    float inverse = 1.0f / cap;
#pragma unroll
    for (u32 e = 0; e < 4; ++e) v[e] = rf_softcap(v[e], cap, inverse);
    rf_store4(y + i, v, count);
}
