// The conjugate gradient method for Poisson's equation on a rectangle, with all its numbers in device memory, so that a whole solve is a graph
// with a loop. The matrix is the five-point Laplacian, with 0 all around the rectangle; vectors are double, row by row.
//
// laplacian(y, x, width, n)              n threads or more: y[i] = 4 x[i] - the four neighbours of i; width divides n
// dot(partial, x, y, n)                  16 blocks of 256: partial[block] = its share of the sum of x[i] * y[i], always in the same order
// begin(scalars, partial, passes, again) one thread: scalars[0] = the sum of partial, which is r * r; *passes = 0; *again = 1
// curvature(scalars, partial)            one thread: scalars[1] = the sum of partial, which is p * A p
// advance(x, r, p, ap, scalars, n)       n threads or more: x += alpha p and r -= alpha A p, where alpha = scalars[0] / scalars[1]
// judge(scalars, partial, history, passes, again, limit, tolerance)   one thread: scalars[0] = the new r * r, scalars[2] = its ratio to the old one;
//     history[*passes] = its root; *passes += 1; *again = 1 where that root is above tolerance and *passes below limit, else 0
// redirect(p, r, scalars, n)             n threads or more: p = r + scalars[2] p

#define BLOCKS 16
#define THREADS 256
#define INDEX unsigned i = blockIdx.x * blockDim.x + threadIdx.x

extern "C" __global__ void laplacian(double* y, const double* x, unsigned width, unsigned n) {
    INDEX;
    if (i < n) {
        unsigned column = i % width;
        double west = column > 0 ? x[i - 1] : 0.0;
        double east = column + 1 < width ? x[i + 1] : 0.0;
        double south = i >= width ? x[i - width] : 0.0;
        double north = i + width < n ? x[i + width] : 0.0;
        y[i] = 4.0 * x[i] - west - east - south - north;
    }
}

extern "C" __global__ void dot(double* partial, const double* x, const double* y, unsigned n) {
    __shared__ double s[THREADS];
    unsigned t = threadIdx.x;
    double sum = 0.0;
    for (unsigned i = blockIdx.x * THREADS + t; i < n; i += BLOCKS * THREADS) {
        sum += x[i] * y[i];
    }
    s[t] = sum;
    __syncthreads();
    for (unsigned k = THREADS / 2; k > 0; k /= 2) {
        if (t < k) {
            s[t] += s[t + k];
        }
        __syncthreads();
    }
    if (t == 0) {
        partial[blockIdx.x] = s[0];
    }
}

static __device__ double total(const double* partial) {
    double sum = 0.0;
    for (unsigned i = 0; i < BLOCKS; i++) {
        sum += partial[i];
    }
    return sum;
}

extern "C" __global__ void begin(double* scalars, const double* partial, int* passes, int* again) {
    scalars[0] = total(partial);
    *passes = 0;
    *again = 1;
}

extern "C" __global__ void curvature(double* scalars, const double* partial) {
    scalars[1] = total(partial);
}

extern "C" __global__ void advance(double* x, double* r, const double* p, const double* ap, const double* scalars, unsigned n) {
    INDEX;
    if (i < n) {
        double alpha = scalars[0] / scalars[1];
        x[i] += alpha * p[i];
        r[i] -= alpha * ap[i];
    }
}

extern "C" __global__ void judge(
    double* scalars, const double* partial, double* history, int* passes, int* again, int limit, double tolerance
) {
    double now = total(partial);
    scalars[2] = now / scalars[0];
    scalars[0] = now;
    history[*passes] = sqrt(now);
    *passes += 1;
    *again = sqrt(now) > tolerance && *passes < limit;
}

extern "C" __global__ void redirect(double* p, const double* r, const double* scalars, unsigned n) {
    INDEX;
    if (i < n) {
        p[i] = r[i] + scalars[2] * p[i];
    }
}
