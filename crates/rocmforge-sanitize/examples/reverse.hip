// y = x backwards, through LDS. The barrier between the two lines that use the tile is missing.
extern "C" __attribute__((global)) void reverse(const float *x, float *y) {
    static __attribute__((shared)) float tile[64];
    unsigned t = __builtin_amdgcn_workitem_id_x();
    tile[t] = x[t];
    y[t] = tile[63 - t];
}
