// arch: compute_75
//
// Kernels of several blocks that decide about the next pass of a loop in ways that need care: many
// blocks set the condition to different values in an order, or nobody sets it in some passes.

extern "C" __device__ __cudart_builtin__ void cudaGraphSetConditional(unsigned long long handle, unsigned int value);

typedef unsigned int u32;
typedef unsigned long long u64;

#define KERNEL extern "C" __global__ void
#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)

__device__ bool is_last_block(u32 *arrivals)
{
    __shared__ bool is_last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0)
        is_last = atomicInc(arrivals, gridDim.x - 1) == gridDim.x - 1;
    __syncthreads();
    return is_last;
}

// Every block goes on, and the last one to arrive stops in the last pass.
KERNEL last_block_stops(u64 again, u32 *data, u32 *left, u32 *arrivals)
{
    data[INDEX] = data[INDEX] * 3 + 1;
    if (threadIdx.x == 0) {
        cudaGraphSetConditional(again, 1);
        __threadfence();
    }
    if (is_last_block(arrivals) && threadIdx.x == 0) {
        *left -= 1;
        if (*left == 0)
            cudaGraphSetConditional(again, 0);
    }
}

// Every block stops, and the last one to arrive goes on except in the last pass.
KERNEL last_block_goes_on(u64 again, u32 *data, u32 *left, u32 *arrivals)
{
    data[INDEX] = data[INDEX] * 3 + 1;
    if (threadIdx.x == 0) {
        cudaGraphSetConditional(again, 0);
        __threadfence();
    }
    if (is_last_block(arrivals) && threadIdx.x == 0) {
        *left -= 1;
        if (*left != 0)
            cudaGraphSetConditional(again, 7000 + *left);
    }
}

// Nobody sets it but in the last pass.
KERNEL only_the_last_pass_stops(u64 again, u32 *data, u32 *left, u32 *arrivals)
{
    data[INDEX] = data[INDEX] * 3 + 1;
    if (is_last_block(arrivals) && threadIdx.x == 0) {
        *left -= 1;
        if (*left == 0)
            cudaGraphSetConditional(again, 0);
    }
}

// All blocks agree, and each sets it several times.
KERNEL all_blocks_agree(u64 again, u32 *data, u32 *left, u32 *arrivals)
{
    data[INDEX] = data[INDEX] * 3 + 1;
    u32 now = *left;
    if (threadIdx.x == 0) {
        cudaGraphSetConditional(again, now & 1);
        cudaGraphSetConditional(again, (now - 1) << 16);
    }
    if (is_last_block(arrivals) && threadIdx.x == 0)
        *left = now - 1;
}

// A thread of another warp decides, in a block that is not the first.
KERNEL another_warp_decides(u64 again, u32 *data, u32 *left, u32 *arrivals)
{
    data[INDEX] = data[INDEX] * 3 + 1;
    if (blockIdx.x == gridDim.x - 1 && threadIdx.x == 40) {
        *left -= 1;
        cudaGraphSetConditional(again, *left);
    }
}
