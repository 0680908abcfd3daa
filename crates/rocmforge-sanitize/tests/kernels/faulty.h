// What the faulty kernels use beside the project's own device language.
#pragma once
#include "rf.h"

typedef unsigned char u8;
typedef unsigned short u16;

#define KERNEL extern "C" __attribute__((global, amdgpu_flat_work_group_size(1, 1024))) void
#define SHARED static __attribute__((shared))

// Orders: relaxed orders nothing, acquire and release order what lies around them.
#define RELAXED __ATOMIC_RELAXED
#define ACQUIRE __ATOMIC_ACQUIRE
#define RELEASE __ATOMIC_RELEASE
#define ACQ_REL __ATOMIC_ACQ_REL
// Scopes: the threads among which an order holds.
#define GROUP __HIP_MEMORY_SCOPE_WORKGROUP
#define DEVICE __HIP_MEMORY_SCOPE_AGENT

#define atomic_add(p, v, order, scope) __hip_atomic_fetch_add(p, v, order, scope)
#define atomic_load(p, order, scope) __hip_atomic_load(p, order, scope)
#define atomic_store(p, v, order, scope) __hip_atomic_store(p, v, order, scope)
#define atomic_exchange(p, v, order, scope) __hip_atomic_exchange(p, v, order, scope)

// `__threadfence()`
RF_DEVICE void device_fence() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent"); }

// Memory through a resource descriptor, as Triton and Composable Kernel reach it: words at offsets in bytes.
typedef __amdgpu_buffer_rsrc_t Buffer;
#define buffer_of(p, bytes) __builtin_amdgcn_make_buffer_rsrc((void *)(p), 0, bytes, 0x31004000)
#define buffer_load(b, at) __builtin_amdgcn_raw_buffer_load_b32(b, at, 0, 0)
#define buffer_store(v, b, at) __builtin_amdgcn_raw_buffer_store_b32(v, b, at, 0, 0)
__attribute__((device)) u32 buffer_compare_and_swap(u32 value, u32 expected, Buffer b, u32 at, u32 base, u32 policy) __asm(
    "llvm.amdgcn.raw.ptr.buffer.atomic.cmpswap.i32");
