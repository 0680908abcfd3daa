// A record of a byte and a word has three bytes between them; a checksum over its words reads them.
//
//# [buffers]
//# records = "u32[64]"
//#
//# [[launch]]
//# kernel = "faulty"
//# block = 32
//# args = ["records"]
//#
//# [[launch]]
//# kernel = "faulty_checksum"
//# block = 32
//# args = ["records", "u32[32]"]
#include "faulty.h"

struct Record {
    u8 tag;
    u32 value;
};

KERNEL faulty(Record *records) {
    records[rf_thread()].tag = 1;
    records[rf_thread()].value = rf_thread();
}

KERNEL faulty_checksum(const u32 *words, u32 *y) {
    u32 t = rf_thread();
    y[t] = words[2 * t] ^ words[2 * t + 1]; // FAULT: Uninitialised
}

KERNEL correct(Record *records) {
    records[rf_thread()].tag = 1;
    records[rf_thread()].value = rf_thread();
}

KERNEL correct_checksum(const Record *records, u32 *y) {
    u32 t = rf_thread();
    y[t] = records[t].tag ^ records[t].value;
}
