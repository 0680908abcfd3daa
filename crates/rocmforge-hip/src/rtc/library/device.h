// What hiprtc has built in where ROCm's headers are not installed. Names are HIP's. Mathematics comes from clang's own header
// (`__clang_hip_math.h`), whose functions call the device library.
#pragma once
#define __HIP_PLATFORM_AMD__ 1
#define ROCMFORGE_OWN_HEADER 1
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define HIP_DYNAMIC_SHARED(type, name) extern __shared__ type name[];
#define RF_DEVICE static __device__ inline __attribute__((always_inline))

typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef __INT8_TYPE__ int8_t;
typedef __INT16_TYPE__ int16_t;
typedef __INT32_TYPE__ int32_t;
typedef __INT64_TYPE__ int64_t;
typedef __UINT8_TYPE__ uint8_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __UINT64_TYPE__ uint64_t;
typedef __UINTPTR_TYPE__ uintptr_t;
typedef __INTPTR_TYPE__ intptr_t;
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;

struct dim3 {
    unsigned x, y, z;
    __host__ __device__ constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

#include "vector.h"

// threadIdx and its like are read by member, or as a whole.
#define RF_INDEX(type, of_x, of_y, of_z)                                                              \
    struct type {                                                                                            \
        __declspec(property(get = get_x)) unsigned x;                                                        \
        __declspec(property(get = get_y)) unsigned y;                                                        \
        __declspec(property(get = get_z)) unsigned z;                                                        \
        static __device__ __forceinline__ unsigned get_x() { return of_x; }                                  \
        static __device__ __forceinline__ unsigned get_y() { return of_y; }                                  \
        static __device__ __forceinline__ unsigned get_z() { return of_z; }                                  \
        __device__ operator dim3() const { return dim3(get_x(), get_y(), get_z()); }                         \
        __device__ operator uint3() const { return make_uint3(get_x(), get_y(), get_z()); }                  \
    };
#define RF_GROUPS(axis) (__builtin_amdgcn_grid_size_##axis() / __builtin_amdgcn_workgroup_size_##axis())
RF_INDEX(__rocmforge_thread, __builtin_amdgcn_workitem_id_x(), __builtin_amdgcn_workitem_id_y(), __builtin_amdgcn_workitem_id_z())
RF_INDEX(__rocmforge_block, __builtin_amdgcn_workgroup_id_x(), __builtin_amdgcn_workgroup_id_y(), __builtin_amdgcn_workgroup_id_z())
RF_INDEX(__rocmforge_block_size, __builtin_amdgcn_workgroup_size_x(), __builtin_amdgcn_workgroup_size_y(), __builtin_amdgcn_workgroup_size_z())
RF_INDEX(__rocmforge_grid, RF_GROUPS(x), RF_GROUPS(y), RF_GROUPS(z))
extern const __device__ __attribute__((weak)) __rocmforge_thread threadIdx;
extern const __device__ __attribute__((weak)) __rocmforge_block blockIdx;
extern const __device__ __attribute__((weak)) __rocmforge_block_size blockDim;
extern const __device__ __attribute__((weak)) __rocmforge_grid gridDim;
constexpr int warpSize = __AMDGCN_WAVEFRONT_SIZE;

// The device library, where clang's header does not declare it.
extern "C" {
__device__ int __ockl_wgred_add_i32(int);
__device__ int __ockl_wgred_and_i32(int);
__device__ int __ockl_wgred_or_i32(int);
__device__ uint64_t __ockl_fprintf_stderr_begin();
__device__ uint64_t __ockl_fprintf_append_args(uint64_t, uint32_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint32_t);
__device__ uint64_t __ockl_fprintf_append_string_n(uint64_t, const char*, uint64_t, uint32_t);
__device__ int printf(const char* format, ...);
}

// Barriers and fences.
RF_DEVICE __attribute__((convergent)) void __syncthreads() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
RF_DEVICE __attribute__((convergent)) int __syncthreads_count(int value) { return __ockl_wgred_add_i32(!!value); }
RF_DEVICE __attribute__((convergent)) int __syncthreads_and(int value) { return __ockl_wgred_and_i32(!!value); }
RF_DEVICE __attribute__((convergent)) int __syncthreads_or(int value) { return __ockl_wgred_or_i32(!!value); }
RF_DEVICE void __threadfence() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent"); }
RF_DEVICE void __threadfence_block() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup"); }
RF_DEVICE void __threadfence_system() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, ""); }
RF_DEVICE __attribute__((convergent)) void __syncwarp(unsigned long long = ~0ull) {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
    __builtin_amdgcn_wave_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}

// As in HIP, atomics are relaxed; of the whole card, of a workgroup, or of the machine.
template <typename T> struct __rocmforge_same {
    typedef T type;
};
#define RF_ATOMIC_IN(name, operation, scope)                                                                             \
    template <typename T> RF_DEVICE T name(T* at, typename __rocmforge_same<T>::type value) {                            \
        return operation(at, value, __ATOMIC_RELAXED, scope);                                                            \
    }
#define RF_COMPARE_IN(name, scope)                                                                                       \
    template <typename T>                                                                                                \
    RF_DEVICE T name(T* at, typename __rocmforge_same<T>::type expected, typename __rocmforge_same<T>::type value) {     \
        __hip_atomic_compare_exchange_strong(at, &expected, value, __ATOMIC_RELAXED, __ATOMIC_RELAXED, scope);           \
        return expected;                                                                                                 \
    }
#define RF_SCOPES(define, name, ...)                                                                                     \
    define(name __VA_OPT__(, ) __VA_ARGS__, __HIP_MEMORY_SCOPE_AGENT)                                                    \
    define(name##_block __VA_OPT__(, ) __VA_ARGS__, __HIP_MEMORY_SCOPE_WORKGROUP)                                        \
    define(name##_system __VA_OPT__(, ) __VA_ARGS__, __HIP_MEMORY_SCOPE_SYSTEM)
RF_SCOPES(RF_ATOMIC_IN, atomicAdd, __hip_atomic_fetch_add)
RF_SCOPES(RF_ATOMIC_IN, atomicMin, __hip_atomic_fetch_min)
RF_SCOPES(RF_ATOMIC_IN, atomicMax, __hip_atomic_fetch_max)
RF_SCOPES(RF_ATOMIC_IN, atomicAnd, __hip_atomic_fetch_and)
RF_SCOPES(RF_ATOMIC_IN, atomicOr, __hip_atomic_fetch_or)
RF_SCOPES(RF_ATOMIC_IN, atomicXor, __hip_atomic_fetch_xor)
RF_SCOPES(RF_ATOMIC_IN, atomicExch, __hip_atomic_exchange)
RF_SCOPES(RF_COMPARE_IN, atomicCAS)
#define RF_NEGATED(name, add)                                                                                            \
    template <typename T> RF_DEVICE T name(T* at, typename __rocmforge_same<T>::type value) { return add(at, (T)-value); }
RF_NEGATED(atomicSub, atomicAdd)
RF_NEGATED(atomicSub_block, atomicAdd_block)
RF_NEGATED(atomicSub_system, atomicAdd_system)
RF_DEVICE unsigned atomicInc(unsigned* at, unsigned limit) { return __builtin_amdgcn_atomic_inc32(at, limit, __ATOMIC_RELAXED, "agent"); }
RF_DEVICE unsigned atomicDec(unsigned* at, unsigned limit) { return __builtin_amdgcn_atomic_dec32(at, limit, __ATOMIC_RELAXED, "agent"); }
template <typename T> RF_DEVICE void unsafeAtomicAddNoReturn(T* at, T value) { atomicAdd(at, value); }
template <typename T> RF_DEVICE T unsafeAtomicAdd(T* at, T value) { return atomicAdd(at, value); }
template <typename T> RF_DEVICE T safeAtomicAdd(T* at, T value) { return atomicAdd(at, value); }
template <typename T> RF_DEVICE T unsafeAtomicMax(T* at, T value) { return atomicMax(at, value); }
template <typename T> RF_DEVICE T unsafeAtomicMin(T* at, T value) { return atomicMin(at, value); }
template <typename T> RF_DEVICE T safeAtomicMax(T* at, T value) { return atomicMax(at, value); }
template <typename T> RF_DEVICE T safeAtomicMin(T* at, T value) { return atomicMin(at, value); }

// Lanes and shuffles. Values of any size move a word at a time.
RF_DEVICE unsigned __lane_id() { return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0)); }
RF_DEVICE __attribute__((convergent)) unsigned long long __ballot(int value) { return __builtin_amdgcn_ballot_w64(value != 0); }
RF_DEVICE __attribute__((convergent)) unsigned long long __ballot64(int value) { return __ballot(value); }
RF_DEVICE __attribute__((convergent)) unsigned long long __activemask() { return __ballot(1); }
RF_DEVICE __attribute__((convergent)) int __any(int value) { return __ballot(value) != 0; }
RF_DEVICE __attribute__((convergent)) int __all(int value) { return __ballot(!value) == 0; }
RF_DEVICE unsigned long long __lanemask_eq() { return 1ull << __lane_id(); }
RF_DEVICE unsigned long long __lanemask_lt() { return (1ull << __lane_id()) - 1; }
RF_DEVICE unsigned long long __lanemask_gt() { return ~(__lanemask_lt() | __lanemask_eq()) & __ballot(1); }
template <typename T> RF_DEVICE __attribute__((convergent)) T __rocmforge_from_lane(T value, int lane) {
    union {
        T value;
        int words[(sizeof(T) + 3) / 4];
    } moved = {value};
#pragma unroll
    for (unsigned word = 0; word < (sizeof(T) + 3) / 4; word++) moved.words[word] = __builtin_amdgcn_ds_bpermute(lane << 2, moved.words[word]);
    return moved.value;
}
template <typename T> RF_DEVICE __attribute__((convergent)) T __shfl(T value, int lane, int width = warpSize) {
    int self = __lane_id();
    return __rocmforge_from_lane(value, (lane & (width - 1)) + (self & ~(width - 1)));
}
template <typename T> RF_DEVICE __attribute__((convergent)) T __shfl_up(T value, unsigned delta, int width = warpSize) {
    int self = __lane_id(), lane = self - (int)delta;
    return __rocmforge_from_lane(value, lane < (self & ~(width - 1)) ? self : lane);
}
template <typename T> RF_DEVICE __attribute__((convergent)) T __shfl_down(T value, unsigned delta, int width = warpSize) {
    int self = __lane_id(), lane = self + (int)delta;
    return __rocmforge_from_lane(value, (int)((self & (width - 1)) + delta) >= width ? self : lane);
}
template <typename T> RF_DEVICE __attribute__((convergent)) T __shfl_xor(T value, int mask, int width = warpSize) {
    int self = __lane_id(), lane = self ^ mask;
    return __rocmforge_from_lane(value, lane >= ((self + width) & ~(width - 1)) ? self : lane);
}
template <typename M, typename T> RF_DEVICE T __shfl_sync(M, T value, int lane, int width = warpSize) { return __shfl(value, lane, width); }
template <typename M, typename T> RF_DEVICE T __shfl_up_sync(M, T value, unsigned delta, int width = warpSize) { return __shfl_up(value, delta, width); }
template <typename M, typename T> RF_DEVICE T __shfl_down_sync(M, T value, unsigned delta, int width = warpSize) { return __shfl_down(value, delta, width); }
template <typename M, typename T> RF_DEVICE T __shfl_xor_sync(M, T value, int lanes, int width = warpSize) { return __shfl_xor(value, lanes, width); }
template <typename M> RF_DEVICE unsigned long long __ballot_sync(M mask, int value) { return __ballot(value) & mask; }
template <typename M> RF_DEVICE int __any_sync(M mask, int value) { return __ballot_sync(mask, value) != 0; }
template <typename M> RF_DEVICE int __all_sync(M mask, int value) { return __ballot_sync(mask, !value) == 0; }

// Bits and integers.
RF_DEVICE unsigned __popc(unsigned x) { return __builtin_popcount(x); }
RF_DEVICE unsigned __popcll(unsigned long long x) { return __builtin_popcountll(x); }
RF_DEVICE int __clz(int x) { return x ? __builtin_clz(x) : 32; }
RF_DEVICE int __clzll(long long x) { return x ? __builtin_clzll(x) : 64; }
RF_DEVICE int __ffs(int x) { return __builtin_ffs(x); }
RF_DEVICE int __ffs(unsigned x) { return __builtin_ffs(x); }
RF_DEVICE int __ffsll(long long x) { return __builtin_ffsll(x); }
RF_DEVICE int __ffsll(unsigned long long x) { return __builtin_ffsll(x); }
RF_DEVICE unsigned __brev(unsigned x) { return __builtin_bitreverse32(x); }
RF_DEVICE unsigned long long __brevll(unsigned long long x) { return __builtin_bitreverse64(x); }
RF_DEVICE int __mul24(int x, int y) { return (int)((long long)(int)((unsigned)x << 8) / 256 * ((long long)(int)((unsigned)y << 8) / 256)); }
RF_DEVICE unsigned __umul24(unsigned x, unsigned y) { return (x & 0xffffff) * (y & 0xffffff); }
RF_DEVICE int __mulhi(int x, int y) { return (int)((long long)x * y >> 32); }
RF_DEVICE unsigned __umulhi(unsigned x, unsigned y) { return (unsigned)((unsigned long long)x * y >> 32); }
RF_DEVICE long long __mul64hi(long long x, long long y) { return (long long)((__int128)x * y >> 64); }
RF_DEVICE unsigned long long __umul64hi(unsigned long long x, unsigned long long y) { return (unsigned long long)((unsigned __int128)x * y >> 64); }
RF_DEVICE int __hadd(int x, int y) { return (int)(((long long)x + y) >> 1); }
RF_DEVICE int __rhadd(int x, int y) { return (int)(((long long)x + y + 1) >> 1); }
RF_DEVICE unsigned __uhadd(unsigned x, unsigned y) { return (unsigned)(((unsigned long long)x + y) >> 1); }
RF_DEVICE unsigned __urhadd(unsigned x, unsigned y) { return (unsigned)(((unsigned long long)x + y + 1) >> 1); }
RF_DEVICE unsigned __sad(int x, int y, unsigned z) { return z + (x > y ? (unsigned)x - (unsigned)y : (unsigned)y - (unsigned)x); }
RF_DEVICE unsigned __usad(unsigned x, unsigned y, unsigned z) { return z + (x > y ? x - y : y - x); }
RF_DEVICE unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
    unsigned long long both = (unsigned long long)y << 32 | x;
    unsigned result = 0;
#pragma unroll
    for (unsigned byte = 0; byte < 4; byte++) result |= (unsigned)(both >> 8 * (selector >> 4 * byte & 7) & 0xff) << 8 * byte;
    return result;
}
RF_DEVICE unsigned __bitextract_u32(unsigned x, unsigned from, unsigned count) { return x << ((32 - (from & 31) - (count & 31)) & 31) >> ((32 - (count & 31)) & 31); }
RF_DEVICE unsigned __funnelshift_l(unsigned low, unsigned high, unsigned by) { return (unsigned)(((unsigned long long)high << 32 | low) << (by & 31) >> 32); }
RF_DEVICE unsigned __funnelshift_r(unsigned low, unsigned high, unsigned by) { return (unsigned)(((unsigned long long)high << 32 | low) >> (by & 31)); }
RF_DEVICE unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned by) { return (unsigned)(((unsigned long long)high << 32 | low) << (by > 32 ? 32 : by) >> 32); }
RF_DEVICE unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned by) { return (unsigned)(((unsigned long long)high << 32 | low) >> (by > 32 ? 32 : by)); }

// Casts: the same bits in another type.
#define RF_CAST(name, to, from)                                                                              \
    RF_DEVICE to name(from x) { return __builtin_bit_cast(to, x); }
RF_CAST(__float_as_int, int, float)
RF_CAST(__float_as_uint, unsigned, float)
RF_CAST(__int_as_float, float, int)
RF_CAST(__uint_as_float, float, unsigned)
RF_CAST(__double_as_longlong, long long, double)
RF_CAST(__longlong_as_double, double, long long)
RF_DEVICE int __double2hiint(double x) { return (int)(__double_as_longlong(x) >> 32); }
RF_DEVICE int __double2loint(double x) { return (int)__double_as_longlong(x); }
RF_DEVICE double __hiloint2double(int high, int low) { return __longlong_as_double((long long)high << 32 | (unsigned)low); }

// Conversions: to the nearest, towards zero, up and down. An integer that does not fit in a float is rounded to the nearest one.
#define RF_TO_INTEGER(from, of, name, to)                                                                    \
    RF_DEVICE to name##_rn(from x) { return (to)__builtin_rint##of(x); }                                     \
    RF_DEVICE to name##_rz(from x) { return (to)x; }                                                         \
    RF_DEVICE to name##_ru(from x) { return (to)__builtin_ceil##of(x); }                                     \
    RF_DEVICE to name##_rd(from x) { return (to)__builtin_floor##of(x); }
RF_TO_INTEGER(float, f, __float2int, int)
RF_TO_INTEGER(float, f, __float2uint, unsigned)
RF_TO_INTEGER(float, f, __float2ll, long long)
RF_TO_INTEGER(float, f, __float2ull, unsigned long long)
RF_TO_INTEGER(double, , __double2int, int)
RF_TO_INTEGER(double, , __double2uint, unsigned)
RF_TO_INTEGER(double, , __double2ll, long long)
RF_TO_INTEGER(double, , __double2ull, unsigned long long)
#define RF_TO_FLOAT(name, to, from)                                                                          \
    RF_DEVICE to name##_rn(from x) { return (to)x; }
RF_TO_FLOAT(__int2float, float, int)
RF_TO_FLOAT(__uint2float, float, unsigned)
RF_TO_FLOAT(__ll2float, float, long long)
RF_TO_FLOAT(__ull2float, float, unsigned long long)
RF_TO_FLOAT(__int2double, double, int)
RF_TO_FLOAT(__uint2double, double, unsigned)
RF_TO_FLOAT(__ll2double, double, long long)
RF_TO_FLOAT(__ull2double, double, unsigned long long)
RF_TO_FLOAT(__double2float, float, double)

// Minima and maxima of integers, the types of both arguments being the same.
#define RF_EXTREMES(type)                                                                                    \
    RF_DEVICE type min(type x, type y) { return y < x ? y : x; }                                             \
    RF_DEVICE type max(type x, type y) { return x < y ? y : x; }
RF_EXTREMES(unsigned)
RF_EXTREMES(long)
RF_EXTREMES(unsigned long)
RF_EXTREMES(long long)
RF_EXTREMES(unsigned long long)

// Loads, clocks and ends.
template <typename T> RF_DEVICE T __ldg(const T* at) { return *at; }
template <typename T> RF_DEVICE T __ldca(const T* at) { return *at; }
template <typename T> RF_DEVICE T __ldcg(const T* at) { return *at; }
template <typename T> RF_DEVICE T __ldcs(const T* at) { return *at; }
RF_DEVICE long long clock64() { return (long long)__builtin_readcyclecounter(); }
RF_DEVICE long long clock() { return clock64(); }
RF_DEVICE void __nanosleep(unsigned) { __builtin_amdgcn_s_sleep(1); }
RF_DEVICE void __trap() { __builtin_trap(); }
RF_DEVICE void abort() { __builtin_trap(); }
RF_DEVICE uint64_t __rocmforge_length(const char* text) {
    uint64_t length = 0;
    while (text[length++]) {}
    return length;
}
extern "C" __device__ __attribute__((noinline, weak)) void __assert_fail(const char* condition, const char* file, unsigned line, const char* function) {
    const char* format = "%s:%u: %s: Device-side assertion `%s' failed.\n";
    uint64_t message = __ockl_fprintf_stderr_begin();
    message = __ockl_fprintf_append_string_n(message, format, __rocmforge_length(format), 0);
    message = __ockl_fprintf_append_string_n(message, file, __rocmforge_length(file), 0);
    message = __ockl_fprintf_append_args(message, 1, line, 0, 0, 0, 0, 0, 0, 0);
    message = __ockl_fprintf_append_string_n(message, function, __rocmforge_length(function), 0);
    __ockl_fprintf_append_string_n(message, condition, __rocmforge_length(condition), 1);
    __builtin_trap();
}

#include "half.h"
