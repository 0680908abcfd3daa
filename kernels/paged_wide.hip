// Attention over a paged cache of heads of 257 to 640 elements, as latent attention has them: include/paged_one.h, where 32 lanes share a key.
#include "include/paged_one.h"

#define RF_PAGED_WIDE(name, T)                                                                                                           \
    RF_KERNEL(RF_ROW_BLOCK)                                                                                                              \
    paged_wide_##name(const float *q, const u8 *k, const u8 *v, const u32 *table, const u32 *seq_of, const u32 *positions,              \
                      const float *sinks, float *out, u32 heads, u32 kv_heads, u32 head_dim, u32 block_size, u32 blocks, u32 sequences, \
                      u32 max_blocks, u32 window, float scale, float softcap, u64 *fault, u32 tag) {                                    \
        paged<T, 640, 1, 32>(q, k, v, table, seq_of, positions, sinks, out,                                                              \
                             Paged{heads, kv_heads, head_dim, block_size, blocks, sequences, max_blocks, window, scale, softcap, fault, tag}); \
    }

RF_PAGED_WIDE(f32, F32)
RF_PAGED_WIDE(f16, F16)
RF_PAGED_WIDE(bf16, Bf16)
RF_PAGED_WIDE(q8_0, Q8_0)
