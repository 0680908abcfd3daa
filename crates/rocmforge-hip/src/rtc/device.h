// What hiprtc has built in, for clang without ROCm's headers. Names are HIP's.
#pragma once
#define __HIPCC_RTC__ 1
#define __HIP_PLATFORM_AMD__ 1
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define HIP_DYNAMIC_SHARED(type, name) extern __shared__ type name[];

typedef __SIZE_TYPE__ size_t;
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
typedef unsigned int uint;

struct dim3 {
    unsigned x, y, z;
    __host__ __device__ constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

// threadIdx and its like are read by member, or as a whole.
#define ROCMFORGE_INDEX(type, of_x, of_y, of_z)                                                              \
    struct type {                                                                                            \
        __declspec(property(get = get_x)) unsigned x;                                                        \
        __declspec(property(get = get_y)) unsigned y;                                                        \
        __declspec(property(get = get_z)) unsigned z;                                                        \
        static __device__ __forceinline__ unsigned get_x() { return of_x; }                                  \
        static __device__ __forceinline__ unsigned get_y() { return of_y; }                                  \
        static __device__ __forceinline__ unsigned get_z() { return of_z; }                                  \
        __device__ operator dim3() const { return dim3(get_x(), get_y(), get_z()); }                         \
    };
#define ROCMFORGE_GROUPS(axis) (__builtin_amdgcn_grid_size_##axis() / __builtin_amdgcn_workgroup_size_##axis())
ROCMFORGE_INDEX(__rocmforge_thread, __builtin_amdgcn_workitem_id_x(), __builtin_amdgcn_workitem_id_y(), __builtin_amdgcn_workitem_id_z())
ROCMFORGE_INDEX(__rocmforge_block, __builtin_amdgcn_workgroup_id_x(), __builtin_amdgcn_workgroup_id_y(), __builtin_amdgcn_workgroup_id_z())
ROCMFORGE_INDEX(__rocmforge_block_size, __builtin_amdgcn_workgroup_size_x(), __builtin_amdgcn_workgroup_size_y(), __builtin_amdgcn_workgroup_size_z())
ROCMFORGE_INDEX(__rocmforge_grid, ROCMFORGE_GROUPS(x), ROCMFORGE_GROUPS(y), ROCMFORGE_GROUPS(z))
extern const __device__ __attribute__((weak)) __rocmforge_thread threadIdx;
extern const __device__ __attribute__((weak)) __rocmforge_block blockIdx;
extern const __device__ __attribute__((weak)) __rocmforge_block_size blockDim;
extern const __device__ __attribute__((weak)) __rocmforge_grid gridDim;
constexpr int warpSize = 32;

static __device__ __forceinline__ void __syncthreads() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
static __device__ __forceinline__ void __threadfence() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent"); }
static __device__ __forceinline__ void __threadfence_block() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup"); }

// As in HIP, atomics are relaxed and of the whole card.
#define ROCMFORGE_ATOMIC(name, operation)                                                                    \
    template <typename T> static __device__ __forceinline__ T name(T* at, T value) {                         \
        return operation(at, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);                             \
    }
ROCMFORGE_ATOMIC(atomicAdd, __hip_atomic_fetch_add)
ROCMFORGE_ATOMIC(atomicMin, __hip_atomic_fetch_min)
ROCMFORGE_ATOMIC(atomicMax, __hip_atomic_fetch_max)
ROCMFORGE_ATOMIC(atomicAnd, __hip_atomic_fetch_and)
ROCMFORGE_ATOMIC(atomicOr, __hip_atomic_fetch_or)
ROCMFORGE_ATOMIC(atomicXor, __hip_atomic_fetch_xor)
ROCMFORGE_ATOMIC(atomicExch, __hip_atomic_exchange)
template <typename T> static __device__ __forceinline__ T atomicSub(T* at, T value) { return atomicAdd(at, (T)-value); }
template <typename T> static __device__ __forceinline__ T atomicCAS(T* at, T expected, T value) {
    __hip_atomic_compare_exchange_strong(at, &expected, value, __ATOMIC_RELAXED, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
    return expected;
}

#define ROCMFORGE_MATH(name)                                                                                 \
    static __device__ __forceinline__ float name##f(float x) { return __builtin_##name##f(x); }              \
    static __device__ __forceinline__ float name(float x) { return __builtin_##name##f(x); }                 \
    static __device__ __forceinline__ double name(double x) { return __builtin_##name(x); }
ROCMFORGE_MATH(sqrt)
ROCMFORGE_MATH(fabs)
ROCMFORGE_MATH(floor)
ROCMFORGE_MATH(ceil)
ROCMFORGE_MATH(trunc)
ROCMFORGE_MATH(rint)
static __device__ __forceinline__ float expf(float x) { return __builtin_expf(x); }
static __device__ __forceinline__ float exp2f(float x) { return __builtin_exp2f(x); }
static __device__ __forceinline__ float logf(float x) { return __builtin_logf(x); }
static __device__ __forceinline__ float log2f(float x) { return __builtin_log2f(x); }
static __device__ __forceinline__ float rsqrtf(float x) { return 1.0f / __builtin_sqrtf(x); }
static __device__ __forceinline__ float fminf(float x, float y) { return __builtin_fminf(x, y); }
static __device__ __forceinline__ float fmaxf(float x, float y) { return __builtin_fmaxf(x, y); }
static __device__ __forceinline__ float fmaf(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
static __device__ __forceinline__ double fma(double x, double y, double z) { return __builtin_fma(x, y, z); }
template <typename T> static __device__ __forceinline__ T min(T x, T y) { return y < x ? y : x; }
template <typename T> static __device__ __forceinline__ T max(T x, T y) { return x < y ? y : x; }
