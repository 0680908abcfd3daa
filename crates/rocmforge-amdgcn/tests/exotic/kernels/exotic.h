// What all exotic kernels share: no header of ROCm, one signature, one launch: 2 workgroups of 64.
typedef unsigned u32;
typedef int i32;
typedef unsigned long u64;
typedef long i64;
typedef unsigned short u16;
typedef short i16;
typedef _Float16 h;
typedef h h2 __attribute__((ext_vector_type(2)));
typedef i16 s2 __attribute__((ext_vector_type(2)));
typedef u16 us2 __attribute__((ext_vector_type(2)));

#define N 128
#define DEVICE __attribute__((device))
#define SHARED __attribute__((shared))
#define NOINLINE __attribute__((device, noinline))
// Element i of slot k is out[k * N + i].
#define KERNEL(name)                                                                                                  \
    extern "C" __attribute__((global, amdgpu_flat_work_group_size(64, 64))) void name(const u32 *a, const u32 *b,     \
                                                                                      u32 *out)
#define T __builtin_amdgcn_workitem_id_x()
#define I (__builtin_amdgcn_workgroup_id_x() * 64 + T)
#define BARRIER                                                                                                       \
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");                                                            \
    __builtin_amdgcn_s_barrier();                                                                                     \
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup")

template <typename To, typename From> DEVICE inline To as(From from) {
    static_assert(sizeof(To) == sizeof(From), "the same bits");
    return __builtin_bit_cast(To, from);
}

DEVICE inline void put64(u32 *out, u32 slot, u32 i, u64 value) {
    out[slot * N + i] = (u32)value;
    out[(slot + 1) * N + i] = (u32)(value >> 32);
}
