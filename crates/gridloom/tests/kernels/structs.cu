// Arguments passed by value that are not scalars.
//
// affine(out, in, n, m)           m: struct { float a[2][2]; float b[2]; } (24 bytes, aligned to 4); in, out: n float2:
//     out = (fma(a00, x, fma(a01, y, b0)), fma(a10, x, fma(a11, y, b1)))
// mixed(out, s)                   one thread; s: struct { char c; short h; int i; long long l; float f; double d; } (as C lays
//     it out: offsets 0, 2, 4, 8, 16, 24; size 32): out (6 doubles) = each member as double
// window(out, in, view, n)        view: struct { const int* data; unsigned offset; unsigned stride; } (16 bytes): out[i] = data[offset + i * stride]
//     + in.x of int3 in (12 bytes, aligned to 4) + in.z
// large(out, table, n)            table: 128 ints by value (512 bytes): out[i] = table[i % 128], n threads or more
// small_scalars(out, b, s, c, u)  one thread; bool, short, signed char, unsigned char: out (4 ints) = each as int
// map_square(out, in, n)          float, by a template over a functor: out[i] = in[i] * in[i]
// map_cube(out, in, n)            the same template with another: out[i] = (in[i] * in[i]) * in[i]

#define INDEX unsigned i = blockIdx.x * blockDim.x + threadIdx.x

struct Affine {
    float a[2][2];
    float b[2];
};

struct Mixed {
    char c;
    short h;
    int i;
    long long l;
    float f;
    double d;
};

struct View {
    const int* data;
    unsigned offset;
    unsigned stride;
};

struct Table {
    int values[128];
};

struct Square {
    __device__ float operator()(float x) const { return x * x; }
};

struct Cube {
    __device__ float operator()(float x) const { return x * x * x; }
};

template <typename F>
__device__ void map(float* out, const float* in, unsigned n, F f) {
    INDEX;
    if (i < n) {
        out[i] = f(in[i]);
    }
}

extern "C" __global__ void affine(float2* out, const float2* in, unsigned n, Affine m) {
    INDEX;
    if (i < n) {
        float2 v = in[i];
        out[i] = make_float2(
            __fmaf_rn(m.a[0][0], v.x, __fmaf_rn(m.a[0][1], v.y, m.b[0])),
            __fmaf_rn(m.a[1][0], v.x, __fmaf_rn(m.a[1][1], v.y, m.b[1]))
        );
    }
}

extern "C" __global__ void mixed(double* out, Mixed s) {
    out[0] = s.c;
    out[1] = s.h;
    out[2] = s.i;
    out[3] = (double)s.l;
    out[4] = s.f;
    out[5] = s.d;
}

extern "C" __global__ void window(int* out, int3 in, View view, unsigned n) {
    INDEX;
    if (i < n) {
        out[i] = view.data[view.offset + i * view.stride] + in.x + in.z;
    }
}

extern "C" __global__ void large(int* out, Table table, unsigned n) {
    INDEX;
    if (i < n) {
        out[i] = table.values[i % 128];
    }
}

extern "C" __global__ void small_scalars(int* out, bool b, short s, signed char c, unsigned char u) {
    out[0] = b;
    out[1] = s;
    out[2] = c;
    out[3] = u;
}

extern "C" __global__ void map_square(float* out, const float* in, unsigned n) {
    map(out, in, n, Square());
}

extern "C" __global__ void map_cube(float* out, const float* in, unsigned n) {
    map(out, in, n, Cube());
}
