// LDS whose size the launch gives, beside LDS of a fixed size.
#include "check.h"

__global__ void reverse(const int* in, int* out) {
  __shared__ int fixed[4];
  extern __shared__ int tile[];
  if (threadIdx.x < 4) fixed[threadIdx.x] = 100 * threadIdx.x;
  tile[threadIdx.x] = in[place()];
  __syncthreads();
  out[place()] = tile[blockDim.x - 1 - threadIdx.x] + fixed[threadIdx.x % 4];
}

int main() {
  const int n = 1024;
  std::vector<int> in(n), out(n);
  for (int i = 0; i < n; i++) in[i] = i * i;
  int *a, *b;
  OK(hipMalloc(&a, n * 4));
  OK(hipMalloc(&b, n * 4));
  OK(hipMemcpy(a, in.data(), n * 4, hipMemcpyHostToDevice));
  for (int block : {32, 128, 1024}) {
    reverse<<<n / block, block, block * sizeof(int)>>>(a, b);
    OK(hipMemcpy(out.data(), b, n * 4, hipMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) {
      int from = i / block * block + block - 1 - i % block;
      EQUAL(out[i], from * from + 100 * (i % block % 4));
    }
  }
  reverse<<<1, 32, 1 << 20>>>(a, b);
  TRUE(hipGetLastError() != hipSuccess);
  OK(hipFree(a));
  OK(hipFree(b));
  return finish();
}
