// The code object of modules.hip.
#include "check.h"

__device__ int calls = 40;

extern "C" __global__ void scale(float* p, float factor, int n) {
  int i = place();
  if (i < n) p[i] *= factor;
  if (i == 0) calls += 1;
}

extern "C" __global__ void reverse(int* p) {
  extern __shared__ int tile[];
  tile[threadIdx.x] = p[threadIdx.x];
  __syncthreads();
  p[threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
}
