// Kernels with one mistake each, for random host programs. No HIP header and no device library is needed. README.md has
// the command line.
#define KERNEL extern "C" __attribute__((global)) __attribute__((amdgpu_flat_work_group_size(1, 256)))
#define DEVICE __attribute__((device))
#define SHARED __attribute__((shared))

DEVICE static inline unsigned global_id() {
    return __builtin_amdgcn_workgroup_id_x() * __builtin_amdgcn_workgroup_size_x() + __builtin_amdgcn_workitem_id_x();
}

DEVICE static inline void barrier() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

// Each lane writes what the lane 32 further puts into LDS, without a barrier.
KERNEL void rotate_racy(unsigned* out) {
    SHARED unsigned parts[64];
    unsigned lane = __builtin_amdgcn_workitem_id_x();
    parts[lane & 63] = lane;
    out[lane & 63] = parts[(lane + 32) & 63];
}

// Writes one element too many.
KERNEL void fill_past(unsigned* out, unsigned value, unsigned n) {
    unsigned i = global_id();
    if (i <= n) out[i] = value;
}

// Reads one element too many.
KERNEL void add_past(const unsigned* a, const unsigned* b, unsigned* out, unsigned n) {
    unsigned i = global_id();
    if (i < n) out[i] = a[i + 1] + b[i];
}

// Writes LDS it does not have.
KERNEL void lds_past(unsigned* out, unsigned n) {
    SHARED unsigned parts[32];
    unsigned lane = __builtin_amdgcn_workitem_id_x();
    volatile unsigned* p = parts;
    p[lane + n] = lane;
    barrier();
    out[lane] = p[lane];
}

// Only the first wave reaches the barrier in time.
KERNEL void half_barrier(unsigned* out) {
    SHARED unsigned parts[64];
    unsigned lane = __builtin_amdgcn_workitem_id_x();
    parts[lane & 63] = lane;
    if (lane < 32) {
        barrier();
        out[lane] = parts[lane];
    } else {
        barrier();
        barrier();
        out[lane & 63] = parts[lane & 63];
    }
}

// Waits for a flag that nobody sets.
KERNEL void endless(const volatile unsigned* flag) {
    while (*flag != 0xFFFFFFFEu) {
    }
}

// Both workgroups write the same element.
KERNEL void same_element(unsigned* out) {
    if (__builtin_amdgcn_workitem_id_x() == 0) out[0] = __builtin_amdgcn_workgroup_id_x();
}

KERNEL void gives_up(unsigned* out) {
    out[0] = 1;
    __builtin_trap();
}
