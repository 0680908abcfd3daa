// Layout changes.
#include "include/team.h"

// y[b, c, r] = x[b, r, c] in tiles of 64 x 64, read and written in runs of 64 floats. A thread reads 4 x 4 of them, turns them in its
// registers and puts four columns into LDS; then it writes fours of other columns. The four of rows 4 j of column c lie at place
// j ^ (c / 4 % 8) of the column, so that eight lanes never meet in a bank.
RF_KERNEL(256) transpose(const float *__restrict__ x, float *__restrict__ y, u32 rows, u32 cols) {
    RF_SHARED f4_lds tile[64][16];
    u32 across = rf_thread() % 16;
    u32 down = rf_thread() / 16;
    u64 plane = (u64)rf_block_z() * rows * cols;
    u32 c0 = rf_block_x() * 64;
    u32 r0 = rf_block_y() * 64;
    u32 c = c0 + across * 4, r = r0 + down * 4;
    f4 v[4];
#pragma unroll
    for (u32 i = 0; i < 4; ++i) v[i] = rf_load4(x + plane + (u64)(r + i) * cols + c, r + i < rows ? rf_left4(c, cols) : 0);
#pragma unroll
    for (u32 e = 0; e < 4; ++e) tile[across * 4 + e][down ^ (across & 7)] = f4_lds{v[0][e], v[1][e], v[2][e], v[3][e]};
    rf_barrier();
    r = r0 + across * 4;
#pragma unroll
    for (u32 i = 0; i < 4; ++i) {
        u32 column = down + i * 16;
        f4 out = tile[column][across ^ (column / 4 & 7)];
        rf_store4(y + plane + (u64)(c0 + column) * rows + r, out, c0 + column < cols ? rf_left4(r, rows) : 0);
    }
}
