// Textures over linear memory: elements of every kind, read by their number; outside there are zeros.
#include "check.h"
#include <cstring>
#include <vector>

template <typename T> __device__ float4 parts(T v);
#define ONE(T) template <> __device__ float4 parts<T>(T v) { return {float(v), 0, 0, 0}; }
#define TWO(T) template <> __device__ float4 parts<T>(T v) { return {float(v.x), float(v.y), 0, 0}; }
#define FOUR(T) template <> __device__ float4 parts<T>(T v) { return {float(v.x), float(v.y), float(v.z), float(v.w)}; }
ONE(unsigned char) ONE(char) ONE(unsigned short) ONE(short) ONE(unsigned) ONE(int) ONE(float)
TWO(uchar2) TWO(char2) TWO(ushort2) TWO(short2) TWO(uint2) TWO(int2) TWO(float2)
FOUR(uchar4) FOUR(char4) FOUR(ushort4) FOUR(short4) FOUR(uint4) FOUR(int4) FOUR(float4)

template <typename T> __global__ void fetch(hipTextureObject_t texture, float4* out) {
  out[threadIdx.x] = parts<T>(tex1Dfetch<T>(texture, threadIdx.x));
}

// Parts of type P as T; fractions of `largest` if that is not 0.
template <typename T, typename P> void check(float largest = 0) {
  const int n = 40, count = sizeof(T) / sizeof(P);
  std::vector<P> in(n * count);
  for (size_t i = 0; i < in.size(); i++) in[i] = P(i * 37 % 200) - P(largest == 0 || P(-1) > P(0) ? 0 : 90);
  void* memory;
  float4* out;
  OK(hipMalloc(&memory, n * sizeof(T)));
  OK(hipMalloc(&out, 64 * sizeof(float4)));
  OK(hipMemcpy(memory, in.data(), n * sizeof(T), hipMemcpyHostToDevice));
  hipResourceDesc resource = {};
  resource.resType = hipResourceTypeLinear;
  resource.res.linear.devPtr = memory;
  resource.res.linear.desc = hipCreateChannelDesc<T>();
  // HIP 5's header says of vectors of unsigned parts that they are signed.
  if (P(-1) > P(0)) resource.res.linear.desc.f = hipChannelFormatKindUnsigned;
  resource.res.linear.sizeInBytes = n * sizeof(T);
  hipTextureDesc how = {};
  how.readMode = largest == 0 ? hipReadModeElementType : hipReadModeNormalizedFloat;
  hipTextureObject_t texture;
  OK(hipCreateTextureObject(&texture, &resource, &how, nullptr));
  if (largest == 0) {
    fetch<T><<<1, 64>>>(texture, out);
  } else if (count == 4) {
    fetch<float4><<<1, 64>>>(texture, out);
  } else {
    fetch<float><<<1, 64>>>(texture, out);
  }
  std::vector<float4> back(64);
  OK(hipMemcpy(back.data(), out, 64 * sizeof(float4), hipMemcpyDeviceToHost));
  for (int i = 0; i < 64; i++) {
    float model[4] = {};
    for (int k = 0; k < count && i < n; k++) {
      double value = double(in[i * count + k]);
      if (largest != 0) value = value / largest < -1 ? -1 : value / largest;
      model[k] = float(value);
    }
    const float got[4] = {back[i].x, back[i].y, back[i].z, back[i].w};
    for (int k = 0; k < 4; k++) EQUAL(got[k], model[k]);
  }
  hipResourceDesc same = {};
  OK(hipGetTextureObjectResourceDesc(&same, texture));
  TRUE(same.res.linear.devPtr == memory && same.res.linear.sizeInBytes == n * sizeof(T));
  OK(hipDestroyTextureObject(texture));
  OK(hipFree(memory));
  OK(hipFree(out));
}

int main() {
  check<unsigned char, unsigned char>();
  check<char, char>();
  check<unsigned short, unsigned short>();
  check<short, short>();
  check<unsigned, unsigned>();
  check<int, int>();
  check<float, float>();
  check<uchar2, unsigned char>();
  check<short2, short>();
  check<float2, float>();
  check<uint2, unsigned>();
  check<uchar4, unsigned char>();
  check<char4, char>();
  check<ushort4, unsigned short>();
  check<int4, int>();
  check<float4, float>();
  check<unsigned char, unsigned char>(255);
  check<char, char>(127);
  check<unsigned short, unsigned short>(65535);
  check<uchar4, unsigned char>(255);
  check<short4, short>(32767);
  return finish();
}
