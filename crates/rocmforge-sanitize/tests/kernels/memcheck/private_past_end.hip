// Each thread counts into an array of its own; one value has no counter.
//
//# [[launch]]
//# kernel = "faulty"
//# block = 32
//# args = ["u32[32] 5000", "u32[32]", 3]
#include "faulty.h"

KERNEL faulty(const u32 *x, u32 *y, u32 probe) {
    u32 count[128];
    for (u32 k = 0; k < 128; ++k) count[k] = k;
    u32 t = rf_thread();
    count[x[t]] += 1; // FAULT: ScratchOutOfBounds
    y[t] = count[probe];
}

KERNEL correct(const u32 *x, u32 *y, u32 probe) {
    u32 count[128];
    for (u32 k = 0; k < 128; ++k) count[k] = k;
    u32 t = rf_thread();
    count[x[t] % 128] += 1;
    y[t] = count[probe];
}
