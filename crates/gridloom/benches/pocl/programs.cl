// The kernels of programs.cu in OpenCL C, for `scripts/compare-pocl`: the same algorithms in the same groups. OpenCL C 1.2 has no
// shuffles and no votes: those go through local memory.

// A sparse product whose rows have one length, column by column; a negative column ends a row.
__kernel void ell_product(__global float* y, __global const int* columns, __global const float* values, __global const float* x, unsigned width, unsigned n) {
    unsigned i = get_global_id(0);
    if (i >= n) return;
    float sum = 0;
    for (unsigned k = 0; k < width; ++k) {
        int column = columns[k * n + i];
        if (column < 0) break;
        sum += values[k * n + i] * x[column];
    }
    y[i] = sum;
}

// A step of a breadth-first search: the neighbours of the vertices of one level that have none yet.
__kernel void frontier(__global unsigned* next, __global const unsigned* levels, __global const unsigned* starts, __global const unsigned* edges, unsigned level, unsigned n) {
    unsigned v = get_global_id(0);
    if (v >= n || levels[v] != level) return;
    for (unsigned k = starts[v]; k < starts[v + 1]; ++k) {
        unsigned other = edges[k];
        if (levels[other] == 0xffffffffu) next[other] = level + 1;
    }
}

// The gradient of a picture, whose border is repeated.
__kernel void sobel(__global uchar* out, __global const uchar* in, int width, int height) {
    int x = get_global_id(0), y = get_global_id(1);
    if (x >= width || y >= height) return;
    int p[3][3];
    for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx)
            p[dy + 1][dx + 1] = in[min(max(y + dy, 0), height - 1) * width + min(max(x + dx, 0), width - 1)];
    int gx = p[0][2] + 2 * p[1][2] + p[2][2] - p[0][0] - 2 * p[1][0] - p[2][0];
    int gy = p[2][0] + 2 * p[2][1] + p[2][2] - p[0][0] - 2 * p[0][1] - p[0][2];
    out[y * width + x] = (uchar)min((int)(abs(gx) + abs(gy)), 255);
}

// The largest of nine bytes, of those inside the picture.
__kernel void dilate(__global uchar* out, __global const uchar* in, int width, int height) {
    int x = get_global_id(0), y = get_global_id(1);
    if (x >= width || y >= height) return;
    int most = 0;
    for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx) {
            int u = x + dx, v = y + dy;
            if (u >= 0 && u < width && v >= 0 && v < height) most = max(most, (int)in[v * width + u]);
        }
    out[y * width + x] = (uchar)most;
}

// The median of nine bytes, by a network; the border is copied.
__kernel void median9(__global uchar* out, __global const uchar* in, int width, int height) {
    int x = get_global_id(0), y = get_global_id(1);
    if (x >= width || y >= height) return;
    int at = y * width + x;
    if (x == 0 || y == 0 || x == width - 1 || y == height - 1) { out[at] = in[at]; return; }
    int v[9];
    for (int k = 0; k < 9; ++k) v[k] = in[at + (k / 3 - 1) * width + k % 3 - 1];
#define SORT(a, b) { int low = min(v[a], v[b]); v[b] = max(v[a], v[b]); v[a] = low; }
    SORT(1, 2) SORT(4, 5) SORT(7, 8) SORT(0, 1) SORT(3, 4) SORT(6, 7) SORT(1, 2) SORT(4, 5) SORT(7, 8)
    SORT(0, 3) SORT(5, 8) SORT(4, 7) SORT(3, 6) SORT(1, 4) SORT(2, 5) SORT(4, 7) SORT(4, 2) SORT(6, 4) SORT(4, 2)
#undef SORT
    out[at] = (uchar)v[4];
}

// The inverse of each matrix of 3 by 3.
__kernel void inverse3(__global float* out, __global const float* in, unsigned n) {
    unsigned i = get_global_id(0);
    if (i >= n) return;
    __global const float* m = in + 9 * i;
    float a = m[0] + 2, b = m[1], c = m[2], d = m[3], e = m[4] + 2, f = m[5], g = m[6], h = m[7], k = m[8] + 2;
    float p = e * k - f * h, q = f * g - d * k, r = d * h - e * g, scale = 1.0f / (a * p + b * q + c * r);
    __global float* o = out + 9 * i;
    o[0] = p * scale; o[1] = (c * h - b * k) * scale; o[2] = (b * f - c * e) * scale;
    o[3] = q * scale; o[4] = (a * k - c * g) * scale; o[5] = (c * d - a * f) * scale;
    o[6] = r * scale; o[7] = (b * g - a * h) * scale; o[8] = (a * e - b * d) * scale;
}

// Points turned by quaternions.
__kernel void turn_points(__global float4* out, __global const float4* points, __global const float4* turns, unsigned n) {
    unsigned i = get_global_id(0);
    if (i >= n) return;
    float4 p = points[i], q = turns[i];
    float scale = rsqrt(q.x * q.x + q.y * q.y + q.z * q.z + q.w * q.w);
    q.x *= scale; q.y *= scale; q.z *= scale; q.w *= scale;
    float tx = 2 * (q.y * p.z - q.z * p.y), ty = 2 * (q.z * p.x - q.x * p.z), tz = 2 * (q.x * p.y - q.y * p.x);
    float4 r;
    r.x = p.x + q.w * tx + q.y * tz - q.z * ty;
    r.y = p.y + q.w * ty + q.z * tx - q.x * tz;
    r.z = p.z + q.w * tz + q.x * ty - q.y * tx;
    r.w = p.w;
    out[i] = r;
}

// Products of pairs of matrices of 4 by 4, one element of the result a thread.
__kernel void product4(__global float* c, __global const float* a, __global const float* b, unsigned n) {
    unsigned i = get_global_id(0);
    if (i >= n) return;
    unsigned first = i & ~15u, row = i >> 2 & 3, column = i & 3;
    float sum = 0;
    for (unsigned k = 0; k < 4; ++k) sum += a[first + 4 * row + k] * b[first + 4 * k + column];
    c[i] = sum;
}

// A step of diffusion with seven points; what lies outside is the point itself.
__kernel void diffuse7(__global float* out, __global const float* in, int nx, int ny, int nz) {
    int x = get_global_id(0), y = get_global_id(1), z = get_global_id(2);
    if (x >= nx || y >= ny) return;
    int at = (z * ny + y) * nx + x;
    float v = in[at];
    float left = x > 0 ? in[at - 1] : v, right = x < nx - 1 ? in[at + 1] : v;
    float front = y > 0 ? in[at - nx] : v, back = y < ny - 1 ? in[at + nx] : v;
    float below = z > 0 ? in[at - nx * ny] : v, above = z < nz - 1 ? in[at + nx * ny] : v;
    out[at] = v + 0.1f * (left + right + front + back + below + above - 6 * v);
}

// Transposes tiles in shared memory with padded rows.
__kernel void transpose_padded(__global float* out, __global const float* in, unsigned width, unsigned height) {
    __local float tile[32][33];
    unsigned x = get_group_id(0) * 32 + get_local_id(0), y = get_group_id(1) * 32 + get_local_id(1);
    for (unsigned k = 0; k < 32; k += 8) tile[get_local_id(1) + k][get_local_id(0)] = in[(y + k) * width + x];
    barrier(CLK_LOCAL_MEM_FENCE);
    x = get_group_id(1) * 32 + get_local_id(0);
    y = get_group_id(0) * 32 + get_local_id(1);
    for (unsigned k = 0; k < 32; k += 8) out[(y + k) * height + x] = tile[get_local_id(0)][get_local_id(1) + k];
}

// Characters and sums of code points of text in UTF-8, 48 bytes or a little more a thread.
__kernel void characters(__global unsigned* out, __global const uchar* text, __global const unsigned* starts, unsigned n) {
    unsigned i = get_global_id(0);
    if (i >= n) return;
    unsigned at = starts[i], end = starts[i + 1], count = 0, sum = 0;
    while (at < end) {
        unsigned first = text[at], code, more;
        if (first < 0x80) { code = first; more = 0; }
        else if (first < 0xe0) { code = first & 31; more = 1; }
        else if (first < 0xf0) { code = first & 15; more = 2; }
        else { code = first & 7; more = 3; }
        for (unsigned k = 1; k <= more; ++k) code = code << 6 | (text[at + k] & 63);
        at += 1 + more;
        sum += code;
        ++count;
    }
    out[i] = sum * 31 + count;
}

// Keys into a table with open addressing.
__kernel void insert_keys(__global unsigned* table, __global const unsigned* keys, unsigned mask, unsigned n) {
    unsigned i = get_global_id(0);
    if (i >= n) return;
    unsigned key = keys[i] + 1, slot = key * 2654435769u >> 8 & mask;
    while (true) {
        unsigned old = atomic_cmpxchg(&table[slot], 0u, key);
        if (old == 0 || old == key) break;
        slot = (slot + 1) & mask;
    }
}

// Values of keys in a table with open addressing.
__kernel void find_keys(__global unsigned* out, __global const unsigned* table, __global const unsigned* keys, unsigned mask, unsigned n) {
    unsigned i = get_global_id(0);
    if (i >= n) return;
    unsigned key = keys[i] + 1, slot = key * 2654435769u >> 8 & mask, found = 0xffffffffu;
    while (table[2 * slot] != 0) {
        if (table[2 * slot] == key) { found = table[2 * slot + 1]; break; }
        slot = (slot + 1) & mask;
    }
    out[i] = found;
}

// Sums of segments of different lengths.
__kernel void segment_sums(__global float* out, __global const float* values, __global const unsigned* starts, unsigned n) {
    unsigned i = get_global_id(0);
    if (i >= n) return;
    float sum = 0;
    for (unsigned k = starts[i]; k < starts[i + 1]; ++k) sum += values[k];
    out[i] = sum;
}

// The first element of a sorted array that is not less.
__kernel void lower_bound(__global unsigned* out, __global const unsigned* sorted, __global const unsigned* keys, unsigned count, unsigned n) {
    unsigned i = get_global_id(0);
    if (i >= n) return;
    unsigned key = keys[i], low = 0, high = count;
    while (low < high) {
        unsigned middle = (low + high) / 2;
        if (sorted[middle] < key) low = middle + 1;
        else high = middle;
    }
    out[i] = low;
}

// How many keys of each 32 have each of 16 digits, counted in local memory.
__kernel void digit_counts(__global unsigned* out, __global const unsigned* keys, unsigned shift) {
    __local unsigned counts[8][16];
    unsigned i = get_global_id(0), t = get_local_id(0), lane = t & 31, warp = t >> 5;
    if (lane < 16) counts[warp][lane] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    atomic_inc(&counts[warp][keys[i] >> shift & 15]);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane < 16) out[(i >> 5) * 16 + lane] = counts[warp][lane];
}

// Keeps elements that pass a test, at the start of each part of 32.
__kernel void compact(__global unsigned* out, __global unsigned* counts, __global const unsigned* in) {
    __local uchar kept[256];
    unsigned i = get_global_id(0), t = get_local_id(0), lane = t & 31, v = in[i];
    bool keep = v % 5 < 2;
    kept[t] = keep;
    barrier(CLK_LOCAL_MEM_FENCE);
    unsigned below = 0, all = 0;
    for (unsigned k = 0; k < 32; ++k) {
        if (k == lane) below = all;
        all += kept[(t & ~31u) + k];
    }
    if (keep) out[(i & ~31u) + below] = v;
    if (lane == 0) counts[i >> 5] = all;
}

// Distances between pairs of words of sixteen letters.
__kernel void edit_distance(__global uchar* out, __global const uchar* a, __global const uchar* b, unsigned n) {
    unsigned i = get_global_id(0);
    if (i >= n) return;
    int row[17];
    for (int k = 0; k <= 16; ++k) row[k] = k;
    for (int j = 0; j < 16; ++j) {
        int letter = a[16 * i + j], corner = j;
        row[0] = j + 1;
        for (int k = 1; k <= 16; ++k) {
            int change = corner + (b[16 * i + k - 1] != letter);
            corner = row[k];
            row[k] = min(change, min(row[k], row[k - 1]) + 1);
        }
    }
    out[i] = (uchar)row[16];
}

// Samples of a distribution given by a table, with numbers by shifts.
__kernel void draw(__global unsigned* out, __global const float* cumulative, unsigned seed, unsigned n) {
    unsigned i = get_global_id(0);
    if (i >= n) return;
    unsigned s = i * 747796405u + seed, sum = 0;
    for (int k = 0; k < 8; ++k) {
        s ^= s << 13; s ^= s >> 17; s ^= s << 5;
        float u = (s >> 8) * (1.0f / 16777216.0f);
        unsigned at = 0;
        for (unsigned step = 128; step > 0; step >>= 1)
            if (cumulative[at + step - 1] < u) at += step;
        sum = sum * 257 + at;
    }
    out[i] = sum;
}

// The softmax of a row of 64 for each thread, in one pass for the largest and the sum.
__kernel void softmax_rows(__global float* out, __global const float* in, unsigned rows) {
    unsigned row = get_global_id(0);
    if (row >= rows) return;
    float most = -1e30f, sum = 0;
    for (unsigned k = 0; k < 64; ++k) {
        float v = 8 * in[row * 64 + k], larger = fmax(most, v);
        sum = sum * exp(most - larger) + exp(v - larger);
        most = larger;
    }
    for (unsigned k = 0; k < 64; ++k) out[row * 64 + k] = exp(8 * in[row * 64 + k] - most) / sum;
}

// Normalises rows of 128, one for each 32 work-items.
__kernel void layer_norm(__global float* out, __global const float* in, __global const float* scale) {
    __local float part[256];
    unsigned t = get_local_id(0), row = get_group_id(0) * 8 + t / 32, lane = t & 31;
    float v[4], sum = 0, squares = 0;
    for (int k = 0; k < 4; ++k) { v[k] = in[row * 128 + 32 * k + lane]; sum += v[k]; }
    part[t] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (unsigned o = 16; o > 0; o >>= 1) {
        if (lane < o) part[t] += part[t + o];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    float mean = part[t & ~31u] / 128;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = 0; k < 4; ++k) squares += (v[k] - mean) * (v[k] - mean);
    part[t] = squares;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (unsigned o = 16; o > 0; o >>= 1) {
        if (lane < o) part[t] += part[t + o];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    float factor = rsqrt(part[t & ~31u] / 128 + 1e-5f);
    for (int k = 0; k < 4; ++k) out[row * 128 + 32 * k + lane] = (v[k] - mean) * factor * scale[32 * k + lane];
}

// Bytes through a table.
__kernel void tone_curve(__global uchar* out, __global const uchar* in, __global const uchar* curve, unsigned n) {
    unsigned i = get_global_id(0);
    if (i < n) out[i] = curve[in[i]];
}

// A picture turned around its middle, with its pixels interpolated.
__kernel void turn_picture(__global float* out, __global const uchar* in, int width, int height, float c, float s) {
    int x = get_global_id(0), y = get_global_id(1);
    if (x >= width || y >= height) return;
    float dx = x - 0.5f * width, dy = y - 0.5f * height;
    float u = c * dx - s * dy + 0.5f * width, v = s * dx + c * dy + 0.5f * height;
    int left = (int)floor(u), top = (int)floor(v);
    float value = 0;
    if (left >= 0 && top >= 0 && left + 1 < width && top + 1 < height) {
        float a = u - left, b = v - top;
        __global const uchar* p = in + top * width + left;
        float upper = p[0] + a * ((float)p[1] - p[0]), lower = p[width] + a * ((float)p[width + 1] - p[width]);
        value = upper + b * (lower - upper);
    }
    out[y * width + x] = value;
}
