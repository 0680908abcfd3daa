// Allocations: alignment, ranges, zero bytes, many at a time.
#include "check.h"

int main() {
  void* p = (void*)1;
  OK(hipMalloc(&p, 0));
  EQUAL(p, nullptr);
  OK(hipFree(nullptr));
  OK(hipHostFree(nullptr));
  ANSWERS(hipErrorInvalidValue, hipMalloc((void**)nullptr, 16));
  std::vector<char*> all;
  for (int i = 1; i <= 200; i++) {
    char* q = nullptr;
    OK(hipMalloc(&q, i * 37));
    EQUAL((size_t)q % 256, 0u);
    for (char* other : all) TRUE(q != other);
    all.push_back(q);
  }
  hipDeviceptr_t base = nullptr;
  size_t size = 0;
  OK(hipMemGetAddressRange(&base, &size, all[99] + 50));
  EQUAL(base, (void*)all[99]);
  EQUAL(size, 3700u);
  OK(hipMemPtrGetInfo(all[9], &size));
  EQUAL(size, 370u);
  for (char* q : all) OK(hipFree(q));
  return finish();
}
