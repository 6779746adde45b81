// The kernels that `scripts/compare-pocl` runs, in CUDA C++. kernels.cl has the same in OpenCL C.
// kernels.ptx is made of this file by scripts/compile-kernels.

extern "C" __global__ void saxpy(float* y, const float* x, float a, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}

extern "C" __global__ void daxpy(double* y, const double* x, float a, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = (double)a * x[i] + y[i];
}

// Divergent iteration: each thread leaves the loop when its point has escaped.
extern "C" __global__ void mandelbrot(int* out, unsigned width, unsigned height, unsigned limit) {
    unsigned px = blockIdx.x * blockDim.x + threadIdx.x, py = blockIdx.y * blockDim.y + threadIdx.y;
    if (px >= width || py >= height) return;
    float cx = -2.0f + 3.0f * px / width, cy = -1.5f + 3.0f * py / height, x = 0, y = 0;
    unsigned k = 0;
    while (k < limit && x * x + y * y < 4.0f) {
        float t = x * x - y * y + cx;
        y = 2.0f * x * y + cy;
        x = t;
        ++k;
    }
    out[py * width + px] = (int)k;
}

extern "C" __global__ void matmul(float* c, const float* a, const float* b, unsigned n) {
    unsigned col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (col >= n || row >= n) return;
    float sum = 0;
    for (unsigned k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + col];
    c[row * n + col] = sum;
}

extern "C" __global__ void matmul_tiled(float* c, const float* a, const float* b, unsigned n) {
    __shared__ float ta[16][16], tb[16][16];
    unsigned tx = threadIdx.x, ty = threadIdx.y, col = blockIdx.x * 16 + tx, row = blockIdx.y * 16 + ty;
    float sum = 0;
    for (unsigned t = 0; t < n; t += 16) {
        ta[ty][tx] = a[row * n + t + tx];
        tb[ty][tx] = b[(t + ty) * n + col];
        __syncthreads();
        for (unsigned k = 0; k < 16; ++k) sum += ta[ty][k] * tb[k][tx];
        __syncthreads();
    }
    c[row * n + col] = sum;
}

extern "C" __global__ void hash(unsigned* out, const unsigned* in, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned h = in[i] ^ 0x9e3779b9u;
    for (unsigned k = 0; k < 16; ++k) {
        h ^= h >> 16; h *= 0x85ebca6bu;
        h ^= h >> 13; h *= 0xc2b2ae35u;
        h ^= h >> 16; h += k;
        h = (h << 5) | (h >> 27);
    }
    out[i] = h;
}

// One step of clustering: the nearest of k centres in four dimensions.
extern "C" __global__ void nearest(int* out, const float* points, const float* centres, unsigned n, unsigned k) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float p0 = points[i], p1 = points[n + i], p2 = points[2 * n + i], p3 = points[3 * n + i], best = 3e38f;
    int which = 0;
    for (unsigned c = 0; c < k; ++c) {
        float d0 = p0 - centres[4 * c], d1 = p1 - centres[4 * c + 1], d2 = p2 - centres[4 * c + 2], d3 = p3 - centres[4 * c + 3];
        float d = d0 * d0 + d1 * d1 + d2 * d2 + d3 * d3;
        if (d < best) { best = d; which = (int)c; }
    }
    out[i] = which;
}

extern "C" __global__ void monte_carlo(int* out, unsigned n, unsigned samples) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned s = i * 747796405u + 2891336453u;
    int inside = 0;
    for (unsigned k = 0; k < samples; ++k) {
        s ^= s << 13; s ^= s >> 17; s ^= s << 5;
        float x = (s & 0xffff) * (1.0f / 65536.0f), y = (s >> 16) * (1.0f / 65536.0f);
        if (x * x + y * y < 1.0f) ++inside;
    }
    out[i] = inside;
}

// A convolution with a tile and its border in shared memory.
extern "C" __global__ void convolve(float* out, const float* in, const float* weights, unsigned width, unsigned height) {
    __shared__ float tile[20][20];
    int tx = threadIdx.x, ty = threadIdx.y, x0 = blockIdx.x * 16, y0 = blockIdx.y * 16;
    for (int y = ty; y < 20; y += 16)
        for (int x = tx; x < 20; x += 16) {
            int gx = x0 + x - 2, gy = y0 + y - 2;
            tile[y][x] = gx >= 0 && gy >= 0 && gx < (int)width && gy < (int)height ? in[gy * width + gx] : 0.0f;
        }
    __syncthreads();
    float sum = 0;
    for (int dy = 0; dy < 5; ++dy)
        for (int dx = 0; dx < 5; ++dx) sum += weights[dy * 5 + dx] * tile[ty + dy][tx + dx];
    out[(y0 + ty) * width + x0 + tx] = sum;
}

// The most common reduction: shuffles in a warp, then one warp over the sums of the warps.
extern "C" __global__ void reduce_shuffle(float* out, const float* in, unsigned n) {
    __shared__ float sums[32];
    float v = 0;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) v += in[i];
    for (int o = 16; o > 0; o >>= 1) v += __shfl_down_sync(0xffffffffu, v, o);
    unsigned lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    if (lane == 0) sums[warp] = v;
    __syncthreads();
    if (warp == 0) {
        v = lane < blockDim.x / 32 ? sums[lane] : 0.0f;
        for (int o = 16; o > 0; o >>= 1) v += __shfl_down_sync(0xffffffffu, v, o);
        if (lane == 0) out[blockIdx.x] = v;
    }
}

// One block sorts 512 integers in shared memory.
extern "C" __global__ void bitonic(int* data) {
    __shared__ int s[512];
    unsigned t = threadIdx.x;
    int* d = data + blockIdx.x * 512;
    s[t] = d[t] ^ (int)(blockIdx.x & 7);
    s[t + 256] = d[t + 256];
    for (unsigned k = 2; k <= 512; k <<= 1)
        for (unsigned j = k >> 1; j > 0; j >>= 1) {
            __syncthreads();
            unsigned i = 2 * t - (t & (j - 1));
            bool up = (i & k) == 0;
            int a = s[i], b = s[i + j];
            if ((a > b) == up) { s[i] = b; s[i + j] = a; }
        }
    __syncthreads();
    d[t] = s[t];
    d[t + 256] = s[t + 256];
}

// A stencil in three dimensions in which threads of the border leave.
extern "C" __global__ void stencil3d(float* out, const float* in, unsigned nx, unsigned ny, unsigned nz) {
    unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, z = blockIdx.z;
    if (x == 0 || y == 0 || z == 0 || x >= nx - 1 || y >= ny - 1 || z >= nz - 1) return;
    unsigned i = (z * ny + y) * nx + x;
    out[i] = 0.4f * in[i] + 0.1f * (in[i - 1] + in[i + 1] + in[i - nx] + in[i + nx] + in[i - nx * ny] + in[i + nx * ny]);
}

// Sparse times dense: rows of different lengths, one thread each.
extern "C" __global__ void spmv(float* y, const int* rows, const int* columns, const float* values, const float* x, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0;
    for (int k = rows[i]; k < rows[i + 1]; ++k) sum += values[k] * x[columns[k]];
    y[i] = sum;
}

// A scan of each block: threads below the distance add nothing.
extern "C" __global__ void scan(float* out, const float* in) {
    __shared__ float s[256];
    unsigned t = threadIdx.x, i = blockIdx.x * 256 + t;
    s[t] = in[i];
    __syncthreads();
    for (unsigned o = 1; o < 256; o <<= 1) {
        float v = t >= o ? s[t - o] : 0.0f;
        __syncthreads();
        s[t] += v;
        __syncthreads();
    }
    out[i] = s[t];
}

// A picture of bytes: brightness of red, green and blue.
extern "C" __global__ void grey(unsigned char* out, const unsigned char* r, const unsigned char* g, const unsigned char* b, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = (unsigned char)((r[i] * 77 + g[i] * 151 + b[i] * 28) >> 8);
}

// A blur of bytes with clamped borders.
extern "C" __global__ void blur(unsigned char* out, const unsigned char* in, unsigned width, unsigned height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= (int)width || y >= (int)height) return;
    int sum = 0;
    for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx) {
            int sx = min(max(x + dx, 0), (int)width - 1), sy = min(max(y + dy, 0), (int)height - 1);
            sum += in[sy * width + sx];
        }
    out[y * width + x] = (unsigned char)(sum / 9);
}

// A matrix of four by four for each thread, loaded and stored as vectors.
extern "C" __global__ void small_matrices(float4* out, const float4* a, const float4* b, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 b0 = b[4 * i], b1 = b[4 * i + 1], b2 = b[4 * i + 2], b3 = b[4 * i + 3];
    for (int row = 0; row < 4; ++row) {
        float4 r = a[4 * i + row], o;
        o.x = r.x * b0.x + r.y * b1.x + r.z * b2.x + r.w * b3.x;
        o.y = r.x * b0.y + r.y * b1.y + r.z * b2.y + r.w * b3.y;
        o.z = r.x * b0.z + r.y * b1.z + r.z * b2.z + r.w * b3.z;
        o.w = r.x * b0.w + r.y * b1.w + r.z * b2.w + r.w * b3.w;
        out[4 * i + row] = o;
    }
}

// Softmax of rows of 256, one block a row.
extern "C" __global__ void softmax(float* out, const float* in) {
    __shared__ float s[256];
    unsigned t = threadIdx.x, i = blockIdx.x * 256 + t;
    float v = in[i];
    s[t] = v;
    __syncthreads();
    for (unsigned o = 128; o > 0; o >>= 1) {
        if (t < o) s[t] = fmaxf(s[t], s[t + o]);
        __syncthreads();
    }
    float e = __expf(v - s[0]);
    __syncthreads();
    s[t] = e;
    __syncthreads();
    for (unsigned o = 128; o > 0; o >>= 1) {
        if (t < o) s[t] += s[t + o];
        __syncthreads();
    }
    out[i] = e / s[0];
}

extern "C" __global__ void histogram(unsigned* bins, const unsigned char* in, unsigned n) {
    __shared__ unsigned counts[256];
    counts[threadIdx.x] = 0;
    __syncthreads();
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) atomicAdd(&counts[in[i]], 1u);
    __syncthreads();
    atomicAdd(&bins[threadIdx.x], counts[threadIdx.x]);
}

extern "C" __global__ void transpose(float* out, const float* in, unsigned n) {
    __shared__ float tile[16][17];
    unsigned x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    tile[threadIdx.y][threadIdx.x] = in[y * n + x];
    __syncthreads();
    out[(blockIdx.x * 16 + threadIdx.y) * n + blockIdx.y * 16 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}

extern "C" __global__ void nbody(float4* accelerations, const float4* bodies, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 me = bodies[i];
    float ax = 0, ay = 0, az = 0;
    for (unsigned j = 0; j < n; ++j) {
        float4 it = bodies[j];
        float dx = it.x - me.x, dy = it.y - me.y, dz = it.z - me.z;
        float d = dx * dx + dy * dy + dz * dz + 0.01f, r = rsqrtf(d), f = it.w * r * r * r;
        ax += f * dx; ay += f * dy; az += f * dz;
    }
    accelerations[i] = make_float4(ax, ay, az, 0.0f);
}

// Different work for even and odd threads, and a loop whose length is data.
extern "C" __global__ void divergent(float* out, const float* in, const int* trips, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = in[i];
    int k = trips[i];
    if (i & 1) {
        for (int t = 0; t < k; ++t) v = v * 0.99f + 0.01f * t;
    } else {
        for (int t = 0; t < k; ++t) v = sqrtf(v * v + 1.0f) - 0.5f;
    }
    out[i] = v;
}

// A discrete cosine transform of eight values for each thread, unrolled.
extern "C" __global__ void dct8(float* out, const float* in, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v[8], o[8];
#pragma unroll
    for (int k = 0; k < 8; ++k) v[k] = in[k * n + i];
    const float c[4] = {0.98078528f, 0.83146961f, 0.55557023f, 0.19509032f};
    float s07 = v[0] + v[7], d07 = v[0] - v[7], s16 = v[1] + v[6], d16 = v[1] - v[6];
    float s25 = v[2] + v[5], d25 = v[2] - v[5], s34 = v[3] + v[4], d34 = v[3] - v[4];
    float e0 = s07 + s34, e1 = s16 + s25, e2 = s07 - s34, e3 = s16 - s25;
    o[0] = e0 + e1; o[4] = (e0 - e1) * 0.70710678f;
    o[2] = e2 * 0.92387953f + e3 * 0.38268343f; o[6] = e2 * 0.38268343f - e3 * 0.92387953f;
    o[1] = c[0] * d07 + c[1] * d16 + c[2] * d25 + c[3] * d34;
    o[3] = c[1] * d07 - c[3] * d16 - c[0] * d25 - c[2] * d34;
    o[5] = c[2] * d07 - c[0] * d16 + c[3] * d25 + c[1] * d34;
    o[7] = c[3] * d07 - c[2] * d16 + c[1] * d25 - c[0] * d34;
#pragma unroll
    for (int k = 0; k < 8; ++k) out[k * n + i] = o[k];
}

// How many threads of each group of 32 hold a value over the threshold.
extern "C" __global__ void count_votes(unsigned* out, const float* in, float threshold) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned mask = __ballot_sync(0xffffffffu, in[i] > threshold);
    if ((threadIdx.x & 31) == 0) out[i >> 5] = __popc(mask);
}
