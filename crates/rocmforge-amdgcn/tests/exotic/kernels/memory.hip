// Memory and control: scratch, calls, switches, generic pointers, atomics, LDS, relative moves.
#include "exotic.h"

KERNEL(scratch) {
    const u32 i = I;
    u32 words[32];
    u64 wides[8];
    unsigned char bytes[16];
    for (u32 k = 0; k < 32; ++k) words[(k * 7 + a[i]) & 31] = b[(i + k) & (N - 1)];
    for (u32 k = 0; k < 8; ++k) wides[(k * 3 + b[i]) & 7] = (u64)a[(i + k) & (N - 1)] << 20;
    for (u32 k = 0; k < 16; ++k) bytes[(k * 5 + a[i]) & 15] = (unsigned char)b[(i + k) & (N - 1)];
    out[i] = words[b[i] & 31] + words[(a[i] >> 5) & 31];
    put64(out, 1, i, wides[a[i] & 7]);
    out[3 * N + i] = bytes[b[i] & 15] | bytes[(a[i] >> 4) & 15] << 8;
}

typedef u32 (*Function)(u32, u32);
NOINLINE u32 add(u32 x, u32 y) { return x + y; }
NOINLINE u32 mix(u32 x, u32 y) { return x * 5 ^ y; }
NOINLINE u32 fibonacci(u32 n, u32 m) { return n < 2 ? n + m : fibonacci(n - 1, m) + fibonacci(n - 2, m); }
NOINLINE u32 deep(u32 x, u32 y) {
    u32 kept[8];
    for (u32 k = 0; k < 8; ++k) kept[k] = mix(x + k, y);
    return kept[y & 7] + add(kept[x & 7], 1);
}
DEVICE Function table[4] = {add, mix, fibonacci, deep};

KERNEL(calls) {
    const u32 i = I;
    const u32 which = a[i] & 3;
    out[i] = table[which](b[i] & 7, a[i] >> 8 & 7);
    out[N + i] = deep(b[i], a[i]);
}

KERNEL(jumps) {
    const u32 i = I;
    u32 r = b[i];
    switch (a[i] & 15) {
    case 0: r += 3; break;
    case 1: r *= 5; break;
    case 2: r ^= 0x55; [[fallthrough]];
    case 3: r -= 9; break;
    case 4: r = r << 3 | r >> 29; break;
    case 5: r = ~r; break;
    case 7: r = r / 3; break;
    case 8: r = r % 10; break;
    case 9: for (u32 k = 0; k < (a[i] >> 8 & 7); ++k) r = r * 3 + k; break;
    case 11: r = a[r & (N - 1)]; break;
    default: r = r > a[i] ? 1 : 2;
    }
    out[i] = r;
    // The same for the whole wave.
    const u32 uniform = __builtin_amdgcn_readfirstlane(a[i]);
    switch (uniform & 3) {
    case 0: r += uniform; break;
    case 1: r ^= uniform; break;
    default: r -= uniform;
    }
    out[N + i] = r;
}

SHARED static u32 group_words[64];

KERNEL(generic) {
    const u32 i = I;
    u32 mine = a[i] + 1;
    group_words[T] = b[i] + 2;
    BARRIER;
    u32 *pointer = a[i] % 3 == 0 ? &mine : a[i] % 3 == 1 ? &group_words[T] : out + i;
    out[i] = 77;
    out[N + i] = 0;
    *pointer += 5;
    u32 sum = *pointer;
    __atomic_fetch_add(a[i] & 8 ? &group_words[T] : out + N + i, 0, __ATOMIC_RELAXED);
    out[N + i] = sum + mine + group_words[T];
}

// Each lane has its own cell, so the result does not depend on the order.
template <typename W> DEVICE void integers(W *cell, W x, u32 i, u32 *out, u32 slot) {
    W old = 0;
    old += __atomic_fetch_add(cell, x, __ATOMIC_RELAXED);
    old = old * 3 + __atomic_fetch_sub(cell, x >> 1, __ATOMIC_RELAXED);
    old = old * 3 + __atomic_fetch_xor(cell, x << 2, __ATOMIC_RELAXED);
    old = old * 3 + __atomic_fetch_or(cell, (W)0x10101, __ATOMIC_RELAXED);
    old = old * 3 + __atomic_fetch_and(cell, ~(W)0x30003, __ATOMIC_RELAXED);
    old = old * 3 + __atomic_fetch_min(cell, (W)(x | 0x7000), __ATOMIC_RELAXED);
    old = old * 3 + __atomic_fetch_max(cell, (W)(x & 0xffff), __ATOMIC_RELAXED);
    old = old * 3 + __atomic_exchange_n(cell, x + 9, __ATOMIC_RELAXED);
    W expected = x + (x & 1) + 9;
    __atomic_compare_exchange_n(cell, &expected, x * 3, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    old = old * 3 + expected;
    put64(out, slot, i, (u64)old);
    put64(out, slot + 2, i, (u64)*cell);
}

DEVICE u64 cells[2 * N];
SHARED static u64 group_cells[128];

KERNEL(atomics) {
    const u32 i = I;
    cells[i] = cells[N + i] = 0;
    group_cells[T] = group_cells[64 + T] = 0;
    integers<u32>((u32 *)&cells[i], a[i], i, out, 0);
    integers<u64>(&cells[N + i], (u64)a[i] << 32 | b[i], i, out, 4);
    integers<i32>((i32 *)&group_cells[T], (i32)b[i], i, out, 8);
    integers<i64>((i64 *)&group_cells[64 + T], (i64)((u64)b[i] << 32 | a[i]), i, out, 12);
    // Wrapping increments and decrements, and a counter that all share.
    u32 *counter = (u32 *)&cells[i] + 1;
    u32 old = __builtin_amdgcn_atomic_inc32(counter, 1, __ATOMIC_RELAXED, "agent");
    old = old * 2 + __builtin_amdgcn_atomic_inc32(counter, 1, __ATOMIC_RELAXED, "agent");
    old = old * 2 + __builtin_amdgcn_atomic_dec32(counter, 7, __ATOMIC_RELAXED, "agent");
    out[16 * N + i] = old;
    out[17 * N + i] = *counter;
    if (T == 0) group_words[0] = 0;
    BARRIER;
    __atomic_fetch_add(&group_words[0], a[i] & 15, __ATOMIC_RELAXED);
    BARRIER;
    out[18 * N + i] = group_words[0];
}

SHARED static float group_floats[64];

KERNEL(float_atomics) {
    const u32 i = I;
    float *cell = (float *)&cells[i];
    *cell = 1.5f;
    group_floats[T] = 0.25f;
    const float x = (float)(i32)(a[i] & 0xfff);
    float old = __atomic_fetch_add(cell, x, __ATOMIC_RELAXED);
    old += __atomic_fetch_add(&group_floats[T], x, __ATOMIC_RELAXED);
    out[i] = as<u32>(old);
    out[N + i] = as<u32>(*cell);
    out[2 * N + i] = as<u32>(group_floats[T]);
    old = __atomic_fetch_min(&group_floats[T], 17.0f, __ATOMIC_RELAXED);
    old += __atomic_fetch_max(&group_floats[T], 3.0f, __ATOMIC_RELAXED);
    out[3 * N + i] = as<u32>(old);
    out[4 * N + i] = as<u32>(group_floats[T]);
}

typedef float f4 __attribute__((ext_vector_type(4)));
typedef float f3 __attribute__((ext_vector_type(3)));
alignas(16) SHARED static u32 wide_words[64 * 18];
SHARED static f4 wide_vectors[64];
SHARED static unsigned char wide_bytes[256];

KERNEL(lds) {
    const u32 i = I;
    // Two addresses near each other, 64 elements apart, and pairs of pairs.
    wide_words[T] = a[i];
    wide_words[T + 64] = b[i];
    wide_words[T + 64 * 16] = a[i] ^ b[i];
    wide_words[T + 64 * 17] = a[i] + b[i];
    wide_vectors[T] = f4{(float)(a[i] & 255), (float)(b[i] & 255), 3.0f, (float)T};
    for (u32 k = 0; k < 4; ++k) wide_bytes[T * 4 + k] = (unsigned char)(a[i] >> (8 * k));
    BARRIER;
    const u32 t = 63 - T;
    out[i] = wide_words[t] + wide_words[t + 64] * 3;
    out[N + i] = wide_words[t + 64 * 16] + wide_words[t + 64 * 17] * 3;
    const f4 v = wide_vectors[t];
    out[2 * N + i] = (u32)(v.x + v.y * 2 + v.z * 4 + v.w * 8);
    out[3 * N + i] = ((signed char *)wide_bytes)[t] + ((u16 *)wide_bytes)[t] * 3 + ((i16 *)wide_bytes)[t + 64] * 5;
    const u64 pair = *(u64 *)&wide_words[t & ~1u];
    put64(out, 4, i, pair);
    // Counters of waves.
    if (T < 2) group_words[T] = 100;
    BARRIER;
    u32 before = 0;
    if (a[i] & 1) {
        before = __builtin_amdgcn_ds_append((__attribute__((address_space(3))) int *)&group_words[T / 32 ? 1 : 0]) >= 100;
    }
    BARRIER;
    if (b[i] & 1) {
        before += __builtin_amdgcn_ds_consume((__attribute__((address_space(3))) int *)&group_words[T / 32 ? 1 : 0]) > 0;
    }
    BARRIER;
    out[6 * N + i] = before;
    out[7 * N + i] = group_words[T / 32];
}

// What no compiler emits by itself.
KERNEL(by_hand) {
    const u32 i = I;
    const u32 base = (u32)(u64)(__attribute__((address_space(3))) u32 *)wide_words;
    // Own words for each wave, so that no barrier is needed.
    const u32 mine = base + T / 32 * 512;
    u32 back, at = mine + T % 32 * 4;
    asm volatile("v_readfirstlane_b32 s20, %1\n"
                 "s_mov_b32 m0, s20\n"
                 "ds_store_addtid_b32 %2 offset:128\n"
                 "ds_load_addtid_b32 %0 offset:128\n"
                 "s_waitcnt lgkmcnt(0)"
                 : "=v"(back)
                 : "v"(mine), "v"(a[i])
                 : "s20", "memory");
    out[i] = back;
    u64 two;
    asm volatile("ds_store_2addr_b32 %1, %2, %3 offset0:64 offset1:96\n"
                 "s_waitcnt lgkmcnt(0)\n"
                 "ds_storexchg_2addr_rtn_b32 %0, %1, %3, %2 offset0:64 offset1:96\n"
                 "s_waitcnt lgkmcnt(0)"
                 : "=&v"(two)
                 : "v"(at), "v"(a[i]), "v"(b[i])
                 : "memory");
    put64(out, 1, i, two);
    asm volatile("ds_load_2addr_b32 %0, %1 offset0:64 offset1:96\ns_waitcnt lgkmcnt(0)" : "=v"(two) : "v"(at) : "memory");
    put64(out, 3, i, two);
    u64 condition = (u64)b[i] << 32 | a[i], at8 = mine + 1024 + T % 32 * 8;
    asm volatile("ds_store_b64 %1, %3\n"
                 "s_waitcnt lgkmcnt(0)\n"
                 "ds_condxchg32_rtn_b64 %0, %1, %2\n"
                 "s_waitcnt lgkmcnt(0)\n"
                 : "=&v"(two)
                 : "v"((u32)at8), "v"(condition), "v"(0x1234567089abcdeful)
                 : "memory");
    put64(out, 5, i, two);
    asm volatile("ds_load_b64 %0, %1\ns_waitcnt lgkmcnt(0)" : "=v"(two) : "v"((u32)at8) : "memory");
    put64(out, 7, i, two);
    u32 word;
    const u32 *row = a + (i & ~31u);
    asm volatile("v_readfirstlane_b32 s20, %1\n"
                 "v_readfirstlane_b32 s21, %2\n"
                 "global_load_addtid_b32 %0, s[20:21]\n"
                 "s_waitcnt vmcnt(0)"
                 : "=v"(word)
                 : "v"((u32)(u64)row), "v"((u32)((u64)row >> 32))
                 : "s20", "s21", "memory");
    out[9 * N + i] = word;
    // A buffer of 64 words: the last of four lies behind its end.
    typedef u32 u4 __attribute__((ext_vector_type(4)));
    u4 words;
    asm volatile("s_mov_b32 s22, 0x100\n"
                 "s_mov_b32 s23, 0\n"
                 "v_readfirstlane_b32 s20, %1\n"
                 "v_readfirstlane_b32 s21, %2\n"
                 "s_buffer_load_b128 s[24:27], s[20:23], 0xf4\n"
                 "s_waitcnt lgkmcnt(0)\n"
                 "v_mov_b32 %0, s26\n"
                 "v_add_nc_u32 %0, s27, %0"
                 : "=&v"(word)
                 : "v"((u32)(u64)a), "v"((u32)((u64)a >> 32))
                 : "s20", "s21", "s22", "s23", "s24", "s25", "s26", "s27", "memory");
    out[10 * N + i] = word;
    u32 mode, status;
    asm volatile("s_getreg_b32 %0, hwreg(HW_REG_MODE, 0, 4)" : "=s"(mode));
    asm volatile("s_cmp_eq_u32 0, 0\ns_getreg_b32 %0, hwreg(HW_REG_STATUS, 0, 1)" : "=s"(status) : : "scc");
    out[11 * N + i] = mode | status << 8;
}

KERNEL(relative) {
    const u32 i = I;
    typedef u32 u16v __attribute__((ext_vector_type(16)));
    u16v v;
    for (u32 k = 0; k < 16; ++k) v[k] = a[(i + k) & (N - 1)];
    const u32 uniform = __builtin_amdgcn_readfirstlane(b[i]) & 15;
    out[i] = v[uniform];
    v[(uniform + 3) & 15] = 99;
    out[N + i] = v[(uniform + 2) & 15] + v[(uniform + 3) & 15];
    out[2 * N + i] = v[a[i] & 15];
}

KERNEL(geometry) {
    const u32 i = I;
    out[i] = __builtin_amdgcn_workgroup_size_x() | __builtin_amdgcn_workgroup_size_y() << 12;
    out[N + i] = __builtin_amdgcn_grid_size_x();
}

KERNEL(clock) {
    const u32 i = I;
    const u64 start = __builtin_readcyclecounter();
    asm volatile("" ::: "memory");
    const u64 end = __builtin_readcyclecounter();
    out[i] = end != start;
}
