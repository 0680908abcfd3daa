// Words of two 16-bit elements.
#pragma once
#include "rf.h"

// The lower or the upper halves of two words, as one word.
RF_DEVICE u32 halves(u32 first, u32 second, bool upper) { return upper ? first >> 16 | (second & 0xffff0000) : (first & 0xffff) | second << 16; }
