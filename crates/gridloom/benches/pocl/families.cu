// Further kernels that `scripts/compare-pocl` runs, in CUDA C++: other members of the same families, written after the code
// generator. families.cl has the same in OpenCL C. families.ptx is made of this file by scripts/compile-kernels.
// arch: compute_80
#include <cuda_bf16.h>
#include <cuda_fp16.h>

// A scan of each block by shuffles: in each warp, then over the sums of the warps.
extern "C" __global__ void warp_scan(int* out, const int* in) {
    __shared__ int sums[8];
    unsigned t = threadIdx.x, i = blockIdx.x * 256 + t, lane = t & 31, warp = t >> 5;
    int v = in[i];
    for (int o = 1; o < 32; o <<= 1) {
        int below = __shfl_up_sync(0xffffffffu, v, o);
        if (lane >= o) v += below;
    }
    if (lane == 31) sums[warp] = v;
    __syncthreads();
    int before = 0;
    for (unsigned w = 0; w < warp; ++w) before += sums[w];
    out[i] = v + before;
}

// The smallest, the largest, the sum and the bits of each block, by `redux`.
extern "C" __global__ void block_redux(unsigned* out, const unsigned* in) {
    __shared__ unsigned parts[4][8];
    unsigned t = threadIdx.x, v = in[blockIdx.x * 256 + t] >> 8;
    unsigned low = __reduce_min_sync(0xffffffffu, v), high = __reduce_max_sync(0xffffffffu, v);
    unsigned sum = __reduce_add_sync(0xffffffffu, v), bits = __reduce_xor_sync(0xffffffffu, v);
    if ((t & 31) == 0) {
        parts[0][t >> 5] = low; parts[1][t >> 5] = high; parts[2][t >> 5] = sum; parts[3][t >> 5] = bits;
    }
    __syncthreads();
    if (t == 0) {
        for (int w = 1; w < 8; ++w) {
            low = min(low, parts[0][w]); high = max(high, parts[1][w]); sum += parts[2][w]; bits ^= parts[3][w];
        }
        out[4 * blockIdx.x] = low; out[4 * blockIdx.x + 1] = high; out[4 * blockIdx.x + 2] = sum; out[4 * blockIdx.x + 3] = bits;
    }
}

// Counts keys: threads of a warp with the same key add once, by their first thread.
extern "C" __global__ void match_count(unsigned* counts, const unsigned* keys) {
    unsigned i = blockIdx.x * 256 + threadIdx.x, key = keys[i] & 63;
    unsigned same = __match_any_sync(0xffffffffu, key);
    if ((threadIdx.x & 31) == __ffs(same) - 1) atomicAdd(&counts[key], __popc(same));
}

// Decodes 16 numbers of one to five bytes each, seven bits a byte.
extern "C" __global__ void decode_numbers(unsigned* out, const unsigned char* bytes, const unsigned* starts, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned at = starts[i], sum = 0;
    for (int k = 0; k < 16; ++k) {
        unsigned value = 0, shift = 0;
        while (true) {
            unsigned byte = bytes[at++];
            value |= (byte & 127) << shift;
            if (byte < 128 || shift == 28) break;
            shift += 7;
        }
        sum = sum * 31 + value;
    }
    out[i] = sum;
}

// The mean of 27 neighbours; those outside the volume are left out.
extern "C" __global__ void mean27(float* out, const float* in, int nx, int ny, int nz) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, z = blockIdx.z;
    if (x >= nx || y >= ny) return;
    float sum = 0;
    int count = 0;
    for (int dz = -1; dz <= 1; ++dz)
        for (int dy = -1; dy <= 1; ++dy)
            for (int dx = -1; dx <= 1; ++dx) {
                int u = x + dx, v = y + dy, w = z + dz;
                if (u >= 0 && v >= 0 && w >= 0 && u < nx && v < ny && w < nz) {
                    sum += in[(w * ny + v) * nx + u];
                    ++count;
                }
            }
    out[(z * ny + y) * nx + x] = sum / count;
}

// A binomial filter of seven bytes, across and then down, through shared memory.
extern "C" __global__ void separable(unsigned char* out, const unsigned char* in, int width, int height) {
    __shared__ unsigned char tile[22][40];
    __shared__ unsigned short across[22][32];
    const int weights[7] = {1, 6, 15, 20, 15, 6, 1};
    int tx = threadIdx.x, ty = threadIdx.y, x0 = blockIdx.x * 32 - 3, y0 = blockIdx.y * 16 - 3;
    for (int y = ty; y < 22; y += 16)
        for (int x = tx; x < 38; x += 32)
            tile[y][x] = in[min(max(y0 + y, 0), height - 1) * width + min(max(x0 + x, 0), width - 1)];
    __syncthreads();
    for (int y = ty; y < 22; y += 16) {
        int sum = 0;
#pragma unroll
        for (int k = 0; k < 7; ++k) sum += weights[k] * tile[y][tx + k];
        across[y][tx] = (unsigned short)sum;
    }
    __syncthreads();
    int sum = 0;
#pragma unroll
    for (int k = 0; k < 7; ++k) sum += weights[k] * across[ty + k][tx];
    out[(blockIdx.y * 16 + ty) * width + blockIdx.x * 32 + tx] = (unsigned char)((sum + 2048) >> 12);
}

// Each warp sorts 32 numbers in registers.
extern "C" __global__ void warp_sort(unsigned* data) {
    unsigned i = blockIdx.x * 256 + threadIdx.x, lane = threadIdx.x & 31, v = data[i] ^ (blockIdx.x & 3);
    for (unsigned k = 2; k <= 32; k <<= 1)
        for (unsigned j = k >> 1; j > 0; j >>= 1) {
            unsigned other = __shfl_xor_sync(0xffffffffu, v, j);
            bool up = (lane & k) == 0, lower = (lane & j) == 0;
            v = up == lower ? min(v, other) : max(v, other);
        }
    data[i] = v;
}

// Solves five equations for each thread in registers, by Gauss-Jordan.
extern "C" __global__ void solve5(float* out, const float* in, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float m[5][6];
#pragma unroll
    for (int r = 0; r < 5; ++r)
#pragma unroll
        for (int c = 0; c < 6; ++c) m[r][c] = in[(r * 6 + c) * n + i] + (r == c ? 5.0f : 0.0f);
#pragma unroll
    for (int k = 0; k < 5; ++k) {
        float by = 1.0f / m[k][k];
#pragma unroll
        for (int c = k; c < 6; ++c) m[k][c] *= by;
#pragma unroll
        for (int r = 0; r < 5; ++r) {
            if (r == k) continue;
            float f = m[r][k];
#pragma unroll
            for (int c = k; c < 6; ++c) m[r][c] -= f * m[k][c];
        }
    }
#pragma unroll
    for (int r = 0; r < 5; ++r) out[r * n + i] = m[r][5];
}

// Steps until one is reached, in 64 bits.
extern "C" __global__ void collatz(unsigned* out, unsigned first, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned long long v = first + i;
    unsigned steps = 0;
    while (v != 1 && steps < 300) {
        v = v & 1 ? 3 * v + 1 : v >> 1;
        ++steps;
    }
    out[i] = steps;
}

// The item of 16 with the largest priority, by a hash and a logarithm.
extern "C" __global__ void sample(unsigned* out, const float* weights, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float best = -1e30f;
    unsigned chosen = 0;
    for (unsigned k = 0; k < 16; ++k) {
        unsigned h = (i * 16 + k) * 2654435761u;
        h ^= h >> 15; h *= 2246822519u; h ^= h >> 13;
        float u = ((h >> 9) + 0.5f) * (1.0f / 8388608.0f), priority = logf(u) / (weights[k * n + i] + 0.01f);
        if (priority > best) { best = priority; chosen = k; }
    }
    out[i] = chosen;
}

// Halves in, sums of products in single precision, halves and shorter floats out.
extern "C" __global__ void halves(__half* out, unsigned short* brief, const __half* x, const __half* y, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = 0.75f * __half2float(x[i]) + __half2float(y[i]) * __half2float(y[i]);
    out[i] = __float2half_rn(v);
    brief[i] = __bfloat16_as_ushort(__float2bfloat16_rn(v));
}

// Powers modulo an odd number of 64 bits, by Montgomery's products.
extern "C" __global__ void powers(unsigned long long* out, const unsigned* in, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const unsigned long long m = 0xffffffffffffffc5ull;
    unsigned long long inverse = m;
    for (int k = 0; k < 5; ++k) inverse *= 2 - m * inverse;
    unsigned long long base = in[i], value = 59;
    for (unsigned e = in[i] >> 16 | 1; e; e >>= 1) {
        unsigned long long low, q;
        if (e & 1) {
            low = value * base; q = low * inverse;
            unsigned long long high = __umul64hi(value, base), less = __umul64hi(q, m);
            value = high - less + (high < less ? m : 0);
        }
        low = base * base; q = low * inverse;
        unsigned long long high = __umul64hi(base, base), less = __umul64hi(q, m);
        base = high - less + (high < less ? m : 0);
    }
    out[i] = value;
}

// Functions of double precision.
extern "C" __global__ void functions(double* out, const double* in, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double v = in[i];
    out[i] = exp(-v) * sin(3.0 * v) + log(v + 1.0) / sqrt(v + 2.0);
}

// The longest run of ones in every eight words: loops that threads leave by themselves.
extern "C" __global__ void longest_runs(unsigned* out, const unsigned* in, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned best = 0;
    for (unsigned k = 0; k < 8; ++k) {
        unsigned word = in[k * n + i], length = 0;
        while (word) {
            word &= word << 1;
            if (++length > 12) break;
        }
        best = max(best, length);
    }
    out[i] = best;
}
