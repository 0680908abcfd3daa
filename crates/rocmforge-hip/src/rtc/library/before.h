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
// Headers of ROCm 5 have a wall clock for cards with an instruction that those of today do not have, and else answer -1: `after.h` has another.
#define wall_clock64 __rocmforge_wall_clock64_of_header
