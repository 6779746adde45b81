// options: -lineinfo
//
// Kernels that fail, and the line each fails on.
//
// assert_positive(data, n)     asserts "data[i] > 0" for each i < n (int); n threads or more; leaves data alone otherwise
// trap_at(data, n, where)      thread `where` executes trap; the others write data[i] = i
// out_of_bounds(data, index)   one thread writes data[index] = 1 (int; index is a long long)
// endless()                    never returns
// divide(out, a, b)            one thread: *out = a / b; with b = 0 the result is not defined, and nothing fails on a GPU
// misaligned(bytes)            one thread writes a 4-byte 1 at bytes + 1: not aligned
// null_write()                 one thread writes through a null pointer

extern "C" __global__ void assert_positive(const int* data, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        assert(data[i] > 0);
    }
}

extern "C" __global__ void trap_at(unsigned* data, unsigned n, unsigned where) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i == where) {
        __trap();
    }
    if (i < n) {
        data[i] = i;
    }
}

extern "C" __global__ void out_of_bounds(int* data, long long index) {
    data[index] = 1;
}

extern "C" __global__ void endless() {
    while (true) {
        asm volatile("");
    }
}

extern "C" __global__ void divide(int* out, int a, int b) {
    *out = a / b;
}

extern "C" __global__ void misaligned(char* bytes) {
    *(volatile int*)(bytes + 1) = 1;
}

extern "C" __global__ void null_write() {
    *(volatile int*)nullptr = 1;
}
