// The pieces of the conjugate gradient method for the matrix of the one-dimensional Laplacian (2 on the diagonal, -1 beside it),
// double. Scalars stay in device memory, so that a whole solve can be a graph with a loop.
//
// apply_laplacian(y, x, n)             y[i] = 2 x[i] - x[i-1] - x[i+1], elements outside counting as 0; n threads or more
// residual(r, b, ax, n)                r[i] = b[i] - ax[i]; n threads or more
// dot(result, x, y, n)                 one block of 256: *result = sum of x[i] * y[i]; thread t takes i = t, t + 256, ... by fma from 0,
//     then a tree in shared memory: s[t] += s[t + k], k = 128, ..., 1
// step_length(alpha, rr, pap)          one thread: *alpha = *rr / *pap
// add_scaled(y, x, a, sign, n)         y[i] = fma(sign * *a, x[i], y[i]); sign is 1.0 or -1.0
// direction(p, r, new_rr, old_rr, n)   p[i] = fma(*new_rr / *old_rr, p[i], r[i])
// test_residual(handle, rr, old_rr, left, tolerance)   one thread: *old_rr = *rr; *left -= 1; the condition behind `handle`
//     becomes 1 where *rr > tolerance and *left > 0, else 0

extern "C" __device__ __cudart_builtin__ void cudaGraphSetConditional(unsigned long long handle, unsigned int value);

#define INDEX unsigned i = blockIdx.x * blockDim.x + threadIdx.x

extern "C" __global__ void apply_laplacian(double* y, const double* x, unsigned n) {
    INDEX;
    if (i < n) {
        double left = i > 0 ? x[i - 1] : 0.0;
        double right = i + 1 < n ? x[i + 1] : 0.0;
        y[i] = __dsub_rn(__dsub_rn(__dmul_rn(2.0, x[i]), left), right);
    }
}

extern "C" __global__ void residual(double* r, const double* b, const double* ax, unsigned n) {
    INDEX;
    if (i < n) {
        r[i] = b[i] - ax[i];
    }
}

extern "C" __global__ void dot(double* result, const double* x, const double* y, unsigned n) {
    __shared__ double s[256];
    unsigned t = threadIdx.x;
    double sum = 0.0;
    for (unsigned i = t; i < n; i += 256) {
        sum = __fma_rn(x[i], y[i], sum);
    }
    s[t] = sum;
    __syncthreads();
    for (unsigned k = 128; k > 0; k /= 2) {
        if (t < k) {
            s[t] += s[t + k];
        }
        __syncthreads();
    }
    if (t == 0) {
        *result = s[0];
    }
}

extern "C" __global__ void step_length(double* alpha, const double* rr, const double* pap) {
    *alpha = *rr / *pap;
}

extern "C" __global__ void add_scaled(double* y, const double* x, const double* a, double sign, unsigned n) {
    INDEX;
    if (i < n) {
        y[i] = __fma_rn(sign * *a, x[i], y[i]);
    }
}

extern "C" __global__ void direction(double* p, const double* r, const double* new_rr, const double* old_rr, unsigned n) {
    INDEX;
    if (i < n) {
        p[i] = __fma_rn(*new_rr / *old_rr, p[i], r[i]);
    }
}

extern "C" __global__ void test_residual(
    unsigned long long handle, const double* rr, double* old_rr, int* left, double tolerance
) {
    *old_rr = *rr;
    *left -= 1;
    cudaGraphSetConditional(handle, *rr > tolerance && *left > 0);
}
