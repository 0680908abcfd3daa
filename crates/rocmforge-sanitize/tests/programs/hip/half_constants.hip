// Constants among 16-bit operands: what the compiler puts into instructions gives what the same values give that come from memory.
#include "check.h"

typedef _Float16 Half;
typedef Half Halves __attribute__((ext_vector_type(2)));
typedef short Shorts __attribute__((ext_vector_type(2)));

// The inline constants of floats and others beside them; 1 / (2 pi) is the last inline one.
constexpr float FLOATS[] = {0.5f, -0.5f, 1, -1, 2, -2, 4, -4, 0.15915494f, 0, 3};
// Integers that are inline constants, and bits of halves, bfloat16 and singles, which are not.
constexpr int INTEGERS[] = {1, 64, -1, -16, 65, 0x3c00, 0x3f80, 0x3800};
constexpr int FLOAT_COUNT = sizeof FLOATS / sizeof *FLOATS, INTEGER_COUNT = sizeof INTEGERS / sizeof *INTEGERS;

struct Folded {
  template <int N>
  static __device__ float real(const volatile float*) {
    return FLOATS[N];
  }
  template <int N>
  static __device__ int integer(const volatile int*) {
    return INTEGERS[N];
  }
};
struct Loaded {
  template <int N>
  static __device__ float real(const volatile float* table) {
    return table[N];
  }
  template <int N>
  static __device__ int integer(const volatile int* table) {
    return table[N];
  }
};

// Results of one lane, one behind the other.
struct Results {
  unsigned* next;
  template <class T>
  __device__ void put(T value) {
    unsigned bits = 0;
    static_assert(sizeof value <= sizeof bits);
    __builtin_memcpy(&bits, &value, sizeof value);
    *next = bits;
    next += 32;
  }
};

__device__ void reals(Results& out, Halves x, Halves y, float f, float c) {
  Half k = (Half)c;
  // Of halves and singles mixed.
  out.put((float)x.x + f * c);
  out.put((float)x.x + (float)y.y);
  out.put(__builtin_fmaf((float)x.x, c, f));
  out.put(__builtin_fmaf((float)x.y, (float)k, (float)y.x));
  out.put(__builtin_fmaf((float)x.y, (float)y.y, (float)k));
  out.put((Half)__builtin_fmaf((float)x.y, (float)y.y, c));
  out.put((Half)__builtin_fmaf(-(float)x.y, (float)k, __builtin_fabsf((float)y.x)));
  // Of pairs: the same twice, in one half only, and negated in one half.
  for (Halves pair : {Halves{k, k}, Halves{k, 0}, Halves{0, k}, Halves{k, -k}}) {
    out.put(x + pair);
    out.put(pair - y);
    out.put(x * pair);
    out.put(__builtin_elementwise_fma(x, pair, y));
    out.put(__builtin_elementwise_fma(x, y, pair));
    out.put(__builtin_elementwise_max(x, pair));
    out.put(__builtin_elementwise_min(pair, x));
  }
  // Of one half.
  out.put((Half)(x.y + k));
  out.put((Half)(k - x.x));
  out.put(__builtin_elementwise_fma(x.y, k, y.y));
  out.put(x.y > k ? y.x : k);
  out.put((int)(x.x < k) + 2 * (x.y == k) + 4 * (y.x >= k));
  out.put(Halves{x.y, k});
}

__device__ void integers(Results& out, Shorts x, Shorts y, int c) {
  short k = c;
  for (Shorts pair : {Shorts{k, k}, Shorts{k, 0}, Shorts{0, k}, Shorts{k, -1}}) {
    out.put(x + pair);
    out.put(x - pair);
    out.put(x * pair + y);
    out.put(__builtin_elementwise_max(x, pair));
    out.put(__builtin_elementwise_min(pair, x));
    out.put(x << (pair & 15));
    out.put(pair >> (x & 15));
  }
  out.put((short)(x.y * k + y.x));
  out.put((short)(k << (x.y & 15)));
  out.put(x.y * (int)k + y.y);
  out.put((int)(x.x < k) + 2 * (x.y > k) + 4 * ((unsigned short)y.x < (unsigned short)k));
  out.put(x.y > y.x ? k : x.x);
  out.put(Shorts{x.y, k});
}

template <class From, int N>
__device__ void each_real(Results& out, Halves x, Halves y, float f, const volatile float* table) {
  reals(out, x, y, f, From::template real<N>(table));
  if constexpr (N + 1 < FLOAT_COUNT) each_real<From, N + 1>(out, x, y, f, table);
}
template <class From, int N>
__device__ void each_integer(Results& out, Shorts x, Shorts y, const volatile int* table) {
  integers(out, x, y, From::template integer<N>(table));
  if constexpr (N + 1 < INTEGER_COUNT) each_integer<From, N + 1>(out, x, y, table);
}

constexpr int COUNT = FLOAT_COUNT * (7 + 4 * 7 + 6) + INTEGER_COUNT * (4 * 7 + 6);

template <class From>
__global__ void compute(const unsigned* in, const float* floats, const int* numbers, unsigned* out) {
  int lane = threadIdx.x;
  unsigned a = in[lane], b = in[lane + 32];
  Halves x, y;
  Shorts s, t;
  __builtin_memcpy(&x, &a, 4);
  __builtin_memcpy(&y, &b, 4);
  __builtin_memcpy(&s, &a, 4);
  __builtin_memcpy(&t, &b, 4);
  Results results{out + lane};
  each_real<From, 0>(results, x, y, (float)lane * 0.3f - 4, floats);
  each_integer<From, 0>(results, s, t, numbers);
}

// Forms that not every compiler chooses.
__global__ void chosen(unsigned half, float* out, unsigned* pairs) {
  float two = 2;
  asm("v_fma_mix_f32 %0, %1, 1.0, %2 op_sel_hi:[1,1,0]" : "=v"(out[0]) : "v"(half), "v"(two));
  asm("v_fma_mix_f32 %0, %1, -1.0, %2 op_sel_hi:[1,1,0]" : "=v"(out[1]) : "v"(half), "v"(-0.0f));
  asm("v_fma_mix_f32 %0, %1, %2, 4.0 op_sel_hi:[1,0,1]" : "=v"(out[2]) : "v"(half), "v"(two));
  asm("v_fma_mix_f32 %0, %1, 1.0, %2 op_sel_hi:[1,0,0]" : "=v"(out[3]) : "v"(half), "v"(two));
  unsigned low = 0, high = 0, sum = 0x40004000;
  asm("v_fma_mixlo_f16 %0, %1, 1.0, %2 op_sel_hi:[1,1,0]" : "+v"(low) : "v"(half), "v"(two));
  asm("v_fma_mixhi_f16 %0, %1, 1.0, %2 op_sel_hi:[1,1,0]" : "+v"(high) : "v"(half), "v"(two));
  asm("v_pk_fmac_f16 %0, 1.0, %1" : "+v"(sum) : "v"(half << 16 | half));
  pairs[0] = low;
  pairs[1] = high;
  pairs[2] = sum;
}

int main() {
  unsigned in[64], seed = 12345, *din, *dout, *dpairs, pairs[3];
  for (unsigned& word : in) {
    // Two halves between 0.25 and 64, of either sign.
    seed = seed * 1664525u + 1013904223u;
    word = (seed >> 3 & 0x1fff1fff) + 0x34003400 | seed & 0x80008000;
  }
  float *dfloats, *dmixed, mixed[4];
  int* dnumbers;
  std::vector<unsigned> folded(32 * COUNT), loaded(32 * COUNT);
  size_t bytes = 4 * folded.size();
  OK(hipMalloc(&din, sizeof in));
  OK(hipMalloc(&dout, bytes));
  OK(hipMalloc(&dfloats, sizeof FLOATS));
  OK(hipMalloc(&dnumbers, sizeof INTEGERS));
  OK(hipMalloc(&dmixed, sizeof mixed));
  OK(hipMalloc(&dpairs, sizeof pairs));
  OK(hipMemcpy(din, in, sizeof in, hipMemcpyHostToDevice));
  OK(hipMemcpy(dfloats, FLOATS, sizeof FLOATS, hipMemcpyHostToDevice));
  OK(hipMemcpy(dnumbers, INTEGERS, sizeof INTEGERS, hipMemcpyHostToDevice));
  compute<Folded><<<1, 32>>>(din, dfloats, dnumbers, dout);
  OK(hipMemcpy(folded.data(), dout, bytes, hipMemcpyDeviceToHost));
  compute<Loaded><<<1, 32>>>(din, dfloats, dnumbers, dout);
  OK(hipMemcpy(loaded.data(), dout, bytes, hipMemcpyDeviceToHost));
  for (size_t i = 0; i < folded.size(); i++) EQUAL(folded[i], loaded[i]);

  chosen<<<1, 1>>>(0x3c00, dmixed, dpairs);
  OK(hipMemcpy(mixed, dmixed, sizeof mixed, hipMemcpyDeviceToHost));
  OK(hipMemcpy(pairs, dpairs, sizeof pairs, hipMemcpyDeviceToHost));
  EQUAL(mixed[0], 3.0f);
  EQUAL(mixed[1], -1.0f);
  EQUAL(mixed[2], 6.0f);
  EQUAL(mixed[3], 3.0f);
  EQUAL(pairs[0], 0x4200u);
  EQUAL(pairs[1], 0x42000000u);
  EQUAL(pairs[2], 0x42004200u);
  for (void* p : {(void*)din, (void*)dout, (void*)dfloats, (void*)dnumbers, (void*)dmixed, (void*)dpairs}) OK(hipFree(p));
  return finish();
}
