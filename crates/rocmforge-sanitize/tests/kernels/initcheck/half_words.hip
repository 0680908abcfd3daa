// A 16-bit store fills half of each word that the next kernel reads.
//
//# [buffers]
//# words = "u32[32]"
//#
//# [[launch]]
//# kernel = "faulty"
//# block = 32
//# args = ["words"]
//#
//# [[launch]]
//# kernel = "faulty_read"
//# block = 32
//# args = ["words", "u32[32]"]
#include "faulty.h"

KERNEL faulty(u16 *halves) {
    halves[2 * rf_thread()] = 7;
}

KERNEL faulty_read(const u32 *words, u32 *y) {
    y[rf_thread()] = words[rf_thread()] + 1; // FAULT: Uninitialised
}

KERNEL correct(u32 *words) {
    words[rf_thread()] = 7;
}

KERNEL correct_read(const u32 *words, u32 *y) {
    y[rf_thread()] = words[rf_thread()] + 1;
}
