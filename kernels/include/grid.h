// Launches that begin while the one before ends: programmatic dependent launch, which NVIDIA's cards of compute capability 9.0 have. A kernel with
// rf_grid_begin is launched so in captured graphs; elsewhere a launch begins when the one before has ended, and this does nothing.
#pragma once
#include "rf.h"

// Whether launches overlap; and __restrict__ for what a launch before may have written, where they do not: compilers load early what nobody seems to
// write.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define RF_OVERLAP 1
#define RF_WRITTEN_BEFORE
#else
#define RF_OVERLAP 0
#define RF_WRITTEN_BEFORE __restrict__
#endif

// Waits until all that the launches before have written is there, then lets the launch after begin. Every thread calls it before it writes anything,
// and before it reads anything but weights: what nobody writes while a graph runs. So what comes before it is done while the launch before still runs.
// A kernel that writes weights (pack_weights) does not call it: the launch after would read them too early.
RF_DEVICE void rf_grid_begin() {
#if RF_OVERLAP
    asm volatile("griddepcontrol.wait;" ::: "memory");
    // In this order: whoever begins now knows that all before this launch have ended.
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
