// Copies of rectangles between pitches; bytes between the rows stay.
#include "check.h"

int main() {
  const size_t width = 33, height = 11, host_pitch = 40, device_pitch = 64;
  std::vector<unsigned char> from(host_pitch * height), to(host_pitch * height, 9), all(device_pitch * height);
  for (size_t i = 0; i < from.size(); i++) from[i] = i % 251;
  unsigned char *a, *b;
  OK(hipMalloc(&a, device_pitch * height));
  OK(hipMalloc(&b, device_pitch * height));
  OK(hipMemset(a, 0xee, device_pitch * height));
  OK(hipMemset(b, 0xdd, device_pitch * height));
  OK(hipMemcpy2D(a, device_pitch, from.data(), host_pitch, width, height, hipMemcpyHostToDevice));
  OK(hipMemcpy(all.data(), a, all.size(), hipMemcpyDeviceToHost));
  for (size_t y = 0; y < height; y++)
    for (size_t x = 0; x < device_pitch; x++) EQUAL(all[y * device_pitch + x], x < width ? from[y * host_pitch + x] : 0xee);
  hipStream_t stream;
  OK(hipStreamCreate(&stream));
  OK(hipMemcpy2DAsync(b, device_pitch, a, device_pitch, width, height, hipMemcpyDeviceToDevice, stream));
  OK(hipMemcpy2DAsync(to.data(), host_pitch, b, device_pitch, width, height, hipMemcpyDeviceToHost, stream));
  OK(hipStreamSynchronize(stream));
  for (size_t y = 0; y < height; y++)
    for (size_t x = 0; x < host_pitch; x++) EQUAL(to[y * host_pitch + x], x < width ? from[y * host_pitch + x] : 9);
  ANSWERS(hipErrorInvalidPitchValue, hipMemcpy2D(a, 32, from.data(), host_pitch, 33, height, hipMemcpyHostToDevice));
  ANSWERS(hipErrorInvalidPitchValue, hipMemcpy2D(a, device_pitch, from.data(), 32, 33, height, hipMemcpyHostToDevice));

  hip_Memcpy2D box;
  memset(&box, 0, sizeof box);
  box.srcMemoryType = hipMemoryTypeHost;
  box.srcHost = from.data();
  box.srcPitch = host_pitch;
  box.srcXInBytes = 3;
  box.srcY = 2;
  box.dstMemoryType = hipMemoryTypeDevice;
  box.dstDevice = a;
  box.dstPitch = device_pitch;
  box.dstXInBytes = 1;
  box.dstY = 1;
  box.WidthInBytes = 20;
  box.Height = 5;
  OK(hipMemcpyParam2D(&box));
  OK(hipMemcpy(all.data(), a, all.size(), hipMemcpyDeviceToHost));
  for (size_t y = 0; y < 5; y++)
    for (size_t x = 0; x < 20; x++) EQUAL(all[(y + 1) * device_pitch + x + 1], from[(y + 2) * host_pitch + x + 3]);
  OK(hipStreamDestroy(stream));
  OK(hipFree(a));
  OK(hipFree(b));
  return finish();
}
