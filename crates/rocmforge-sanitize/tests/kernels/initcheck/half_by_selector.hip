// One half of a word was written. A permutation of bytes, or a scalar operation, that takes that half alone is right; one that takes the other is not.
//
//# [buffers]
//# words = { dtype = "u16", shape = 2, fill = "iota", written = ["0..1"] }
//#
//# [[launch]]
//# kernel = "faulty"
//# block = 32
//# args = ["words", "u32[64]"]
#include "faulty.h"

KERNEL faulty(const u32 *words, u32 *y) {
    u32 t = rf_thread();
    y[t] = __builtin_amdgcn_perm(7u, words[0], 0x05040302u) + 1; // FAULT: Uninitialised
}

KERNEL correct(const u32 *words, u32 *y) {
    u32 t = rf_thread();
    u32 word = words[0];
    y[t] = __builtin_amdgcn_perm(7u, word, 0x05040100u) + 1;
    y[32 + t] = (word & 0xFFFF) + (word << 16);
}
