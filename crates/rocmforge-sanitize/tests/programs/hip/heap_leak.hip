// A kernel keeps every second block of device malloc.
#include "check.h"

__global__ void keep(int* out) {
  int* block = (int*)malloc(40);  // kernel line
  if (!block) return;
  block[9] = threadIdx.x;
  out[threadIdx.x] = block[9];
  if (threadIdx.x % 2) free(block);
}

int main() {
  int *out, host[8] = {};
  OK(hipMalloc(&out, 64 * 4));
  keep<<<1, 8>>>(out);  // host line
  OK(hipMemcpy(host, out, sizeof host, hipMemcpyDeviceToHost));
  for (int k = 0; k < 8; ++k) EQUAL(host[k], k);
  OK(hipFree(out));
  return finish();
}
