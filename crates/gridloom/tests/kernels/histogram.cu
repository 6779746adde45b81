// Counting with atomics.
//
// histogram256(bins, data, n)           bins[v] += how often byte v occurs in data[0..n]; any launch size; counts in shared memory
//     first, then one global atomic per block and non-empty bin. bins: 256 unsigned, start as the caller likes.
// histogram_global(bins, data, n, m)    bins[data[i] % m] += 1 for each unsigned data[i]; global atomics only; any launch size
// histogram_weighted(bins, keys, weights, n)  bins[keys[i]] += weights[i] with atomicAdd on float; any launch size.
//     Exact in any order when the weights are small integers.

extern "C" __global__ void histogram256(unsigned* bins, const unsigned char* data, unsigned n) {
    __shared__ unsigned local[256];
    for (unsigned i = threadIdx.x; i < 256; i += blockDim.x) {
        local[i] = 0;
    }
    __syncthreads();
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        atomicAdd(&local[data[i]], 1u);
    }
    __syncthreads();
    for (unsigned i = threadIdx.x; i < 256; i += blockDim.x) {
        if (local[i] != 0) {
            atomicAdd(&bins[i], local[i]);
        }
    }
}

extern "C" __global__ void histogram_global(unsigned* bins, const unsigned* data, unsigned n, unsigned m) {
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        atomicAdd(&bins[data[i] % m], 1u);
    }
}

extern "C" __global__ void histogram_weighted(float* bins, const unsigned short* keys, const float* weights, unsigned n) {
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        atomicAdd(&bins[keys[i]], weights[i]);
    }
}
