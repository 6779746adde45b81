// Calls through pointers, and calls that stay calls.
//
// apply_table(out, in, which, n)      out[i] = f(in[i]) with f the function number which[i] % 4 of a table in device memory:
//     0 negates, 1 doubles, 2 squares, 3 adds one. Wrapping int; which is unsigned; lanes of a warp may differ.
// take_address(slot, which)           one thread: *slot = the address of function which % 4, as 8 bytes
// apply_address(out, in, slot, n)     out[i] = f(in[i]) with f the address in *slot, from take_address of the same module
// compose(out, in, n)                 out[i] = square(double_it(in[i]) + 1), through functions that are not inlined
// many_arguments(out, a, b, n)        out[i] = ((a[i] + 2 b[i]) + 12) + 30 in double, through a call with arguments of many types
// returns_struct(out, a, b, n)        out[2i] = a[i] / b[i], out[2i+1] = a[i] % b[i] (int, truncating), returned as a struct; b[i] != 0

typedef int (*Unary)(int);

__device__ __noinline__ int negate(int x) { return -x; }
__device__ __noinline__ int double_it(int x) { return 2 * x; }
__device__ __noinline__ int square(int x) { return x * x; }
__device__ __noinline__ int add_one(int x) { return x + 1; }

__device__ Unary table[4] = {negate, double_it, square, add_one};

struct Quotient {
    int quotient;
    int remainder;
};

__device__ __noinline__ Quotient divide(int a, int b) {
    return Quotient{a / b, a % b};
}

__device__ __noinline__ double weigh(float a, double b, short c, long long d, unsigned char e, char f) {
    return a + 2.0 * b + 3.0 * c + (double)(d * e) + f;
}

extern "C" __global__ void apply_table(int* out, const int* in, const unsigned* which, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = table[which[i] % 4](in[i]);
    }
}

extern "C" __global__ void take_address(Unary* slot, unsigned which) {
    *slot = table[which % 4];
}

extern "C" __global__ void apply_address(int* out, const int* in, const Unary* slot, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = (*slot)(in[i]);
    }
}

extern "C" __global__ void compose(int* out, const int* in, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = square(add_one(double_it(in[i])));
    }
}

extern "C" __global__ void many_arguments(double* out, const float* a, const double* b, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = weigh(a[i], b[i], 4, 5, 6, 0);
    }
}

extern "C" __global__ void returns_struct(int* out, const int* a, const int* b, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        Quotient q = divide(a[i], b[i]);
        out[2 * i] = q.quotient;
        out[2 * i + 1] = q.remainder;
    }
}
