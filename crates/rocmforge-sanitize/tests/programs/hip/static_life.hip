// Launches from constructors and destructors of static objects, which run before and after main. An object of the kernel's own
// translation unit is made before the kernel is registered, and destroyed after: HIP answers, and nothing crashes.
#include "check.h"

#include <unistd.h>

__global__ void add(int* p, int value) { *p += value; }

hipError_t launch_add(int* p, int value) {
  add<<<1, 1>>>(p, value);
  return hipGetLastError();
}

int counter_value();

struct Early {
  int* p = nullptr;
  Early() {
    OK(hipMalloc(&p, 4));
    OK(hipMemset(p, 0, 4));
    check();
  }
  void check() {
    hipError_t launched = launch_add(p, 1);
    TRUE(launched == hipSuccess || launched == hipErrorInvalidDeviceFunction);
    int value = -1;
    sum += launched == hipSuccess;
    OK(hipMemcpy(&value, p, 4, hipMemcpyDeviceToHost));
    EQUAL(value, sum);
  }
  ~Early() {
    check();
    OK(hipFree(p));
    if (finish() != 0) _exit(3);
  }
  int sum = 0;
};

static Early early;

int main() {
  early.check();
  EQUAL(counter_value(), 1);
  return finish();
}
