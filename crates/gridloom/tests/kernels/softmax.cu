// Softmax over rows of floats.
//
// softmax(out, in, columns)   block 256, one block for each row: out = exp(in - m) / sum of exp(in - m), with m the largest of the row.
//     Threads add their own elements from low index to high; then lanes combine as v += shfl_down(v, 16), 8, 4, 2, 1; then warp 0
//     combines the eight warp sums in the same way.

__device__ float reduce(float value, bool is_sum, float* scratch) {
    unsigned lane = threadIdx.x % 32;
    unsigned warp = threadIdx.x / 32;
    for (int offset = 16; offset > 0; offset /= 2) {
        float other = __shfl_down_sync(0xffffffffu, value, offset);
        value = is_sum ? value + other : fmaxf(value, other);
    }
    __syncthreads();
    if (lane == 0) {
        scratch[warp] = value;
    }
    __syncthreads();
    if (warp == 0) {
        value = lane < 8 ? scratch[lane] : (is_sum ? 0.0f : -__int_as_float(0x7f800000));
        for (int offset = 4; offset > 0; offset /= 2) {
            float other = __shfl_down_sync(0xffffffffu, value, offset);
            value = is_sum ? value + other : fmaxf(value, other);
        }
        if (lane == 0) {
            scratch[8] = value;
        }
    }
    __syncthreads();
    return scratch[8];
}

extern "C" __global__ void softmax(float* out, const float* in, unsigned columns) {
    __shared__ float scratch[9];
    const float* row = in + (size_t)blockIdx.x * columns;
    float* result = out + (size_t)blockIdx.x * columns;
    float largest = -__int_as_float(0x7f800000);
    for (unsigned i = threadIdx.x; i < columns; i += 256) {
        largest = fmaxf(largest, row[i]);
    }
    largest = reduce(largest, false, scratch);
    float sum = 0.0f;
    for (unsigned i = threadIdx.x; i < columns; i += 256) {
        sum += expf(row[i] - largest);
    }
    sum = reduce(sum, true, scratch);
    for (unsigned i = threadIdx.x; i < columns; i += 256) {
        result[i] = expf(row[i] - largest) / sum;
    }
}
