// The compiler's own correctly rounded divisions and square roots, one lane of 64 bits in and out.
// Built by build.sh.
typedef unsigned long u64;
#define KERNEL extern "C" __attribute__((global)) void
static __attribute__((device)) unsigned lane() {
    return __builtin_amdgcn_workgroup_id_x() * 32 + __builtin_amdgcn_workitem_id_x();
}
template <typename T> static __attribute__((device)) T get(const u64 *from) { return *(const T *)(from + lane()); }
template <typename T> static __attribute__((device)) void put(u64 *to, T value) { *(T *)(to + lane()) = value; }

KERNEL divide_f32(const u64 *a, const u64 *b, const u64 *, u64 *d) { put(d, get<float>(a) / get<float>(b)); }
KERNEL divide_f64(const u64 *a, const u64 *b, const u64 *, u64 *d) { put(d, get<double>(a) / get<double>(b)); }
KERNEL sqrt_f32(const u64 *a, const u64 *, const u64 *, u64 *d) { put(d, __builtin_sqrtf(get<float>(a))); }
KERNEL sqrt_f64(const u64 *a, const u64 *, const u64 *, u64 *d) { put(d, __builtin_sqrt(get<double>(a))); }
