// HIP by dlopen and dlsym only, as Python and Triton have it: the program is not linked to the library. Argument 1: a code object.
#include <dlfcn.h>

#include <cstdio>
#include <cstring>

int main(int argc, char** argv) {
  void* hip = dlopen("libamdhip64.so", RTLD_NOW | RTLD_LOCAL);
  if (!hip) return printf("%s\n", dlerror()), 1;
  if (dlopen("libamdhip64.so.6", RTLD_NOW) == nullptr) return printf("%s\n", dlerror()), 2;
#define F(name, ...)                          \
  auto name = (int (*)(__VA_ARGS__))dlsym(hip, #name); \
  if (!name) return printf("%s is missing\n", #name), 3
  F(hipMalloc, void**, size_t);
  F(hipFree, void*);
  F(hipMemcpy, void*, const void*, size_t, int);
  F(hipModuleLoad, void**, const char*);
  F(hipModuleGetFunction, void**, void*, const char*);
  F(hipModuleLaunchKernel, void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**);
  F(hipDriverGetVersion, int*);
  // What headers of HIP 6.3 and later make of hipHostMalloc.
  F(hipExtHostAlloc, void**, size_t, unsigned);
  F(hipHostFree, void*);
  F(hipGetDevicePropertiesR0600, void*, int);
  int version = 0;
  if (hipDriverGetVersion(&version) || version / 10000000 < 6) return printf("version %d\n", version), 4;
  alignas(8) char properties[1472];
  if (hipGetDevicePropertiesR0600(properties, 0)) return 5;
  if (strncmp(properties + 1160, "gfx1", 4) != 0) return printf("arch %.20s\n", properties + 1160), 6;
  void *module, *scale;
  float values[40], *p, factor = 2.5f;
  int n = 40;
  for (int i = 0; i < n; i++) values[i] = i;
  if (hipModuleLoad(&module, argv[1]) || hipModuleGetFunction(&scale, module, "scale")) return 7;
  if (hipMalloc((void**)&p, sizeof values) || hipMemcpy(p, values, sizeof values, 1)) return 8;
  void* params[] = {&p, &factor, &n};
  if (hipModuleLaunchKernel(scale, 1, 1, 1, 64, 1, 1, 0, nullptr, params, nullptr)) return 9;
  if (hipMemcpy(values, p, sizeof values, 2) || hipFree(p)) return 10;
  for (int i = 0; i < n; i++)
    if (values[i] != 2.5f * i) return printf("value %d is %g\n", i, values[i]), 11;
  int* pinned;
  if (hipExtHostAlloc((void**)&pinned, 160, 2) || hipMalloc((void**)&p, 160)) return 12;
  for (int i = 0; i < 40; i++) pinned[i] = i;
  if (hipMemcpy(p, pinned, 160, 1) || hipHostFree(pinned) || hipFree(p)) return 13;
  return 0;
}
