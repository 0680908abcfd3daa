// Launches in three dimensions: every thread has its own place, and odd sizes too.
#include "check.h"

struct Places {
  unsigned short block[3], thread[3], blocks[3], threads[3];
};

__global__ void where(Places* out) {
  int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  Places& p = out[block * blockDim.x * blockDim.y * blockDim.z + thread];
  p.block[0] = blockIdx.x, p.block[1] = blockIdx.y, p.block[2] = blockIdx.z;
  p.thread[0] = threadIdx.x, p.thread[1] = threadIdx.y, p.thread[2] = threadIdx.z;
  p.blocks[0] = gridDim.x, p.blocks[1] = gridDim.y, p.blocks[2] = gridDim.z;
  p.threads[0] = blockDim.x, p.threads[1] = blockDim.y, p.threads[2] = blockDim.z;
}

static void launch(dim3 grid, dim3 block) {
  size_t n = (size_t)grid.x * grid.y * grid.z * block.x * block.y * block.z;
  Places* p;
  OK(hipMalloc(&p, n * sizeof(Places)));
  where<<<grid, block>>>(p);
  std::vector<Places> out(n);
  OK(hipMemcpy(out.data(), p, n * sizeof(Places), hipMemcpyDeviceToHost));
  size_t i = 0;
  for (unsigned bz = 0; bz < grid.z; bz++)
    for (unsigned by = 0; by < grid.y; by++)
      for (unsigned bx = 0; bx < grid.x; bx++)
        for (unsigned tz = 0; tz < block.z; tz++)
          for (unsigned ty = 0; ty < block.y; ty++)
            for (unsigned tx = 0; tx < block.x; tx++, i++) {
              const Places& q = out[i];
              TRUE(q.block[0] == bx && q.block[1] == by && q.block[2] == bz);
              TRUE(q.thread[0] == tx && q.thread[1] == ty && q.thread[2] == tz);
              TRUE(q.blocks[0] == grid.x && q.blocks[1] == grid.y && q.blocks[2] == grid.z);
              TRUE(q.threads[0] == block.x && q.threads[1] == block.y && q.threads[2] == block.z);
            }
  OK(hipFree(p));
}

int main() {
  launch(dim3(2, 3, 4), dim3(5, 3, 2));
  launch(dim3(1, 1, 7), dim3(1, 33, 1));
  launch(dim3(3), dim3(8, 8, 8));
  where<<<dim3(1), dim3(1025)>>>(nullptr);
  ANSWERS(hipErrorInvalidValue, hipGetLastError());
  where<<<dim3(0), dim3(32)>>>(nullptr);
  ANSWERS(hipErrorInvalidValue, hipGetLastError());
  where<<<dim3(1), dim3(32, 32, 2)>>>(nullptr);
  ANSWERS(hipErrorInvalidValue, hipGetLastError());
  return finish();
}
