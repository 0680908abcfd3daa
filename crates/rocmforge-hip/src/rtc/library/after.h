// What comes behind HIP's header, whichever it is: what hiprtc has built in and the headers of some releases leave to the C library.
#pragma once
#if !defined(ROCMFORGE_OWN_HEADER) && __has_include(<hip/amd_detail/amd_warp_functions.h>)
#include <hip/amd_detail/amd_warp_functions.h>
#endif
#if !defined(ROCMFORGE_OWN_HEADER) && __has_include(<hip/hip_fp16.h>)
#include <hip/hip_fp16.h>
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
