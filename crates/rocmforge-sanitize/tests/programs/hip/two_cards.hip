// Two devices of one kind with peer access: memory, streams, copies and kernels of each, and kernels that reach into the other's memory.
#include "check.h"

__global__ void set(int* p, int first) { p[place()] = first + place(); }
__global__ void add(int* to, const int* from) { to[place()] += from[place()]; }
__global__ void count(int* at) { atomicAdd(at, 1); }

constexpr int COUNT = 256;

static int value(const int* device, int index) {
  int got[COUNT];
  OK(hipMemcpy(got, device, sizeof got, hipMemcpyDeviceToHost));
  return got[index];
}

int main() {
  int devices = 0, current = 9, can = 9;
  OK(hipGetDeviceCount(&devices));
  EQUAL(devices, 2);
  int *a, *b;
  OK(hipGetDevice(&current));
  EQUAL(current, 0);
  OK(hipMalloc(&a, sizeof(int) * COUNT));
  set<<<COUNT / 64, 64>>>(a, 1000);
  OK(hipGetLastError());

  OK(hipSetDevice(1));
  OK(hipMalloc(&b, sizeof(int) * COUNT));
  // The default stream of this device is another one: nothing of device 0 is waited for by it.
  set<<<COUNT / 64, 64>>>(b, 5);
  OK(hipDeviceSynchronize());
  EQUAL(value(b, 7), 12);
  hipDeviceProp_t first, second;
  OK(hipGetDeviceProperties(&first, 0));
  OK(hipGetDeviceProperties(&second, 1));
  TRUE(first.pciBusID != second.pciBusID);
  hipPointerAttribute_t attributes;
  OK(hipPointerGetAttributes(&attributes, a));
  EQUAL(attributes.device, 0);
  OK(hipPointerGetAttributes(&attributes, b));
  EQUAL(attributes.device, 1);

  // Peers.
  OK(hipDeviceCanAccessPeer(&can, 1, 0));
  EQUAL(can, 1);
  OK(hipDeviceCanAccessPeer(&can, 0, 1));
  EQUAL(can, 1);
  OK(hipDeviceCanAccessPeer(&can, 1, 1));
  EQUAL(can, 0);
  ANSWERS(hipErrorPeerAccessNotEnabled, hipDeviceDisablePeerAccess(0));
  ANSWERS(hipErrorInvalidDevice, hipDeviceEnablePeerAccess(1, 0));
  ANSWERS(hipErrorInvalidValue, hipDeviceEnablePeerAccess(0, 1));
  OK(hipDeviceEnablePeerAccess(0, 0));
  ANSWERS(hipErrorPeerAccessAlreadyEnabled, hipDeviceEnablePeerAccess(0, 0));

  // A kernel of device 1 reads and writes memory of device 0, whose own kernel has to have ended.
  OK(hipSetDevice(0));
  OK(hipDeviceSynchronize());
  OK(hipSetDevice(1));
  add<<<COUNT / 64, 64>>>(b, a);
  OK(hipDeviceSynchronize());
  EQUAL(value(b, 0), 1005);
  EQUAL(value(b, 255), 1515);
  add<<<COUNT / 64, 64>>>(a, b);
  count<<<4, 64>>>(a);
  OK(hipDeviceSynchronize());
  EQUAL(value(a, 0), 2005 + 256);
  EQUAL(value(a, 255), 1255 + 1515);

  // Copies need no access.
  int* c;
  OK(hipSetDevice(0));
  OK(hipMalloc(&c, sizeof(int) * COUNT));
  OK(hipMemcpyPeer(c, 0, b, 1, sizeof(int) * COUNT));
  EQUAL(value(c, 3), 1011);
  hipStream_t stream;
  OK(hipStreamCreate(&stream));
  OK(hipMemsetAsync(c, 0, sizeof(int) * COUNT, stream));
  OK(hipMemcpyPeerAsync(c, 0, b, 1, sizeof(int) * COUNT / 2, stream));
  OK(hipStreamSynchronize(stream));
  EQUAL(value(c, 127), 1259);
  EQUAL(value(c, 128), 0);
  ANSWERS(hipErrorInvalidValue, hipMemcpyPeer(c, 1, b, 1, 4));

  // An event of one device orders a stream of the other.
  hipStream_t other;
  hipEvent_t filled;
  OK(hipEventCreateWithFlags(&filled, hipEventDisableTiming));
  set<<<COUNT / 64, 64, 0, stream>>>(c, 70);
  OK(hipEventRecord(filled, stream));
  OK(hipSetDevice(1));
  OK(hipStreamCreate(&other));
  OK(hipStreamWaitEvent(other, filled, 0));
  OK(hipMemcpyAsync(b, c, sizeof(int) * COUNT, hipMemcpyDeviceToDevice, other));
  OK(hipStreamSynchronize(other));
  EQUAL(value(b, 10), 80);

  OK(hipDeviceDisablePeerAccess(0));
  OK(hipStreamDestroy(other));
  OK(hipFree(b));
  OK(hipSetDevice(0));
  OK(hipEventDestroy(filled));
  OK(hipStreamDestroy(stream));
  OK(hipFree(a));
  OK(hipFree(c));
  return finish();
}
