// Contexts: the device has one, which the old calls name.
#include "check.h"

int main() {
  OK(hipInit(0));
  hipCtx_t context = nullptr, current = nullptr;
  OK(hipDevicePrimaryCtxRetain(&context, 0));
  TRUE(context != nullptr);
  OK(hipCtxSetCurrent(context));
  OK(hipCtxGetCurrent(&current));
  EQUAL(current, context);
  hipDevice_t device = -1;
  OK(hipCtxGetDevice(&device));
  EQUAL(device, 0);
  ANSWERS(hipErrorNotSupported, hipCtxSynchronize());
  OK(hipCtxPushCurrent(context));
  OK(hipCtxPopCurrent(&current));
  EQUAL(current, context);
  unsigned flags = 0;
  int active = -1;
  OK(hipDevicePrimaryCtxGetState(0, &flags, &active));
  TRUE(active == 0 || active == 1);
  OK(hipDevicePrimaryCtxRelease(0));
  void* p;
  OK(hipMalloc(&p, 64));
  OK(hipFree(p));
  return finish();
}
