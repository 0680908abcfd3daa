// cache[slots[t], :] = src[t, :]: the keys or values of new tokens into a paged cache. A slot that is not below `slot_count` is a fault
// and writes nothing. No two tokens may have the same slot.
#include "include/fault.h"
#include "include/floats.h"
#include "include/team.h"

template <class To>
RF_DEVICE void kv_write(const float *src, const u32 *slots, typename To::Type *cache, u32 tokens, u32 width, u32 slot_count, u64 *fault,
                        u32 tag) {
    RowTile t = RowTile::of(width);
    if (t.row >= tokens) return;
    u32 slot = slots[t.row];
    if (slot >= slot_count) {
        if (t.begin == 0) rf_fault(fault, tag, t.row, slot);
        return;
    }
    const float *in = src + (u64)t.row * width;
    typename To::Type *out = cache + (u64)slot * width;
    for (u32 c = t.begin; c < t.end; c += 128) {
        u32 count = rf_left4(c, t.end);
        rf_store4_as<To>(out + c, rf_load4(in + c, count), count);
    }
}

RF_KERNEL(RF_ROW_BLOCK)
kv_write_f32(const float *src, const u32 *slots, float *cache, u32 tokens, u32 width, u32 slot_count, u64 *fault, u32 tag) {
    kv_write<ToF32>(src, slots, cache, tokens, width, slot_count, fault, tag);
}
RF_KERNEL(RF_ROW_BLOCK)
kv_write_f16(const float *src, const u32 *slots, _Float16 *cache, u32 tokens, u32 width, u32 slot_count, u64 *fault, u32 tag) {
    kv_write<ToF16>(src, slots, cache, tokens, width, slot_count, fault, tag);
}
