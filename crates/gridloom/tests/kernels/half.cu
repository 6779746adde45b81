// Half precision (IEEE binary16). Arrays of half are passed as 2-byte elements. n threads or more unless said otherwise.
//
// half_axpy(y, x, n, a)            y[i] = fma(a, x[i], y[i]) in half, one rounding to nearest even; a is a half
// half2_axpy(y, x, n2, a)          the same over n2 pairs, through half2 arithmetic; 4-byte aligned
// half_dot(result, x, y, n)        one block of 32 threads: *result (float) = sum of float(x[i]) * float(y[i]), fused, thread t
//     adding i = t, t + 32, ...; then lanes combine by v += shfl_down(v, 16), 8, 4, 2, 1
// half_basic(out, a, b, n)         out[8i..8i+8] = a+b, a-b, a*b, fma(a,b,a), min(a,b), max(a,b), -a, |a|, each rounded to half
// half_compare(out, a, b, n)       out[i] (unsigned) = bits: 1 a<b, 2 a<=b, 4 a==b, 8 a!=b, 16 a>b, 32 a>=b, 64 a is NaN;
//     every comparison but != is false where either is NaN, and != here is the ordered one: false too
// half_from_float(out, x, n)       out[4i..4i+4] = x[i] rounded to nearest even, toward zero, down, up
// half_to_float(out, x, n)         out[i] = x[i], exact
// half_to_int(out, x, n)           out[4i..4i+4] (int) = x[i] to nearest even, toward zero, down, up
// half_from_int(out, x, n)         out[i] = half of the int x[i], to nearest even

#include <cuda_fp16.h>

#define INDEX unsigned i = blockIdx.x * blockDim.x + threadIdx.x

extern "C" __global__ void half_axpy(__half* y, const __half* x, unsigned n, __half a) {
    INDEX;
    if (i < n) {
        y[i] = __hfma(a, x[i], y[i]);
    }
}

extern "C" __global__ void half2_axpy(__half2* y, const __half2* x, unsigned n2, __half a) {
    INDEX;
    if (i < n2) {
        y[i] = __hfma2(__half2half2(a), x[i], y[i]);
    }
}

extern "C" __global__ void half_dot(float* result, const __half* x, const __half* y, unsigned n) {
    float sum = 0.0f;
    for (unsigned i = threadIdx.x; i < n; i += 32) {
        sum = __fmaf_rn(__half2float(x[i]), __half2float(y[i]), sum);
    }
    for (int offset = 16; offset > 0; offset /= 2) {
        sum += __shfl_down_sync(0xffffffffu, sum, offset);
    }
    if (threadIdx.x == 0) {
        *result = sum;
    }
}

extern "C" __global__ void half_basic(__half* out, const __half* a, const __half* b, unsigned n) {
    INDEX;
    if (i < n) {
        __half u = a[i];
        __half v = b[i];
        __half* o = out + 8 * i;
        o[0] = __hadd_rn(u, v);
        o[1] = __hsub_rn(u, v);
        o[2] = __hmul_rn(u, v);
        o[3] = __hfma(u, v, u);
        o[4] = __float2half(fminf(__half2float(u), __half2float(v)));
        o[5] = __float2half(fmaxf(__half2float(u), __half2float(v)));
        o[6] = __hneg(u);
        o[7] = __habs(u);
    }
}

extern "C" __global__ void half_compare(unsigned* out, const __half* a, const __half* b, unsigned n) {
    INDEX;
    if (i < n) {
        __half u = a[i];
        __half v = b[i];
        out[i] = __hlt(u, v) | __hle(u, v) << 1 | __heq(u, v) << 2 | __hne(u, v) << 3 | __hgt(u, v) << 4 |
                 __hge(u, v) << 5 | __hisnan(u) << 6;
    }
}

extern "C" __global__ void half_from_float(__half* out, const float* x, unsigned n) {
    INDEX;
    if (i < n) {
        out[4 * i] = __float2half_rn(x[i]);
        out[4 * i + 1] = __float2half_rz(x[i]);
        out[4 * i + 2] = __float2half_rd(x[i]);
        out[4 * i + 3] = __float2half_ru(x[i]);
    }
}

extern "C" __global__ void half_to_float(float* out, const __half* x, unsigned n) {
    INDEX;
    if (i < n) {
        out[i] = __half2float(x[i]);
    }
}

extern "C" __global__ void half_to_int(int* out, const __half* x, unsigned n) {
    INDEX;
    if (i < n) {
        out[4 * i] = __half2int_rn(x[i]);
        out[4 * i + 1] = __half2int_rz(x[i]);
        out[4 * i + 2] = __half2int_rd(x[i]);
        out[4 * i + 3] = __half2int_ru(x[i]);
    }
}

extern "C" __global__ void half_from_int(__half* out, const int* x, unsigned n) {
    INDEX;
    if (i < n) {
        out[i] = __int2half_rn(x[i]);
    }
}
