// Attention over a paged cache of heads of up to 256 elements: include/paged_one.h, where eight lanes share a key.
#include "include/paged_one.h"

#define RF_PAGED(name, T, D, AHEAD)                                                                                                           \
    RF_KERNEL(RF_ROW_BLOCK)                                                                                                            \
    paged_attention_##name##_d##D(const float *q, const u8 *k, const u8 *v, const u32 *table, const u32 *seq_of, const u32 *positions, \
                                  const float *sinks, float *out, u32 heads, u32 kv_heads, u32 head_dim, u32 block_size, u32 blocks, u32 sequences,        \
                                  u32 max_blocks, u32 window, float scale, float softcap, u64 *fault, u32 tag) {                       \
        paged<T, D, AHEAD, 8>(q, k, v, table, seq_of, positions, sinks, out,                                                                            \
                    Paged{heads, kv_heads, head_dim, block_size, blocks, sequences, max_blocks, window, scale, softcap, fault, tag});  \
    }

RF_PAGED(f32, F32, 64, 2)
RF_PAGED(f32, F32, 128, 2)
RF_PAGED(f32, F32, 256, 1)
RF_PAGED(f16, F16, 64, 2)
RF_PAGED(f16, F16, 128, 2)
RF_PAGED(f16, F16, 256, 1)
RF_PAGED(bf16, Bf16, 64, 2)
RF_PAGED(bf16, Bf16, 128, 2)
RF_PAGED(bf16, Bf16, 256, 1)
RF_PAGED(q8_0, Q8_0, 64, 2)
RF_PAGED(q8_0, Q8_0, 128, 2)
RF_PAGED(q8_0, Q8_0, 256, 1)
