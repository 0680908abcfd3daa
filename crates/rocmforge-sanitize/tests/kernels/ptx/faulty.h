// faulty.h for NVIDIA's compiler target: the same names, through PTX. It is found before the other one.
#pragma once
#include "rf.h"

typedef unsigned char u8;
typedef unsigned short u16;

#define KERNEL extern "C" __attribute__((global, launch_bounds(1024))) void
#define SHARED static __attribute__((shared))

// Orders and scopes in PTX's words.
#define RELAXED "relaxed"
#define ACQUIRE "acquire"
#define RELEASE "release"
#define ACQ_REL "acq_rel"
#define GROUP "cta"
#define DEVICE "gpu"

// Not assembly, which would hide from the compiler that an address is one of shared memory. All of the sources that come here
// add in relaxed order.
#define atomic_add(p, v, order, scope) __atomic_fetch_add(p, v, __ATOMIC_RELAXED)
#define atomic_exchange(p, v, order, scope) \
    ({ \
        u32 old; \
        asm volatile("atom." order "." scope ".exch.b32 %0, [%1], %2;" : "=r"(old) : "l"(p), "r"(v) : "memory"); \
        old; \
    })
#define atomic_load(p, order, scope) \
    ({ \
        u32 now; \
        asm volatile("ld." order "." scope ".u32 %0, [%1];" : "=r"(now) : "l"(p) : "memory"); \
        now; \
    })
#define atomic_store(p, v, order, scope) \
    asm volatile("st." order "." scope ".u32 [%0], %1;" : : "l"(p), "r"(v) : "memory")

// Not the inline function: PTX of this compiler gives its line, and not the line that called it.
#define rf_barrier() __syncthreads()

// `__threadfence()`
RF_DEVICE void device_fence() { __nvvm_membar_gl(); }

// What the sources ask of AMD's compiler.
#define __builtin_amdgcn_workitem_id_y() __nvvm_read_ptx_sreg_tid_y()
#define __builtin_amdgcn_readfirstlane(x) (x)
#define __builtin_amdgcn_s_sleep(n)
#define __builtin_amdgcn_wave_barrier() __nvvm_bar_warp_sync(0xffffffffu)
#define __builtin_amdgcn_fence(order, scope) __nvvm_membar_gl()
