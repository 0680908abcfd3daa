// Free memory falls by what is allocated, and comes back.
#include "check.h"

int main() {
  size_t before = 0, during = 0, after = 0, total = 0, again = 0;
  OK(hipMemGetInfo(&before, &total));
  TRUE(before > 0 && before <= total);
  void* p = nullptr;
  const size_t size = (size_t)256 << 20;
  OK(hipMalloc(&p, size));
  OK(hipMemGetInfo(&during, &again));
  EQUAL(again, total);
  TRUE(before - during >= size);
  TRUE(before - during < 2 * size);
  OK(hipFree(p));
  OK(hipMemGetInfo(&after, &again));
  EQUAL(after, before);
  ANSWERS(hipErrorOutOfMemory, hipMalloc(&p, total + 1));
  ANSWERS(hipErrorOutOfMemory, hipMalloc(&p, ~(size_t)0));
  OK(hipMemGetInfo(&after, &again));
  EQUAL(after, before);
  return finish();
}
