// Faulty: workgroups count without atomic operations.
#include "check.h"

__global__ void count(int* p) {
  p[0] += 1;  // kernel line
}

int main() {
  int* p;
  OK(hipMalloc(&p, 4));
  OK(hipMemset(p, 0, 4));
  count<<<4, 32>>>(p);  // host line
  OK(hipDeviceSynchronize());
  OK(hipFree(p));
  return finish();
}
