// Recurrent layers over tokens of several sequences: the state of each sequence before its tokens lies in the slot that `ids` names, the state after
// them is written apart. A token of sequence s of `sequences` has sequence[t] == s; tokens of one sequence come in their order.
//
// Where `into` is given, the state of sequence s goes to slot into[s] instead, among the states before. If such a slot is one that a sequence begins with, another
// block may still have to read what would be written over: then one block does all sequences, and writes their states at the end.
//
// A sequence or a slot out of range is a fault; nothing is written for it.
#pragma once
#include "fault.h"
#include "functions.h"
#include "grid.h"
#include "math.h"
#include "team.h"

struct Tokens {
    u32 tokens, sequences, slots;
};

// The slot of the state of sequence s, or `slots` and a fault.
RF_DEVICE u32 slot_of(const u32 *ids, u32 s, Tokens of, bool reports, u64 *fault, u32 tag) {
    u32 slot = ids[s];
    if (slot < of.slots) return slot;
    if (reports) rf_fault(fault, tag, s, slot);
    return of.slots;
}

// Where states go: to `after`, or to the slots into[s] of `table`. Those that have to wait lie in `after` until all are computed.
struct Into {
    float *after, *table;
    const u32 *into; // or null
    u64 *fault;
    u32 tag;

    // Whether a slot that is written is one that a sequence begins with. In all 32 lanes.
    RF_ARITHMETIC bool waits(const Into &to, const u32 *ids, u32 sequences) {
        if (to.into == nullptr) return false;
        float found = 0.0f;
        for (u32 s = Team32::lane(); s < sequences; s += 32)
#pragma unroll 1
            for (u32 j = 0; j < sequences; ++j)
                if (to.into[s] == ids[j]) found = 1.0f;
        return rf_max32(found) > 0.0f;
    }
    // Calls f(where the state of sequence s goes), if it has a slot; a state has `size` elements.
    template <class F> RF_ARITHMETIC void put(const Into &to, u32 s, u32 slots, u64 size, bool waits, bool reports, F f) {
        bool apart = to.into == nullptr || waits;
        u32 slot = apart ? s : to.into[s];
        if (!apart && slot >= slots) {
            if (reports) rf_fault(to.fault, to.tag, s, slot);
            return;
        }
        f((apart ? to.after : to.table) + slot * size);
    }
};

// f(i, col) for the columns of a row that this lane holds: lane l of 32 has l, l + 32, ...
template <u32 HELD, class F> RF_DEVICE void each_column(u32 cols, F f) {
#pragma unroll
    for (u32 i = 0; i < HELD; ++i) {
        u32 col = Team32::lane() + 32 * i;
        if (col < cols) f(i, col);
    }
}

// A row of the state of one head and sequence, in the registers of 32 lanes.
template <u32 HELD> struct StateRow {
    float v[HELD];
};

// A number that is needed seldom: in a vector register of CDNA, which has too few scalar ones. For `into` and over 128 columns they would be too few even so.
template <u32 COLUMNS, class T> RF_DEVICE T seldom(T x) {
#if defined(__gfx90a__) || defined(__gfx942__)
    if constexpr (COLUMNS <= 128) return rf_opaque(x);
#endif
    return x;
}
