// Sorting.
//
// bitonic_block(keys, n)             one block of 512 threads: sorts n <= 1024 unsigned in place, ascending, in shared memory
// bitonic_step(keys, n, k, j)        one compare-exchange step over n = 2^p unsigned; n threads or more.
//     The host runs k = 2, 4, ..., n and for each j = k/2, k/4, ..., 1; after the last the keys ascend.
// radix_pass(out, in, n, shift)      one block of 256 threads, n <= 2048: stable split by the 4-bit digit at `shift`;
//     eight passes with shift = 0, 4, ..., 28 sort unsigned keys.
// insertion_sort(rows, width, count) thread r < count sorts its own row of `width` ints, ascending, in place (divergent loops)

extern "C" __global__ void bitonic_block(unsigned* keys, unsigned n) {
    __shared__ unsigned s[1024];
    #pragma unroll 1
    for (unsigned i = threadIdx.x; i < 1024; i += blockDim.x) {
        s[i] = i < n ? keys[i] : 0xffffffffu;
    }
    #pragma unroll 1
    for (unsigned k = 2; k <= 1024; k *= 2) {
        #pragma unroll 1
        for (unsigned j = k / 2; j > 0; j /= 2) {
            __syncthreads();
            #pragma unroll 1
            for (unsigned p = threadIdx.x; p < 512; p += blockDim.x) {
                unsigned i = 2 * p - (p & (j - 1));
                unsigned a = s[i];
                unsigned b = s[i + j];
                bool ascending = (i & k) == 0;
                if ((a > b) == ascending) {
                    s[i] = b;
                    s[i + j] = a;
                }
            }
        }
    }
    __syncthreads();
    #pragma unroll 1
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x) {
        keys[i] = s[i];
    }
}

extern "C" __global__ void bitonic_step(unsigned* keys, unsigned n, unsigned k, unsigned j) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned partner = i ^ j;
    if (i < n && partner > i) {
        unsigned a = keys[i];
        unsigned b = keys[partner];
        if ((a > b) == ((i & k) == 0)) {
            keys[i] = b;
            keys[partner] = a;
        }
    }
}

extern "C" __global__ void radix_pass(unsigned* out, const unsigned* in, unsigned n, unsigned shift) {
    __shared__ unsigned counts[16][256];
    __shared__ unsigned starts[16];
    unsigned t = threadIdx.x;
    unsigned each = (n + 255) / 256;
    unsigned begin = min(t * each, n);
    unsigned end = min(begin + each, n);
    for (unsigned d = 0; d < 16; ++d) {
        counts[d][t] = 0;
    }
    #pragma unroll 1
    for (unsigned i = begin; i < end; ++i) {
        counts[(in[i] >> shift) & 15][t] += 1;
    }
    __syncthreads();
    if (t < 16) {
        unsigned sum = 0;
        #pragma unroll 4
        for (unsigned j = 0; j < 256; ++j) {
            unsigned count = counts[t][j];
            counts[t][j] = sum;
            sum += count;
        }
        starts[t] = sum;
    }
    __syncthreads();
    if (t == 0) {
        unsigned sum = 0;
        for (unsigned d = 0; d < 16; ++d) {
            unsigned count = starts[d];
            starts[d] = sum;
            sum += count;
        }
    }
    __syncthreads();
    #pragma unroll 1
    for (unsigned i = begin; i < end; ++i) {
        unsigned key = in[i];
        unsigned d = (key >> shift) & 15;
        out[starts[d] + counts[d][t]++] = key;
    }
}

extern "C" __global__ void insertion_sort(int* rows, int width, int count) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= count) {
        return;
    }
    int* row = rows + (long long)r * width;
    for (int i = 1; i < width; ++i) {
        int key = row[i];
        int j = i - 1;
        while (j >= 0 && row[j] > key) {
            row[j + 1] = row[j];
            --j;
        }
        row[j + 1] = key;
    }
}
