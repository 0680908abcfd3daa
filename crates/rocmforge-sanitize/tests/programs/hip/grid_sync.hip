// A cooperative launch whose workgroups meet at this_grid().sync(), by the code of AMD's device library.
#include "check.h"

#include <hip/hip_cooperative_groups.h>

// Each round, a workgroup adds what all have to its own number; the values of two rounds lie beside each other.
__global__ void rounds(unsigned* values, unsigned groups, unsigned count) {
  const cooperative_groups::grid_group grid = cooperative_groups::this_grid();
  for (unsigned round = 0; round < count; ++round) {
    const unsigned* from = values + round % 2 * groups;
    unsigned* to = values + (round + 1) % 2 * groups;
    unsigned sum = 0;
    for (unsigned n = 0; n < groups; ++n) sum += from[n];
    if (threadIdx.x == 0) to[blockIdx.x] = blockIdx.x + sum;
    grid.sync();
  }
}

int main() {
  unsigned groups = 40, count = 3;
  unsigned* values;
  OK(hipMalloc(&values, 2 * groups * sizeof(unsigned)));
  // The second launch finds the barrier as new.
  for (int launch = 0; launch < 2; ++launch) {
    OK(hipMemset(values, 0, 2 * groups * sizeof(unsigned)));
    void* arguments[] = {&values, &groups, &count};
    OK(hipLaunchCooperativeKernel((const void*)rounds, dim3(groups), dim3(100), arguments, 0, nullptr));
    std::vector<unsigned> got(2 * groups), expected(groups, 0);
    OK(hipMemcpy(got.data(), values, 2 * groups * sizeof(unsigned), hipMemcpyDeviceToHost));
    for (unsigned round = 0; round < count; ++round) {
      unsigned sum = 0;
      for (unsigned value : expected) sum += value;
      for (unsigned n = 0; n < groups; ++n) expected[n] = n + sum;
    }
    for (unsigned n = 0; n < groups; ++n) EQUAL(got[count % 2 * groups + n], expected[n]);
  }
  OK(hipFree(values));
  return finish();
}
