// The lanes that find what they look for leave the loop, and come to the barrier behind it; the others wait for them at the next one of the loop.
//
//# [[launch]]
//# kernel = "faulty"
//# block = 64
//# args = ["u32[256] iota", "u32[64]", 4]
#include "faulty.h"

KERNEL faulty(const u32 *x, u32 *y, u32 rounds) {
    SHARED u32 tile[64];
    u32 t = rf_thread(), found = 0xffffffff;
    for (u32 k = 0; k < rounds; ++k) {
        tile[t] = x[64 * k + t];
        rf_barrier(); // FAULT: BarrierDivergence
        if (tile[63 - t] % 7 == 0) {
            found = k;
            break;
        }
        rf_barrier(); // FAULT: BarrierDivergence
    }
    rf_barrier(); // ALSO: BarrierDivergence
    tile[t] = found;
    y[t] = tile[t];
}

KERNEL correct(const u32 *x, u32 *y, u32 rounds) {
    SHARED u32 tile[64];
    u32 t = rf_thread(), found = 0xffffffff;
    for (u32 k = 0; k < rounds; ++k) {
        tile[t] = x[64 * k + t];
        rf_barrier();
        if (tile[63 - t] % 7 == 0 && found == 0xffffffff) found = k;
        rf_barrier();
    }
    tile[t] = found;
    y[t] = tile[t];
}
