// Loads two 64-bit values and a 64-bit accumulator for each lane, runs 16 words that the test overwrites, and stores the
// accumulator. Registers: a in v[2:3], b in v[4:5], c in v[6:7], accumulator in v[8:9].
typedef unsigned long u64;
extern "C" __attribute__((global)) void template_kernel(const u64 *a, const u64 *b, const u64 *c, u64 *d) {
    const unsigned i = __builtin_amdgcn_workgroup_id_x() * 32 + __builtin_amdgcn_workitem_id_x();
    u64 r = d[i];
    asm volatile("s_nop 5\ns_nop 5\ns_nop 5\ns_nop 5\ns_nop 5\ns_nop 5\ns_nop 5\ns_nop 5\n"
                 "s_nop 5\ns_nop 5\ns_nop 5\ns_nop 5\ns_nop 5\ns_nop 5\ns_nop 5\ns_nop 5\n"
                 : "+{v[8:9]}"(r)
                 : "{v[2:3]}"(a[i]), "{v[4:5]}"(b[i]), "{v[6:7]}"(c[i])
                 : "vcc", "s20", "s21");
    d[i] = r;
}

// The compiler's own correctly rounded divisions: v_div_scale, v_rcp, fused multiply-adds, v_div_fmas, v_div_fixup.
extern "C" __attribute__((global)) void divide_f32(const u64 *a, const u64 *b, const u64 *, u64 *d) {
    const unsigned i = __builtin_amdgcn_workgroup_id_x() * 32 + __builtin_amdgcn_workitem_id_x();
    ((float *)d)[2 * i] = ((const float *)a)[2 * i] / ((const float *)b)[2 * i];
}

extern "C" __attribute__((global)) void divide_f64(const u64 *a, const u64 *b, const u64 *, u64 *d) {
    const unsigned i = __builtin_amdgcn_workgroup_id_x() * 32 + __builtin_amdgcn_workitem_id_x();
    ((double *)d)[i] = ((const double *)a)[i] / ((const double *)b)[i];
}
