// Peers and other processes: there is one device, so that nothing is reachable; each call says so.
#include "check.h"

int main() {
  int can = 9;
  OK(hipDeviceCanAccessPeer(&can, 0, 0));
  EQUAL(can, 0);
  ANSWERS(hipErrorInvalidDevice, hipDeviceCanAccessPeer(&can, 0, 1));
  ANSWERS(hipErrorInvalidDevice, hipDeviceEnablePeerAccess(1, 0));
  ANSWERS(hipErrorInvalidDevice, hipDeviceDisablePeerAccess(1));
  char *p, *q, got[16] = {};
  OK(hipMalloc(&p, 16));
  OK(hipMalloc(&q, 16));
  OK(hipMemset(p, 7, 16));
  // A copy from the device to itself is one of peers too.
  OK(hipMemcpyPeer(q, 0, p, 0, 16));
  OK(hipMemcpy(got, q, 16, hipMemcpyDeviceToHost));
  for (char value : got) EQUAL(value, 7);
  ANSWERS(hipErrorInvalidDevice, hipMemcpyPeer(q, 1, p, 0, 16));
  hipIpcMemHandle_t handle;
  memset(&handle, 0, sizeof handle);
  TRUE(hipIpcGetMemHandle(nullptr, p) != hipSuccess);
  TRUE(hipIpcGetMemHandle(&handle, nullptr) != hipSuccess);
  void* opened = nullptr;
  memset(&handle, 0x33, sizeof handle);
  TRUE(hipIpcOpenMemHandle(&opened, handle, 0) != hipSuccess);
  TRUE(hipIpcCloseMemHandle(p) != hipSuccess);
  OK(hipFree(p));
  OK(hipFree(q));
  return finish();
}
