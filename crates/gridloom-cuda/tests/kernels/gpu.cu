// Kernels for the tests of the CUDA device.
//
// add(data, value, n)              data[i] += value for i < n; n threads or more
// append(log, tag)                 log[0] counts, the tags follow; one thread
// countdown(condition, left)       takes one off *left and sets the condition while something is left; one thread
// set_condition(condition, value)  sets the condition; one thread
// wait_for(flag)                   spins until the word, which the host writes, is not 0; one thread
// sum_shared(out, words)           *out = 0 + 1 + … in that many words of dynamic shared memory; one block
// read_variable(out)               *out = module_variable; one thread
// move_words({to, from, n})         to[i] = from[i] for i < n, all in one structure; n threads or more
// fault(address)                   writes where nothing is; one thread

extern "C" __device__ __cudart_builtin__ void cudaGraphSetConditional(unsigned long long handle, unsigned value);

extern "C" __device__ int module_variable = 7;

extern "C" __global__ void add(int *data, int value, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] += value;
}

extern "C" __global__ void append(unsigned *log, unsigned tag) {
    log[0] += 1;
    log[log[0]] = tag;
}

extern "C" __global__ void countdown(unsigned long long condition, int *left) {
    *left -= 1;
    cudaGraphSetConditional(condition, *left > 0);
}

extern "C" __global__ void set_condition(unsigned long long condition, unsigned value) {
    cudaGraphSetConditional(condition, value);
}

extern "C" __global__ void wait_for(const volatile unsigned *flag) {
    while (*flag == 0) {
    }
}

extern "C" __global__ void sum_shared(unsigned *out, unsigned words) {
    extern __shared__ unsigned shared[];
    for (unsigned i = threadIdx.x; i < words; i += blockDim.x) shared[i] = i;
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned sum = 0;
        for (unsigned i = 0; i < words; i++) sum += shared[i];
        *out = sum;
    }
}

extern "C" __global__ void read_variable(int *out) { *out = module_variable; }

struct Move {
    int *to;
    const int *from;
    unsigned n;
};

extern "C" __global__ void move_words(Move move) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < move.n) move.to[i] = move.from[i];
}

extern "C" __global__ void fault(unsigned long long address) { *(volatile int *)address = 1; }
