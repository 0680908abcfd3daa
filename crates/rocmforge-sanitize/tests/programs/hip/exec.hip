// A program that uses HIP and then becomes another program: itself, with an argument.
#include "check.h"

#include <unistd.h>

__global__ void set(int* p, int value) { *p = value; }

int main(int argc, char** argv) {
  int *p, got = 0, value = argc > 1 ? 22 : 11;
  OK(hipMalloc(&p, 4));
  set<<<1, 1>>>(p, value);
  OK(hipMemcpy(&got, p, 4, hipMemcpyDeviceToHost));
  EQUAL(got, value);
  OK(hipFree(p));
  if (argc == 1 && finish() == 0) {
    printf("first\n");
    fflush(stdout);
    execl("/proc/self/exe", argv[0], "second", (char*)nullptr);
    return 9;
  }
  printf("second\n");
  return finish();
}
