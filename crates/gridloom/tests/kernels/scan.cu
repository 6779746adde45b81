// Inclusive prefix sums of wrapping 32-bit integers.
//
// scan_block(out, sums, in, n)      block 256, grid ceil(n / 256): out[i] = sum of in over the block up to and including i;
//     sums[b] = the total of block b (elements past n count as 0).
// scan_add(out, sums, n)            block 256, the same grid: out[i] += sums[b - 1] for blocks b > 0. With `sums` scanned in
//     between (by scan_block with one block), the two make a whole scan of up to 65,536 elements.
// scan_chained(out, carry, in, n)   block 256, grid ceil(n / 256): the whole scan in one launch; block b spins until block b-1
//     has published its prefix. carry: 2 * gridDim.x + 1 unsigned, all 0 before: [0] hands out block numbers, then a
//     (value, ready flag) pair for each. Needs blocks that were started to keep making progress, no more.

__device__ unsigned scan256(unsigned value, unsigned* warps) {
    unsigned lane = threadIdx.x % 32;
    unsigned warp = threadIdx.x / 32;
    for (unsigned offset = 1; offset < 32; offset *= 2) {
        unsigned other = __shfl_up_sync(0xffffffffu, value, offset);
        if (lane >= offset) {
            value += other;
        }
    }
    if (lane == 31) {
        warps[warp] = value;
    }
    __syncthreads();
    if (warp == 0) {
        unsigned total = lane < 8 ? warps[lane] : 0;
        for (unsigned offset = 1; offset < 8; offset *= 2) {
            unsigned other = __shfl_up_sync(0xffffffffu, total, offset);
            if (lane >= offset) {
                total += other;
            }
        }
        if (lane < 8) {
            warps[lane] = total;
        }
    }
    __syncthreads();
    return warp == 0 ? value : value + warps[warp - 1];
}

extern "C" __global__ void scan_block(unsigned* out, unsigned* sums, const unsigned* in, unsigned n) {
    __shared__ unsigned warps[8];
    unsigned i = blockIdx.x * 256 + threadIdx.x;
    unsigned value = scan256(i < n ? in[i] : 0, warps);
    if (i < n) {
        out[i] = value;
    }
    if (threadIdx.x == 255) {
        sums[blockIdx.x] = value;
    }
}

extern "C" __global__ void scan_add(unsigned* out, const unsigned* sums, unsigned n) {
    unsigned i = blockIdx.x * 256 + threadIdx.x;
    if (blockIdx.x > 0 && i < n) {
        out[i] += sums[blockIdx.x - 1];
    }
}

extern "C" __global__ void scan_chained(unsigned* out, unsigned* carry, const unsigned* in, unsigned n) {
    __shared__ unsigned warps[8];
    __shared__ unsigned block;
    __shared__ unsigned before;
    if (threadIdx.x == 0) {
        // Numbers are handed out in order of arrival, so that a block only ever waits for one that has started.
        block = atomicAdd(&carry[0], 1u);
    }
    __syncthreads();
    unsigned i = block * 256 + threadIdx.x;
    unsigned value = scan256(i < n ? in[i] : 0, warps);
    if (threadIdx.x == 255) {
        volatile unsigned* mine = carry + 1 + 2 * block;
        unsigned prefix = 0;
        if (block > 0) {
            volatile unsigned* theirs = carry + 1 + 2 * (block - 1);
            while (theirs[1] == 0) {
            }
            __threadfence();
            prefix = theirs[0];
        }
        mine[0] = prefix + value;
        __threadfence();
        mine[1] = 1;
        before = prefix;
    }
    __syncthreads();
    if (i < n) {
        out[i] = before + value;
    }
}
