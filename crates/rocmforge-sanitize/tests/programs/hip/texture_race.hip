// A copy into an array and a kernel that reads it by a texture, on two streams that nothing orders.
#include "check.h"

__global__ void copy(hipTextureObject_t texture, float* out) { out[threadIdx.x] = tex2D<float>(texture, threadIdx.x + 0.5f, 1.5f); }

int main() {
  const hipChannelFormatDesc format = hipCreateChannelDesc<float>();
  hipArray_t array;
  OK(hipMallocArray(&array, &format, 32, 4));
  const std::vector<float> in(32 * 4, 1.0f);
  OK(hipMemcpy2DToArray(array, 0, 0, in.data(), 128, 128, 4, hipMemcpyHostToDevice));
  hipResourceDesc resource = {};
  resource.resType = hipResourceTypeArray;
  resource.res.array.array = array;
  hipTextureDesc how = {};
  hipTextureObject_t texture;
  OK(hipCreateTextureObject(&texture, &resource, &how, nullptr));
  float *out, *other;
  OK(hipMalloc(&out, 128));
  OK(hipMalloc(&other, 512));
  OK(hipMemset(other, 0, 512));
  OK(hipDeviceSynchronize());
  hipStream_t one, two;
  OK(hipStreamCreateWithFlags(&one, hipStreamNonBlocking));
  OK(hipStreamCreateWithFlags(&two, hipStreamNonBlocking));
  OK(hipMemcpy2DToArrayAsync(array, 0, 0, other, 128, 128, 4, hipMemcpyDeviceToDevice, one));
  copy<<<1, 32, 0, two>>>(texture, out);  // host line
  OK(hipDeviceSynchronize());
  return finish();
}
