// A counter that starts in the middle of a word.
//
//# [[launch]]
//# kernel = "faulty"
//# block = 32
//# args = ["u32[2] zeros"]
#include "faulty.h"

KERNEL faulty(u8 *bytes) {
    atomic_add((u32 *)(bytes + 2), 1u, RELAXED, DEVICE); // FAULT: Misaligned
}

KERNEL correct(u8 *bytes) {
    atomic_add((u32 *)(bytes + 4), 1u, RELAXED, DEVICE);
}
