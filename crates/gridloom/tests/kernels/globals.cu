// Variables of the module: constant, initialised, zero, and pointing at each other.
//
// coefficients[8]   __constant__ float, {1, 0.5, 0.25, ..., 1/128}; may be overwritten by the host
// counter           __device__ unsigned, 7
// primes[8]         __device__ int, {2, 3, 5, 7, 11, 13, 17, 19}
// third             __device__ pointer to primes[2]
// zeros[16]         __device__ double, all 0
// record            __device__ struct { int a; double b; const char* name; }, {3, 2.5, "record"}
// greeting          __constant__ char[], "hello"
// aligned_total     __device__ int, 5, aligned to 64 bytes
//
// polynomial(out, x, n)      out[i] = sum of coefficients[k] * x[i]^k, by Horner with fma from k = 7 down; float; n threads or more
// count_up(out, n)           out[i] = the counter's value before this thread added 1 (atomically; each value once); n threads exactly
// read_primes(out, n)        out[i] = primes[i % 8], then out[n] = *third (int); thread 0 writes the last
// bump_primes(by)            one thread: every prime += by; visible to later launches
// read_record(out)           one thread: out[0] = a, out[1] = b * 2, out[2] = the length of name (int)
// read_greeting(out)         one thread: the six bytes of the greeting, its end included
// use_zeros(out, n)          out[i] = ++zeros[i] (double), n <= 16: counts the launches since the module was loaded
// addresses(out)             one thread: out[0..5] = the addresses of counter, primes, third's target, zeros, aligned_total

extern "C" __constant__ float coefficients[8] = {1.0f, 0.5f, 0.25f, 0.125f, 0.0625f, 0.03125f, 0.015625f, 0.0078125f};
extern "C" __device__ unsigned counter = 7;
extern "C" __device__ int primes[8] = {2, 3, 5, 7, 11, 13, 17, 19};
extern "C" __device__ int* third = &primes[2];
extern "C" __device__ double zeros[16];

struct Record {
    int a;
    double b;
    const char* name;
};

extern "C" __device__ Record record = {3, 2.5, "record"};
extern "C" __constant__ char greeting[] = "hello";
extern "C" __device__ __align__(64) int aligned_total = 5;

#define INDEX unsigned i = blockIdx.x * blockDim.x + threadIdx.x

extern "C" __global__ void polynomial(float* out, const float* x, unsigned n) {
    INDEX;
    if (i < n) {
        float sum = coefficients[7];
        for (int k = 6; k >= 0; --k) {
            sum = __fmaf_rn(sum, x[i], coefficients[k]);
        }
        out[i] = sum;
    }
}

extern "C" __global__ void count_up(unsigned* out, unsigned n) {
    INDEX;
    if (i < n) {
        out[i] = atomicAdd(&counter, 1u);
    }
}

extern "C" __global__ void read_primes(int* out, unsigned n) {
    INDEX;
    if (i < n) {
        out[i] = primes[i % 8];
    }
    if (i == 0) {
        out[n] = *third;
    }
}

extern "C" __global__ void bump_primes(int by) {
    for (int k = 0; k < 8; ++k) {
        primes[k] += by;
    }
}

extern "C" __global__ void read_record(int* out) {
    out[0] = record.a;
    out[1] = (int)(record.b * 2.0);
    int length = 0;
    while (record.name[length] != 0) {
        ++length;
    }
    out[2] = length;
}

extern "C" __global__ void read_greeting(char* out) {
    for (int k = 0; k < 6; ++k) {
        out[k] = greeting[k];
    }
}

extern "C" __global__ void use_zeros(double* out, unsigned n) {
    INDEX;
    if (i < n) {
        zeros[i] += 1.0;
        out[i] = zeros[i];
    }
}

extern "C" __global__ void addresses(void** out) {
    out[0] = &counter;
    out[1] = primes;
    out[2] = third;
    out[3] = zeros;
    out[4] = &aligned_total;
}
