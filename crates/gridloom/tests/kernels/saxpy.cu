// Scaled vector addition, one element to a thread and with a grid-stride loop.
//
// saxpy(y, x, n, a)                 y[i] = a * x[i] + y[i] (fused, one rounding) for i < n; n threads or more
// saxpy_strided(y, x, n, a)         the same, any launch size
// saxpy_vector(y, x, n4, a)         the same over n4 float4 (4 * n4 floats); x and y 16-byte aligned; n4 threads or more
// daxpy(y, x, n, a)                 the same in double, n threads or more

extern "C" __global__ void saxpy(float* y, const float* x, unsigned n, float a) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        y[i] = __fmaf_rn(a, x[i], y[i]);
    }
}

extern "C" __global__ void saxpy_strided(float* y, const float* x, unsigned n, float a) {
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        y[i] = __fmaf_rn(a, x[i], y[i]);
    }
}

extern "C" __global__ void saxpy_vector(float4* y, const float4* x, unsigned n4, float a) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n4) {
        float4 u = x[i];
        float4 v = y[i];
        v.x = __fmaf_rn(a, u.x, v.x);
        v.y = __fmaf_rn(a, u.y, v.y);
        v.z = __fmaf_rn(a, u.z, v.z);
        v.w = __fmaf_rn(a, u.w, v.w);
        y[i] = v;
    }
}

extern "C" __global__ void daxpy(double* y, const double* x, unsigned n, double a) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        y[i] = __fma_rn(a, x[i], y[i]);
    }
}
