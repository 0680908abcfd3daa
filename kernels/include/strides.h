// How a [batch, heads, rows, head_dim] operand lies in memory: distances in elements. The last dimension is contiguous.
// [b, h, s, d] is {h*s*d, s*d, d}; [b, s, h, d], as a projection leaves it, is {s*h*d, d, h*d}; 0 broadcasts.
#pragma once
#include "rf.h"

struct RfStrides {
    u64 batch, head, row;
};

RF_DEVICE u64 rf_plane(RfStrides s, u32 batch, u32 head) { return batch * s.batch + head * s.head; }
