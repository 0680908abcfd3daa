// A loop with a barrier, which each lane leaves after another number of rounds. All of them come to the barrier behind it.
//
//# [[launch]]
//# kernel = "faulty"
//# block = 32
//# args = ["u32[32]", 5]
#include "faulty.h"

KERNEL faulty(u32 *y, u32 n) {
    SHARED u32 sums[32];
    u32 t = rf_thread(), sum = 0;
    for (u32 k = t % 4; k < n; ++k) {
        rf_barrier(); // FAULT: BarrierDivergence
        sum += k * t;
    }
    sums[t] = sum;
    rf_barrier(); // ALSO: BarrierDivergence
    y[t] = sums[31 - t];
}

KERNEL correct(u32 *y, u32 n) {
    SHARED u32 sums[32];
    u32 t = rf_thread(), sum = 0;
    for (u32 k = 0; k < n; ++k) {
        rf_barrier();
        if (k >= t % 4) sum += k * t;
    }
    sums[t] = sum;
    rf_barrier();
    y[t] = sums[31 - t];
}
