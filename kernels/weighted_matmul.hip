// out[b, h, i, d] = sum_j weights[b, h, i, j] * v[b, h / (heads / kv_heads), j, d]; weights are contiguous. Any head_dim.
// grid = (ceil(head_dim / 64), ceil(seq_q / 64), batch * heads).
#include "include/gemm.h"
#include "include/strides.h"

RF_KERNEL(RF_GEMM_BLOCK)
weighted_matmul(const float *weights, const float *v, float *out, u32 seq_q, u32 seq_k, u32 head_dim, u32 heads, u32 kv_heads,
                RfStrides v_strides, RfStrides out_strides) {
    u32 z = rf_block_z();
    u32 batch = z / heads, head = z % heads;
    rf_gemm<false>(weights + (u64)z * seq_q * seq_k, v + rf_plane(v_strides, batch, head / (heads / kv_heads)), nullptr,
                          out + rf_plane(out_strides, batch, head),
                          Gemm{seq_q, head_dim, seq_k, seq_k, (u32)v_strides.row, (u32)out_strides.row, 1.0f});
}
