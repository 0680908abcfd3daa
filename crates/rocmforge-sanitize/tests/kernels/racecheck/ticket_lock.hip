// Groups take turns by tickets, and one thread of each calls the next when the others are done. Without a fence before the barrier the next
// group may come before the stores of the last. With it, the call itself has no store to wait for.
//
//# [buffers]
//# tickets = "u32[2] zeros"
//# sums = "u32[64] zeros"
//#
//# [[launch]]
//# kernel = "faulty"
//# grid = 4
//# block = 64
//# args = ["tickets", "sums"]
#include "faulty.h"

KERNEL faulty(u32 *tickets, u32 *sums) {
    SHARED u32 ticket;
    u32 t = rf_thread();
    if (t == 0) {
        ticket = atomic_add(&tickets[0], 1u, RELAXED, DEVICE);
        while (atomic_load(&tickets[1], ACQUIRE, DEVICE) != ticket) __builtin_amdgcn_s_sleep(1);
    }
    rf_barrier();
    sums[t] += 1; // FAULT: GlobalRace
    if (t == 0) atomic_store(&tickets[1], ticket + 1, RELEASE, DEVICE);
}

KERNEL correct(u32 *tickets, u32 *sums) {
    SHARED u32 ticket;
    u32 t = rf_thread();
    if (t == 0) {
        ticket = atomic_add(&tickets[0], 1u, RELAXED, DEVICE);
        while (atomic_load(&tickets[1], ACQUIRE, DEVICE) != ticket) __builtin_amdgcn_s_sleep(1);
    }
    rf_barrier();
    sums[t] += 1;
    device_fence();
    rf_barrier();
    if (t == 0) atomic_store(&tickets[1], ticket + 1, RELEASE, DEVICE);
}
