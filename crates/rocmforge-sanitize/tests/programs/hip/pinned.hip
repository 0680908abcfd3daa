// Pinned host memory: written and read by kernels without a copy.
#include "check.h"

__global__ void twice(int* p, int n) {
  int i = place();
  if (i < n) p[i] = 2 * p[i] + 1;
}

int main() {
  const int n = 500;
  int *host, *device;
  OK(hipHostMalloc((void**)&host, n * sizeof(int), hipHostMallocMapped));
  for (int i = 0; i < n; i++) host[i] = i;
  OK(hipHostGetDevicePointer((void**)&device, host, 0));
  twice<<<2, 256>>>(device, n);
  OK(hipDeviceSynchronize());
  for (int i = 0; i < n; i++) EQUAL(host[i], 2 * i + 1);
  // The host's own pointer is one for kernels too.
  twice<<<2, 256>>>(host, n);
  OK(hipDeviceSynchronize());
  for (int i = 0; i < n; i++) EQUAL(host[i], 4 * i + 3);
  unsigned flags = 0;
  OK(hipHostGetFlags(&flags, host));
  TRUE(flags & hipHostMallocMapped);
  int* copy;
  OK(hipMalloc(&copy, n * sizeof(int)));
  hipStream_t stream;
  OK(hipStreamCreate(&stream));
  OK(hipMemcpyAsync(copy, host, n * sizeof(int), hipMemcpyHostToDevice, stream));
  twice<<<2, 256, 0, stream>>>(copy, n);
  OK(hipMemcpyAsync(host, copy, n * sizeof(int), hipMemcpyDeviceToHost, stream));
  OK(hipStreamSynchronize(stream));
  for (int i = 0; i < n; i++) EQUAL(host[i], 8 * i + 7);
  OK(hipStreamDestroy(stream));
  OK(hipFree(copy));
  OK(hipHostFree(host));
  ANSWERS(hipErrorInvalidValue, hipHostGetDevicePointer((void**)&device, nullptr, 0));
  return finish();
}
