// Copies from global to shared memory that no thread waits for, and barriers that count them. NVIDIA from sm_80, mbarrier waits from sm_90.
// PTX ISA 8.0, "cp.async" and "mbarrier".
#pragma once
#include "rf.h"

// 16 bytes; `bytes` of them are read and the rest is 0.
RF_DEVICE void rf_copy_async(u32 to, const void *from, u32 bytes) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}
// The same of 4 bytes.
RF_DEVICE void rf_copy_async4(u32 to, const void *from, u32 bytes) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}
// 16 bytes to shared memory from registers.
RF_DEVICE void rf_shared_put(u32 to, u4 v) {
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}
// Closes a group of copies; waits until at most N of this thread's groups are unfinished.
RF_DEVICE void rf_copy_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <u32 N> RF_DEVICE void rf_copy_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }
// What ordinary stores and copies wrote to shared memory is seen by wgmma after this and a barrier.
RF_DEVICE void rf_fence_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// A barrier of 8 bytes in shared memory, whose phase ends when `count` have arrived.
RF_DEVICE void rf_mbarrier_begin(u32 at, u32 count) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at), "r"(count) : "memory"); }
RF_DEVICE void rf_mbarrier_arrive(u32 at) { asm volatile("{.reg .b64 s; mbarrier.arrive.shared::cta.b64 s, [%0];}" ::"r"(at) : "memory"); }
// Arrives when this thread's copies so far are done.
RF_DEVICE void rf_mbarrier_copies(u32 at) { asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(at) : "memory"); }
// Waits for the end of the phase with this parity: 0 for the first.
RF_DEVICE void rf_mbarrier_wait(u32 at, u32 parity) {
    u32 done;
    do {
        asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
                     : "=r"(done)
                     : "r"(at), "r"(parity)
                     : "memory");
    } while (!done);
}
