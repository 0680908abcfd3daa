// Values set: bytes, 16 and 32 bits, rectangles, boxes.
#include "check.h"

int main() {
  const int n = 1024;
  std::vector<unsigned char> bytes(n);
  std::vector<unsigned short> halves(n / 2);
  std::vector<unsigned> words(n / 4);
  unsigned char* p;
  hipStream_t stream;
  OK(hipStreamCreate(&stream));
  OK(hipMalloc(&p, n));
  OK(hipMemset(p, 0x1ab, n));
  OK(hipMemsetD8(p + 3, 0x21, 5));
  OK(hipMemcpy(bytes.data(), p, n, hipMemcpyDeviceToHost));
  for (int i = 0; i < n; i++) EQUAL(bytes[i], i >= 3 && i < 8 ? 0x21 : 0xab);
  OK(hipMemsetD16(p, 0x1234, n / 2));
  OK(hipMemcpy(halves.data(), p, n, hipMemcpyDeviceToHost));
  for (auto value : halves) EQUAL(value, 0x1234);
  OK(hipMemsetD32(p, (int)0xdeadbeef, n / 4));
  OK(hipMemcpy(words.data(), p, n, hipMemcpyDeviceToHost));
  for (auto value : words) EQUAL(value, 0xdeadbeefu);

  OK(hipMemsetAsync(p, 1, n, stream));
  OK(hipMemsetD8Async(p, 2, 16, stream));
  OK(hipMemsetD16Async(p + 16, 0x0303, 8, stream));
  OK(hipMemsetD32Async(p + 32, 0x04040404, 4, stream));
  OK(hipMemcpyAsync(bytes.data(), p, n, hipMemcpyDeviceToHost, stream));
  OK(hipStreamSynchronize(stream));
  for (int i = 0; i < n; i++) EQUAL(bytes[i], i < 48 ? i / 16 + 2 : 1);

  OK(hipMemset2D(p, 32, 0x77, 10, 4));
  OK(hipMemset2DAsync(p + 512, 32, 0x78, 10, 4, stream));
  OK(hipStreamSynchronize(stream));
  OK(hipMemcpy(bytes.data(), p, n, hipMemcpyDeviceToHost));
  for (int i = 0; i < 128; i++) {
    EQUAL(bytes[i], i % 32 < 10 ? 0x77 : i < 48 ? i / 16 + 2 : 1);
    EQUAL(bytes[512 + i], i % 32 < 10 ? 0x78 : 1);
  }
  hipPitchedPtr box = make_hipPitchedPtr(p, 32, 32, 4);
  OK(hipMemset3D(box, 0x55, make_hipExtent(5, 2, 3)));
  OK(hipMemset3DAsync(box, 0x56, make_hipExtent(1, 1, 1), stream));
  OK(hipStreamSynchronize(stream));
  OK(hipMemcpy(bytes.data(), p, n, hipMemcpyDeviceToHost));
  for (int z = 0; z < 3; z++)
    for (int y = 0; y < 2; y++)
      for (int x = 0; x < 5; x++) EQUAL(bytes[z * 128 + y * 32 + x], x + y + z == 0 ? 0x56 : 0x55);
  OK(hipStreamDestroy(stream));
  OK(hipFree(p));
  return finish();
}
