// The order of memory accesses in a wave, and what the compiler may keep in registers.
#pragma once
#include "rf.h"

// What is written before it to LDS by lanes of a wave is seen after it by the others of the wave. AMD's LDS keeps the order of a wave's accesses.
RF_DEVICE void rf_wave_barrier() {
#if defined(__CUDA_ARCH__)
    asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");
#else
    asm volatile("" ::: "memory");
#endif
}

// Loads after this point are not begun before it: all of them at once may need more registers than there are.
RF_DEVICE void rf_in_order() { asm volatile("" ::: "memory"); }

// The same number, which the compiler takes for another one each time: what follows from it is not kept from one turn of a loop to the next.
RF_DEVICE u32 rf_anew(u32 x) {
#if defined(__CUDA_ARCH__)
    asm volatile("" : "+r"(x));
#else
    asm volatile("" : "+v"(x));
#endif
    return x;
}
