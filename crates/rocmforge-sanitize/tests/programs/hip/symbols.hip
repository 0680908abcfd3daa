// Variables of the device: `__device__` and `__constant__`, static ones too, by symbol from the host.
#include "check.h"

__device__ int counter = 5;
__constant__ float factors[4] = {1, 2, 3, 4};
static __device__ int hidden[3] = {7, 8, 9};
__device__ double zeroed[2];

__global__ void use(float* out) {
  counter += 7;
  for (int i = 0; i < 4; i++) out[i] = factors[i] * 10 + hidden[i % 3];
  zeroed[1] = zeroed[0] + 2.5;
}

int main() {
  float* out;
  OK(hipMalloc(&out, 16));
  use<<<1, 1>>>(out);
  float got[4];
  OK(hipMemcpy(got, out, 16, hipMemcpyDeviceToHost));
  EQUAL(got[0], 17.0f);
  EQUAL(got[1], 28.0f);
  EQUAL(got[2], 39.0f);
  EQUAL(got[3], 47.0f);
  int count = 0;
  OK(hipMemcpyFromSymbol(&count, HIP_SYMBOL(counter), sizeof count));
  EQUAL(count, 12);
  count = 100;
  OK(hipMemcpyToSymbol(HIP_SYMBOL(counter), &count, sizeof count));
  float two[2] = {-1, -2};
  OK(hipMemcpyToSymbol(HIP_SYMBOL(factors), two, sizeof two, 2 * sizeof(float), hipMemcpyHostToDevice));
  use<<<1, 1>>>(out);
  OK(hipMemcpy(got, out, 16, hipMemcpyDeviceToHost));
  EQUAL(got[1], 28.0f);
  EQUAL(got[2], -1.0f);
  EQUAL(got[3], -13.0f);
  hipStream_t stream;
  OK(hipStreamCreate(&stream));
  OK(hipMemcpyFromSymbolAsync(&count, HIP_SYMBOL(counter), sizeof count, 0, hipMemcpyDeviceToHost, stream));
  OK(hipStreamSynchronize(stream));
  EQUAL(count, 107);
  count = 1;
  OK(hipMemcpyToSymbolAsync(HIP_SYMBOL(counter), &count, sizeof count, 0, hipMemcpyHostToDevice, stream));
  OK(hipStreamSynchronize(stream));
  void* address = nullptr;
  size_t size = 0;
  OK(hipGetSymbolAddress(&address, HIP_SYMBOL(counter)));
  OK(hipGetSymbolSize(&size, HIP_SYMBOL(factors)));
  EQUAL(size, 16u);
  count = 0;
  OK(hipMemcpy(&count, address, sizeof count, hipMemcpyDeviceToHost));
  EQUAL(count, 1);
  double doubles[2];
  OK(hipMemcpyFromSymbol(doubles, HIP_SYMBOL(zeroed), sizeof doubles));
  EQUAL(doubles[0], 0.0);
  EQUAL(doubles[1], 2.5);
  ANSWERS(hipErrorInvalidValue, hipMemcpyToSymbol(HIP_SYMBOL(counter), &count, 4, 1, hipMemcpyHostToDevice));
  ANSWERS(hipErrorInvalidSymbol, hipGetSymbolAddress(&address, &count));
  OK(hipStreamDestroy(stream));
  OK(hipFree(out));
  return finish();
}
