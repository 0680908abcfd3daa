// The groups wait for the last. A card does not hold all of them at a time, and the last starts when others have ended.
//
//# budget = 4000000
//#
//# [[launch]]
//# kernel = "faulty"
//# grid = 200
//# block = 1024
//# args = ["u32[2] zeros", "u32[200]"]
#include "faulty.h"

KERNEL faulty(u32 *flag, u32 *y) {
    if (rf_thread() != 0) return;
    u32 group = rf_block_x();
    // Whichever comes last.
    if (atomic_add(flag + 1, 1u, RELAXED, DEVICE) == 199) atomic_store(flag, 1u, RELEASE, DEVICE);
    while (atomic_load(flag, ACQUIRE, DEVICE) == 0) // FAULT: EndlessKernel
        __builtin_amdgcn_s_sleep(1); // FAULT: EndlessKernel
    y[group] = group;
}

// Groups number themselves by the order in which they start, and wait for earlier ones only.
KERNEL correct(u32 *tickets, u32 *y) {
    if (rf_thread() != 0) return;
    u32 group = atomic_add(tickets, 1u, ACQ_REL, DEVICE);
    while (atomic_load(tickets, ACQUIRE, DEVICE) <= group)
        __builtin_amdgcn_s_sleep(1);
    y[group] = group;
}
