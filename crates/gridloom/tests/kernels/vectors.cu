// Loads and stores of several elements at once. n threads or more; arrays aligned to the vector's size.
//
// scale4(out, in, n, s)          n float4: out = in * s (float)
// sum2(out, in, n)               n double2: out[i] (double) = in[i].x + in[i].y
// average_pixels(out, a, b, n)   n uchar4: out = (a + b + 1) / 2 for each byte
// swap_halves(out, in, n)        n ushort2: out = (in.y, in.x)
// shuffle_ints(out, in, n)       n int4: out = (in.w, in.x, in.y, in.z)
// pack_longs(out, a, b, n)       n ulonglong2: out = (a[i], b[i]), a, b unsigned long long
// cached_loads(out, in, n)       int: out[5i..5i+5] = in[i] five times, through the ca, cg, cs, lu and read-only loads; then stores by wb, cg, cs, wt

#define INDEX unsigned i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return

extern "C" __global__ void scale4(float4* out, const float4* in, unsigned n, float s) {
    INDEX;
    float4 v = in[i];
    out[i] = make_float4(v.x * s, v.y * s, v.z * s, v.w * s);
}

extern "C" __global__ void sum2(double* out, const double2* in, unsigned n) {
    INDEX;
    double2 v = in[i];
    out[i] = v.x + v.y;
}

extern "C" __global__ void average_pixels(uchar4* out, const uchar4* a, const uchar4* b, unsigned n) {
    INDEX;
    uchar4 u = a[i];
    uchar4 v = b[i];
    out[i] = make_uchar4((u.x + v.x + 1) / 2, (u.y + v.y + 1) / 2, (u.z + v.z + 1) / 2, (u.w + v.w + 1) / 2);
}

extern "C" __global__ void swap_halves(ushort2* out, const ushort2* in, unsigned n) {
    INDEX;
    ushort2 v = in[i];
    out[i] = make_ushort2(v.y, v.x);
}

extern "C" __global__ void shuffle_ints(int4* out, const int4* in, unsigned n) {
    INDEX;
    int4 v = in[i];
    out[i] = make_int4(v.w, v.x, v.y, v.z);
}

extern "C" __global__ void pack_longs(
    ulonglong2* out, const unsigned long long* a, const unsigned long long* b, unsigned n
) {
    INDEX;
    out[i] = make_ulonglong2(a[i], b[i]);
}

extern "C" __global__ void cached_loads(int* out, const int* in, unsigned n) {
    INDEX;
    int* o = out + 5 * i;
    o[0] = __ldca(in + i);
    __stwb(o + 1, __ldcg(in + i));
    __stcg(o + 2, __ldcs(in + i));
    __stcs(o + 3, __ldlu(in + i));
    __stwt(o + 4, __ldg(in + i));
}
