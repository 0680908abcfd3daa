// What comes before every header of hiprtc: the size of a wave, which older headers of ROCm ask for by this name.
#pragma once
#ifndef __AMDGCN_WAVEFRONT_SIZE
#define __AMDGCN_WAVEFRONT_SIZE ROCMFORGE_WAVE
#endif
// Only without ROCm's headers, which say so themselves.
#ifdef ROCMFORGE_HIP_VERSION
#define HIP_VERSION ROCMFORGE_HIP_VERSION
#define HIP_VERSION_MAJOR (ROCMFORGE_HIP_VERSION / 10000000)
#define HIP_VERSION_MINOR (ROCMFORGE_HIP_VERSION / 100000 % 100)
#define HIP_VERSION_PATCH (ROCMFORGE_HIP_VERSION % 100000)
#endif
// Headers of ROCm 5 read the wall clock by an instruction that the cards of today do not have.
#define __builtin_amdgcn_s_memrealtime __builtin_readsteadycounter
