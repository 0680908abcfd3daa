// Copies of bytes in all directions, at odd offsets, waiting and not, with the kind given and left to the pointers.
#include "check.h"

int main() {
  const int n = 4099;
  std::vector<unsigned char> from(n), to(n, 0);
  for (int i = 0; i < n; i++) from[i] = i * 7;
  unsigned char *a, *b;
  OK(hipMalloc(&a, n));
  OK(hipMalloc(&b, n));
  OK(hipMemcpy(a, from.data(), n, hipMemcpyHostToDevice));
  OK(hipMemcpy(b, a, n, hipMemcpyDeviceToDevice));
  OK(hipMemcpy(to.data(), b, n, hipMemcpyDeviceToHost));
  EQUAL(memcmp(from.data(), to.data(), n), 0);

  OK(hipMemcpy(a + 5, from.data() + 1, 77, hipMemcpyDefault));
  OK(hipMemcpy(to.data(), a, n, hipMemcpyDefault));
  for (int i = 0; i < n; i++) EQUAL(to[i], i >= 5 && i < 82 ? from[i - 4] : from[i]);

  std::vector<unsigned char> other(n, 0);
  OK(hipMemcpy(other.data(), from.data(), n, hipMemcpyHostToHost));
  EQUAL(memcmp(from.data(), other.data(), n), 0);

  hipStream_t stream;
  OK(hipStreamCreate(&stream));
  OK(hipMemcpyAsync(a, from.data(), n, hipMemcpyHostToDevice, stream));
  OK(hipMemcpyAsync(b, a, n, hipMemcpyDeviceToDevice, stream));
  OK(hipMemcpyAsync(to.data(), b, n, hipMemcpyDeviceToHost, stream));
  OK(hipStreamSynchronize(stream));
  EQUAL(memcmp(from.data(), to.data(), n), 0);
  OK(hipMemcpyWithStream(other.data(), a, n, hipMemcpyDeviceToHost, stream));
  EQUAL(memcmp(from.data(), other.data(), n), 0);

  OK(hipMemcpyHtoD(a, to.data(), n));
  OK(hipMemcpyDtoD(b, a, n));
  OK(hipMemcpyDtoH(other.data(), b, n));
  EQUAL(memcmp(from.data(), other.data(), n), 0);
  OK(hipMemcpyHtoDAsync(b, other.data(), 10, stream));
  OK(hipMemcpyDtoDAsync(a, b, 10, stream));
  OK(hipMemcpyDtoHAsync(to.data(), a, 10, stream));
  OK(hipStreamSynchronize(stream));
  EQUAL(memcmp(from.data(), to.data(), n), 0);
  OK(hipMemcpy(a, from.data(), 0, hipMemcpyHostToDevice));
  OK(hipStreamDestroy(stream));
  OK(hipFree(a));
  OK(hipFree(b));
  return finish();
}
