// Lanes of a wave: DPP16, DPP8, permlanes, readlane, ballot, mbcnt, swizzle, bpermute.
#include "exotic.h"

KERNEL(dpp) {
    const u32 i = I, v = a[i], old = b[i];
#define DPP(slot, control, rows, banks, bound)                                                                        \
    out[(slot)*N + i] = __builtin_amdgcn_update_dpp(old, v, control, rows, banks, bound)
    DPP(0, 0x101, 15, 15, true);
    DPP(1, 0x113, 15, 15, false);
    DPP(2, 0x125, 15, 15, false);
    DPP(3, 0xb1, 15, 15, true);
    DPP(4, 0x140, 15, 15, false);
    DPP(5, 0x141, 15, 15, false);
    DPP(6, 0x157, 15, 15, false);
    DPP(7, 0x166, 15, 15, false);
    DPP(8, 0x1b, 1, 5, false);
    DPP(9, 0x10f, 3, 12, false);
    out[10 * N + i] = __builtin_amdgcn_mov_dpp8(v, 0x8d1ac1);
    // An addition takes the permuted operand itself.
    out[11 * N + i] = __builtin_amdgcn_update_dpp(0, v, 0x112, 15, 15, true) + old;
    float sum = (float)(v & 0xff);
    sum += as<float>(__builtin_amdgcn_update_dpp(0, as<u32>(sum), 0xb1, 15, 15, true));
    sum += as<float>(__builtin_amdgcn_update_dpp(0, as<u32>(sum), 0x4e, 15, 15, true));
    out[12 * N + i] = (u32)sum;
}

KERNEL(permlanes) {
    const u32 i = I, v = a[i], old = b[i];
    out[i] = __builtin_amdgcn_permlane16(old, v, 0x01234567, 0x89abcdef, false, false);
    out[N + i] = __builtin_amdgcn_permlanex16(old, v, 0x76543210, 0xfedcba98, false, false);
    // Does nothing in a wave of 32.
    u32 kept = v;
    asm volatile("v_permlane64_b32 %0, %1" : "+v"(kept) : "v"(old));
    out[2 * N + i] = kept;
    u32 divergent = 1;
    if (i & 1) {
        divergent = __builtin_amdgcn_permlane16(old, v, 0x22222222, 0x55555555, false, false);
    } else {
        divergent = __builtin_amdgcn_permlanex16(old, v, 0x33333333, 0x44444444, false, true);
    }
    out[3 * N + i] = divergent;
}

KERNEL(lanes) {
    const u32 i = I, v = a[i], w = b[i];
    out[i] = __builtin_amdgcn_readlane(v, 5);
    out[N + i] = __builtin_amdgcn_readfirstlane(w);
    out[2 * N + i] = __builtin_amdgcn_ballot_w32(v & 1);
    out[3 * N + i] = __builtin_amdgcn_mbcnt_lo(w, 7);
    out[4 * N + i] = __builtin_amdgcn_mbcnt_hi(w, 9);
    u32 written = v;
    asm("v_writelane_b32 %0, %1, 3" : "+v"(written) : "s"(42));
    out[5 * N + i] = written;
    u32 inside = 0;
    if (v & 2) {
        inside = __builtin_amdgcn_ballot_w32(w & 1) ^ __builtin_amdgcn_readfirstlane(v);
    }
    out[6 * N + i] = inside;
    out[7 * N + i] = __builtin_amdgcn_ds_swizzle(v, 0x041f);
    out[8 * N + i] = __builtin_amdgcn_ds_swizzle(v, 0x80b1);
    out[9 * N + i] = __builtin_amdgcn_ds_swizzle(v, 0xc060);
    out[10 * N + i] = __builtin_amdgcn_ds_swizzle(v, 0xe01c);
    out[11 * N + i] = __builtin_amdgcn_ds_bpermute(w & 0xff, v);
    out[12 * N + i] = __builtin_amdgcn_ds_permute((i ^ 9) * 4, v);
}
