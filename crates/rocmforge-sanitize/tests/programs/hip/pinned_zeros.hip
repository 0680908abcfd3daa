// Zeros in gigabytes of pinned memory: no page of it is touched.
#include "check.h"

#include <fstream>

// Bytes of this process that are in memory.
static size_t resident() {
  size_t all = 0, pages = 0;
  std::ifstream("/proc/self/statm") >> all >> pages;
  return pages * 4096;
}

int main() {
  const size_t size = 4ull << 30;
  unsigned char* memory;
  OK(hipHostMalloc((void**)&memory, size, 0));
  memory[99] = memory[100] = memory[99999] = memory[size - 101] = memory[size - 100] = 7;
  const size_t before = resident();
  OK(hipMemset(memory + 100, 0, size - 200));
  TRUE(resident() < before + (64 << 20));
  const size_t places[] = {99, 100, 99999, size / 2, size - 101, size - 100};
  const int expected[] = {7, 0, 0, 0, 0, 7};
  for (int i = 0; i < 6; i++) EQUAL(int(memory[places[i]]), expected[i]);
  OK(hipHostFree(memory));
  return finish();
}
