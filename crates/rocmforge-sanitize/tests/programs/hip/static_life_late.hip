// The other translation unit of static_life.hip, linked behind it: its objects live while the kernels are registered.
#include "check.h"

#include <unistd.h>

hipError_t launch_add(int* p, int value);

struct Counter {
  int* p = nullptr;
  Counter() {
    OK(hipMalloc(&p, 4));
    OK(hipMemset(p, 0, 4));
    OK(launch_add(p, 1));
  }
  int get() const {
    int value = -1;
    OK(hipMemcpy(&value, p, 4, hipMemcpyDeviceToHost));
    return value;
  }
  ~Counter() {
    OK(launch_add(p, 100));
    EQUAL(get(), 101);
    OK(hipFree(p));
    if (finish() != 0) _exit(3);
  }
};

static Counter counter;

int counter_value() { return counter.get(); }
