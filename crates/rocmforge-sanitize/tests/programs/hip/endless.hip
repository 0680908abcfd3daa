// Faulty: a kernel waits for a value that nobody writes.
#include "check.h"

__global__ void wait(int* p) {
  while (__hip_atomic_load(p, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT) == 0) {  // kernel line
  }
}

int main() {
  int* p;
  OK(hipMalloc(&p, 4));
  OK(hipMemset(p, 0, 4));
  wait<<<1, 32>>>(p);  // host line
  TRUE(hipDeviceSynchronize() != hipSuccess);
  return finish();
}
