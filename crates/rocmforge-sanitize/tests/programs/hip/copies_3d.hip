// Copies of boxes between pitched memory of three dimensions.
#include "check.h"

int main() {
  const size_t w = 20, h = 6, d = 4;
  std::vector<unsigned char> from(w * h * d), to(w * h * d, 0);
  for (size_t i = 0; i < from.size(); i++) from[i] = i % 253;
  hipPitchedPtr memory;
  OK(hipMalloc3D(&memory, make_hipExtent(w, h, d)));
  TRUE(memory.pitch >= w);
  EQUAL(memory.ysize, h);
  OK(hipMemset3D(memory, 0x11, make_hipExtent(w, h, d)));
  hipMemcpy3DParms in;
  memset(&in, 0, sizeof in);
  in.srcPtr = make_hipPitchedPtr(from.data(), w, w, h);
  in.srcPos = make_hipPos(2, 1, 1);
  in.dstPtr = memory;
  in.dstPos = make_hipPos(5, 2, 0);
  in.extent = make_hipExtent(7, 3, 2);
  in.kind = hipMemcpyHostToDevice;
  OK(hipMemcpy3D(&in));
  hipStream_t stream;
  OK(hipStreamCreate(&stream));
  hipMemcpy3DParms out;
  memset(&out, 0, sizeof out);
  out.srcPtr = memory;
  out.dstPtr = make_hipPitchedPtr(to.data(), w, w, h);
  out.extent = make_hipExtent(w, h, d);
  out.kind = hipMemcpyDeviceToHost;
  OK(hipMemcpy3DAsync(&out, stream));
  OK(hipStreamSynchronize(stream));
  for (size_t z = 0; z < d; z++)
    for (size_t y = 0; y < h; y++)
      for (size_t x = 0; x < w; x++) {
        bool inside = x >= 5 && x < 12 && y >= 2 && y < 5 && z < 2;
        EQUAL(to[(z * h + y) * w + x], inside ? from[((z + 1) * h + y - 1) * w + x - 3] : 0x11);
      }
  ANSWERS(hipErrorInvalidValue, hipMemcpy3D(nullptr));
  OK(hipStreamDestroy(stream));
  OK(hipFree(memory.ptr));
  return finish();
}
