// Sparse matrix times vector, compressed rows, float.
//
// spmv_scalar(y, start, column, value, x, rows)   y[r] = sum of value[k] * x[column[k]] for start[r] <= k < start[r+1];
//     fused multiply-add from 0 in rising k; start has rows + 1 unsigned; one row to a thread, rows threads or more
// spmv_warp(y, start, column, value, x, rows)     the same sum with one warp to a row, 32 * rows threads or more:
//     lane l takes k = start[r] + l, + 32, ...; then lanes combine by v += shfl_xor(v, 16), 8, 4, 2, 1

extern "C" __global__ void spmv_scalar(
    float* y, const unsigned* start, const unsigned* column, const float* value, const float* x, unsigned rows
) {
    unsigned r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r < rows) {
        float sum = 0.0f;
        for (unsigned k = start[r]; k < start[r + 1]; ++k) {
            sum = __fmaf_rn(value[k], __ldg(&x[column[k]]), sum);
        }
        y[r] = sum;
    }
}

extern "C" __global__ void spmv_warp(
    float* y, const unsigned* start, const unsigned* column, const float* value, const float* x, unsigned rows
) {
    unsigned r = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    unsigned lane = threadIdx.x % 32;
    if (r < rows) {
        float sum = 0.0f;
        for (unsigned k = start[r] + lane; k < start[r + 1]; k += 32) {
            sum = __fmaf_rn(value[k], x[column[k]], sum);
        }
        for (int mask = 16; mask > 0; mask /= 2) {
            sum += __shfl_xor_sync(0xffffffffu, sum, mask);
        }
        if (lane == 0) {
            y[r] = sum;
        }
    }
}
