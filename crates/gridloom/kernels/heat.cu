// Heat in a rod: explicit steps of the one-dimensional heat equation, repeated while a counter on the device lasts.
//
// heat_step(next, now, n, alpha)   n threads or more:
//     next[i] = now[i] + alpha * (now[i-1] - 2 * now[i] + now[i+1]) for 0 < i < n-1; the two ends are copied.
//     Each operation is rounded on its own, in the order written: a host reference gives the same bits.
// set_ends(rod, n, left, right)    one thread:
//     rod[0] = left; rod[n-1] = right.
// countdown(handle, left)          one thread:
//     *left -= 1, and the condition behind `handle` becomes 1 while passes are left, else 0.

extern "C" __device__ __cudart_builtin__ void cudaGraphSetConditional(unsigned long long handle, unsigned int value);

extern "C" __global__ void heat_step(float* next, const float* now, unsigned n, float alpha) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) {
        return;
    }
    float here = now[i];
    if (i > 0 && i < n - 1) {
        float bend = __fadd_rn(__fsub_rn(now[i - 1], __fmul_rn(2.0f, here)), now[i + 1]);
        here = __fadd_rn(here, __fmul_rn(alpha, bend));
    }
    next[i] = here;
}

extern "C" __global__ void set_ends(float* rod, unsigned n, float left, float right) {
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        rod[0] = left;
        rod[n - 1] = right;
    }
}

extern "C" __global__ void countdown(unsigned long long handle, int* left) {
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        int remaining = *left - 1;
        *left = remaining;
        cudaGraphSetConditional(handle, remaining > 0);
    }
}
