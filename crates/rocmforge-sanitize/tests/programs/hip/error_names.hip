// Names and descriptions of errors.
#include "check.h"

#include <string>

int main() {
  auto named = [](hipError_t error, const char* name) {
    TRUE(std::string(hipGetErrorName(error)) == name);
    TRUE(strlen(hipGetErrorString(error)) > 0);
    TRUE(std::string(hipGetErrorString(error)) != "unrecognized error code" || error != hipSuccess);
  };
  named(hipSuccess, "hipSuccess");
  named(hipErrorInvalidValue, "hipErrorInvalidValue");
  named(hipErrorOutOfMemory, "hipErrorOutOfMemory");
  named(hipErrorNotInitialized, "hipErrorNotInitialized");
  named(hipErrorInvalidConfiguration, "hipErrorInvalidConfiguration");
  named(hipErrorInvalidPitchValue, "hipErrorInvalidPitchValue");
  named(hipErrorInvalidSymbol, "hipErrorInvalidSymbol");
  named(hipErrorInvalidDevicePointer, "hipErrorInvalidDevicePointer");
  named(hipErrorInvalidMemcpyDirection, "hipErrorInvalidMemcpyDirection");
  named(hipErrorInvalidDeviceFunction, "hipErrorInvalidDeviceFunction");
  named(hipErrorNoDevice, "hipErrorNoDevice");
  named(hipErrorInvalidDevice, "hipErrorInvalidDevice");
  named(hipErrorInvalidImage, "hipErrorInvalidImage");
  named(hipErrorNoBinaryForGpu, "hipErrorNoBinaryForGpu");
  named(hipErrorInvalidContext, "hipErrorInvalidContext");
  named(hipErrorFileNotFound, "hipErrorFileNotFound");
  named(hipErrorInvalidHandle, "hipErrorInvalidHandle");
  named(hipErrorIllegalState, "hipErrorIllegalState");
  named(hipErrorNotFound, "hipErrorNotFound");
  named(hipErrorNotReady, "hipErrorNotReady");
  named(hipErrorIllegalAddress, "hipErrorIllegalAddress");
  named(hipErrorLaunchFailure, "hipErrorLaunchFailure");
  named(hipErrorNotSupported, "hipErrorNotSupported");
  named(hipErrorStreamCaptureUnsupported, "hipErrorStreamCaptureUnsupported");
  named(hipErrorUnknown, "hipErrorUnknown");
  TRUE(std::string(hipGetErrorString(hipSuccess)) == "no error");
  TRUE(std::string(hipGetErrorString(hipErrorOutOfMemory)) == "out of memory");
  TRUE(hipGetErrorName((hipError_t)123456) != nullptr);
  TRUE(hipGetErrorString((hipError_t)123456) != nullptr);
  return finish();
}
