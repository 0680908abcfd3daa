// y = a b (+ bias), batched. a is [m, k]; b is [k, n] (`nn`) or, as linear layers store their weights, [n, k] (`nt`).
// grid = (ceil(n / 64), ceil(m / 64), batch); the batch strides are in elements, 0 shares an operand.
#include "include/gemm.h"

#define RF_MATMUL(name, transposed)                                                                                               \
    RF_KERNEL(RF_GEMM_BLOCK)                                                                                                       \
    name(const float *a, const float *b, float *y, u32 m, u32 n, u32 k, u64 a_batch, u64 b_batch, u64 y_batch) {                   \
        u32 z = rf_block_z();                                                                                                      \
        rf_gemm<transposed>(a + z * a_batch, b + z * b_batch, nullptr, y + z * y_batch,                                     \
                                   Gemm{m, n, k, k, transposed ? k : n, n, 1.0f});                                                 \
    }                                                                                                                              \
    RF_KERNEL(RF_GEMM_BLOCK)                                                                                                       \
    name##_bias(const float *a, const float *b, const float *bias, float *y, u32 m, u32 n, u32 k, u64 a_batch, u64 b_batch,        \
                u64 y_batch) {                                                                                                     \
        u32 z = rf_block_z();                                                                                                      \
        rf_gemm<transposed>(a + z * a_batch, b + z * b_batch, bias, y + z * y_batch,                                         \
                                  Gemm{m, n, k, k, transposed ? k : n, n, 1.0f});                                                  \
    }

RF_MATMUL(matmul_nn, false)
RF_MATMUL(matmul_nt, true)
