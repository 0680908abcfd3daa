// hiprtc for these programs: compiles a text, loads it and launches its kernels.
#pragma once
#include <hip/hiprtc.h>

#include <string>

#include "check.h"

struct Rtc {
  hiprtcProgram program = nullptr;
  hipModule_t module = nullptr;

  // Options beside the card. On failure the log is printed.
  bool compile(const std::string& source, std::vector<const char*> options = {}) {
    if (hiprtcCreateProgram(&program, source.c_str(), "program", 0, nullptr, nullptr) != HIPRTC_SUCCESS) return false;
    hiprtcResult result = hiprtcCompileProgram(program, options.size(), options.data());
    if (result != HIPRTC_SUCCESS) {
      size_t size = 0;
      hiprtcGetProgramLogSize(program, &size);
      std::string log(size, 0);
      hiprtcGetProgramLog(program, &log[0]);
      printf("%s\n%s\n", hiprtcGetErrorString(result), log.c_str());
      return false;
    }
    size_t size = 0;
    hiprtcGetCodeSize(program, &size);
    std::vector<char> code(size);
    hiprtcGetCode(program, code.data());
    return hipModuleLoadData(&module, code.data()) == hipSuccess;
  }

  // One workgroup, with device memory for each argument.
  hipError_t launch(const char* name, unsigned threads, std::vector<void*> arguments) {
    hipFunction_t function;
    if (hipError_t status = hipModuleGetFunction(&function, module, name)) return status;
    std::vector<void*> places;
    for (void*& argument : arguments) places.push_back(&argument);
    if (hipError_t status = hipModuleLaunchKernel(function, 1, 1, 1, threads, 1, 1, 0, nullptr, places.data(), nullptr)) return status;
    return hipDeviceSynchronize();
  }
};
