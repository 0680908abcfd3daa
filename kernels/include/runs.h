// Runs of a block's tokens: neighbouring tokens of one sequence at neighbouring positions, as a chunk of a prompt has them.
#pragma once
#include "paged.h"
#include "tile.h"

// A number that is the same in all lanes, in a scalar register; in waves of 64, whose conditions take twice as many of these, in a vector register.
RF_DEVICE u32 narrow(u32 x) { return RF_WAVE == 32 ? rf_uniform(x) : rf_opaque(x); }

// A run of tokens from `first` up to `end`, those of sequence `seq` from `position` on. Tokens of a run that is not `known` have a sequence or a
// position that does not exist.
struct Run {
    u32 first, end, seq, position;
    bool known;
};

// COUNT tokens from `first` on: a multiple of 32, at most as many as the block has threads. `begins` in LDS gets a bit for each token that begins a run.
template <u32 COUNT> struct Runs {
    const u32 *seq_of, *positions;
    u32 *begins;
    u32 first, end;
    const Paged &p;

    // All threads of the block; a barrier has to follow.
    __attribute__((device, always_inline)) void find() const {
        u32 i = rf_thread(), token = first + i;
        bool begin = i == 0;
        if (i > 0 && i < COUNT && token < end) {
            u32 position = positions[token];
            begin = seq_of[token] != seq_of[token - 1] || position != positions[token - 1] + 1 || position == p.max_blocks * p.block_size;
        }
        u32 bits = (u32)begin << i % 32;
        bits |= other<16>(bits);
        bits |= other<8>(bits);
        bits |= other<4>(bits);
        bits |= other<2>(bits);
        bits |= other<1>(bits);
        if (i < COUNT && i % 32 == 0) begins[i / 32] = bits;
    }
    // The run that begins at token `at`.
    __attribute__((device, always_inline)) Run run(u32 at) const {
        u32 next = at - first + 1, word = next / 32, bits = 0;
        if (word < COUNT / 32) bits = rf_uniform(begins[word]) >> next % 32 << next % 32;
        while (bits == 0 && ++word < COUNT / 32) bits = rf_uniform(begins[word]);
        u32 stop = bits == 0 ? end : rf_min(first + word * 32 + __builtin_ctz(bits), end);
        u32 seq = rf_uniform(seq_of[at]), position = rf_uniform(positions[at]);
        return {at, stop, seq, position, seq < p.sequences && position < p.max_blocks * p.block_size};
    }
    // Reports what is wrong with the first token of a run that is not known.
    __attribute__((device, always_inline)) void fault(const Run &run) const {
        rf_fault(p.fault, p.tag, run.first, run.seq < p.sequences ? run.position : run.seq);
    }

  private:
    template <u32 MASK> __attribute__((device, always_inline)) static u32 other(u32 bits) {
        return __builtin_bit_cast(u32, rf_shuffle_xor<MASK>(__builtin_bit_cast(float, bits)));
    }
};
