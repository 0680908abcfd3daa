// Faulty: threads read what other waves of their workgroup write, without a barrier.
#include "check.h"

__global__ void reverse(int* p) {
  __shared__ int tile[128];
  tile[threadIdx.x] = p[threadIdx.x];
  __syncthreads();
  int value = tile[127 - threadIdx.x];
  tile[threadIdx.x] = value + 1;  // kernel line
  __syncthreads();
  p[threadIdx.x] = tile[threadIdx.x];
}

int main() {
  int* p;
  OK(hipMalloc(&p, 512));
  OK(hipMemset(p, 0, 512));
  reverse<<<1, 128>>>(p);  // host line
  OK(hipDeviceSynchronize());
  OK(hipFree(p));
  return finish();
}
