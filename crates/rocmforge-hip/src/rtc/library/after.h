// What comes behind HIP's header, whichever it is: what hiprtc has built in and the headers of some releases leave to the C library.
#pragma once
#ifndef ROCMFORGE_OWN_HEADER
#if HIP_VERSION_MAJOR >= 6
// Headers of ROCm 6 leave to hiprtc what it has built in: these, in this order.
#include <hip/amd_detail/device_library_decls.h>
#include <hip/amd_detail/hip_assert.h>
#include <hip/amd_detail/math_fwd.h>
#include <hip/amd_detail/amd_warp_functions.h>
#include <hip/amd_detail/amd_device_functions.h>
#if __has_include(<hip/amd_detail/amd_warp_sync_functions.h>)
#include <hip/amd_detail/amd_warp_sync_functions.h>
#endif
#if __has_include(<hip/amd_detail/amd_hip_unsafe_atomics.h>)
#include <hip/amd_detail/amd_hip_unsafe_atomics.h>
#endif
#include <hip/amd_detail/amd_hip_atomic.h>
#if __has_include(<hip/amd_detail/hip_fp16_math_fwd.h>)
#include <hip/amd_detail/hip_fp16_math_fwd.h>
#endif
#include <hip/amd_detail/amd_hip_fp16.h>
#include <hip/amd_detail/amd_math_functions.h>
#else
#if __has_include(<hip/amd_detail/amd_warp_functions.h>)
#include <hip/amd_detail/amd_warp_functions.h>
#endif
#include <hip/hip_fp16.h>
#endif
#endif
#ifndef assert
#ifdef NDEBUG
#define assert(condition) ((void)0)
#else
#define assert(condition) ((condition) ? (void)0 : __assert_fail(#condition, __FILE__, __LINE__, __PRETTY_FUNCTION__))
#endif
#endif
#undef wall_clock64
static __device__ inline __attribute__((always_inline)) long long wall_clock64() { return (long long)__builtin_readsteadycounter(); }
