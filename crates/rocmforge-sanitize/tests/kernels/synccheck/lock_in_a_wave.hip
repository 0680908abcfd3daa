// A spin lock taken by each lane: the lane that has it waits for the others to leave the loop, which they never do.
//
//# budget = 20000
//#
//# [[launch]]
//# kernel = "faulty"
//# block = 32
//# args = ["u32[1] zeros", "u32[1] zeros"]
#include "faulty.h"

KERNEL faulty(u32 *lock, u32 *sum) {
    while (atomic_exchange(lock, 1u, ACQUIRE, DEVICE) != 0) // FAULT: EndlessKernel
        __builtin_amdgcn_s_sleep(1); // FAULT: EndlessKernel
    *sum += rf_thread();
    atomic_store(lock, 0u, RELEASE, DEVICE);
}

// (Doing the work inside of the loop and leaving it afterwards is no way out: clang moves the work behind the loop again.)
KERNEL correct(u32 *, u32 *sum) {
    atomic_add(sum, rf_thread(), RELAXED, DEVICE);
}
