// Matrix instructions: f16, bf16, 8 and 4 bits.
#include "exotic.h"

typedef h h16 __attribute__((ext_vector_type(16)));
typedef i16 s16 __attribute__((ext_vector_type(16)));
typedef float f8 __attribute__((ext_vector_type(8)));
typedef i32 i2 __attribute__((ext_vector_type(2)));
typedef i32 i4 __attribute__((ext_vector_type(4)));
typedef i32 i8 __attribute__((ext_vector_type(8)));

// Small whole numbers: every order of summation gives the same.
DEVICE inline i32 small(u32 x) { return (i32)(x % 9) - 4; }
DEVICE inline i16 brain(i32 x) { return (i16)(as<u32>((float)x) >> 16); }

KERNEL(floats) {
    const u32 i = I, row = T & 15, base = i & ~31u;
    h16 p, q;
    s16 bp, bq;
    f8 c;
    h16 hc;
    s16 bc;
    for (u32 k = 0; k < 16; ++k) {
        const i32 x = small(a[(base + row * 16 + k) & (N - 1)]), y = small(b[(base + row * 5 + k) & (N - 1)]);
        p[k] = (h)(float)x;
        q[k] = (h)(float)y;
        bp[k] = brain(x);
        bq[k] = brain(y);
        hc[k] = (h)(float)(i32)k;
        bc[k] = brain((i32)k);
    }
    for (u32 r = 0; r < 8; ++r) c[r] = (float)(i32)(r * 3 + T);
    const f8 first = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(p, q, c);
    const f8 second = __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(bp, bq, c);
    const h16 third = __builtin_amdgcn_wmma_f16_16x16x16_f16_w32(p, q, hc, false);
    const h16 fourth = __builtin_amdgcn_wmma_f16_16x16x16_f16_w32(p, q, hc, true);
    const s16 fifth = __builtin_amdgcn_wmma_bf16_16x16x16_bf16_w32(bp, bq, bc, false);
    for (u32 r = 0; r < 8; ++r) {
        out[r * N + i] = as<u32>(first[r]);
        out[(8 + r) * N + i] = as<u32>(second[r]);
        out[(16 + r) * N + i] = as<u16>((h)third[2 * r]) | (u32)as<u16>((h)fourth[2 * r + 1]) << 16;
        out[(24 + r) * N + i] = (u16)fifth[2 * r];
    }
}

KERNEL(integers) {
    const u32 i = I, row = T & 15, base = i & ~31u;
    i4 p, q;
    i2 np, nq;
    i8 c;
    for (u32 k = 0; k < 4; ++k) {
        p[k] = (i32)a[(base + row * 4 + k) & (N - 1)];
        q[k] = (i32)b[(base + row * 4 + k) & (N - 1)];
    }
    for (u32 k = 0; k < 2; ++k) {
        np[k] = p[k];
        nq[k] = q[k];
    }
    for (u32 r = 0; r < 8; ++r) c[r] = (i32)a[(base + r) & (N - 1)];
    const i8 first = __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32(true, p, false, q, c, false);
    const i8 second = __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32(false, p, true, q, c, true);
    const i8 third = __builtin_amdgcn_wmma_i32_16x16x16_iu4_w32(true, np, true, nq, c, false);
    const i8 fourth = __builtin_amdgcn_wmma_i32_16x16x16_iu4_w32(false, np, true, nq, c, true);
    for (u32 r = 0; r < 8; ++r) {
        out[r * N + i] = first[r];
        out[(8 + r) * N + i] = second[r];
        out[(16 + r) * N + i] = third[r];
        out[(24 + r) * N + i] = fourth[r];
    }
}
