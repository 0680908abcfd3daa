// Causal masks over [.., seq_q, seq_k]. Query i sees key j when j <= i + offset; offset = seq_k - seq_q lines the last query up
// with the last key (0 for a square mask).
#include "include/team.h"

// The first key that query `query` does not see.
RF_DEVICE u32 first_hidden(u32 query, i32 offset, u32 seq_k) {
    i64 end = (i64)query + offset + 1;
    return end <= 0 ? 0 : (end >= (i64)seq_k ? seq_k : (u32)end);
}

RF_DEVICE f4 hide(f4 v, u32 column, u32 end, float by) {
    return f4{column < end ? v.x : by, column + 1 < end ? v.y : by, column + 2 < end ? v.z : by, column + 3 < end ? v.w : by};
}

// Writes the mask itself: 0 where visible, -inf where not. rows = product of the leading dimensions times seq_q.
RF_KERNEL(RF_ROW_BLOCK) causal_mask(float *y, u32 rows, u32 seq_q, u32 seq_k, i32 offset) {
    RowTile t = RowTile::of(seq_k);
    if (t.row >= rows) return;
    u32 end = first_hidden(t.row % seq_q, offset, seq_k);
    float *out = y + (u64)t.row * seq_k;
    for (u32 c = t.begin; c < t.end; c += 128) rf_store4(out + c, hide(rf_splat(0.0f), c, end, -RF_INF), rf_left4(c, t.end));
}

// Copies the visible scores and writes `by` over the others, which are not read. y may be x.
RF_KERNEL(RF_ROW_BLOCK) diag_mask(const float *x, float *y, u32 rows, u32 seq_q, u32 seq_k, i32 offset, float by) {
    RowTile t = RowTile::of(seq_k);
    if (t.row >= rows) return;
    u32 end = first_hidden(t.row % seq_q, offset, seq_k);
    u64 base = (u64)t.row * seq_k;
    for (u32 c = t.begin; c < t.end; c += 128) {
        u32 count = rf_left4(c, t.end);
        f4 v = rf_splat(by);
        if (c < end) v = hide(rf_load4(x + base + c, count), c, end, by);
        rf_store4(y + base + c, v, count);
    }
}
