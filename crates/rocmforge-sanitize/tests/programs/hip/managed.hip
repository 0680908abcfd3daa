// Managed memory and `__managed__` variables: one address for the host and for kernels.
#include "check.h"

__managed__ int counter = 5;
__managed__ float table[8] = {1, 2, 3, 4, 5, 6, 7, 8};

__global__ void step(int* p, int n) {
  int i = place();
  if (i < n) p[i] += counter;
}
__global__ void update() {
  counter += 10;
  for (int i = 0; i < 8; i++) table[i] *= 2;
}

int main() {
  const int n = 300;
  int* p;
  OK(hipMallocManaged((void**)&p, n * sizeof(int), hipMemAttachGlobal));
  for (int i = 0; i < n; i++) p[i] = i;
  step<<<3, 128>>>(p, n);
  OK(hipDeviceSynchronize());
  for (int i = 0; i < n; i++) EQUAL(p[i], i + 5);
  EQUAL(counter, 5);
  update<<<1, 1>>>();
  OK(hipDeviceSynchronize());
  EQUAL(counter, 15);
  for (int i = 0; i < 8; i++) EQUAL(table[i], 2.0f * (i + 1));
  counter = 100;
  step<<<3, 128>>>(p, n);
  OK(hipDeviceSynchronize());
  for (int i = 0; i < n; i++) EQUAL(p[i], i + 105);
  int device = 0;
  OK(hipMemAdvise(p, n * sizeof(int), hipMemAdviseSetPreferredLocation, device));
  OK(hipMemPrefetchAsync(p, n * sizeof(int), device, nullptr));
  OK(hipDeviceSynchronize());
  OK(hipFree(p));
  return finish();
}
