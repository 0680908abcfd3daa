// cache[slots[t], :] = src[t, :]: the keys or values of new tokens into a paged cache. A slot that is not below `slot_count` is a fault
// and writes nothing. No two tokens may have the same slot.
#include "include/cache_rows.h"
#include "include/fault.h"

template <class To>
RF_DEVICE void kv_write(const float *src, const u32 *slots, u8 *cache, u32 tokens, u32 width, u32 slot_count, u64 *fault, u32 tag) {
    RowTile t = RowTile::of(width);
    if (t.row >= tokens) return;
    u32 slot = slots[t.row];
    if (slot >= slot_count) {
        if (t.begin == 0) rf_fault(fault, tag, t.row, slot);
        return;
    }
    rf_put_row<To>(src + (u64)t.row * width, cache + slot * rf_stored_bytes<To>(width), t);
}

#define RF_KV_WRITE(name, To)                                                                                                           \
    RF_KERNEL(RF_ROW_BLOCK)                                                                                                             \
    kv_write_##name(const float *src, const u32 *slots, u8 *cache, u32 tokens, u32 width, u32 slot_count, u64 *fault, u32 tag) {        \
        kv_write<To>(src, slots, cache, tokens, width, slot_count, fault, tag);                                                         \
    }

RF_KV_WRITE(f32, ToF32)
RF_KV_WRITE(f16, ToF16)
RF_KV_WRITE(bf16, ToBf16)
RF_KV_WRITE(q8_0, ToQ8_0)
