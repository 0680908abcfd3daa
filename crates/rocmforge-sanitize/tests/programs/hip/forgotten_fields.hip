// Faulty: a kernel writes one member of each struct, and all of them are copied to the host.
#include "check.h"

struct Item {
  int value, count;
};

__global__ void fill(Item* items) { items[threadIdx.x].value = threadIdx.x; }

int main() {
  Item *items, host[64];
  OK(hipMalloc(&items, sizeof host));
  fill<<<1, 64>>>(items);
  OK(hipMemcpy(host, items, sizeof host, hipMemcpyDeviceToHost)); // host line
  return 0;
}
