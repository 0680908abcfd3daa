// An exchange gives what LDS held before, which nobody has written. That matters only to who uses it.
//
//# [[launch]]
//# kernel = "faulty"
//# block = 64
//# args = ["u32[64]"]
#include "faulty.h"

SHARED u32 slots[64];

KERNEL faulty(u32 *y) {
    u32 t = rf_thread();
    u32 old = atomic_exchange(&slots[t], t, RELAXED, GROUP); // FAULT: UninitialisedLds
    rf_barrier();
    y[t] = slots[63 - t] + old;
}

KERNEL correct(u32 *y) {
    u32 t = rf_thread();
    atomic_exchange(&slots[t], t, RELAXED, GROUP);
    rf_barrier();
    y[t] = slots[63 - t];
}
