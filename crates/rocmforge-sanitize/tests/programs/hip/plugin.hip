// A shared library with kernels (argument 1), loaded twice, closed, and loaded anew with fresh variables.
#include "check.h"

#include <dlfcn.h>

__global__ void bump(int* p, int by) { *p = 500 + by; }

int main(int, char** argv) {
  for (int round = 0; round < 3; round++) {
    void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    void* again = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!TRUE(library != nullptr)) return finish();
    EQUAL(library, again);
    auto plugin = (int (*)(int))dlsym(library, "plugin_bump");
    if (!TRUE(plugin != nullptr)) return finish();
    EQUAL(plugin(5), 15);
    EQUAL(plugin(6), 21);
    // The program's own kernel of the same name is another one.
    int *p, got = 0;
    OK(hipMalloc(&p, 4));
    bump<<<1, 1>>>(p, round);
    OK(hipMemcpy(&got, p, 4, hipMemcpyDeviceToHost));
    EQUAL(got, 500 + round);
    OK(hipFree(p));
    EQUAL(dlclose(again), 0);
    EQUAL(dlclose(library), 0);
  }
  return finish();
}
