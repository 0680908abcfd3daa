// The last lane of each wave reads one element past the wave's part, which the next wave writes, as merge sorts do. Where the element is thrown
// away, nothing depends on the race, whichever of the two waves comes first.
//
//# [buffers]
//# y = "u32[128]"
//#
//# [[launch]]
//# kernel = "faulty"
//# block = 128
//# args = ["y", "u32[128] iota"]
#include "faulty.h"

SHARED volatile u32 keys[132];

// Gives a wave its keys, after all waves have read what was there.
RF_DEVICE u32 fill(const u32 *x) {
    u32 t = rf_thread();
    keys[t] = x[t];
    if (t == 0) keys[128] = 0;
    rf_barrier();
    u32 before = keys[t ^ 64];
    rf_barrier();
    return before;
}

KERNEL faulty(u32 *y, const u32 *x) {
    u32 t = rf_thread(), before = fill(x);
    keys[t] = before * 5 % 128; // FAULT: LdsRace
    u32 mine = keys[t];
    u32 next = keys[t + 1]; // FAULT: LdsRace
    bool is_less = next < mine;
    u32 taken = t % 32 < 32 && is_less ? next : mine;
    rf_barrier();
    y[t] = taken;
}

KERNEL correct(u32 *y, const u32 *x) {
    u32 t = rf_thread(), before = fill(x);
    keys[t] = before * 5 % 128;
    u32 mine = keys[t];
    u32 next = keys[t + 1];
    bool is_less = next < mine;
    u32 taken = t % 32 < 31 && is_less ? next : mine;
    rf_barrier();
    y[t] = taken;
}
