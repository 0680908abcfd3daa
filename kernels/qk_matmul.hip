// scores[b, h, i, j] = scale * sum_d q[b, h, i, d] * k[b, h / (heads / kv_heads), j, d]; scores are contiguous. Any head_dim.
// grid = (ceil(seq_k / 64), ceil(seq_q / 64), batch * heads).
#include "include/gemm.h"
#include "include/strides.h"

RF_KERNEL(RF_GEMM_BLOCK)
qk_matmul(const float *q, const float *k, float *scores, u32 seq_q, u32 seq_k, u32 head_dim, u32 heads, u32 kv_heads, RfStrides q_strides,
          RfStrides k_strides, float scale) {
    u32 z = rf_block_z();
    u32 batch = z / heads, head = z % heads;
    rf_gemm<true>(q + rf_plane(q_strides, batch, head), k + rf_plane(k_strides, batch, head / (heads / kv_heads)), nullptr,
                         scores + (u64)z * seq_q * seq_k,
                         Gemm{seq_q, seq_k, head_dim, (u32)q_strides.row, (u32)k_strides.row, seq_k, scale});
}
