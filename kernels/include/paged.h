// What attention over a paged cache takes, and partial results of it.
#pragma once
#include "fault.h"

// The fewest keys of a part.
#define RF_PART_KEYS 64u

struct Paged {
    u32 heads, kv_heads, head_dim, block_size, blocks, sequences, max_blocks, window;
    float scale, softcap;
    u64 *fault;
    u32 tag;
};
