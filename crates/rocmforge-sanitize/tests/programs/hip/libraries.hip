// Libraries of HIP 7.2: a code object from memory and from a file (argument 1), its kernels by name and all of them. The headers of HIP 5
// do not have the functions, so they are looked up by name.
#include "check.h"

#include <dlfcn.h>

#include <cstring>

#ifndef __HIP_DEVICE_COMPILE__
asm(".section .rodata\n"
    ".balign 4096\n"
    ".globl embedded\n"
    "embedded: .incbin \"module_kernels.co\"\n"
    ".previous\n");
#endif
extern "C" const char embedded[];

using Library = void*;
using Kernel = hipFunction_t;
using Load = hipError_t (*)(Library*, const void*, void*, void**, unsigned, void*, void**, unsigned);

template <typename F>
static F named(const char* name) {
  void* found = dlsym(RTLD_DEFAULT, name);
  if (!found) printf("no %s\n", name);
  TRUE(found != nullptr);
  return (F)found;
}

int main(int, char** argv) {
  const auto load_data = named<Load>("hipLibraryLoadData");
  const auto load_file = named<Load>("hipLibraryLoadFromFile");
  const auto unload = named<hipError_t (*)(Library)>("hipLibraryUnload");
  const auto get = named<hipError_t (*)(Kernel*, Library, const char*)>("hipLibraryGetKernel");
  const auto count_of = named<hipError_t (*)(unsigned*, Library)>("hipLibraryGetKernelCount");
  const auto enumerate = named<hipError_t (*)(Kernel*, unsigned, Library)>("hipLibraryEnumerateKernels");
  const auto library_of = named<hipError_t (*)(Library*, Kernel)>("hipKernelGetLibrary");
  const auto name_of = named<hipError_t (*)(const char**, Kernel)>("hipKernelGetName");
  const auto function_of = named<hipError_t (*)(hipFunction_t*, Kernel)>("hipKernelGetFunction");
  const auto functions = named<hipError_t (*)(unsigned*, hipModule_t)>("hipModuleGetFunctionCount");
  if (finish()) return 1;

  Library library = nullptr;
  ANSWERS(hipErrorInvalidValue, load_data(nullptr, embedded, nullptr, nullptr, 0, nullptr, nullptr, 0));
  ANSWERS(hipErrorInvalidValue, load_data(&library, nullptr, nullptr, nullptr, 0, nullptr, nullptr, 0));
  ANSWERS(hipErrorInvalidValue, load_file(&library, "/no/such/file", nullptr, nullptr, 0, nullptr, nullptr, 0));
  ANSWERS(hipErrorInvalidHandle, unload(nullptr));
  Kernel kernel = nullptr;
  unsigned count = 0;
  ANSWERS(hipErrorInvalidValue, get(&kernel, nullptr, "scale"));
  ANSWERS(hipErrorInvalidValue, count_of(nullptr, nullptr));
  // What is no code object is loaded, and refused when a kernel is asked for.
  static const char words[64] = "call me Ishmael";
  OK(load_data(&library, words, nullptr, nullptr, 0, nullptr, nullptr, 0));
  ANSWERS(hipErrorInvalidImage, get(&kernel, library, "scale"));
  OK(unload(library));

  const int n = 300;
  std::vector<float> in(n, 2.0f), out(n);
  float* p;
  OK(hipMalloc(&p, n * sizeof(float)));
  for (int way = 0; way < 2; way++) {
    if (way == 0)
      OK(load_data(&library, embedded, nullptr, nullptr, 0, nullptr, nullptr, 0));
    else
      OK(load_file(&library, argv[1], nullptr, nullptr, 0, nullptr, nullptr, 0));
    ANSWERS(hipErrorNotFound, get(&kernel, library, "no_such_kernel"));
    OK(get(&kernel, library, "scale"));
    Kernel again;
    OK(get(&again, library, "scale"));
    TRUE(again == kernel);
    OK(hipMemcpy(p, in.data(), n * sizeof(float), hipMemcpyHostToDevice));
    float factor = 1.5f;
    void* params[] = {&p, &factor, (void*)&n};
    // By its handle, as a kernel of the program by its address.
    OK(hipLaunchKernel((const void*)kernel, dim3(3), dim3(128), params, 0, nullptr));
    hipFunction_t function;
    OK(function_of(&function, kernel));
    OK(hipModuleLaunchKernel(function, 3, 1, 1, 128, 1, 1, 0, nullptr, params, nullptr));
    OK(hipMemcpy(out.data(), p, n * sizeof(float), hipMemcpyDeviceToHost));
    for (float value : out) EQUAL(value, 4.5f);

    OK(count_of(&count, library));
    TRUE(count >= 2);
    std::vector<Kernel> kernels(count);
    OK(enumerate(kernels.data(), count, library));
    bool found = false;
    for (Kernel one : kernels) {
      const char* name = nullptr;
      Library owner = nullptr;
      OK(name_of(&name, one));
      OK(library_of(&owner, one));
      TRUE(owner == library);
      if (!strcmp(name, "scale")) found = one == kernel;
    }
    TRUE(found);
    OK(unload(library));
    ANSWERS(hipErrorNotFound, function_of(&function, kernel));
    ANSWERS(hipErrorInvalidDeviceFunction, hipLaunchKernel((const void*)kernel, dim3(3), dim3(128), params, 0, nullptr));
  }
  hipModule_t module;
  OK(hipModuleLoadData(&module, embedded));
  unsigned all = 0;
  OK(functions(&all, module));
  EQUAL(all, count);
  OK(hipModuleUnload(module));
  OK(hipFree(p));
  return finish();
}
