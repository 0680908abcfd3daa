// The first group waits for the last. Groups need not run at the same time: the last may start when the first has ended.
//
//# budget = 20000
//#
//# [[launch]]
//# kernel = "faulty"
//# grid = 4
//# block = 32
//# args = ["u32[1] zeros", "u32[4]"]
#include "faulty.h"

KERNEL faulty(u32 *flag, u32 *y) {
    if (rf_thread() != 0) return;
    u32 group = rf_block_x();
    if (group == 3) atomic_store(flag, 1u, RELEASE, DEVICE);
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
