// Kernels of the benchmark of the optimiser. programs.ptx is made from this file:
//
//   gridloom cc crates/gridloom/benches/optimizer/programs.cu --arch compute_75
//
// All results are the same in any order of blocks: sums of floats have a fixed order, and atomics add integers.

extern "C" __device__ __cudart_builtin__ void cudaGraphSetConditional(unsigned long long handle, unsigned int value);

typedef unsigned int u32;

// A kernel of a loop that also decides about the next pass: to[i] = 3 * from[i + 1] + by.
extern "C" __global__ void pass(unsigned long long again, u32 *left, u32 passes, u32 *to, const u32 *from, u32 n, u32 by)
{
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        u32 j = i + 1 == n ? 0 : i + 1;
        to[i] = 3 * from[j] + by;
    }
    if (i == 0) {
        u32 now = *left - 1;
        *left = now == 0 ? passes : now;
        cudaGraphSetConditional(again, now != 0);
    }
}

// Sets a condition to a value in memory, and counts its launches.
extern "C" __global__ void decide(unsigned long long condition, const u32 *value, u32 *count)
{
    if (threadIdx.x == 0) {
        *count += 1;
        cudaGraphSetConditional(condition, *value);
    }
}

// A streaming kernel: to[i] = 0.5 * from[i] + by.
extern "C" __global__ void stream(float *to, const float *from, u32 n, float by)
{
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        to[i] = 0.5f * from[i] + by;
}

// Ten kernels of a fan.
#define FAN(name, expression)                                           \
    extern "C" __global__ void name(u32 *to, const u32 *from, u32 by)   \
    {                                                                   \
        u32 i = blockIdx.x * blockDim.x + threadIdx.x, v = from[i];     \
        to[i] = (expression);                                           \
    }
FAN(fan0, v + by)
FAN(fan1, v * 3 + by)
FAN(fan2, (v ^ by) - 7)
FAN(fan3, (v << 3) + by)
FAN(fan4, (v >> 1) * by)
FAN(fan5, v * v + by)
FAN(fan6, v / (by + 1))
FAN(fan7, v % (by + 3))
FAN(fan8, min(v, by) + 11)
FAN(fan9, __popc(v) + by)

// Conjugate gradients for the plate: 4 x - (neighbours) = b on side * side points, 256 threads in each block.

__device__ float block_sum(float value)
{
    __shared__ float sums[256];
    sums[threadIdx.x] = value;
    __syncthreads();
    for (u32 half = 128; half > 0; half /= 2) {
        if (threadIdx.x < half)
            sums[threadIdx.x] += sums[threadIdx.x + half];
        __syncthreads();
    }
    return sums[0];
}

extern "C" __global__ void cg_start(float *x, float *r, float *p, const float *b, float *sums, u32 *left, u32 most)
{
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    float value = b[i];
    x[i] = 0.0f;
    r[i] = value;
    p[i] = value;
    float sum = block_sum(value * value);
    if (threadIdx.x == 0)
        sums[blockIdx.x] = sum;
    if (i == 0)
        *left = most;
}

// scalars: 0 the squared residual, 1 the step length, 2 the share of the old direction.
extern "C" __global__ void cg_residual(float *scalars, const float *sums, u32 count)
{
    float sum = block_sum(threadIdx.x < count ? sums[threadIdx.x] : 0.0f);
    if (threadIdx.x == 0)
        scalars[0] = sum;
}

extern "C" __global__ void cg_apply(float *q, const float *p, float *sums, u32 side)
{
    u32 i = blockIdx.x * blockDim.x + threadIdx.x, column = i % side, row = i / side;
    float here = p[i];
    float around = (column > 0 ? p[i - 1] : 0.0f) + (column + 1 < side ? p[i + 1] : 0.0f)
        + (row > 0 ? p[i - side] : 0.0f) + (row + 1 < side ? p[i + side] : 0.0f);
    float value = 4.0f * here - around;
    q[i] = value;
    float sum = block_sum(value * here);
    if (threadIdx.x == 0)
        sums[blockIdx.x] = sum;
}

extern "C" __global__ void cg_length(float *scalars, const float *sums, u32 count)
{
    float sum = block_sum(threadIdx.x < count ? sums[threadIdx.x] : 0.0f);
    if (threadIdx.x == 0)
        scalars[1] = sum > 0.0f ? scalars[0] / sum : 0.0f;
}

extern "C" __global__ void cg_step(float *x, float *r, const float *p, const float *q, const float *scalars, float *sums)
{
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    float length = scalars[1];
    x[i] += length * p[i];
    float rest = r[i] - length * q[i];
    r[i] = rest;
    float sum = block_sum(rest * rest);
    if (threadIdx.x == 0)
        sums[blockIdx.x] = sum;
}

extern "C" __global__ void cg_decide(unsigned long long again, float *scalars, const float *sums, u32 count, u32 *left, float enough)
{
    float sum = block_sum(threadIdx.x < count ? sums[threadIdx.x] : 0.0f);
    if (threadIdx.x == 0) {
        float before = scalars[0];
        scalars[2] = before > 0.0f ? sum / before : 0.0f;
        scalars[0] = sum;
        *left -= 1;
        cudaGraphSetConditional(again, *left != 0 && sum > enough);
    }
}

extern "C" __global__ void cg_direction(float *p, const float *r, const float *scalars)
{
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    p[i] = r[i] + scalars[2] * p[i];
}

// Particles in the unit square, on a grid of 64 * 64 cells. x and y alternate in the arrays.

#define CELLS 64

__device__ u32 cell_of(float x, float y)
{
    int column = min(max((int)(x * CELLS), 0), CELLS - 1), row = min(max((int)(y * CELLS), 0), CELLS - 1);
    return row * CELLS + column;
}

extern "C" __global__ void particles_move(float *position, const float *speed, float dt)
{
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    position[2 * i] += dt * speed[2 * i];
    position[2 * i + 1] += dt * speed[2 * i + 1];
}

extern "C" __global__ void particles_clear(u32 *counts)
{
    counts[blockIdx.x * blockDim.x + threadIdx.x] = 0;
}

extern "C" __global__ void particles_count(u32 *counts, const float *position)
{
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&counts[cell_of(position[2 * i], position[2 * i + 1])], 1);
}

// One block: how crowded the rows of cells are.
extern "C" __global__ void particles_rows(u32 *rows, const u32 *counts)
{
    __shared__ u32 sums[256];
    u32 sum = 0;
    for (u32 i = 0; i < CELLS * CELLS / 256; i++)
        sum += counts[threadIdx.x * (CELLS * CELLS / 256) + i];
    sums[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x < CELLS)
        rows[threadIdx.x] = sums[4 * threadIdx.x] + sums[4 * threadIdx.x + 1] + sums[4 * threadIdx.x + 2] + sums[4 * threadIdx.x + 3];
}

extern "C" __global__ void particles_pressure(float *pressure, const u32 *counts, const u32 *rows)
{
    u32 cell = blockIdx.x * blockDim.x + threadIdx.x, row = cell / CELLS, column = cell % CELLS;
    u32 sum = 4 * counts[cell];
    sum += column > 0 ? counts[cell - 1] : counts[cell];
    sum += column + 1 < CELLS ? counts[cell + 1] : counts[cell];
    sum += row > 0 ? counts[cell - CELLS] : counts[cell];
    sum += row + 1 < CELLS ? counts[cell + CELLS] : counts[cell];
    pressure[cell] = 0.125f * (float)sum + 0.001f * (float)rows[row];
}

extern "C" __global__ void particles_force(float *force, const float *position, const float *pressure)
{
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    u32 cell = cell_of(position[2 * i], position[2 * i + 1]), row = cell / CELLS, column = cell % CELLS;
    u32 left = column > 0 ? cell - 1 : cell, right = column + 1 < CELLS ? cell + 1 : cell;
    u32 below = row > 0 ? cell - CELLS : cell, above = row + 1 < CELLS ? cell + CELLS : cell;
    force[2 * i] = pressure[left] - pressure[right];
    force[2 * i + 1] = pressure[below] - pressure[above] - 0.1f;
}

extern "C" __global__ void particles_push(float *speed, const float *force, float dt)
{
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    speed[2 * i] = 0.999f * speed[2 * i] + dt * force[2 * i];
    speed[2 * i + 1] = 0.999f * speed[2 * i + 1] + dt * force[2 * i + 1];
}

extern "C" __global__ void particles_bounce(float *position, float *speed)
{
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    for (u32 axis = 0; axis < 2; axis++) {
        float at = position[2 * i + axis];
        if (at < 0.0f || at > 1.0f) {
            position[2 * i + axis] = at < 0.0f ? -at : 2.0f - at;
            speed[2 * i + axis] = -0.5f * speed[2 * i + axis];
        }
    }
}

// One layer of a perceptron: a warp for each output, 8 in a block. The sums of a warp have a fixed order.
extern "C" __global__ void layer(float *out, const float *weights, const float *bias, const float *in, u32 inputs)
{
    u32 row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    float sum = 0.0f;
    for (u32 i = lane; i < inputs; i += 32)
        sum += weights[row * inputs + i] * in[i];
    for (u32 step = 16; step > 0; step /= 2)
        sum += __shfl_xor_sync(0xffffffff, sum, step);
    if (lane == 0)
        out[row] = fmaxf(sum + bias[row], 0.0f);
}
