// Kernels for clang's own NVPTX back end, which needs no CUDA headers: what they would declare is declared here.
//
// They cover what its output does differently from NVRTC's: `.ptr` parameters, `.weak` functions, local depots without
// optimisation, `__dynamic_shmem`, jump tables, by-value structs, recursion and calls through prototypes.

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define THREADS __nvvm_read_ptx_sreg_ntid_x()
#define THREAD __nvvm_read_ptx_sreg_tid_x()
#define BLOCK __nvvm_read_ptx_sreg_ctaid_x()
#define INDEX (BLOCK * THREADS + THREAD)

extern "C" __device__ int vprintf(const char* format, const char* arguments);

__constant__ float coefficients[4] = {1.0f, -0.5f, 0.25f, -0.125f};
__device__ int numbers[5] = {1, -2, 3, -4, 5};
#if __clang_major__ < 16
// Older back ends cannot write an address with an offset as an initialiser.
__device__ int* middle = numbers;
#else
__device__ int* middle = &numbers[2];
#endif
__device__ double total;

struct Point {
    float x, y, z;
    short tag;
};

struct Shape {
    long long id;
    Point corners[2];
};

__device__ __attribute__((noinline)) int twice(int x) { return 2 * x; }
__device__ __attribute__((noinline)) int thrice(int x) { return 3 * x; }
__device__ int (*operations[2])(int) = {twice, thrice};

__device__ __attribute__((noinline)) unsigned factorial(unsigned n) {
    return n < 2 ? 1 : n * factorial(n - 1);
}

template <typename T>
__device__ __attribute__((noinline)) T largest(const T* data, int n) {
    T best = data[0];
    for (int i = 1; i < n; ++i) {
        if (best < data[i]) {
            best = data[i];
        }
    }
    return best;
}

__device__ __attribute__((noinline)) Point midpoint(Point a, Point b) {
    return Point{(a.x + b.x) * 0.5f, (a.y + b.y) * 0.5f, (a.z + b.z) * 0.5f, a.tag};
}

extern "C" __global__ void saxpy(float* __restrict__ y, const float* __restrict__ x, unsigned n, float a) {
    unsigned i = INDEX;
    if (i < n) {
        y[i] = a * x[i] + y[i];
    }
}

extern "C" __global__ void polynomial(float* out, const float* x, int n) {
    int i = INDEX;
    if (i < n) {
        float sum = 0.0f;
        for (int k = 3; k >= 0; --k) {
            sum = sum * x[i] + coefficients[k];
        }
        out[i] = sum;
    }
}

extern "C" __global__ void block_sum(float* out, const float* in) {
    __shared__ float sums[256];
    unsigned t = THREAD;
    sums[t] = in[INDEX];
    __syncthreads();
    for (unsigned k = 128; k > 0; k /= 2) {
        if (t < k) {
            sums[t] += sums[t + k];
        }
        __syncthreads();
    }
    if (t == 0) {
        out[BLOCK] = sums[0];
    }
}

extern "C" __global__ void reverse(int* data) {
    extern __shared__ int words[];
    words[THREAD] = data[THREAD];
    __syncthreads();
    data[THREAD] = words[THREADS - 1 - THREAD];
}

extern "C" __global__ void count(unsigned* bins, const unsigned char* data, unsigned n) {
    for (unsigned i = INDEX; i < n; i += THREADS * __nvvm_read_ptx_sreg_nctaid_x()) {
        __nvvm_atom_add_gen_i((int*)&bins[data[i] & 63], 1);
    }
}

extern "C" __global__ void exchange(int* lock, long long* wide, float* sum) {
    while (__nvvm_atom_cas_gen_i(lock, 0, 1) != 0) {
    }
    __nvvm_membar_gl();
    *wide += INDEX;
    __nvvm_membar_gl();
    __nvvm_atom_xchg_gen_i(lock, 0);
    __nvvm_atom_add_gen_f(sum, 0.5f);
    __nvvm_atom_max_gen_ll(wide, 7);
}

extern "C" __global__ void warp_sum(int* out, int value) {
    for (int offset = 16; offset > 0; offset /= 2) {
        value += __nvvm_shfl_sync_down_i32(0xffffffff, value, offset, 31);
    }
    out[INDEX] = value + __nvvm_vote_ballot_sync(0xffffffff, value > 3);
}

extern "C" __global__ void apply(int* out, const int* in, const int* which, int n) {
    int i = INDEX;
    if (i < n) {
        out[i] = operations[which[i] & 1](in[i]) + *middle + (int)factorial(in[i] & 7);
    }
}

extern "C" __global__ void choose(int* out, const int* in, int n) {
    int i = INDEX;
    if (i >= n) {
        return;
    }
    int x = in[i];
    switch (x) {
        case 0: x = x * 3 + out[1]; break;
        case 1: x = x - out[2]; break;
        case 2: x = x ^ out[3]; break;
        case 3: x = x | out[4]; break;
        case 4: x = x / out[5]; break;
        case 5: x = x % out[6]; break;
        case 6: x = -x; break;
        case 7: x = ~x; break;
        default: x = 0; break;
    }
    out[i] = x;
}

extern "C" __global__ void place(Shape* out, Shape shape, Point offset) {
    shape.corners[0] = midpoint(shape.corners[0], offset);
    out[INDEX] = shape;
}

extern "C" __global__ void best(float* f, double* d, long long* l, int n) {
    f[0] = largest(f, n);
    d[0] = largest(d, n);
    l[0] = largest(l, n);
    total += __builtin_sqrt(d[0]) + __nvvm_fma_rn_d(d[1], 2.0, 3.0);
}

extern "C" __global__ void local_lookup(int* out, const int* order, int n) {
    int table[32];
    for (int k = 0; k < 32; ++k) {
        table[k] = order[k] * k;
    }
    for (int k = 0; k < n; ++k) {
        table[order[k] & 31] += table[(order[k] + 1) & 31];
    }
    out[INDEX] = table[THREAD & 31];
}

extern "C" __global__ void report(int code) {
    struct {
        int code;
        double half;
    } arguments = {code, code * 0.5};
    vprintf("code %d, half %f\n", (const char*)&arguments);
    if (code < 0) {
        __builtin_trap();
    }
}

extern "C" __global__ void conversions(short* s, unsigned char* c, float f, double d, unsigned long long u) {
    s[0] = (short)f;
    s[1] = (short)d;
    c[0] = (unsigned char)u;
    c[1] = (unsigned char)(f * 255.0f);
    ((float*)s)[4] = (float)u;
    ((double*)s)[5] = (double)(long long)f;
}
