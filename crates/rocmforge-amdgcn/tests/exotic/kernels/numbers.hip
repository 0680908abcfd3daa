// Arithmetic: 8, 16, 32 and 64 bits, halves, bfloat16, doubles, dot products.
#include "exotic.h"

KERNEL(shorts) {
    const u32 i = I;
    const i16 x = (i16)a[i], y = (i16)b[i];
    const u16 ux = (u16)a[i], uy = (u16)b[i];
    const s2 p = as<s2>(a[i]), q = as<s2>(b[i]);
    const us2 up = as<us2>(a[i]), uq = as<us2>(b[i]);
    out[i] = (u16)(x + y);
    out[N + i] = (u16)(x * y + 7);
    out[2 * N + i] = (u16)(x >> (y & 15));
    out[3 * N + i] = (u16)(ux >> (uy & 15)) | (u32)(u16)(ux << (uy & 15)) << 16;
    out[4 * N + i] = (u16)(x < y ? x : y) | (u32)(u16)(ux > uy ? ux : uy) << 16;
    out[5 * N + i] = as<u32>((s2)(p + q));
    out[6 * N + i] = as<u32>((s2)(p * q + p));
    out[7 * N + i] = as<u32>(__builtin_elementwise_min(p, q));
    out[8 * N + i] = as<u32>(__builtin_elementwise_max(up, uq));
    out[9 * N + i] = as<u32>(__builtin_elementwise_add_sat(p, q));
    out[10 * N + i] = as<u32>(__builtin_elementwise_sub_sat(up, uq));
    const i32 sum = x + y;
    out[11 * N + i] = (u16)(sum < -0x8000 ? -0x8000 : sum > 0x7fff ? 0x7fff : sum) | (u32)(ux > uy ? ux - uy : 0) << 16;
    out[12 * N + i] = as<u32>((s2)(p >> (s2)3)) ^ as<u32>((us2)(up << (us2)5));
    out[13 * N + i] = (u32)((signed char)a[i] * (signed char)b[i] + (unsigned char)(a[i] >> 8));
    out[14 * N + i] = __builtin_elementwise_add_sat((i32)a[i], (i32)b[i]);
    out[15 * N + i] = __builtin_elementwise_sub_sat(a[i], b[i]);
}

KERNEL(bits) {
    const u32 i = I, x = a[i], y = b[i], z = x * 0x9e3779b9u + y;
    out[i] = __builtin_popcount(x) | __builtin_clz(x | 1) << 8 | __builtin_ctz(y | 0x80000000u) << 16;
    out[N + i] = __builtin_bitreverse32(x);
    out[2 * N + i] = __builtin_amdgcn_ubfe(x, y & 31, z & 31);
    out[3 * N + i] = __builtin_amdgcn_sbfe(x, y & 15, (z & 15) + 1);
    out[4 * N + i] = __builtin_amdgcn_perm(x, y, 0x0c0d0600 + (z & 0x07));
    out[5 * N + i] = __builtin_amdgcn_alignbit(x, y, z & 31);
    out[6 * N + i] = __builtin_amdgcn_alignbyte(x, y, z & 3);
    out[7 * N + i] = __builtin_amdgcn_sad_u8(x, y, z);
    out[8 * N + i] = __builtin_amdgcn_msad_u8(x, y, z);
    out[9 * N + i] = __builtin_amdgcn_sad_hi_u8(x, y, z);
    out[10 * N + i] = __builtin_amdgcn_sad_u16(x, y, z);
    out[11 * N + i] = __builtin_amdgcn_lerp(x, y, z);
    out[12 * N + i] = (x & y) | (~x & z);
    out[13 * N + i] = (x ^ y ^ z) + ((x << 3) | y) + ((x + y) << 2);
    out[14 * N + i] = (u32)(((u64)x * y) >> 32);
    out[15 * N + i] = (u32)(((i64)(i32)x * (i32)y) >> 32);
    const u64 wide = (u64)x << 32 | y;
    put64(out, 16, i, __builtin_amdgcn_qsad_pk_u16_u8(wide, z, wide));
    put64(out, 18, i, __builtin_amdgcn_mqsad_pk_u16_u8(wide, z, wide));
    out[20 * N + i] = __builtin_popcountl(wide) + __builtin_clzl(wide | 1) * 128;
    u32 low = x;
    asm("v_bfi_b32 %0, %1, %2, %3" : "=v"(low) : "v"(x), "v"(y), "v"(z));
    out[21 * N + i] = low;
}

KERNEL(wide) {
    const u32 i = I;
    const i64 x = (i64)((u64)a[i] << 32 | b[i]), y = (i64)(a[i ^ 1]) - (i64)b[i ^ 2] * 3 | 1;
    const u64 ux = x, uy = y;
    put64(out, 0, i, x + y);
    put64(out, 2, i, x - y);
    put64(out, 4, i, x * y);
    put64(out, 6, i, x / y);
    put64(out, 8, i, x % y);
    put64(out, 10, i, ux / uy);
    put64(out, 12, i, ux % uy);
    put64(out, 14, i, x >> (y & 63));
    put64(out, 16, i, ux >> (uy & 63) ^ ux << (uy & 31));
    put64(out, 18, i, x < y ? x : y);
    put64(out, 20, i, ux > uy ? ux : uy);
    out[22 * N + i] = (i32)a[i] / ((i32)b[i] | 1);
    out[23 * N + i] = a[i] % (b[i] | 1);
}

KERNEL(halves) {
    const u32 i = I;
    // Finite, below 2.
    const h x = as<h>((u16)(a[i] & 0xbfff)), y = as<h>((u16)(b[i] & 0xbfff));
    const h2 p = as<h2>(a[i] & 0xbfffbfff), q = as<h2>(b[i] & 0xbfffbfff);
    out[i] = as<u16>((h)(x + y));
    out[N + i] = as<u16>((h)(x * y));
    out[2 * N + i] = as<u16>(__builtin_fmaf16(x, y, x));
    out[3 * N + i] = as<u16>((h)__builtin_floorf16(x)) | (u32)as<u16>((h)__builtin_truncf16(y)) << 16;
    out[4 * N + i] = as<u32>((h2)(p + q));
    out[5 * N + i] = as<u32>((h2)(p * q));
    out[6 * N + i] = as<u32>(__builtin_elementwise_fma(p, q, p));
    out[7 * N + i] = as<u32>(p.yx) ^ (x < y ? 1 : 0) ^ (p.x > q.y ? 2 : 0);
    out[8 * N + i] = as<u32>((float)x);
    out[9 * N + i] = as<u32>((float)x * (float)y);
    out[10 * N + i] = as<u32>(__builtin_amdgcn_cvt_pkrtz((float)(i32)a[i], (float)(i32)b[i]));
    out[11 * N + i] = as<u16>((h)(float)(i32)(a[i] >> 17));
    out[12 * N + i] = (u32)(i32)(h)(i16)(a[i] & 0xfff);
    // Halves of registers in and out.
    h2 mixed;
    mixed.x = p.y + q.x;
    mixed.y = p.x - q.y;
    out[13 * N + i] = as<u32>(mixed);
}

KERNEL(brain) {
    const u32 i = I;
    const __bf16 x = as<__bf16>((u16)(a[i] & 0xbfff)), y = as<__bf16>((u16)(b[i] & 0xbfff));
    out[i] = as<u32>((float)x);
    out[N + i] = as<u16>((__bf16)(as<float>((a[i] & 0x3fffffff) | 0x10000000) * 0.5f));
    out[2 * N + i] = as<u16>((__bf16)((float)(i32)(a[i] & 0xffff) + (float)(i32)(b[i] & 0xffff)));
    out[3 * N + i] = as<u32>((float)x) ^ as<u32>((float)y);
}

KERNEL(dots) {
    const u32 i = I, x = a[i], y = b[i], z = x ^ y << 7;
    out[i] = __builtin_amdgcn_sudot4(true, x, true, y, z, false);
    out[N + i] = __builtin_amdgcn_sudot4(true, x, false, y, z, true);
    out[2 * N + i] = __builtin_amdgcn_udot4(x, y, z, true);
    out[3 * N + i] = __builtin_amdgcn_udot4(x, y, z, false);
    out[4 * N + i] = __builtin_amdgcn_sudot8(true, x, false, y, z, true);
    out[5 * N + i] = __builtin_amdgcn_udot8(x, y, z, false);
    // Small whole numbers: every order of rounding gives the same.
    h2 p = {(h)(i16)(x % 17), (h)(i16)(x / 32 % 13)}, q = {(h)(i16)(y % 11), (h)(i16)(y / 64 % 7)};
    out[6 * N + i] = as<u32>(__builtin_amdgcn_fdot2(p, q, 3.0f, false));
    out[7 * N + i] = as<u16>(__builtin_amdgcn_fdot2_f16_f16(p, q, (h)2));
    const s2 bp = {(i16)(as<u32>((float)(x % 17)) >> 16), (i16)(as<u32>((float)(x / 32 % 13)) >> 16)};
    const s2 bq = {(i16)(as<u32>((float)(y % 11)) >> 16), (i16)(as<u32>((float)(y / 64 % 7)) >> 16)};
    typedef __bf16 b2 __attribute__((ext_vector_type(2)));
    out[8 * N + i] = as<u32>(__builtin_amdgcn_fdot2_f32_bf16(as<b2>(bp), as<b2>(bq), 3.0f, false));
}

KERNEL(doubles) {
    const u32 i = I;
    const double x = (double)(i32)a[i] * 0x1p-9 + 0x1p-20, y = (double)(i32)b[i] * 0x1p-13 - 0.5;
    put64(out, 0, i, as<u64>(x + y));
    put64(out, 2, i, as<u64>(x * y));
    put64(out, 4, i, as<u64>(__builtin_fma(x, y, x)));
    put64(out, 6, i, as<u64>(__builtin_fmin(x, y)));
    put64(out, 8, i, as<u64>(__builtin_fmax(x, y)));
    put64(out, 10, i, as<u64>(__builtin_floor(x)));
    put64(out, 12, i, as<u64>(__builtin_trunc(y)));
    put64(out, 14, i, as<u64>(__builtin_rint(x)));
    put64(out, 16, i, as<u64>(__builtin_ldexp(x, (i32)(b[i] & 31) - 16)));
    out[18 * N + i] = (i32)x;
    out[19 * N + i] = as<u32>((float)y);
    out[20 * N + i] = (u32)(x < y) | (u32)__builtin_signbit(y) << 1;
    put64(out, 21, i, (u64)(i64)(x * 1024.0));
    put64(out, 23, i, as<u64>((double)(i64)((u64)a[i] << 17 | b[i])));
    out[25 * N + i] = as<u32>((float)((u64)a[i] << 25 ^ b[i]));
}

KERNEL(singles) {
    const u32 i = I;
    const float x = (float)(i32)a[i] * 0x1p-20f, y = (float)(i32)b[i] * 0x1p-22f, z = (float)(i32)(a[i] ^ b[i]) * 0x1p-24f;
    out[i] = as<u32>(__builtin_amdgcn_fmed3f(x, y, z));
    out[N + i] = as<u32>(__builtin_amdgcn_fractf(x));
    out[2 * N + i] = as<u32>(__builtin_ldexpf(x, (i32)(b[i] & 15) - 8));
    out[3 * N + i] = as<u32>(__builtin_amdgcn_frexp_mantf(x)) ^ (u32)__builtin_amdgcn_frexp_expf(x);
    out[4 * N + i] = (u32)__builtin_amdgcn_cubeid(x, y, z);
    out[5 * N + i] = as<u32>(__builtin_amdgcn_cubema(x, y, z));
    out[6 * N + i] = as<u32>(__builtin_amdgcn_cubesc(x, y, z));
    out[7 * N + i] = as<u32>(__builtin_amdgcn_cubetc(x, y, z));
    out[8 * N + i] = as<u32>(__builtin_fmaxf(__builtin_fminf(x, y), z));
    out[9 * N + i] = as<u32>(__builtin_fminf(__builtin_fmaxf(x * 0.5f, 0.0f), 1.0f));
    out[10 * N + i] = as<u32>(__builtin_amdgcn_cvt_pknorm_i16(x * 0.001f, y * 0.001f));
    out[11 * N + i] = as<u32>(__builtin_amdgcn_cvt_pk_u16(a[i], b[i] & 0xffff));
    out[12 * N + i] = (u32)(unsigned char)__builtin_fminf(__builtin_fabsf(x), 255.0f) + (u32)((float)(a[i] >> 24) + (float)(a[i] >> 8 & 255));
    out[13 * N + i] = (u32)__builtin_rintf(__builtin_fabsf(x)) + (u32)__builtin_ceilf(__builtin_fabsf(y));
}

// Denormals: what this gives depends on -fgpu-flush-denormals-to-zero.
KERNEL(denormals) {
    const u32 i = I;
    const float x = as<float>(a[i] >> 9), y = as<float>((b[i] & 0x7fffff) | 0x3f800000);
    out[i] = as<u32>(x * y);
    out[N + i] = as<u32>(x + as<float>(b[i] >> 9));
    out[2 * N + i] = as<u32>(y * 0x1p-127f);
    // An output modifier where fast arithmetic allows it.
    out[3 * N + i] = as<u32>((y + as<float>((a[i] & 0x7fffff) | 0x3f800000)) * 4.0f);
}

// Correctly rounded, unless arithmetic is fast. Where denormals are flushed, the sequence changes the mode for a while.
KERNEL(divisions) {
    const u32 i = I;
    const float x = (float)(i32)a[i] * 0x1p-20f, y = (float)(i32)(b[i] | 1) * 0x1p-22f;
    const double dx = (double)(i32)a[i] * 0x1p-9, dy = (double)(i32)(b[i] | 1) * 0x1p-13;
    const float q = x / y;
    out[i] = as<u32>(q);
    out[N + i] = __builtin_fabsf(__builtin_fmaf(q, y, -x)) <= __builtin_fabsf(x) * 0x1p-20f;
    put64(out, 2, i, as<u64>(dx / dy));
    out[4 * N + i] = as<u32>(__builtin_sqrtf(__builtin_fabsf(x)));
    put64(out, 5, i, as<u64>(__builtin_sqrt(__builtin_fabs(dx))));
}

KERNEL(mixed) {
    const u32 i = I;
    const h2 p = as<h2>(a[i] & 0xbfffbfff), q = as<h2>(b[i] & 0xbfffbfff);
    const float z = (float)(i32)a[i] * 0x1p-31f;
    out[i] = as<u32>(__builtin_fmaf((float)p.x, (float)q.y, z));
    out[N + i] = as<u32>(__builtin_fmaf((float)p.y, z, -(float)q.x));
    const h low = (h)__builtin_fmaf((float)p.x, (float)q.x, z), high = (h)__builtin_fmaf((float)p.y, -(float)q.y, z);
    out[2 * N + i] = as<u16>(low) | (u32)as<u16>(high) << 16;
}
