// The device language of these kernels: attributes, ids, barrier, shuffles and the few hardware functions they use.
//
// This is AMD's half; NVIDIA's is ptx.h. Two more headers name compiler builtins of one vendor: tile.h (matrix units) and
// table16.h (bytes of a table). No ROCm or CUDA header.
#pragma once

typedef unsigned int u32;
typedef int i32;
typedef unsigned long long u64;
typedef long long i64;

// Four consecutive floats. Declared with the alignment of one float: a view may start at any element.
typedef float f4 __attribute__((ext_vector_type(4), aligned(4)));
// The same in LDS, whose 16-byte accesses want their alignment.
typedef float f4_lds __attribute__((ext_vector_type(4), aligned(16)));

// Registers of 16 and 8 bytes, and the alignment of their memory.
typedef u32 u4 __attribute__((ext_vector_type(4)));
typedef u32 u2 __attribute__((ext_vector_type(2)));

#define RF_DEVICE static __attribute__((device, always_inline)) inline
// Arithmetic alone: its lines are not in the line tables, but those of its caller. Each place where it is used would be a range there, and the
// scheduler cuts that into pieces: two thirds of an object without a matrix unit were tables.
#define RF_ARITHMETIC static __attribute__((device, always_inline, nodebug)) inline
#define RF_SHARED static __attribute__((shared)) __attribute__((aligned(16)))

#if defined(__AMDGCN__) || !defined(__CUDA_ARCH__)

// `launch_bounds` is silently ignored on AMD GPUs; this attribute is what sets the maximum work-group size.
#define RF_KERNEL(threads) extern "C" __attribute__((global, amdgpu_flat_work_group_size(threads, threads))) void
// PTX's needs to be told how many blocks are wanted on a multiprocessor. Here the registers decide that.
#define RF_KERNEL_RESIDENT(threads, blocks) RF_KERNEL(threads)

RF_DEVICE u32 rf_thread() { return __builtin_amdgcn_workitem_id_x(); }
RF_DEVICE u32 rf_block_x() { return __builtin_amdgcn_workgroup_id_x(); }
RF_DEVICE u32 rf_block_y() { return __builtin_amdgcn_workgroup_id_y(); }
RF_DEVICE u32 rf_block_z() { return __builtin_amdgcn_workgroup_id_z(); }

// Barrier of the work-group, and LDS written before it is seen after it. Every thread of the group must reach it.
RF_DEVICE void rf_barrier() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

// The same for LDS alone. Loads from global memory stay in flight, which rf_barrier waits for on RDNA; and global memory that other
// threads wrote may not be read after it.
RF_DEVICE void rf_lds_barrier() {
#if defined(__GFX12__)
    asm volatile("s_wait_dscnt 0x0\n\ts_barrier_signal -1\n\ts_barrier_wait -1" ::: "memory");
#else
    asm volatile("s_waitcnt lgkmcnt(0)\n\ts_barrier" ::: "memory");
#endif
}

// The value of the lane whose number differs in the bits of MASK (< 32), within each aligned group of 32 lanes: the same for
// 32-wide and 64-wide waves. All 32 lanes must take part.
template <u32 MASK> RF_ARITHMETIC float rf_shuffle_xor(float x) {
    static_assert(MASK < 32, "a shuffle stays within 32 lanes");
    return __builtin_bit_cast(float, __builtin_amdgcn_ds_swizzle(__builtin_bit_cast(int, x), (MASK << 10) | 0x1f));
}

// The same number, of which the compiler knows nothing: it keeps what it was told to compute once, in the way it was told.
RF_DEVICE u32 rf_opaque(u32 x) {
    asm("" : "+v"(x));
    return x;
}
RF_DEVICE float rf_opaque(float x) {
    asm("" : "+v"(x));
    return x;
}

// A number that an aligned group of 32 lanes has in common, as one the compiler knows to be so where it asks for that.
RF_DEVICE u32 rf_common(u32 x) { return x; }

// c + the products of the four signed bytes of a and b.
RF_ARITHMETIC i32 rf_dot4(u32 a, u32 b, i32 c) {
#if defined(__GFX11__) || defined(__GFX12__)
    return __builtin_amdgcn_sudot4(true, (i32)a, true, (i32)b, c, false);
#else
    return __builtin_amdgcn_sdot4((i32)a, (i32)b, c, false);
#endif
}

// The smaller of a word in global memory and x is written back, as one step. For faults only: include/fault.h.
RF_DEVICE void rf_atomic_min(u64 *p, u64 x) { __hip_atomic_fetch_min(p, x, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT); }

// 2^x, 1/x and 1/sqrt(x), one unit in the last place. exp2 of a very negative number is 0, of +inf is +inf.
// AMD's 1/x is 0 where it would be below the normal numbers: for magnitudes above 2^126.
RF_ARITHMETIC float rf_exp2(float x) { return __builtin_amdgcn_exp2f(x); }
RF_ARITHMETIC float rf_rcp(float x) { return __builtin_amdgcn_rcpf(x); }
RF_ARITHMETIC float rf_rsqrt(float x) { return __builtin_amdgcn_rsqf(x); }

// Four consecutive floats in global memory: an access of 16 bytes needs the alignment of one float only.
RF_DEVICE f4 rf_get4(const float *p) { return *(const f4 *)p; }
RF_DEVICE void rf_put4(float *p, f4 v) { *(f4 *)p = v; }
// The same where rf_wide has been asked once for all rows of an operand: no question at each access.
typedef f4 f4_wide;
RF_DEVICE bool rf_wide(const float *, u64) { return true; }

// Eight bytes to an address of any two: one access.
typedef u32 u2_any __attribute__((ext_vector_type(2), aligned(2)));
RF_DEVICE void rf_put8(void *p, u2 v) { *(u2_any *)p = v; }

// Two consecutive floats, where rf_wide2 has been asked.
typedef float f2_wide __attribute__((ext_vector_type(2), aligned(4)));
RF_DEVICE bool rf_wide2(const float *) { return true; }

// 16 bytes that nobody writes while the kernel runs and nobody reads again.
RF_DEVICE u4 rf_get_once(const u4 *p) { return *p; }

#else
#include "ptx.h"
#endif

#define RF_LOG2E 1.44269504088896340736f
#define RF_INF __builtin_inff()

RF_ARITHMETIC float rf_fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
RF_ARITHMETIC float rf_abs(float x) { return __builtin_fabsf(x); }
RF_ARITHMETIC float rf_max(float a, float b) { return __builtin_fmaxf(a, b); }
RF_ARITHMETIC u32 rf_min(u32 a, u32 b) { return a < b ? a : b; }

// The same value four times.
RF_ARITHMETIC f4 rf_splat(float x) { return f4{x, x, x, x}; }

// Up to four floats of which `count` exist (0 to 4); the others are 0. Never reads beyond them.
RF_DEVICE f4 rf_load4(const float *p, u32 count) {
    f4 v = rf_splat(0.0f);
    if (count >= 4) {
        v = rf_get4(p);
    } else {
        if (count > 0) v.x = p[0];
        if (count > 1) v.y = p[1];
        if (count > 2) v.z = p[2];
    }
    return v;
}

// Writes the first `count` (0 to 4) of four floats.
RF_DEVICE void rf_store4(float *p, f4 v, u32 count) {
    if (count >= 4) {
        rf_put4(p, v);
    } else {
        if (count > 0) p[0] = v.x;
        if (count > 1) p[1] = v.y;
        if (count > 2) p[2] = v.z;
    }
}

// The first `count` (1 to 4) of four floats, and `rest` for the others.
RF_ARITHMETIC f4 rf_only4(f4 v, u32 count, float rest) {
    return f4{v.x, count > 1 ? v.y : rest, count > 2 ? v.z : rest, count > 3 ? v.w : rest};
}
RF_ARITHMETIC float rf_max4(f4 v) { return rf_max(rf_max(v.x, v.y), rf_max(v.z, v.w)); }
RF_ARITHMETIC float rf_sum4(f4 v) { return (v.x + v.y) + (v.z + v.w); }

// How many of the four elements starting at `at` lie below `end`.
RF_ARITHMETIC u32 rf_left4(u64 at, u64 end) { return at >= end ? 0 : (end - at >= 4 ? 4 : (u32)(end - at)); }
RF_ARITHMETIC u32 rf_left4(u32 at, u32 end) { return at >= end ? 0 : (end - at >= 4 ? 4 : end - at); }
