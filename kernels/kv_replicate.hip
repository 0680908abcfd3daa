// Repeats the heads of K or V for MQA and GQA: x[tokens, kv_heads, head_dim] to y[tokens, heads, head_dim], where query head h
// takes kv head h / (heads / kv_heads). The attention kernels here read the kv head directly; this is for those that cannot.
#include "include/team.h"

RF_KERNEL(RF_ROW_BLOCK)
kv_replicate(const float *__restrict__ x, float *__restrict__ y, u32 tokens, u32 heads, u32 kv_heads, u32 head_dim) {
    RowTile t = RowTile::of(head_dim);
    if (t.row >= tokens * heads) return;
    u32 token = t.row / heads;
    u32 head = t.row % heads;
    const float *in = x + ((u64)token * kv_heads + head / (heads / kv_heads)) * head_dim;
    float *out = y + (u64)t.row * head_dim;
    for (u32 c = t.begin; c < t.end; c += 128) {
        u32 count = rf_left4(c, t.end);
        rf_store4(out + c, rf_load4(in + c, count), count);
    }
}
