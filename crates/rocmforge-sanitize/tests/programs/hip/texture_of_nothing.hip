// A texture over an array of which only the first rows were written: a filter between them and the others uses what nobody has written.
#include "check.h"

__global__ void copy(hipTextureObject_t texture, float y, float* out) {
  out[threadIdx.x] = tex2D<float>(texture, threadIdx.x + 0.5f, y);  // kernel line
}

int main() {
  const hipChannelFormatDesc format = hipCreateChannelDesc<float>();
  hipArray_t array;
  OK(hipMallocArray(&array, &format, 32, 4));
  const std::vector<float> in(32 * 2, 1.0f);
  OK(hipMemcpy2DToArray(array, 0, 0, in.data(), 128, 128, 2, hipMemcpyHostToDevice));
  hipResourceDesc resource = {};
  resource.resType = hipResourceTypeArray;
  resource.res.array.array = array;
  hipTextureDesc how = {};
  how.filterMode = hipFilterModeLinear;
  how.addressMode[0] = how.addressMode[1] = hipAddressModeClamp;
  hipTextureObject_t texture;
  OK(hipCreateTextureObject(&texture, &resource, &how, nullptr));
  float* out;
  OK(hipMalloc(&out, 128));
  // In the middle of the second row, far above the first one, and then between the second and the third.
  copy<<<1, 32>>>(texture, 1.5f, out);
  copy<<<1, 32>>>(texture, -100.0f, out);
  OK(hipDeviceSynchronize());
  printf("so far so good\n");
  fflush(stdout);
  copy<<<1, 32>>>(texture, 1.75f, out);  // host line
  (void)hipDeviceSynchronize();
  OK(hipDestroyTextureObject(texture));
  OK(hipFreeArray(array));
  return finish();
}
