// Faulty: a copy and a fill run past the end of their memory.
#include "check.h"

int main() {
  char *p, from[512] = {};
  OK(hipMalloc(&p, 256));
  ANSWERS(hipErrorInvalidValue, hipMemcpy(p, from, 257, hipMemcpyHostToDevice));  // host line
  ANSWERS(hipErrorInvalidValue, hipMemset(p + 1, 0, 256));
  OK(hipFree(p));
  return finish();
}
