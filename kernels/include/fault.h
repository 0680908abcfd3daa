// Indices that the kernel reads from memory and finds out of range: nobody could check them before.
//
// A fault is one word, tag << 52 | position << 32 | index, and the smallest of all launches on the same word stays. An atomic
// minimum is taken only for a fault; no result depends on the order of its calls.
#pragma once
#include "rf.h"

RF_DEVICE void rf_fault(u64 *word, u32 tag, u32 position, u32 index) {
    rf_atomic_min(word, (u64)tag << 52 | (u64)rf_min(position, (1u << 20) - 1) << 32 | index);
}
