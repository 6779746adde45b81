// Stencils on a row-major grid of floats.
//
// stencil_5point(out, in, width, height, c)   block and grid of any 2-D shape that covers width x height.
//     Inside: out = in + c * ((left + right) + (up + down) - 4 * in), each operation rounded on its own, in this order:
//     s = left + right; t = up + down; u = s + t; v = 4 * in; w = u - v; out = in + c * w. On the border: out = in.
// stencil_shared(out, in, n)                  block 128, grid ceil(n / 128): 7-point moving sum with a halo of 3 in shared memory:
//     out[i] = in[i-3] + ... + in[i+3], added from left to right, elements outside counting as 0.

extern "C" __global__ void stencil_5point(float* out, const float* in, int width, int height, float c) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) {
        return;
    }
    int i = y * width + x;
    float here = in[i];
    if (x > 0 && x < width - 1 && y > 0 && y < height - 1) {
        float s = __fadd_rn(in[i - 1], in[i + 1]);
        float t = __fadd_rn(in[i - width], in[i + width]);
        float w = __fsub_rn(__fadd_rn(s, t), __fmul_rn(4.0f, here));
        here = __fadd_rn(here, __fmul_rn(c, w));
    }
    out[i] = here;
}

extern "C" __global__ void stencil_shared(float* out, const float* in, int n) {
    __shared__ float window[128 + 6];
    int t = threadIdx.x;
    int i = blockIdx.x * 128 + t;
    window[t + 3] = i < n ? in[i] : 0.0f;
    if (t < 3) {
        int before = i - 3;
        int after = i + 128;
        window[t] = before >= 0 && before < n ? in[before] : 0.0f;
        window[t + 131] = after < n ? in[after] : 0.0f;
    }
    __syncthreads();
    if (i < n) {
        float sum = window[t];
        for (int k = 1; k < 7; ++k) {
            sum += window[t + k];
        }
        out[i] = sum;
    }
}
