// hiprtc for a program that brings HIP's headers itself, by an option, and includes them.
#include <unistd.h>

#include <filesystem>

#include "rtc.h"

int main() {
  // Not a folder that the compiler searches by itself.
  char folder[] = "headers-XXXXXX";
  TRUE(mkdtemp(folder) != nullptr);
  std::string here = std::filesystem::absolute(folder);
  std::filesystem::create_directory_symlink("/usr/include/hip", here + "/hip");
  const char* source = R"(
#include <hip/hip_runtime.h>
#include <hip/hip_fp16.h>
template <int N> __device__ float power(float x) { return N == 0 ? 1.0f : powf(x, (float)N); }
extern "C" __global__ void k(float* o) {
  int4 v = make_int4(threadIdx.x, blockDim.x, 3, 4);
  __half h = __float2half(0.5f);
  o[threadIdx.x] = power<2>(v.x) + v.y + __shfl_xor(v.x, 1) + __half2float(h) + sinf(0.0f);
}
)";
  float *out, got[32];
  OK(hipMalloc(&out, sizeof got));
  std::string joined = "-I" + here;
  for (std::vector<const char*> options : {std::vector<const char*>{joined.c_str()}, {"-I", here.c_str(), "-O1"}, {"-std=c++20", "-isystem", here.c_str()}}) {
    Rtc rtc;
    if (!TRUE(rtc.compile(source, options))) continue;
    OK(rtc.launch("k", 32, {out}));
    OK(hipMemcpy(got, out, sizeof got, hipMemcpyDeviceToHost));
    // `powf` of the device library may miss a square by a unit of the last place.
    for (int i = 0; i < 32; i++) TRUE(got[i] > i * i + 32 + (i ^ 1) + 0.499f && got[i] < i * i + 32 + (i ^ 1) + 0.501f);
  }
  OK(hipFree(out));
  std::filesystem::remove_all(here);
  return finish();
}
