// 64-bit sums in LDS behind a header of one word: every one of them begins in the middle of 8 bytes.
//
//# [[launch]]
//# kernel = "faulty"
//# block = 64
//# args = ["u32[64] iota", "u32[64]"]
#include "faulty.h"

KERNEL faulty(const u32 *x, u32 *y) {
    RF_SHARED u32 lds[64];
    u32 t = rf_thread();
    lds[t] = 0;
    rf_barrier();
    u64 *sums = (u64 *)(lds + 1);
    atomic_add(sums + (t & 15), (u64)x[t], RELAXED, GROUP); // FAULT: Misaligned
    rf_barrier();
    y[t] = lds[t];
}

KERNEL correct(const u32 *x, u32 *y) {
    RF_SHARED u32 lds[64];
    u32 t = rf_thread();
    lds[t] = 0;
    rf_barrier();
    u64 *sums = (u64 *)(lds + 2);
    atomic_add(sums + (t & 15), (u64)x[t], RELAXED, GROUP);
    rf_barrier();
    y[t] = lds[t];
}
