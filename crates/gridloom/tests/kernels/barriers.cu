// Barriers: of a block, of parts of it, of the whole grid.
//
// block_votes(out, x)            x int; each thread t of a block (number in the grid g): out[3g..3g+3] (int) = over the block's x > 0: count, and, or
//     (and, or as 0 or not 0, stored as 0 or 1)
// grid_barrier(data, state, rounds)   all blocks resident at once; state: 2 unsigned, 0 before; data: T unsigned, T = all threads.
//     In each round every thread replaces data[g] by data[g] + data[(g + 1) % T], all reads before all writes.
// named_barriers(out)            one block of 64: warp 0 produces out[0..32] = 3 * lane into shared memory, warp 1 waits on barrier 1
//     (bar.arrive and bar.sync of 64) and writes out[lane] = it + 1 (int, 32 of them)
// early_exit(out)                one block of 128: threads with an odd number return at once; the rest meet at a barrier,
//     then thread 0 writes *out = the number of the others that added 1 in shared memory before it: 64
// last_block(out, partial, counter, x, n)   block 128, any grid; partial: gridDim.x unsigned, counter 0 before: *out = sum of x[i], wrapping,
//     made by the block that finishes last; resets the counter to 0

extern "C" __global__ void block_votes(int* out, const int* x) {
    unsigned g = blockIdx.x * blockDim.x + threadIdx.x;
    bool positive = x[g] > 0;
    out[3 * g] = __syncthreads_count(positive);
    out[3 * g + 1] = __syncthreads_and(positive) != 0;
    out[3 * g + 2] = __syncthreads_or(positive) != 0;
}

__device__ void wait_for_grid(unsigned* state) {
    __syncthreads();
    if (threadIdx.x == 0) {
        volatile unsigned* generation = state + 1;
        unsigned now = *generation;
        __threadfence();
        if (atomicAdd(&state[0], 1u) == gridDim.x - 1) {
            state[0] = 0;
            __threadfence();
            *generation = now + 1;
        } else {
            while (*generation == now) {
            }
        }
        __threadfence();
    }
    __syncthreads();
}

extern "C" __global__ void grid_barrier(unsigned* data, unsigned* state, unsigned rounds) {
    unsigned g = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned all = gridDim.x * blockDim.x;
    volatile unsigned* shared = data;
    for (unsigned round = 0; round < rounds; ++round) {
        unsigned next = shared[g] + shared[(g + 1) % all];
        wait_for_grid(state);
        shared[g] = next;
        wait_for_grid(state);
    }
}

extern "C" __global__ void named_barriers(int* out) {
    __shared__ volatile int mail[32];
    unsigned lane = threadIdx.x % 32;
    if (threadIdx.x < 32) {
        mail[lane] = 3 * lane;
        __threadfence_block();
        asm volatile("bar.arrive 1, 64;" ::: "memory");
    } else {
        asm volatile("bar.sync 1, 64;" ::: "memory");
        out[lane] = mail[lane] + 1;
    }
}

extern "C" __global__ void early_exit(unsigned* out) {
    __shared__ unsigned count;
    if (threadIdx.x == 0) {
        count = 0;
    }
    __syncthreads();
    if (threadIdx.x % 2 == 1) {
        return;
    }
    atomicAdd(&count, 1u);
    __syncthreads();
    if (threadIdx.x == 0) {
        *out = count;
    }
}

extern "C" __global__ void last_block(
    unsigned* out, unsigned* partial, unsigned* counter, const unsigned* x, unsigned n
) {
    __shared__ unsigned s[128];
    __shared__ bool last;
    unsigned t = threadIdx.x;
    unsigned sum = 0;
    for (unsigned i = blockIdx.x * 128 + t; i < n; i += gridDim.x * 128) {
        sum += x[i];
    }
    s[t] = sum;
    __syncthreads();
    for (unsigned k = 64; k > 0; k /= 2) {
        if (t < k) {
            s[t] += s[t + k];
        }
        __syncthreads();
    }
    if (t == 0) {
        partial[blockIdx.x] = s[0];
        __threadfence();
        last = atomicInc(counter, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && t == 0) {
        unsigned total = 0;
        for (unsigned b = 0; b < gridDim.x; ++b) {
            total += ((volatile unsigned*)partial)[b];
        }
        *out = total;
    }
}
