// The products of matmul16.hip for up to eight rows of a: include/gemm16.h. b is read once, and is what the time goes to.
//
// 32 lanes to ROWS rows of b; a lane takes eight neighbours of a row at a time. The rows of a come from the caches.
// grid = (ceil(n / (8 ROWS)), 1, batches).
#include "include/gemm16.h"
#include "include/team.h"

#define ROWS 2u

// Eight neighbours of a row, as floats.
struct HalfF16 {
    typedef _Float16 Type;
    RF_DEVICE float of(_Float16 x) { return (float)x; }
};
struct HalfBf16 {
    typedef unsigned short Type;
    RF_DEVICE float of(unsigned short x) { return __builtin_bit_cast(float, (u32)x << 16); }
};
template <class T> struct Eight {
    typedef typename T::Type Type __attribute__((ext_vector_type(8)));
    Type v;
    __attribute__((device, always_inline)) float operator[](u32 i) const { return T::of(v[i]); }
};

template <class T, class TO, u32 M>
RF_DEVICE void matvec16(const typename T::Type *__restrict__ a, const typename T::Type *__restrict__ b, const float *__restrict__ bias,
                        void *__restrict__ y, const Gemm16 &p) {
    u32 batch = rf_block_z(), row0 = Team32::row() * ROWS, lane = Team32::lane();
    if (row0 >= p.n) return;
    const typename T::Type *rows_b[ROWS], *rows_a[M];
#pragma unroll
    for (u32 r = 0; r < ROWS; ++r) rows_b[r] = b + batch * p.b_batch + rf_min(row0 + r, p.n - 1) * p.b_row;
#pragma unroll
    for (u32 j = 0; j < M; ++j) rows_a[j] = a + batch * p.a_batch + rf_min(j, p.m - 1) * p.a_row;
    float sums[ROWS][M] = {};
    auto eight = [&](u32 at) __attribute__((always_inline)) {
        Eight<T> w[ROWS];
#pragma unroll
        for (u32 r = 0; r < ROWS; ++r) w[r].v = *(const typename Eight<T>::Type *)(rows_b[r] + at);
#pragma unroll
        for (u32 j = 0; j < M; ++j) {
            Eight<T> x;
            x.v = *(const typename Eight<T>::Type *)(rows_a[j] + at);
#pragma unroll
            for (u32 r = 0; r < ROWS; ++r)
#pragma unroll
                for (u32 e = 0; e < 8; ++e) sums[r][j] = rf_fma(w[r][e], x[e], sums[r][j]);
        }
    };
    // Several steps together, so that their loads are in flight at once: eight rows of a are that many loads alone.
    constexpr u32 STEPS = M > 2 ? 8 / M : 4;
    u32 at = lane * 8, together = p.k / (256 * STEPS) * (256 * STEPS);
#pragma unroll 1
    for (; at < together; at += 256 * STEPS) {
#pragma unroll
        for (u32 i = 0; i < STEPS; ++i) eight(at + 256 * i);
    }
#pragma unroll 1
    for (; at < p.k; at += 256) eight(at);
    // Lane r M + j keeps the sum of row r of b and row j of a.
    float mine[1] = {0.0f};
#pragma unroll
    for (u32 r = 0; r < ROWS; ++r)
#pragma unroll
        for (u32 j = 0; j < M; ++j) {
            float sum = Team32::sum(sums[r][j]);
            if (lane == r * M + j) mine[0] = sum;
        }
    u32 n = row0 + lane / M, m = lane % M;
    if (lane < ROWS * M && n < p.n && m < p.m) gemm16_store<TO>(mine, y, bias, Gemm16Exponents{}, p, batch, m, n);
}

#define RF_MATVEC16(name, T, TO, M)                                                                                                    \
    RF_KERNEL(RF_ROW_BLOCK) matvec16_##name##_m##M(const void *a, const void *b, const float *bias, void *y, Gemm16 p) {              \
        matvec16<T, TO, M>((const T::Type *)a, (const T::Type *)b, bias, y, p);                                                        \
    }
#define RF_MATVEC16_OF(name, T, TO)                                                                                                    \
    RF_MATVEC16(name, T, TO, 1) RF_MATVEC16(name, T, TO, 2) RF_MATVEC16(name, T, TO, 4) RF_MATVEC16(name, T, TO, 8)
RF_MATVEC16_OF(f16, HalfF16, ToF16)
RF_MATVEC16_OF(f16_f32, HalfF16, ToF32)
RF_MATVEC16_OF(bf16, HalfBf16, ToBf16)
RF_MATVEC16_OF(bf16_f32, HalfBf16, ToF32)
