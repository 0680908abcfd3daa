// Every wave says that it is the winner.
//
//# [[launch]]
//# kernel = "faulty"
//# block = 96
//# args = ["u32[96]"]
#include "faulty.h"

KERNEL faulty(u32 *y) {
    SHARED u32 winner;
    u32 t = rf_thread();
    if (t % 32 == 0) winner = t / 32; // FAULT: LdsRace
    rf_barrier();
    y[t] = winner;
}

KERNEL correct(u32 *y) {
    SHARED u32 winner;
    u32 t = rf_thread();
    if (t == 0) winner = t / 32;
    rf_barrier();
    y[t] = winner;
}
