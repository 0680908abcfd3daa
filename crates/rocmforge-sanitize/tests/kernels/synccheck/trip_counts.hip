// A loop with a barrier, which the second wave goes through once more than the first, while that waits at the barrier behind it.
//
//# [[launch]]
//# kernel = "faulty"
//# block = 64
//# args = ["u32[64]", 70]
#include "faulty.h"

KERNEL faulty(u32 *y, u32 n) {
    SHARED u32 turn;
    u32 t = rf_thread(), wave = __builtin_amdgcn_readfirstlane(t / 32), sum = 0;
    for (u32 k = 64 - 32 * wave; k < n; k += 32) {
        if (t == 0) turn = k;
        rf_barrier(); // FAULT: BarrierDivergence
        sum += turn;
    }
    rf_barrier(); // FAULT: BarrierDivergence
    y[t] = sum;
}

KERNEL correct(u32 *y, u32 n) {
    SHARED u32 turn;
    u32 t = rf_thread(), wave = __builtin_amdgcn_readfirstlane(t / 32), sum = 0;
    for (u32 k = 0; k < n; k += 32) {
        if (t == 0) turn = k;
        rf_barrier();
        sum += turn;
        rf_barrier();
    }
    y[t] = sum + wave;
}
