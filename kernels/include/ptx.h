// NVIDIA's half of rf.h, which includes it: the same names, through PTX. No CUDA header is needed.
#pragma once

// The most threads a block may have. Without it the compiler keeps to what 1024 threads leave each of them.
#define RF_KERNEL(threads) extern "C" __attribute__((global, launch_bounds(threads))) void
// The same, and so many blocks fit a multiprocessor: that limits the registers.
#define RF_KERNEL_RESIDENT(threads, blocks) extern "C" __attribute__((global, launch_bounds(threads, blocks))) void

RF_DEVICE u32 rf_thread() { return __nvvm_read_ptx_sreg_tid_x(); }
RF_DEVICE u32 rf_block_x() { return __nvvm_read_ptx_sreg_ctaid_x(); }
RF_DEVICE u32 rf_block_y() { return __nvvm_read_ptx_sreg_ctaid_y(); }
RF_DEVICE u32 rf_block_z() { return __nvvm_read_ptx_sreg_ctaid_z(); }

// Four consecutive floats in global memory. An access of 16 bytes needs that alignment, which an array has but not every view
// and not every row; four accesses of 4 bytes instead were seen to cost up to a third of the bandwidth.
typedef float f4_wide __attribute__((ext_vector_type(4), aligned(16)));
RF_DEVICE bool rf_aligned16(const float *p) { return ((u64)p & 15) == 0; }
RF_DEVICE bool rf_wide(const float *p, u64 stride) { return rf_aligned16(p) && stride % 4 == 0; }
RF_DEVICE f4 rf_get4(const float *p) {
    if (rf_aligned16(p)) return *(const f4_wide *)p;
    return f4{p[0], p[1], p[2], p[3]};
}
RF_DEVICE void rf_put4(float *p, f4 v) {
    if (rf_aligned16(p)) {
        *(f4_wide *)p = v;
    } else {
        p[0] = v.x, p[1] = v.y, p[2] = v.z, p[3] = v.w;
    }
}

// Eight bytes to an address of any two. PTX wants the alignment of eight for one access.
RF_DEVICE void rf_put8(void *p, u2 v) {
    if (((u64)p & 7) == 0) {
        *(u2 *)p = v;
    } else {
        unsigned short *to = (unsigned short *)p;
        to[0] = v.x, to[1] = v.x >> 16, to[2] = v.y, to[3] = v.y >> 16;
    }
}

// Two consecutive floats: PTX wants the alignment of eight bytes.
typedef float f2_wide __attribute__((ext_vector_type(2), aligned(8)));
RF_DEVICE bool rf_wide2(const float *p) { return ((u64)p & 7) == 0; }

// 16 bytes that nobody writes while the kernel runs and nobody reads again: they need no place in the cache of the multiprocessor.
RF_DEVICE u4 rf_get_once(const u4 *p) {
    u4 v;
    asm("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
    return v;
}

// Barrier of the block, and shared memory written before it is seen after it. Every thread of the block must reach it.
RF_DEVICE void rf_barrier() { __syncthreads(); }

// The same: a barrier here never waits for loads.
RF_DEVICE void rf_lds_barrier() { __syncthreads(); }

// The number of a place in shared memory, as instructions take it.
RF_DEVICE u32 rf_shared_address(const void *p) { return (u32)(u64)(const __attribute__((address_space(3))) void *)p; }

// The value of the lane whose number differs in the bits of MASK (< 32). All 32 lanes of the warp must take part.
template <u32 MASK> RF_ARITHMETIC float rf_shuffle_xor(float x) {
    static_assert(MASK < 32, "a shuffle stays within 32 lanes");
    return __nvvm_shfl_sync_bfly_f32(0xffffffffu, x, MASK, 31);
}

// A number that all 32 lanes have in common, as one the compiler knows to be so. Where branches depend on another one it takes the lanes to be apart,
// and brings them together in a branch of its own before each shuffle.
RF_DEVICE u32 rf_common(u32 x) { return (u32)__nvvm_shfl_sync_idx_i32(0xffffffffu, (i32)x, 0, 31); }

// The same number, of which the compiler knows nothing: it keeps what it was told to compute once, in the way it was told.
RF_DEVICE u32 rf_opaque(u32 x) {
    asm("" : "+r"(x));
    return x;
}
RF_DEVICE float rf_opaque(float x) {
    asm("" : "+f"(x));
    return x;
}

// c + the products of the four signed bytes of a and b.
RF_ARITHMETIC i32 rf_dot4(u32 a, u32 b, i32 c) {
    i32 d;
    asm("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c)); // clang has no builtin for it
    return d;
}

// The smaller of a word in global memory and x is written back, as one step. For faults only: include/fault.h.
RF_DEVICE void rf_atomic_min(u64 *p, u64 x) { __nvvm_atom_min_gen_ull(p, x); }

// 2^x, 1/x and 1/sqrt(x), two units in the last place at most.
RF_ARITHMETIC float rf_exp2(float x) { return __nvvm_ex2_approx_f(x); }
RF_ARITHMETIC float rf_rcp(float x) {
    float y;
    asm("rcp.approx.f32 %0, %1;" : "=f"(y) : "f"(x)); // clang has no builtin for the one that keeps denormals
    return y;
}
RF_ARITHMETIC float rf_rsqrt(float x) { return __nvvm_rsqrt_approx_f(x); }
