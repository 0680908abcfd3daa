// A reset of the device frees everything; the program can begin anew.
#include "check.h"

__device__ int variable = 3;
__global__ void change(int* p) { *p = variable += 1; }

static void once(int expected) {
  int *p, got = 0;
  OK(hipMalloc(&p, 4));
  change<<<1, 1>>>(p);
  OK(hipMemcpy(&got, p, 4, hipMemcpyDeviceToHost));
  EQUAL(got, expected);
}

int main() {
  size_t before = 0, after = 0, total = 0;
  OK(hipMemGetInfo(&before, &total));
  once(4);
  OK(hipDeviceReset());
  OK(hipMemGetInfo(&after, &total));
  TRUE(after + 65536 >= before);
  OK(hipGetLastError());
  int *p, got = 0;
  OK(hipMalloc(&p, 4));
  change<<<1, 1>>>(p);
  OK(hipMemcpy(&got, p, 4, hipMemcpyDeviceToHost));
  TRUE(got == 4 || got == 5);
  OK(hipFree(p));
  return finish();
}
