// Structs are written field by field on the card and copied to the host: nobody has written their padding, and nobody reads it.
#include "check.h"

struct Item {
  double value;
  int count;
  bool flag;
};

__global__ void fill(Item* items) {
  Item* item = &items[threadIdx.x];
  item->value = threadIdx.x;
  item->count = threadIdx.x + 1;
  item->flag = threadIdx.x % 2;
}

int main() {
  Item *items, host[64];
  for (int n : {1, 64}) {
    OK(hipMalloc(&items, sizeof host));
    fill<<<1, n>>>(items);
    OK(hipMemcpy(host, items, n * sizeof *items, hipMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) {
      EQUAL(host[i].value, i);
      EQUAL(host[i].count, i + 1);
      EQUAL(host[i].flag, i % 2 != 0);
    }
    OK(hipFree(items));
  }
  return finish();
}
