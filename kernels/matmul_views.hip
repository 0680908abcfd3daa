// y = a b (+ bias) of matrices that are views: rows of a, of b and of y lie any distance apart, matrices are [outer, heads], and one
// matrix of b serves a run of neighbours in each of the two (grouped heads). grid = (ceil(n / 64), ceil(m / 64), outer * heads).
#include "include/weights.h"

// Distances in elements: between rows (lda, ldb, ldc; 64 of a's and y's are below 2^30), and between matrices. A matrix of b serves
// outer_share times head_share of a.
struct Views {
    u32 m, n, k, lda, ldb, ldc, heads, outer_share, head_share, none;
    u64 a_outer, a_head, b_outer, b_head, c_outer, c_head;
};

struct Matrices {
    const float *a;
    u64 b;
    float *c;
    RF_DEVICE Matrices of(const float *a, float *c, const Views &v) {
        u32 outer = rf_block_z() / v.heads, head = rf_block_z() % v.heads;
        return {a + outer * v.a_outer + head * v.a_head, outer / v.outer_share * v.b_outer + head / v.head_share * v.b_head,
                c + outer * v.c_outer + head * v.c_head};
    }
};

// b [n, k] of type W.
template <class W> RF_DEVICE void transposed(const float *a, const u8 *b, const float *bias, float *y, const Views &v) {
    Matrices o = Matrices::of(a, y, v);
    rf_gemm_with(o.a, GemmWeights<W>::of(b + o.b * W::bytes, v.n, v.k, (u64)v.ldb * W::bytes), bias, o.c,
                 Gemm{v.m, v.n, v.k, v.lda, v.ldb, v.ldc, 1.0f});
}

RF_KERNEL(RF_GEMM_BLOCK) matmul_views_nt_f32(const float *a, const u8 *b, const float *bias, float *y, Views v) {
    transposed<F32>(a, b, bias, y, v);
}
RF_KERNEL(RF_GEMM_BLOCK) matmul_views_nt_f16(const float *a, const u8 *b, const float *bias, float *y, Views v) {
    transposed<F16>(a, b, bias, y, v);
}
RF_KERNEL(RF_GEMM_BLOCK) matmul_views_nt_bf16(const float *a, const u8 *b, const float *bias, float *y, Views v) {
    transposed<Bf16>(a, b, bias, y, v);
}
// b [k, n] in f32.
RF_KERNEL(RF_GEMM_BLOCK) matmul_views_nn_f32(const float *a, const u8 *b, const float *bias, float *y, Views v) {
    Matrices o = Matrices::of(a, y, v);
    rf_gemm<false>(o.a, (const float *)b + o.b, bias, o.c, Gemm{v.m, v.n, v.k, v.lda, v.ldb, v.ldc, 1.0f});
}
