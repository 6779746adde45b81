// Sums, minima and maxima over blocks: warp shuffles, then shared memory.
//
// Blocks of 256 threads, all of them launched (blockDim.x must be 256).
//
// reduce_sum_f32(partial, x, n)   partial[b] = sum over block b's elements; element i belongs to block (i / 256) % gridDim.x.
//     Order of additions: thread t first adds its own elements, from low index to high, starting from 0; then lanes combine as
//     v += shfl_down(v, 16), 8, 4, 2, 1; then warp 0 combines the eight warp sums as v += shfl_down(v, 4), 2, 1. No other rounding.
// reduce_sum_s32(partial, x, n)   the same with wrapping 32-bit integers
// reduce_minmax(result, x, n)     result[0] = min, result[1] = max over all x[i]; any grid; result must start as {INT_MAX, INT_MIN}
// reduce_tree(partial, x, n)      one element to a thread, tree in shared memory: s[t] += s[t + k] for k = 128, 64, ..., 1;
//     partial[b] = s[0]; elements past n count as 0. Float; the order is exact.

template <typename T>
__device__ T warp_sum(T value, int width) {
    for (int offset = width / 2; offset > 0; offset /= 2) {
        value += __shfl_down_sync(0xffffffffu, value, offset);
    }
    return value;
}

template <typename T>
__device__ void block_sum(T* partial, const T* x, unsigned n) {
    __shared__ T warps[8];
    T value = 0;
    for (unsigned i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) {
        value += x[i];
    }
    value = warp_sum(value, 32);
    unsigned lane = threadIdx.x % 32;
    unsigned warp = threadIdx.x / 32;
    if (lane == 0) {
        warps[warp] = value;
    }
    __syncthreads();
    if (warp == 0) {
        value = lane < 8 ? warps[lane] : T(0);
        value = warp_sum(value, 8);
        if (lane == 0) {
            partial[blockIdx.x] = value;
        }
    }
}

extern "C" __global__ void reduce_sum_f32(float* partial, const float* x, unsigned n) {
    block_sum(partial, x, n);
}

extern "C" __global__ void reduce_sum_s32(int* partial, const int* x, unsigned n) {
    block_sum(partial, x, n);
}

extern "C" __global__ void reduce_minmax(int* result, const int* x, unsigned n) {
    int low = 0x7fffffff;
    int high = -0x7fffffff - 1;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        low = min(low, x[i]);
        high = max(high, x[i]);
    }
    for (int mask = 16; mask > 0; mask /= 2) {
        low = min(low, __shfl_xor_sync(0xffffffffu, low, mask));
        high = max(high, __shfl_xor_sync(0xffffffffu, high, mask));
    }
    if (threadIdx.x % 32 == 0) {
        atomicMin(&result[0], low);
        atomicMax(&result[1], high);
    }
}

extern "C" __global__ void reduce_tree(float* partial, const float* x, unsigned n) {
    __shared__ float s[256];
    unsigned t = threadIdx.x;
    unsigned i = blockIdx.x * 256 + t;
    s[t] = i < n ? x[i] : 0.0f;
    __syncthreads();
    for (unsigned k = 128; k > 0; k /= 2) {
        if (t < k) {
            s[t] += s[t + k];
        }
        __syncthreads();
    }
    if (t == 0) {
        partial[blockIdx.x] = s[0];
    }
}
