// Occupancy: how many workgroups of a kernel a processor holds, and the best size of one.
#include "check.h"

__global__ void plain(int* p) { p[place()] = 1; }
__global__ void big_lds(int* p) {
  __shared__ int tile[8192];
  tile[threadIdx.x] = p[threadIdx.x];
  __syncthreads();
  p[threadIdx.x] = tile[(threadIdx.x * 17) % 64];
}

int main() {
  hipDeviceProp_t properties;
  OK(hipGetDeviceProperties(&properties, 0));
  int small = 0, large = 0, lds = 0, dynamic = 0;
  OK(hipOccupancyMaxActiveBlocksPerMultiprocessor(&small, plain, 64, 0));
  OK(hipOccupancyMaxActiveBlocksPerMultiprocessor(&large, plain, 1024, 0));
  OK(hipOccupancyMaxActiveBlocksPerMultiprocessor(&lds, big_lds, 64, 0));
  OK(hipOccupancyMaxActiveBlocksPerMultiprocessor(&dynamic, plain, 64, 32768));
  TRUE(small >= large && large >= 1);
  TRUE(small * 64 <= properties.maxThreadsPerMultiProcessor);
  TRUE(lds >= 1 && lds <= 4);
  EQUAL(dynamic, lds);
  int grid = 0, block = 0;
  OK(hipOccupancyMaxPotentialBlockSize(&grid, &block, plain, 0, 0));
  TRUE(grid > 0 && block > 0 && block <= 1024 && block % 32 == 0);
  OK(hipOccupancyMaxPotentialBlockSize(&grid, &block, plain, 0, 128));
  TRUE(block <= 128);
  ANSWERS(hipErrorInvalidValue, hipOccupancyMaxActiveBlocksPerMultiprocessor((int*)nullptr, plain, 64, 0));
  return finish();
}
