// A barrier that waits for LDS alone, in a branch that every other lane takes.
//
//# [[launch]]
//# kernel = "faulty"
//# block = 64
//# args = ["f32[64] iota", "f32[64]"]
#include "faulty.h"

RF_DEVICE void lds_barrier() {
#if defined(__gfx1201__)
    asm volatile("s_wait_dscnt 0x0\n\ts_barrier_signal -1\n\ts_barrier_wait -1" ::: "memory");
#else
    asm volatile("s_waitcnt lgkmcnt(0)\n\ts_barrier" ::: "memory");
#endif
}

KERNEL faulty(const float *x, float *y) {
    SHARED float tile[64];
    u32 t = rf_thread();
    tile[t] = 0.0f;
    if (x[t] > 4.0f) {
        tile[t] = x[t];
        lds_barrier(); // FAULT: BarrierDivergence
    }
    y[t] = tile[t]; // ALSO: BarrierDivergence
}

KERNEL correct(const float *x, float *y) {
    SHARED float tile[64];
    u32 t = rf_thread();
    tile[t] = 0.0f;
    if (x[t] > 4.0f) tile[t] = x[t];
    lds_barrier();
    y[t] = tile[63 - t];
}
