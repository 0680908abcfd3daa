// A message from one group to the next: the data, then a flag. The flag is an ordinary variable.
//
//# [[launch]]
//# kernel = "faulty"
//# grid = 2
//# block = 32
//# args = ["u32[1] zeros", "u32[1] zeros", "u32[2]"]
#include "faulty.h"

KERNEL faulty(u32 *data, u32 *flag, u32 *y) {
    if (rf_thread() != 0) return;
    u32 got = 0;
    if (rf_block_x() == 0) {
        *data = 42; // ALSO: GlobalRace
        __builtin_amdgcn_fence(__ATOMIC_RELEASE, "agent");
        *flag = 1; // FAULT: GlobalRace
    } else if (*flag == 1) { // FAULT: GlobalRace
        got = *(volatile u32 *)data; // ALSO: GlobalRace
    }
    y[rf_block_x()] = got;
}

KERNEL correct(u32 *data, u32 *flag, u32 *y) {
    if (rf_thread() != 0) return;
    u32 got = 0;
    if (rf_block_x() == 0) {
        *data = 42;
        atomic_store(flag, 1u, RELEASE, DEVICE);
    } else if (atomic_load(flag, ACQUIRE, DEVICE) == 1) {
        got = *(volatile u32 *)data;
    }
    y[rf_block_x()] = got;
}
