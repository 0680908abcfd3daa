// A barrier that waits for LDS alone, so that loads of what comes next stay under way, stands where values go from wave to
// wave through global memory. The corrected kernel hands them over in LDS.
//
//# [[launch]]
//# kernel = "faulty"
//# block = 64
//# args = ["f32[512] iota", "f32[64]", "f32[448]", 7]
#include "faulty.h"

RF_DEVICE void lds_barrier() {
#if defined(__gfx1201__)
    asm volatile("s_wait_dscnt 0x0\n\ts_barrier_signal -1\n\ts_barrier_wait -1" ::: "memory");
#else
    asm volatile("s_waitcnt lgkmcnt(0)\n\ts_barrier" ::: "memory");
#endif
}

KERNEL faulty(const float *x, float *exchange, float *y, u32 rounds) {
    u32 t = rf_thread();
    float next = x[t];
    for (u32 k = 0; k < rounds; ++k) {
        exchange[t] = next * 2.0f; // FAULT: GlobalRace
        next = x[64 * (k + 1) + t];
        lds_barrier();
        y[64 * k + t] = *(volatile float *)&exchange[63 - t]; // FAULT: GlobalRace
    }
}

KERNEL correct(const float *x, float *, float *y, u32 rounds) {
    SHARED float exchange[2][64];
    u32 t = rf_thread();
    float next = x[t];
    for (u32 k = 0; k < rounds; ++k) {
        exchange[k % 2][t] = next * 2.0f;
        next = x[64 * (k + 1) + t];
        lds_barrier();
        y[64 * k + t] = exchange[k % 2][63 - t];
    }
}
