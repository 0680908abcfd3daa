// y = x.
#include "include/team.h"

RF_KERNEL(RF_FLAT_BLOCK) copy(const float *x, float *y, u64 n) {
    u64 i = rf_flat4();
    u32 count = rf_left4(i, n);
    rf_store4(y + i, rf_load4(x + i, count), count);
}

// dst[r, 0..cols] = src[r, 0..cols] for rows that lie src_stride and dst_stride elements apart: one part of a row of several, to split
// or to join them.
RF_KERNEL(RF_ROW_BLOCK) copy_rows(const float *src, float *dst, u32 rows, u32 cols, u64 src_stride, u64 dst_stride) {
    RowTile t = RowTile::of(cols);
    if (t.row >= rows) return;
    const float *in = src + t.row * src_stride;
    float *out = dst + t.row * dst_stride;
    for (u32 c = t.begin; c < t.end; c += 128) {
        u32 count = rf_left4(c, t.end);
        rf_store4(out + c, rf_load4(in + c, count), count);
    }
}
