// Faulty: a kernel goes on past the mapped part of a reserved range. Before that, ranges grow and memory moves.
#include "check.h"

__global__ void count(int* a, int n) {
  int i = place();
  if (i < n) a[i] = i;  // kernel line
}

int main() {
  hipMemAllocationProp properties = {};
  properties.type = hipMemAllocationTypePinned;
  properties.location.type = hipMemLocationTypeDevice;
  properties.location.id = 0;
  size_t page = 0;
  OK(hipMemGetAllocationGranularity(&page, &properties, hipMemAllocationGranularityMinimum));
  TRUE(page > 0);
  const int n = page / sizeof(int);

  void* range = nullptr;
  OK(hipMemAddressReserve(&range, 4 * page, 0, nullptr, 0));
  hipMemGenericAllocationHandle_t memory[2];
  hipMemAccessDesc access = {};
  access.location = properties.location;
  access.flags = hipMemAccessFlagsProtReadWrite;
  for (int i = 0; i < 2; i++) {
    OK(hipMemCreate(&memory[i], page, &properties, 0));
    OK(hipMemMap((char*)range + i * page, page, 0, memory[i], 0));
    OK(hipMemSetAccess((char*)range + i * page, page, &access, 1));
  }
  hipMemAllocationProp found = {};
  OK(hipMemGetAllocationPropertiesFromHandle(&found, memory[1]));
  EQUAL(found.type, hipMemAllocationTypePinned);
  EQUAL(found.location.type, hipMemLocationTypeDevice);

  count<<<2 * n / 256, 256>>>((int*)range, 2 * n);
  std::vector<int> got(2 * n);
  OK(hipMemcpy(got.data(), range, 2 * page, hipMemcpyDeviceToHost));
  for (int i = 0; i < 2 * n; i++) EQUAL(got[i], i);

  // The second piece, at another address.
  OK(hipMemUnmap((char*)range + page, page));
  OK(hipMemMap((char*)range + 3 * page, page, 0, memory[1], 0));
  OK(hipMemSetAccess((char*)range + 3 * page, page, &access, 1));
  OK(hipMemcpy(got.data(), (char*)range + 3 * page, page, hipMemcpyDeviceToHost));
  for (int i = 0; i < n; i++) EQUAL(got[i], n + i);

  count<<<2 * n / 256, 256>>>((int*)range, 2 * n);  // host line
  ANSWERS(hipErrorIllegalAddress, hipDeviceSynchronize());
  return finish();
}
