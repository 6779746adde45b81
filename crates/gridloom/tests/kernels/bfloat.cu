// arch: compute_80
//
// bfloat16. Arrays are passed as 2-byte elements. n threads or more.
//
// bfloat_axpy(y, x, n, a)          y[i] = fma(a, x[i], y[i]) in bfloat16, one rounding to nearest even; a is a bfloat16
// bfloat2_axpy(y, x, n2, a)        the same over n2 pairs; 4-byte aligned
// bfloat_from_float(out, x, n)     out[2i..2i+2] = x[i] rounded to nearest even, toward zero
// bfloat_to_float(out, x, n)       out[i] = x[i], exact
// bfloat_minmax(out, a, b, n)      out[2i..2i+2] = min, max of a[i], b[i]; where one is NaN, the other

#include <cuda_bf16.h>

#define INDEX unsigned i = blockIdx.x * blockDim.x + threadIdx.x

extern "C" __global__ void bfloat_axpy(__nv_bfloat16* y, const __nv_bfloat16* x, unsigned n, __nv_bfloat16 a) {
    INDEX;
    if (i < n) {
        y[i] = __hfma(a, x[i], y[i]);
    }
}

extern "C" __global__ void bfloat2_axpy(__nv_bfloat162* y, const __nv_bfloat162* x, unsigned n2, __nv_bfloat16 a) {
    INDEX;
    if (i < n2) {
        y[i] = __hfma2(__bfloat162bfloat162(a), x[i], y[i]);
    }
}

extern "C" __global__ void bfloat_from_float(__nv_bfloat16* out, const float* x, unsigned n) {
    INDEX;
    if (i < n) {
        out[2 * i] = __float2bfloat16_rn(x[i]);
        out[2 * i + 1] = __float2bfloat16_rz(x[i]);
    }
}

extern "C" __global__ void bfloat_to_float(float* out, const __nv_bfloat16* x, unsigned n) {
    INDEX;
    if (i < n) {
        out[i] = __bfloat162float(x[i]);
    }
}

extern "C" __global__ void bfloat_minmax(
    __nv_bfloat16* out, const __nv_bfloat16* a, const __nv_bfloat16* b, unsigned n
) {
    INDEX;
    if (i < n) {
        out[2 * i] = __hmin(a[i], b[i]);
        out[2 * i + 1] = __hmax(a[i], b[i]);
    }
}
