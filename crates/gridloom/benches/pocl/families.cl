// The kernels of families.cu in OpenCL C, for `scripts/compare-pocl`: the same algorithms in the same groups. OpenCL C 1.2 has no
// shuffles and no votes: those go through local memory.

// A scan of each work-group: of every 32, then over their sums.
__kernel void warp_scan(__global int* out, __global const int* in) {
    __local int s[256];
    unsigned t = get_local_id(0), i = get_group_id(0) * 256 + t, lane = t & 31, warp = t >> 5;
    int v = in[i];
    for (unsigned o = 1; o < 32; o <<= 1) {
        s[t] = v;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane >= o) v += s[t - o];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    s[t] = v;
    barrier(CLK_LOCAL_MEM_FENCE);
    int before = 0;
    for (unsigned w = 0; w < warp; ++w) before += s[32 * w + 31];
    out[i] = v + before;
}

// The smallest, the largest, the sum and the bits of each work-group, as a tree.
__kernel void block_redux(__global unsigned* out, __global const unsigned* in) {
    __local unsigned low[256], high[256], sum[256], bits[256];
    unsigned t = get_local_id(0), v = in[get_group_id(0) * 256 + t] >> 8;
    low[t] = v; high[t] = v; sum[t] = v; bits[t] = v;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (unsigned o = 128; o > 0; o >>= 1) {
        if (t < o) {
            low[t] = min(low[t], low[t + o]); high[t] = max(high[t], high[t + o]);
            sum[t] += sum[t + o]; bits[t] ^= bits[t + o];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (t == 0) {
        unsigned at = 4 * get_group_id(0);
        out[at] = low[0]; out[at + 1] = high[0]; out[at + 2] = sum[0]; out[at + 3] = bits[0];
    }
}

// Counts keys, first in local memory.
__kernel void match_count(__global unsigned* counts, __global const unsigned* keys) {
    __local unsigned own[64];
    unsigned t = get_local_id(0);
    if (t < 64) own[t] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    atomic_inc(&own[keys[get_global_id(0)] & 63]);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (t < 64 && own[t]) atomic_add(&counts[t], own[t]);
}

// Decodes 16 numbers of one to five bytes each, seven bits a byte.
__kernel void decode_numbers(__global unsigned* out, __global const uchar* bytes, __global const unsigned* starts, unsigned n) {
    unsigned i = get_global_id(0);
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
__kernel void mean27(__global float* out, __global const float* in, int nx, int ny, int nz) {
    int x = get_global_id(0), y = get_global_id(1), z = get_group_id(2);
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

// A binomial filter of seven bytes, across and then down, through local memory.
__kernel void separable(__global uchar* out, __global const uchar* in, int width, int height) {
    __local uchar tile[22][40];
    __local ushort across[22][32];
    const int weights[7] = {1, 6, 15, 20, 15, 6, 1};
    int tx = get_local_id(0), ty = get_local_id(1), x0 = get_group_id(0) * 32 - 3, y0 = get_group_id(1) * 16 - 3;
    for (int y = ty; y < 22; y += 16)
        for (int x = tx; x < 38; x += 32)
            tile[y][x] = in[min(max(y0 + y, 0), height - 1) * width + min(max(x0 + x, 0), width - 1)];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int y = ty; y < 22; y += 16) {
        int sum = 0;
#pragma unroll
        for (int k = 0; k < 7; ++k) sum += weights[k] * tile[y][tx + k];
        across[y][tx] = (ushort)sum;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    int sum = 0;
#pragma unroll
    for (int k = 0; k < 7; ++k) sum += weights[k] * across[ty + k][tx];
    out[(get_group_id(1) * 16 + ty) * width + get_group_id(0) * 32 + tx] = (uchar)((sum + 2048) >> 12);
}

// Every 32 work-items sort 32 numbers.
__kernel void warp_sort(__global unsigned* data) {
    __local unsigned s[256];
    unsigned t = get_local_id(0), i = get_global_id(0), lane = t & 31, v = data[i] ^ (get_group_id(0) & 3);
    for (unsigned k = 2; k <= 32; k <<= 1)
        for (unsigned j = k >> 1; j > 0; j >>= 1) {
            s[t] = v;
            barrier(CLK_LOCAL_MEM_FENCE);
            unsigned other = s[t ^ j];
            bool up = (lane & k) == 0, lower = (lane & j) == 0;
            v = up == lower ? min(v, other) : max(v, other);
            barrier(CLK_LOCAL_MEM_FENCE);
        }
    data[i] = v;
}

// Solves five equations for each work-item in registers, by Gauss-Jordan.
__kernel void solve5(__global float* out, __global const float* in, unsigned n) {
    unsigned i = get_global_id(0);
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
__kernel void collatz(__global unsigned* out, unsigned first, unsigned n) {
    unsigned i = get_global_id(0);
    if (i >= n) return;
    ulong v = first + i;
    unsigned steps = 0;
    while (v != 1 && steps < 300) {
        v = v & 1 ? 3 * v + 1 : v >> 1;
        ++steps;
    }
    out[i] = steps;
}

// The item of 16 with the largest priority, by a hash and a logarithm.
__kernel void sample(__global unsigned* out, __global const float* weights, unsigned n) {
    unsigned i = get_global_id(0);
    if (i >= n) return;
    float best = -1e30f;
    unsigned chosen = 0;
    for (unsigned k = 0; k < 16; ++k) {
        unsigned h = (i * 16 + k) * 2654435761u;
        h ^= h >> 15; h *= 2246822519u; h ^= h >> 13;
        float u = ((h >> 9) + 0.5f) * (1.0f / 8388608.0f), priority = log(u) / (weights[k * n + i] + 0.01f);
        if (priority > best) { best = priority; chosen = k; }
    }
    out[i] = chosen;
}

// Halves in, sums of products in single precision, halves and shorter floats out.
__kernel void halves(__global half* out, __global ushort* brief, __global const half* x, __global const half* y, unsigned n) {
    unsigned i = get_global_id(0);
    if (i >= n) return;
    float a = vload_half(i, x), b = vload_half(i, y), v = 0.75f * a + b * b;
    vstore_half_rte(v, i, out);
    unsigned bits = as_uint(v);
    brief[i] = (ushort)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// Powers modulo an odd number of 64 bits, by Montgomery's products.
__kernel void powers(__global ulong* out, __global const unsigned* in, unsigned n) {
    unsigned i = get_global_id(0);
    if (i >= n) return;
    const ulong m = 0xffffffffffffffc5ul;
    ulong inverse = m;
    for (int k = 0; k < 5; ++k) inverse *= 2 - m * inverse;
    ulong base = in[i], value = 59;
    for (unsigned e = in[i] >> 16 | 1; e; e >>= 1) {
        ulong low, q;
        if (e & 1) {
            low = value * base; q = low * inverse;
            ulong high = mul_hi(value, base), less = mul_hi(q, m);
            value = high - less + (high < less ? m : 0);
        }
        low = base * base; q = low * inverse;
        ulong high = mul_hi(base, base), less = mul_hi(q, m);
        base = high - less + (high < less ? m : 0);
    }
    out[i] = value;
}

// Functions of double precision.
__kernel void functions(__global double* out, __global const double* in, unsigned n) {
    unsigned i = get_global_id(0);
    if (i >= n) return;
    double v = in[i];
    out[i] = exp(-v) * sin(3.0 * v) + log(v + 1.0) / sqrt(v + 2.0);
}

// The longest run of ones in every eight words: loops that work-items leave by themselves.
__kernel void longest_runs(__global unsigned* out, __global const unsigned* in, unsigned n) {
    unsigned i = get_global_id(0);
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
