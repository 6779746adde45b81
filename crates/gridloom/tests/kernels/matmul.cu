// Dense matrix products, row-major float.
//
// matmul_tiled(c, a, b, m, n, k)   c (m x n) = a (m x k) * b (k x n); 16 x 16 tiles in shared memory.
//     Launch: block (16, 16), grid (ceil(n / 16), ceil(m / 16)). Any m, n, k; the tiles' overhang counts as 0.
//     Each c is accumulated from 0 by fused multiply-add over k in rising order; terms of the overhang add exact zeros.
// matmul_naive(c, a, b, m, n, k)   the same values without shared memory; block (16, 16), same grid.
// transpose(out, in, width, height)  out[x * height + y] = in[y * width + x]; block (32, 8), grid (ceil(width / 32), ceil(height / 32));
//     a padded tile in shared memory.

constexpr int TILE = 16;

extern "C" __global__ void matmul_tiled(float* c, const float* a, const float* b, int m, int n, int k) {
    __shared__ float tile_a[TILE][TILE];
    __shared__ float tile_b[TILE][TILE];
    int tx = threadIdx.x;
    int ty = threadIdx.y;
    int row = blockIdx.y * TILE + ty;
    int column = blockIdx.x * TILE + tx;
    float sum = 0.0f;
    for (int base = 0; base < k; base += TILE) {
        tile_a[ty][tx] = row < m && base + tx < k ? a[row * k + base + tx] : 0.0f;
        tile_b[ty][tx] = base + ty < k && column < n ? b[(base + ty) * n + column] : 0.0f;
        __syncthreads();
        #pragma unroll
        for (int i = 0; i < TILE; ++i) {
            sum = __fmaf_rn(tile_a[ty][i], tile_b[i][tx], sum);
        }
        __syncthreads();
    }
    if (row < m && column < n) {
        c[row * n + column] = sum;
    }
}

extern "C" __global__ void matmul_naive(float* c, const float* a, const float* b, int m, int n, int k) {
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= m || column >= n) {
        return;
    }
    float sum = 0.0f;
    for (int i = 0; i < k; ++i) {
        sum = __fmaf_rn(a[row * k + i], b[i * n + column], sum);
    }
    c[row * n + column] = sum;
}

extern "C" __global__ void transpose(float* out, const float* in, int width, int height) {
    __shared__ float tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x;
    int y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) {
        if (x < width && y + j < height) {
            tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * width + x];
        }
    }
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) {
        if (x < height && y + j < width) {
            out[(y + j) * height + x] = tile[threadIdx.x][threadIdx.y + j];
        }
    }
}
