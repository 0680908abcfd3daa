// Two tokens of a batch are appended to the cache at the same position.
//
//# [[launch]]
//# kernel = "faulty"
//# grid = 2
//# block = 32
//# args = ["u32[2] 1", "f32[64] iota", "f32[96]"]
#include "faulty.h"

KERNEL faulty(const u32 *position, const float *k, float *cache) {
    u32 at = position[rf_block_x()];
    cache[at * 32 + rf_thread()] = k[rf_block_x() * 32 + rf_thread()]; // FAULT: GlobalRace
}

KERNEL correct(const u32 *position, const float *k, float *cache) {
    u32 at = position[rf_block_x()] + rf_block_x();
    cache[at * 32 + rf_thread()] = k[rf_block_x() * 32 + rf_thread()];
}
