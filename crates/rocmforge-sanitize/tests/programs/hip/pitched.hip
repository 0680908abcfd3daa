// Pitched memory: rows start at aligned addresses; a kernel walks them.
#include "check.h"

__global__ void fill(char* base, size_t pitch, int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < width && y < height) ((int*)(base + y * pitch))[x] = 1000 * y + x;
}

int main() {
  const int width = 51, height = 9;
  char* p;
  size_t pitch = 0;
  OK(hipMallocPitch((void**)&p, &pitch, width * sizeof(int), height));
  TRUE(pitch >= width * sizeof(int));
  EQUAL(pitch % 128, 0u);
  fill<<<dim3(4, 3), dim3(16, 4)>>>(p, pitch, width, height);
  OK(hipGetLastError());
  std::vector<int> out(width * height);
  OK(hipMemcpy2D(out.data(), width * sizeof(int), p, pitch, width * sizeof(int), height, hipMemcpyDeviceToHost));
  for (int y = 0; y < height; y++)
    for (int x = 0; x < width; x++) EQUAL(out[y * width + x], 1000 * y + x);
  OK(hipFree(p));
  hipDeviceptr_t q;
  OK(hipMemAllocPitch(&q, &pitch, 100, 10, 4));
  TRUE(pitch >= 100);
  OK(hipFree(q));
  return finish();
}
