// The shared library of plugin.hip: a kernel and a variable.
#include "check.h"

__device__ int state = 10;
__global__ void bump(int* p, int by) { *p = state += by; }

extern "C" int plugin_bump(int by) {
  int *p, got = -1;
  OK(hipMalloc(&p, 4));
  bump<<<1, 1>>>(p, by);
  OK(hipMemcpy(&got, p, 4, hipMemcpyDeviceToHost));
  OK(hipFree(p));
  return got;
}
