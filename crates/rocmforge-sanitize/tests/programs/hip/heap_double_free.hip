// A kernel gives a block of device malloc back twice, and then an address that malloc has never given. Both do nothing, and the blocks stay right.
#include "check.h"

__global__ void twice(int* out) {
  int* block = (int*)malloc(16 * sizeof(int));
  if (!block) return;
  block[3] = 7;
  out[threadIdx.x] = block[3];
  free(block);
  free(block);  // kernel line
  free(out + 4);
}

int main() {
  int *out, host[8] = {};
  OK(hipMalloc(&out, 64 * 4));
  twice<<<1, 8>>>(out);  // host line
  OK(hipMemcpy(host, out, sizeof host, hipMemcpyDeviceToHost));
  for (int k : host) EQUAL(k, 7);
  return finish();
}
