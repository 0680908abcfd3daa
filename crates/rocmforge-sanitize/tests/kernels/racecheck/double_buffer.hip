// Two buffers and one barrier to a round: right as long as the round after next waits, which it does only if the barrier
// stands between filling and reading. Here it stands behind both.
//
//# [[launch]]
//# kernel = "faulty"
//# block = 64
//# args = ["f32[256] iota", "f32[64]", 4]
#include "faulty.h"

KERNEL faulty(const float *x, float *y, u32 rounds) {
    SHARED float tile[2][64];
    u32 t = rf_thread();
    float sum = 0.0f;
    for (u32 k = 0; k < rounds; ++k) {
        tile[k % 2][t] = x[64 * k + t]; // FAULT: LdsRace
        sum += tile[k % 2][63 - t]; // FAULT: LdsRace ALSO: UninitialisedLds
        rf_barrier();
    }
    y[t] = sum;
}

KERNEL correct(const float *x, float *y, u32 rounds) {
    SHARED float tile[2][64];
    u32 t = rf_thread();
    float sum = 0.0f;
    for (u32 k = 0; k < rounds; ++k) {
        tile[k % 2][t] = x[64 * k + t];
        rf_barrier();
        sum += tile[k % 2][63 - t];
    }
    y[t] = sum;
}
