// y[r] = sum over c of w[r,c] x[c] for weights in ggml's Q4_0 blocks, dequantised as they are read. 32 lanes to a row.
#include "include/team.h"

// 32 weights: a common scale and one nibble each. Weight j is the low nibble of byte j, weight j + 16 its high nibble, less 8, times
// the scale. 18 bytes, so that nothing wider than 2 bytes is aligned.
struct BlockQ4_0 {
    _Float16 scale;
    unsigned short nibbles[8];
};

// Four lanes to a block, so that 32 lanes take eight blocks and read 256 neighbouring elements of x.
RF_KERNEL(RF_ROW_BLOCK) matvec_q4_0(const BlockQ4_0 *w, const float *x, float *y, u32 rows, u32 blocks) {
    u32 row = Team32::row();
    if (row >= rows) return;
    const BlockQ4_0 *blocks_of_row = w + (u64)row * blocks;
    u32 part = Team32::lane() % 4;
    float sum = 0.0f;
    for (u32 b = Team32::lane() / 4; b < blocks; b += Team32::width / 4) {
        const BlockQ4_0 &block = blocks_of_row[b];
        const float *in = x + (u64)b * 32 + part * 4;
        f4 low = rf_get4(in), high = rf_get4(in + 16);
        u32 bits = block.nibbles[part * 2] | (u32)block.nibbles[part * 2 + 1] << 16;
        // With its top bit flipped a nibble is its value less 8 in two's complement.
        i32 eight = (i32)(bits ^ 0x88888888u);
        float dot = 0.0f;
        for (u32 j = 0; j < 4; ++j) {
            dot = rf_fma((float)(eight << (28 - 8 * j) >> 28), low[j], dot);
            dot = rf_fma((float)(eight << (24 - 8 * j) >> 28), high[j], dot);
        }
        sum = rf_fma((float)block.scale, dot, sum);
    }
    sum = Team32::sum(sum);
    if (Team32::lane() == 0) y[row] = sum;
}
