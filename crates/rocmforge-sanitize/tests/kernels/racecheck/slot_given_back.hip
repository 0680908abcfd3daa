// Two groups pass values through one slot. The reader gives the slot back while a store of its own to elsewhere is under way, which does not matter;
// to give it back before the value has been read does.
//
//# [buffers]
//# turn = "u32[1] zeros"
//# slot = "u32[1] zeros"
//#
//# [[launch]]
//# kernel = "faulty"
//# grid = 2
//# block = 32
//# args = ["turn", "slot", "u32[8] zeros"]
#include "faulty.h"

KERNEL faulty(u32 *turn, u32 *slot, u32 *y) {
    if (rf_thread() != 0) return;
    if (rf_block_x() == 0) {
        for (u32 i = 0; i < 4; i++) {
            while (atomic_load(turn, ACQUIRE, DEVICE) != 2 * i) __builtin_amdgcn_s_sleep(1);
            *slot = i; // FAULT: GlobalRace
            atomic_store(turn, 2 * i + 1, RELEASE, DEVICE);
        }
    } else {
        for (u32 i = 0; i < 4; i++) {
            while (atomic_load(turn, ACQUIRE, DEVICE) != 2 * i + 1) __builtin_amdgcn_s_sleep(1);
            atomic_store(turn, 2 * i + 2, RELEASE, DEVICE);
            y[i] = *slot; // FAULT: GlobalRace
        }
    }
}

KERNEL correct(u32 *turn, u32 *slot, u32 *y) {
    if (rf_thread() != 0) return;
    if (rf_block_x() == 0) {
        for (u32 i = 0; i < 4; i++) {
            while (atomic_load(turn, ACQUIRE, DEVICE) != 2 * i) __builtin_amdgcn_s_sleep(1);
            *slot = i;
            atomic_store(turn, 2 * i + 1, RELEASE, DEVICE);
        }
    } else {
        for (u32 i = 0; i < 4; i++) {
            while (atomic_load(turn, ACQUIRE, DEVICE) != 2 * i + 1) __builtin_amdgcn_s_sleep(1);
            u32 value = *slot;
            atomic_store(turn, 2 * i + 2, RELEASE, DEVICE);
            y[i] = value;
        }
    }
}
