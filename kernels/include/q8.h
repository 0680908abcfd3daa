// Activations as 8-bit integers, and the dot product of four bytes.
//
// 32 neighbours of a row share a scale, d = the largest magnitude / 127; a value is d times its integer, -127 to 127. Memory holds the blocks
// of all rows, one row after another, in three arrays: the integers 0 to 15 of each block (16 bytes), the integers 16 to 31 (16 bytes), and
// d with the sums of both halves' integers (f32 and two times 16 bits). So 32 lanes with a block each read 512 neighbouring bytes.
#pragma once
#include "rf.h"

typedef unsigned char u8;
typedef unsigned short u16;

#define RF_Q8_BLOCK 32

// The integers of a block, its scale, and the sums of both halves.
struct Q8Block {
    u4 low, high;
    float d;
    i32 low_sum, high_sum;
    // d and the sums as memory holds them.
    RF_DEVICE Q8Block of(u4 low, u4 high, u2 rest) {
        return {low, high, __builtin_bit_cast(float, rest.x), (i32)(rest.y << 16) >> 16, (i32)rest.y >> 16};
    }
};

// c + the products of the four signed bytes of a and b.
RF_DEVICE i32 rf_dot16(u4 a, u4 b, i32 c) {
    c = rf_dot4(a.x, b.x, c);
    c = rf_dot4(a.y, b.y, c);
    c = rf_dot4(a.z, b.z, c);
    return rf_dot4(a.w, b.w, c);
}
