// Layout changes.
#include "include/team.h"

// y[b, c, r] = x[b, r, c]. 32 x 32 tiles through LDS so that both sides are read and written in runs of 32.
RF_KERNEL(256) transpose(const float *__restrict__ x, float *__restrict__ y, u32 rows, u32 cols) {
    RF_SHARED float tile[32][33];
    u32 tx = rf_thread() % 32;
    u32 ty = rf_thread() / 32;
    u64 plane = (u64)rf_block_z() * rows * cols;
    u32 c0 = rf_block_x() * 32;
    u32 r0 = rf_block_y() * 32;
    for (u32 i = ty; i < 32; i += 8)
        if (r0 + i < rows && c0 + tx < cols) tile[i][tx] = x[plane + (u64)(r0 + i) * cols + c0 + tx];
    rf_barrier();
    for (u32 i = ty; i < 32; i += 8)
        if (c0 + i < cols && r0 + tx < rows) y[plane + (u64)(c0 + i) * rows + r0 + tx] = tile[tx][i];
}

// y[a, c, b, d] = x[a, b, c, d]: [batch, seq, heads, head_dim] to [batch, heads, seq, head_dim] and back. na, nb, nc, nd are the
// sizes of x.
RF_KERNEL(RF_ROW_BLOCK)
swap_middle(const float *__restrict__ x, float *__restrict__ y, u32 na, u32 nb, u32 nc, u32 nd) {
    RowTile t = RowTile::of(nd);
    if (t.row >= na * nb * nc) return;
    u32 b = t.row % nb;
    u32 ac = t.row / nb;
    const float *in = x + (((u64)(ac / nc) * nb + b) * nc + ac % nc) * nd;
    float *out = y + (u64)t.row * nd;
    for (u32 c = t.begin; c < t.end; c += 128) {
        u32 count = rf_left4(c, t.end);
        rf_store4(out + c, rf_load4(in + c, count), count);
    }
}
