// A texture outlives its array: the kernel reads freed memory.
#include "check.h"

__global__ void copy(hipTextureObject_t texture, float* out) {
  out[threadIdx.x] = tex2D<float>(texture, threadIdx.x + 0.5f, 1.5f);  // kernel line
}

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
  float* out;
  OK(hipMalloc(&out, 128));
  OK(hipFreeArray(array));
  copy<<<1, 32>>>(texture, out);
  (void)hipDeviceSynchronize();
  return finish();
}
