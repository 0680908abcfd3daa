// Memory of pools, allocated and freed in the order of a stream.
#include "check.h"

__global__ void fill(int* p, int n, int value) {
  int i = place();
  if (i < n) p[i] = value + i;
}

int main() {
  int supported = 0;
  OK(hipDeviceGetAttribute(&supported, hipDeviceAttributeMemoryPoolsSupported, 0));
  EQUAL(supported, 1);
  const int n = 1000;
  hipStream_t stream;
  OK(hipStreamCreate(&stream));
  std::vector<int> out(n);
  for (int round = 0; round < 4; round++) {
    int* p = nullptr;
    OK(hipMallocAsync((void**)&p, n * sizeof(int), stream));
    fill<<<4, 256, 0, stream>>>(p, n, round);
    OK(hipMemcpyAsync(out.data(), p, n * sizeof(int), hipMemcpyDeviceToHost, stream));
    OK(hipFreeAsync(p, stream));
    OK(hipStreamSynchronize(stream));
    for (int i = 0; i < n; i++) EQUAL(out[i], round + i);
  }
  hipMemPool_t pool, standard;
  OK(hipDeviceGetDefaultMemPool(&standard, 0));
  OK(hipDeviceGetMemPool(&pool, 0));
  EQUAL(pool, standard);
  uint64_t threshold = (uint64_t)1 << 20, got = 0;
  OK(hipMemPoolSetAttribute(standard, hipMemPoolAttrReleaseThreshold, &threshold));
  OK(hipMemPoolGetAttribute(standard, hipMemPoolAttrReleaseThreshold, &got));
  EQUAL(got, threshold);
  OK(hipMemPoolGetAttribute(standard, hipMemPoolAttrUsedMemCurrent, &got));
  EQUAL(got, 0u);
  hipMemPoolProps own;
  memset(&own, 0, sizeof own);
  own.allocType = hipMemAllocationTypePinned;
  own.location.type = hipMemLocationTypeDevice;
  OK(hipMemPoolCreate(&pool, &own));
  int* q = nullptr;
  OK(hipMallocFromPoolAsync((void**)&q, 4096, pool, stream));
  fill<<<4, 256, 0, stream>>>(q, 1000, 5);
  OK(hipStreamSynchronize(stream));
  OK(hipMemPoolGetAttribute(pool, hipMemPoolAttrUsedMemCurrent, &got));
  TRUE(got >= 4096);
  OK(hipFreeAsync(q, stream));
  OK(hipStreamSynchronize(stream));
  OK(hipMemPoolTrimTo(pool, 0));
  OK(hipMemPoolDestroy(pool));
  ANSWERS(hipErrorInvalidValue, hipMallocAsync(nullptr, 16, stream));
  OK(hipStreamDestroy(stream));
  return finish();
}
