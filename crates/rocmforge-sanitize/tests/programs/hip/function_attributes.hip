// What the compiler says of a kernel.
#include "check.h"

__global__ void __launch_bounds__(256) bounded(int* p) {
  __shared__ int tile[256];
  tile[threadIdx.x] = p[threadIdx.x];
  __syncthreads();
  p[threadIdx.x] = tile[255 - threadIdx.x];
}
__global__ void scratch(int* p, int n) {
  volatile int own[64];
  for (int i = 0; i < 64; i++) own[i] = i * n;
  p[threadIdx.x] = own[(threadIdx.x * 7 + n) % 64];
}

int main() {
  hipFuncAttributes a;
  memset(&a, 0x5a, sizeof a);
  OK(hipFuncGetAttributes(&a, (const void*)bounded));
  EQUAL(a.sharedSizeBytes, 1024u);
  EQUAL(a.maxThreadsPerBlock, 256);
  EQUAL(a.localSizeBytes, 0u);
  TRUE(a.numRegs > 0 && a.numRegs <= 256);
  OK(hipFuncGetAttributes(&a, (const void*)scratch));
  TRUE(a.localSizeBytes >= 256);
  EQUAL(a.sharedSizeBytes, 0u);
  EQUAL(a.maxThreadsPerBlock, 1024);
  OK(hipFuncSetAttribute((const void*)bounded, hipFuncAttributeMaxDynamicSharedMemorySize, 4096));
  OK(hipFuncSetCacheConfig((const void*)bounded, hipFuncCachePreferL1));
  int not_a_kernel = 0;
  ANSWERS(hipErrorInvalidDeviceFunction, hipFuncGetAttributes(&a, &not_a_kernel));
  int* p;
  OK(hipMalloc(&p, 1024));
  scratch<<<1, 256>>>(p, 3);
  std::vector<int> out(256);
  OK(hipMemcpy(out.data(), p, 1024, hipMemcpyDeviceToHost));
  for (int i = 0; i < 256; i++) EQUAL(out[i], (i * 7 + 3) % 64 * 3);
  OK(hipFree(p));
  return finish();
}
