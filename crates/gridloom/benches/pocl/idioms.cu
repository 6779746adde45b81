// Further kernels that `scripts/compare-pocl` runs, in CUDA C++: idioms that the code generator was not tuned with.
// idioms.cl has the same in OpenCL C. idioms.ptx is made of this file by scripts/compile-kernels.

// A scan of each block that starts again where a flag is set.
extern "C" __global__ void segmented_scan(float* out, const float* in, const int* heads) {
    __shared__ float sums[256];
    __shared__ int flags[256];
    unsigned t = threadIdx.x, i = blockIdx.x * 256 + t;
    sums[t] = in[i];
    flags[t] = heads[i];
    __syncthreads();
    for (unsigned o = 1; o < 256; o <<= 1) {
        float v = 0;
        int f = 0;
        if (t >= o) {
            v = sums[t - o];
            f = flags[t - o];
        }
        __syncthreads();
        if (t >= o) {
            if (!flags[t]) sums[t] += v;
            flags[t] |= f;
        }
        __syncthreads();
    }
    out[i] = sums[t];
}

// Batcher's odd-even merge sort of 512 integers in shared memory.
extern "C" __global__ void odd_even_sort(int* data) {
    __shared__ int s[512];
    int t = threadIdx.x;
    int* d = data + blockIdx.x * 512;
    s[t] = d[t] ^ (int)(blockIdx.x & 3);
    s[t + 256] = d[t + 256];
    for (int size = 2; size <= 512; size <<= 1) {
        int stride = size / 2, offset = t & (stride - 1);
        __syncthreads();
        int p = 2 * t - (t & (stride - 1));
        int a = s[p], b = s[p + stride];
        if (a > b) { s[p] = b; s[p + stride] = a; }
        for (stride >>= 1; stride > 0; stride >>= 1) {
            __syncthreads();
            int q = 2 * t - (t & (stride - 1));
            if (offset >= stride) {
                int c = s[q - stride], e = s[q];
                if (c > e) { s[q - stride] = e; s[q] = c; }
            }
        }
    }
    __syncthreads();
    d[t] = s[t];
    d[t + 256] = s[t + 256];
}

// Heat in three dimensions: neighbours outside the volume are the point itself.
extern "C" __global__ void heat3d(float* out, const float* in, int nx, int ny, int nz) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, z = blockIdx.z;
    if (x >= nx || y >= ny) return;
    int i = (z * ny + y) * nx + x;
    float c = in[i];
    float w = x > 0 ? in[i - 1] : c, e = x < nx - 1 ? in[i + 1] : c;
    float n = y > 0 ? in[i - nx] : c, s = y < ny - 1 ? in[i + nx] : c;
    float d = z > 0 ? in[i - nx * ny] : c, u = z < nz - 1 ? in[i + nx * ny] : c;
    out[i] = c + 0.1f * (w + e + n + s + d + u - 6.0f * c);
}

// Sparse times dense, one warp for each row.
extern "C" __global__ void spmv_warp(float* y, const int* rows, const int* columns, const float* values, const float* x, unsigned n) {
    unsigned row = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, lane = threadIdx.x & 31;
    if (row >= n) return;
    float sum = 0;
    for (int k = rows[row] + lane; k < rows[row + 1]; k += 32) sum += values[k] * x[columns[k]];
    for (int o = 16; o > 0; o >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, o);
    if (lane == 0) y[row] = sum;
}

// A picture of bytes: brightness and colour differences of red, green and blue.
extern "C" __global__ void yuv(unsigned char* y, unsigned char* u, unsigned char* v, const unsigned char* r, const unsigned char* g,
                               const unsigned char* b, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int cr = r[i], cg = g[i], cb = b[i];
    y[i] = (unsigned char)(((66 * cr + 129 * cg + 25 * cb + 128) >> 8) + 16);
    u[i] = (unsigned char)(((-38 * cr - 74 * cg + 112 * cb + 128) >> 8) + 128);
    v[i] = (unsigned char)(((112 * cr - 94 * cg - 18 * cb + 128) >> 8) + 128);
}

// The factors of a matrix of four by four for each thread, in registers.
extern "C" __global__ void lu4(float4* out, const float4* in, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float m[4][4];
#pragma unroll
    for (int row = 0; row < 4; ++row) {
        float4 r = in[4 * i + row];
        m[row][0] = r.x; m[row][1] = r.y; m[row][2] = r.z; m[row][3] = r.w;
        m[row][row] += 4.0f;
    }
#pragma unroll
    for (int k = 0; k < 3; ++k)
#pragma unroll
        for (int row = k + 1; row < 4; ++row) {
            m[row][k] = m[row][k] / m[k][k];
#pragma unroll
            for (int column = k + 1; column < 4; ++column) m[row][column] -= m[row][k] * m[k][column];
        }
#pragma unroll
    for (int row = 0; row < 4; ++row) out[4 * i + row] = make_float4(m[row][0], m[row][1], m[row][2], m[row][3]);
}

// The mean of five by five bytes, from a tile in shared memory with clamped borders.
extern "C" __global__ void box_blur(unsigned char* out, const unsigned char* in, int width, int height) {
    __shared__ unsigned char tile[20][36];
    int x0 = blockIdx.x * 32 - 2, y0 = blockIdx.y * 16 - 2;
    for (int k = threadIdx.y * 32 + threadIdx.x; k < 20 * 36; k += 512) {
        int y = k / 36, x = k % 36;
        int gx = min(max(x0 + x, 0), width - 1), gy = min(max(y0 + y, 0), height - 1);
        tile[y][x] = in[gy * width + gx];
    }
    __syncthreads();
    int sum = 0;
    for (int dy = 0; dy < 5; ++dy)
        for (int dx = 0; dx < 5; ++dx) sum += tile[threadIdx.y + dy][threadIdx.x + dx];
    out[(blockIdx.y * 16 + threadIdx.y) * width + blockIdx.x * 32 + threadIdx.x] = (unsigned char)(sum / 25);
}

// Where the largest value of each block is: shuffles in a warp, then one warp over the warps.
extern "C" __global__ void argmax(int* out, const float* in) {
    __shared__ float values[8];
    __shared__ int places[8];
    unsigned t = threadIdx.x;
    float best = in[blockIdx.x * 256 + t];
    int place = (int)t;
    for (int o = 16; o > 0; o >>= 1) {
        float other = __shfl_down_sync(0xffffffffu, best, o);
        int there = __shfl_down_sync(0xffffffffu, place, o);
        if (other > best || (other == best && there < place)) { best = other; place = there; }
    }
    if ((t & 31) == 0) { values[t >> 5] = best; places[t >> 5] = place; }
    __syncthreads();
    if (t == 0) {
        for (int w = 1; w < 8; ++w)
            if (values[w] > best) { best = values[w]; place = places[w]; }
        out[blockIdx.x] = place;
    }
}

// A histogram of bytes that are read four at a time.
extern "C" __global__ void byte_histogram(unsigned* bins, const unsigned* in, unsigned n) {
    __shared__ unsigned counts[256];
    counts[threadIdx.x] = 0;
    __syncthreads();
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) {
        unsigned word = in[i];
        atomicAdd(&counts[word & 255], 1u);
        atomicAdd(&counts[word >> 8 & 255], 1u);
        atomicAdd(&counts[word >> 16 & 255], 1u);
        atomicAdd(&counts[word >> 24], 1u);
    }
    __syncthreads();
    atomicAdd(&bins[threadIdx.x], counts[threadIdx.x]);
}

// The starts of runs of equal values in every 32, packed to the front: ballots and population counts.
extern "C" __global__ void run_starts(int* out, unsigned* lengths, const int* in) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31;
    int value = in[i];
    int before = __shfl_up_sync(0xffffffffu, value, 1);
    bool head = lane == 0 || before != value;
    unsigned heads = __ballot_sync(0xffffffffu, head);
    if (head) out[(i & ~31u) + __popc(heads & ((1u << lane) - 1))] = value;
    if (lane == 0) lengths[i >> 5] = __popc(heads);
}
