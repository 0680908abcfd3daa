// Modules: a code object from memory and from a file (argument 1), its kernels and variables, both ways to pass arguments.
#include "check.h"

#ifndef __HIP_DEVICE_COMPILE__
asm(".section .rodata\n"
    ".balign 4096\n"
    ".globl embedded\n"
    "embedded: .incbin \"module_kernels.co\"\n"
    ".previous\n");
#endif
extern "C" const char embedded[];

static void scaled(hipModule_t module, int calls) {
  const int n = 300;
  std::vector<float> in(n, 2.0f), out(n);
  float* p;
  OK(hipMalloc(&p, n * sizeof(float)));
  OK(hipMemcpy(p, in.data(), n * sizeof(float), hipMemcpyHostToDevice));
  hipFunction_t scale;
  OK(hipModuleGetFunction(&scale, module, "scale"));
  float factor = 1.5f;
  void* params[] = {&p, &factor, (void*)&n};
  OK(hipModuleLaunchKernel(scale, 3, 1, 1, 128, 1, 1, 0, nullptr, params, nullptr));
  struct {
    float* p;
    float factor;
    int n;
  } packed = {p, 4.0f, n};
  size_t size = sizeof packed;
  void* extra[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, &packed, HIP_LAUNCH_PARAM_BUFFER_SIZE, &size, HIP_LAUNCH_PARAM_END};
  OK(hipModuleLaunchKernel(scale, 3, 1, 1, 128, 1, 1, 0, nullptr, nullptr, extra));
  OK(hipMemcpy(out.data(), p, n * sizeof(float), hipMemcpyDeviceToHost));
  for (float value : out) EQUAL(value, 12.0f);
  hipDeviceptr_t variable;
  size_t bytes = 0;
  OK(hipModuleGetGlobal(&variable, &bytes, module, "calls"));
  EQUAL(bytes, sizeof(int));
  int got = 0;
  OK(hipMemcpyDtoH(&got, variable, sizeof got));
  EQUAL(got, calls);
  ANSWERS(hipErrorNotFound, hipModuleGetFunction(&scale, module, "no_such_kernel"));
  ANSWERS(hipErrorNotFound, hipModuleGetGlobal(&variable, &bytes, module, "no_such_variable"));
  ANSWERS(hipErrorInvalidValue, hipModuleGetGlobal(&variable, &bytes, module, ""));
  ANSWERS(hipErrorInvalidValue, hipModuleGetGlobal(nullptr, nullptr, module, "calls"));
  OK(hipFree(p));
}

int main(int, char** argv) {
  hipModule_t memory, file;
  OK(hipModuleLoadData(&memory, embedded));
  OK(hipModuleLoad(&file, argv[1]));
  scaled(memory, 42);
  scaled(file, 42);
  scaled(memory, 44);
  hipFunction_t reverse;
  OK(hipModuleGetFunction(&reverse, file, "reverse"));
  int* p;
  std::vector<int> in(64), out(64);
  for (int i = 0; i < 64; i++) in[i] = i;
  OK(hipMalloc(&p, 256));
  OK(hipMemcpy(p, in.data(), 256, hipMemcpyHostToDevice));
  void* params[] = {&p};
  OK(hipModuleLaunchKernel(reverse, 1, 1, 1, 64, 1, 1, 256, nullptr, params, nullptr));
  OK(hipMemcpy(out.data(), p, 256, hipMemcpyDeviceToHost));
  for (int i = 0; i < 64; i++) EQUAL(out[i], 63 - i);
  OK(hipFree(p));
  OK(hipModuleUnload(memory));
  OK(hipModuleUnload(file));
  ANSWERS(hipErrorFileNotFound, hipModuleLoad(&file, "/no/such/file.co"));
  char junk[256] = "this is no code object";
  ANSWERS(hipErrorInvalidImage, hipModuleLoadData(&memory, junk));
  return finish();
}
