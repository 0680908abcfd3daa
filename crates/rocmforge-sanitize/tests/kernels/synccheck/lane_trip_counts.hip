// A loop with a barrier, which each lane leaves after another number of rounds.
//
//# [[launch]]
//# kernel = "faulty"
//# block = 32
//# args = ["u32[32]", 5]
#include "faulty.h"

KERNEL faulty(u32 *y, u32 n) {
    u32 t = rf_thread(), sum = 0;
    for (u32 k = t % 4; k < n; ++k) {
        rf_barrier(); // FAULT: BarrierDivergence
        sum += k * t;
    }
    y[t] = sum;
}

KERNEL correct(u32 *y, u32 n) {
    u32 t = rf_thread(), sum = 0;
    for (u32 k = 0; k < n; ++k) {
        rf_barrier();
        if (k >= t % 4) sum += k * t;
    }
    y[t] = sum;
}
