// Products of one row of activations with several packed matrices of one type and width: RF_MATVEC_Q8_JOINT(name, Type).
#pragma once
#include "functions.h"
#include "matvec_q8.h"

// Up to three matrices, one after the other: groups 0 .. first are of the first, first .. second of the second. y of a matrix that is not there
// is never written, because it has no groups.
struct JointPart {
    const u8 *w;
    const float *bias;
    float *y;
    u32 n;
};
template <class W, u32 R> struct ThreeMatrices {
    JointPart a, b, c;
    u32 first, second, row_blocks;
    // By value: numbers to choose from, not places in memory.
    template <class T> __attribute__((device, always_inline)) T pick(u32 group, T of_a, T of_b, T of_c) const {
        return group < first ? of_a : group < second ? of_b : of_c;
    }
    __attribute__((device, always_inline)) u32 local(u32 group) const {
        return group < first ? group : group < second ? group - first : group - second;
    }
    __attribute__((device, always_inline)) typename W::Raw load(u32 group, u32 r, u32 i) const {
        const u8 *w = pick(group, a.w, b.w, c.w);
        u32 n = pick(group, a.n, b.n, c.n);
        u32 row = rf_min(local(group) * R + r, n - 1);
        return W::load(w, (u64)n * row_blocks, row * row_blocks + i);
    }
    __attribute__((device, always_inline)) void put(u32 group, u32 own, bool leads, PartOf, float sum) const {
        const float *bias = pick(group, a.bias, b.bias, c.bias);
        float *y = pick(group, a.y, b.y, c.y);
        u32 n = pick(group, a.n, b.n, c.n);
        u32 row = local(group) * R + own;
        if (leads && row < n) {
            if (bias) sum += bias[row];
            y[row] = sum;
        }
    }
};

// The functions of gates that have such a kernel, by the numbers of Gate in crates/rocmforge-kernels.
#define RF_GATE_GELU 1
#define RF_GATE_SILU 2

// y = f(gate x) * (up x): a group is R / 2 rows of both. The sums of a row of gate and of up are 16 lanes apart.
template <class W, u32 R> struct GatedMatrices {
    const u8 *__restrict__ gate, *__restrict__ up;
    float *y;
    u32 n, row_blocks, op;
    __attribute__((device, always_inline)) typename W::Raw load(u32 group, u32 r, u32 i) const {
        u32 row = rf_min(group * (R / 2) + r % (R / 2), n - 1);
        const u8 *w = r < R / 2 ? gate : up;
        return W::load(w, (u64)n * row_blocks, row * row_blocks + i);
    }
    __attribute__((device, always_inline)) void put(u32 group, u32 own, bool leads, PartOf, float sum) const {
        float other = rf_shuffle_xor<16>(sum);
        u32 row = group * (R / 2) + own;
        if (leads && own < R / 2 && row < n) y[row] = (op == RF_GATE_SILU ? sum * rf_sigmoid(sum) : rf_gelu_tanh(sum)) * other;
    }
};

#define RF_MATVEC_Q8_JOINT(name, Type)                                                                                                             \
    RF_KERNEL_RESIDENT(RF_MATVEC_BLOCK, RF_MATVEC_RESIDENT)                                                                                        \
    matvec_q8_##name##_three(const float *x, const float *norm, float *normed, float eps, const u8 *w0, const u8 *w1,                              \
                             const u8 *w2, const float *bias0, const float *bias1, const float *bias2, float *y0, float *y1,                       \
                             float *y2, u32 n0, u32 n1, u32 n2, u32 row_blocks, u32 first, u32 second, u32 each, u32 more) {                       \
        ThreeMatrices<Type, GroupOf<Type>::one> rows = {{w0, bias0, y0, n0}, {w1, bias1, y1, n1}, {w2, bias2, y2, n2}, first, second, row_blocks}; \
        matvec_q8<Type, 1, GroupOf<Type>::one, 512, RF_MATVEC_BLOCK>(FloatRow<RF_MATVEC_BLOCK>{x, norm, normed, eps}, rows,                        \
                                                     GroupShare{1, row_blocks, each, more});                                                       \
    }                                                                                                                                              \
    RF_KERNEL_RESIDENT(RF_MATVEC_BLOCK, RF_MATVEC_RESIDENT)                                                                                        \
    matvec_q8_##name##_gated(const float *x, const float *norm, float *normed, float eps, const u8 *gate, const u8 *up, float *y,                  \
                             u32 n, u32 row_blocks, u32 op, u32 each, u32 more) {                                                                  \
        GatedMatrices<Type, GroupOf<Type>::one> rows = {gate, up, y, n, row_blocks, op};                                                           \
        matvec_q8<Type, 1, GroupOf<Type>::one, 512, RF_MATVEC_BLOCK>(FloatRow<RF_MATVEC_BLOCK>{x, norm, normed, eps}, rows,                        \
                                                     GroupShare{1, row_blocks, each, more});                                                       \
    }
