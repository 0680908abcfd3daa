// A record of a byte and a word has three bytes between them. Copies of it move them, which is no use; a sum over the words of a
// copy is one.
//
//# [buffers]
//# records = "u32[64]"
//# copies = "u32[64]"
//#
//# [[launch]]
//# kernel = "fill"
//# block = 32
//# args = ["records"]
//#
//# [[launch]]
//# kernel = "move"
//# block = 32
//# args = ["records", "copies"]
//#
//# [[launch]]
//# kernel = "faulty"
//# block = 32
//# args = ["copies", "u32[32]"]
#include "faulty.h"

struct Record {
    u8 tag;
    u32 value;
};

KERNEL fill(Record *records) {
    records[rf_thread()].tag = 1;
    records[rf_thread()].value = rf_thread();
}

KERNEL move(const Record *records, Record *copies) { copies[rf_thread()] = records[rf_thread()]; }

KERNEL faulty(const u32 *words, u32 *y) {
    u32 t = rf_thread();
    y[t] = words[2 * t] + words[2 * t + 1]; // FAULT: Uninitialised
}

KERNEL correct(const Record *records, u32 *y) {
    u32 t = rf_thread();
    y[t] = records[t].tag + records[t].value;
}
