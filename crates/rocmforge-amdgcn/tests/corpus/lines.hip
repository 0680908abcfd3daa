// A kernel whose store is written in an inlined function: compiled with -gline-tables-only into lines.co.
static __attribute__((device, always_inline)) void store(float *to, float value) {
    to[__builtin_amdgcn_workitem_id_x()] = value;
}

extern "C" __attribute__((global)) void lines(float *to, const float *from) {
    store(to, from[0] + 1.0f);
}
