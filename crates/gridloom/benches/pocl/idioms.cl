// The kernels of idioms.cu in OpenCL C, for `scripts/compare-pocl`: the same algorithms in the same groups.

// A scan of each block that starts again where a flag is set.
__kernel void segmented_scan(__global float* out, __global const float* in, __global const int* heads) {
    __local float sums[256];
    __local int flags[256];
    unsigned t = get_local_id(0), i = get_group_id(0) * 256 + t;
    sums[t] = in[i];
    flags[t] = heads[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (unsigned o = 1; o < 256; o <<= 1) {
        float v = 0;
        int f = 0;
        if (t >= o) {
            v = sums[t - o];
            f = flags[t - o];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (t >= o) {
            if (!flags[t]) sums[t] += v;
            flags[t] |= f;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    out[i] = sums[t];
}

// Batcher's odd-even merge sort of 512 integers in local memory.
__kernel void odd_even_sort(__global int* data) {
    __local int s[512];
    int t = get_local_id(0);
    __global int* d = data + get_group_id(0) * 512;
    s[t] = d[t] ^ (int)(get_group_id(0) & 3);
    s[t + 256] = d[t + 256];
    for (int size = 2; size <= 512; size <<= 1) {
        int stride = size / 2, offset = t & (stride - 1);
        barrier(CLK_LOCAL_MEM_FENCE);
        int p = 2 * t - (t & (stride - 1));
        int a = s[p], b = s[p + stride];
        if (a > b) { s[p] = b; s[p + stride] = a; }
        for (stride >>= 1; stride > 0; stride >>= 1) {
            barrier(CLK_LOCAL_MEM_FENCE);
            int q = 2 * t - (t & (stride - 1));
            if (offset >= stride) {
                int c = s[q - stride], e = s[q];
                if (c > e) { s[q - stride] = e; s[q] = c; }
            }
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    d[t] = s[t];
    d[t + 256] = s[t + 256];
}

// Heat in three dimensions: neighbours outside the volume are the point itself.
__kernel void heat3d(__global float* out, __global const float* in, int nx, int ny, int nz) {
    int x = get_global_id(0), y = get_global_id(1), z = get_group_id(2);
    if (x >= nx || y >= ny) return;
    int i = (z * ny + y) * nx + x;
    float c = in[i];
    float w = x > 0 ? in[i - 1] : c, e = x < nx - 1 ? in[i + 1] : c;
    float n = y > 0 ? in[i - nx] : c, s = y < ny - 1 ? in[i + nx] : c;
    float d = z > 0 ? in[i - nx * ny] : c, u = z < nz - 1 ? in[i + nx * ny] : c;
    out[i] = c + 0.1f * (w + e + n + s + d + u - 6.0f * c);
}

// Sparse times dense, 32 work-items for each row. OpenCL C 1.2 has no shuffles: the sum goes through local memory.
__kernel void spmv_warp(__global float* y, __global const int* rows, __global const int* columns, __global const float* values,
                        __global const float* x, unsigned n) {
    __local float sums[256];
    unsigned t = get_local_id(0), row = get_global_id(0) >> 5, lane = t & 31;
    float sum = 0;
    if (row < n)
        for (int k = rows[row] + lane; k < rows[row + 1]; k += 32) sum += values[k] * x[columns[k]];
    sums[t] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (unsigned o = 16; o > 0; o >>= 1) {
        if (lane < o) sums[t] += sums[t + o];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (lane == 0 && row < n) y[row] = sums[t];
}

// A picture of bytes: brightness and colour differences of red, green and blue.
__kernel void yuv(__global uchar* y, __global uchar* u, __global uchar* v, __global const uchar* r, __global const uchar* g,
                  __global const uchar* b, unsigned n) {
    unsigned i = get_global_id(0);
    if (i >= n) return;
    int cr = r[i], cg = g[i], cb = b[i];
    y[i] = (uchar)(((66 * cr + 129 * cg + 25 * cb + 128) >> 8) + 16);
    u[i] = (uchar)(((-38 * cr - 74 * cg + 112 * cb + 128) >> 8) + 128);
    v[i] = (uchar)(((112 * cr - 94 * cg - 18 * cb + 128) >> 8) + 128);
}

// The factors of a matrix of four by four for each work-item, in registers.
__kernel void lu4(__global float4* out, __global const float4* in, unsigned n) {
    unsigned i = get_global_id(0);
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
    for (int row = 0; row < 4; ++row) out[4 * i + row] = (float4)(m[row][0], m[row][1], m[row][2], m[row][3]);
}

// The mean of five by five bytes, from a tile in local memory with clamped borders.
__kernel void box_blur(__global uchar* out, __global const uchar* in, int width, int height) {
    __local uchar tile[20][36];
    int x0 = get_group_id(0) * 32 - 2, y0 = get_group_id(1) * 16 - 2;
    for (int k = get_local_id(1) * 32 + get_local_id(0); k < 20 * 36; k += 512) {
        int y = k / 36, x = k % 36;
        int gx = min(max(x0 + x, 0), width - 1), gy = min(max(y0 + y, 0), height - 1);
        tile[y][x] = in[gy * width + gx];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    int sum = 0;
    for (int dy = 0; dy < 5; ++dy)
        for (int dx = 0; dx < 5; ++dx) sum += tile[get_local_id(1) + dy][get_local_id(0) + dx];
    out[(get_group_id(1) * 16 + get_local_id(1)) * width + get_group_id(0) * 32 + get_local_id(0)] = (uchar)(sum / 25);
}

// Where the largest value of each block is. OpenCL C 1.2 has no shuffles: the tree goes through local memory.
__kernel void argmax(__global int* out, __global const float* in) {
    __local float values[256];
    __local int places[256];
    unsigned t = get_local_id(0);
    values[t] = in[get_group_id(0) * 256 + t];
    places[t] = (int)t;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (unsigned o = 128; o > 0; o >>= 1) {
        if (t < o) {
            float best = values[t], other = values[t + o];
            int place = places[t], there = places[t + o];
            if (other > best || (other == best && there < place)) { values[t] = other; places[t] = there; }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (t == 0) out[get_group_id(0)] = places[0];
}

// A histogram of bytes that are read four at a time.
__kernel void byte_histogram(__global unsigned* bins, __global const unsigned* in, unsigned n) {
    __local unsigned counts[256];
    counts[get_local_id(0)] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (unsigned i = get_global_id(0); i < n; i += get_global_size(0)) {
        unsigned word = in[i];
        atomic_inc(&counts[word & 255]);
        atomic_inc(&counts[word >> 8 & 255]);
        atomic_inc(&counts[word >> 16 & 255]);
        atomic_inc(&counts[word >> 24]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    atomic_add(&bins[get_local_id(0)], counts[get_local_id(0)]);
}

// The starts of runs of equal values in every 32, packed to the front. OpenCL C 1.2 has no votes: a scan in local memory.
__kernel void run_starts(__global int* out, __global unsigned* lengths, __global const int* in) {
    __local unsigned counts[256];
    unsigned i = get_global_id(0), t = get_local_id(0), lane = t & 31;
    int value = in[i];
    bool head = lane == 0 || in[i - 1] != value;
    counts[t] = head;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (unsigned o = 1; o < 32; o <<= 1) {
        unsigned more = lane >= o ? counts[t - o] : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        counts[t] += more;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (head) out[(i & ~31u) + counts[t] - 1] = value;
    if (lane == 31) lengths[i >> 5] = counts[t];
}
