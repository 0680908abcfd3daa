// Faulty: a barrier of the whole grid in a launch that is not cooperative.
#include "check.h"

#include <hip/hip_cooperative_groups.h>

__global__ void meet(int* p) {
  p[blockIdx.x] = 1;
  cooperative_groups::this_grid().sync();  // kernel line
}

int main() {
  int* p;
  OK(hipMalloc(&p, 16));
  meet<<<4, 32>>>(p);  // host line
  ANSWERS(hipErrorLaunchFailure, hipDeviceSynchronize());
  return finish();
}
