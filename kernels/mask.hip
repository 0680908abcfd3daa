// y = x + mask for scores x[batch, heads, seq_q, seq_k]; the mask (0, -inf, or any bias) broadcasts through its strides.
// y may be x.
#include "include/strides.h"
#include "include/team.h"

RF_KERNEL(RF_ROW_BLOCK)
mask(const float *x, const float *mask, float *y, u32 rows, u32 heads, u32 seq_q, u32 seq_k, RfStrides mask_strides) {
    RowTile t = RowTile::of(seq_k);
    if (t.row >= rows) return;
    // One query of all planes, then the next: most masks are shared by the heads, and a row of them is still in the cache.
    u32 planes = rows / seq_q, plane = t.row % planes, query = t.row / planes;
    const float *m = mask + rf_plane(mask_strides, plane / heads, plane % heads) + query * mask_strides.row;
    u64 base = ((u64)plane * seq_q + query) * seq_k;
    for (u32 c = t.begin; c < t.end; c += 128) {
        u32 count = rf_left4(c, t.end);
        rf_store4(y + base + c, rf_load4(x + base + c, count) + rf_load4(m + c, count), count);
    }
}
