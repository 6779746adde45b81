// Further kernels that `scripts/compare-pocl` runs, in CUDA C++: arithmetic of integers and bits, and atomic additions of floats.
// integers.cl has the same in OpenCL C. integers.ptx is made of this file by scripts/compile-kernels.
// arch: compute_80

// The nearest of 64 codes of 64 bits, by the number of bits that differ.
extern "C" __global__ void nearest_code(unsigned* out, const unsigned long long* codes, const unsigned long long* in, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned long long word = in[i];
    unsigned best = 0, least = 65;
    for (unsigned k = 0; k < 64; ++k) {
        unsigned differ = __popcll(word ^ codes[k]);
        if (differ < least) { least = differ; best = k; }
    }
    out[i] = best << 8 | least;
}

// The greatest common divisor of pairs.
extern "C" __global__ void common_divisors(unsigned* out, const unsigned* in, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned a = in[2 * i], b = in[2 * i + 1];
    while (b) { unsigned rest = a % b; a = b; b = rest; }
    out[i] = a;
}

// Exchanges the axes of a volume, of which each thread finds its place by divisions.
extern "C" __global__ void exchange_axes(float* out, const float* in, unsigned nx, unsigned ny, unsigned nz) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= nx * ny * nz) return;
    unsigned z = i % nz, y = i / nz % ny, x = i / nz / ny;
    out[i] = in[(z * ny + y) * nx + x];
}

// The sum of the digits of numbers in different bases.
extern "C" __global__ void digit_sums(unsigned* out, const unsigned* in, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned sum = 0, base = 2 + (i & 15);
    for (unsigned v = in[i]; v; v /= base) sum += v % base;
    out[i] = sum;
}

// The weights of 64 bins, in a block and then in all.
extern "C" __global__ void weigh_bins(float* bins, const unsigned* keys, const float* weights) {
    __shared__ float own[64];
    unsigned t = threadIdx.x, i = blockIdx.x * 1024 + t;
    if (t < 64) own[t] = 0;
    __syncthreads();
    for (unsigned k = 0; k < 4; ++k) atomicAdd(&own[keys[i + 256 * k] & 63], weights[i + 256 * k]);
    __syncthreads();
    if (t < 64) atomicAdd(&bins[t], own[t]);
}

// The lengths of numbers in a code whose length grows with their logarithm, and the place of their lowest bit.
extern "C" __global__ void code_lengths(unsigned* out, const unsigned* in, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned v = in[i] >> (i & 31), length = 2 * (32 - __clz(v | 1)) - 1;
    out[i] = length << 16 | __ffs(v) << 8 | __popc(v);
}

// A hash of products of 128 bits.
extern "C" __global__ void fold_products(unsigned long long* out, const unsigned long long* in, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned long long h = in[i];
    for (unsigned k = 0; k < 8; ++k) {
        unsigned long long a = h ^ 0xa0761d6478bd642full, b = (h << 29 | h >> 35) ^ 0xe7037ed1a0b428dbull + k;
        h = a * b ^ __umul64hi(a, b);
    }
    out[i] = h;
}

// How many bits of a set lie before each place.
extern "C" __global__ void ranks(unsigned* out, const unsigned* words, const unsigned* places, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned place = places[i] & 0x1ffff, first = place >> 5 & ~7u, count = 0;
    for (unsigned k = 0; k < 8; ++k) {
        unsigned start = (first + k) * 32, inside = place > start ? min(place - start, 32u) : 0;
        unsigned mask = inside == 32 ? 0xffffffffu : (1u << inside) - 1;
        count += __popc(words[first + k] & mask);
    }
    out[i] = count;
}
