// A matrix product by tiles in LDS, and a sum by a tree in LDS.
#include "check.h"

__global__ void product(const float* a, const float* b, float* c, int n) {
  __shared__ float ta[16][16], tb[16][16];
  int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  float sum = 0;
  for (int k = 0; k < n; k += 16) {
    ta[threadIdx.y][threadIdx.x] = a[y * n + k + threadIdx.x];
    tb[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + x];
    __syncthreads();
    for (int i = 0; i < 16; i++) sum += ta[threadIdx.y][i] * tb[i][threadIdx.x];
    __syncthreads();
  }
  c[y * n + x] = sum;
}
__global__ void total(const float* p, float* out) {
  __shared__ float part[256];
  part[threadIdx.x] = p[place()];
  __syncthreads();
  for (int step = 128; step > 0; step /= 2) {
    if (threadIdx.x < step) part[threadIdx.x] += part[threadIdx.x + step];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = part[0];
}

int main() {
  const int n = 48, size = n * n;
  std::vector<float> a(size), b(size), c(size), sums(size / 256);
  for (int i = 0; i < size; i++) a[i] = i % 7 - 3, b[i] = i % 5 - 2;
  float *da, *db, *dc, *ds;
  OK(hipMalloc(&da, size * 4));
  OK(hipMalloc(&db, size * 4));
  OK(hipMalloc(&dc, size * 4));
  OK(hipMalloc(&ds, size / 256 * 4));
  OK(hipMemcpy(da, a.data(), size * 4, hipMemcpyHostToDevice));
  OK(hipMemcpy(db, b.data(), size * 4, hipMemcpyHostToDevice));
  product<<<dim3(3, 3), dim3(16, 16)>>>(da, db, dc, n);
  total<<<size / 256, 256>>>(dc, ds);
  OK(hipMemcpy(c.data(), dc, size * 4, hipMemcpyDeviceToHost));
  OK(hipMemcpy(sums.data(), ds, size / 256 * 4, hipMemcpyDeviceToHost));
  float all = 0, got = 0;
  for (int y = 0; y < n; y++)
    for (int x = 0; x < n; x++) {
      float sum = 0;
      for (int k = 0; k < n; k++) sum += a[y * n + k] * b[k * n + x];
      EQUAL(c[y * n + x], sum);
      all += sum;
    }
  for (float sum : sums) got += sum;
  EQUAL(got, all);
  OK(hipFree(da));
  OK(hipFree(db));
  OK(hipFree(dc));
  OK(hipFree(ds));
  return finish();
}
