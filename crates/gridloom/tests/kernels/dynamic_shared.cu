// Shared memory whose size the launch gives.
//
// reverse(data)                one block of n threads, 4 * n shared bytes: reverses data[0..n] in place (int)
// two_arrays(out, in, n)       one block of n threads, 12 * n shared bytes, split into n doubles and n ints:
//     out[i] = in[n-1-i] * 0.5 + i (double), with in int
// shared_size(out)             one thread: *out = the dynamic shared bytes of this launch (unsigned)
// static_and_dynamic(out, in)  one block of 64 threads, 256 shared bytes beside a static array: out[i] = in[63-i] + in[i ^ 1] (int)

extern "C" __global__ void reverse(int* data) {
    extern __shared__ int words[];
    unsigned t = threadIdx.x;
    words[t] = data[t];
    __syncthreads();
    data[t] = words[blockDim.x - 1 - t];
}

extern "C" __global__ void two_arrays(double* out, const int* in, int n) {
    extern __shared__ double doubles[];
    int* integers = (int*)(doubles + n);
    int t = threadIdx.x;
    doubles[t] = in[t] * 0.5;
    integers[n - 1 - t] = n - 1 - t;
    __syncthreads();
    out[t] = doubles[n - 1 - t] + integers[t];
}

extern "C" __global__ void shared_size(unsigned* out) {
    unsigned size;
    asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(size));
    *out = size;
}

extern "C" __global__ void static_and_dynamic(int* out, const int* in) {
    __shared__ int fixed[64];
    extern __shared__ int flexible[];
    unsigned t = threadIdx.x;
    fixed[t] = in[t];
    flexible[63 - t] = in[t];
    __syncthreads();
    out[t] = flexible[t] + fixed[t ^ 1];
}
