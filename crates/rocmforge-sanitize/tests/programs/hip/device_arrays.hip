// Arrays of HIP: copied to and from by rows.
#include "check.h"

int main() {
  const int w = 16, h = 8;
  hipChannelFormatDesc format = {32, 0, 0, 0, hipChannelFormatKindFloat};
  hipArray_t array;
  OK(hipMallocArray((hipArray**)&array, &format, w, h, 0));
  std::vector<float> in(w * h), out(w * h, 0);
  for (int i = 0; i < w * h; i++) in[i] = i + 0.5f;
  OK(hipMemcpy2DToArray((hipArray*)array, 0, 0, in.data(), w * 4, w * 4, h, hipMemcpyHostToDevice));
  OK(hipMemcpy2DFromArray(out.data(), w * 4, (hipArray*)array, 0, 0, w * 4, h, hipMemcpyDeviceToHost));
  for (int i = 0; i < w * h; i++) EQUAL(out[i], in[i]);
  float row[4] = {-1, -2, -3, -4};
  OK(hipMemcpy2DToArray((hipArray*)array, 8, 3, row, 16, 16, 1, hipMemcpyHostToDevice));
  OK(hipMemcpy2DFromArray(out.data(), w * 4, (hipArray*)array, 0, 0, w * 4, h, hipMemcpyDeviceToHost));
  for (int i = 0; i < w * h; i++) EQUAL(out[i], i >= 3 * w + 2 && i < 3 * w + 6 ? row[i - 3 * w - 2] : in[i]);
  OK(hipFreeArray((hipArray*)array));
  return finish();
}
