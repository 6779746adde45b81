// Further kernels that `scripts/compare-pocl` runs, in CUDA C++: steps of ordinary programs, written without looking at what the code
// generator does with them. programs.cl has the same in OpenCL C. programs.ptx is made of this file by scripts/compile-kernels.
// arch: compute_80

// A sparse product whose rows have one length, column by column; a negative column ends a row.
extern "C" __global__ void ell_product(float* y, const int* columns, const float* values, const float* x, unsigned width, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
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
extern "C" __global__ void frontier(unsigned* next, const unsigned* levels, const unsigned* starts, const unsigned* edges, unsigned level, unsigned n) {
    unsigned v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n || levels[v] != level) return;
    for (unsigned k = starts[v]; k < starts[v + 1]; ++k) {
        unsigned other = edges[k];
        if (levels[other] == 0xffffffffu) next[other] = level + 1;
    }
}

// The gradient of a picture, whose border is repeated.
extern "C" __global__ void sobel(unsigned char* out, const unsigned char* in, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    int p[3][3];
    for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx)
            p[dy + 1][dx + 1] = in[min(max(y + dy, 0), height - 1) * width + min(max(x + dx, 0), width - 1)];
    int gx = p[0][2] + 2 * p[1][2] + p[2][2] - p[0][0] - 2 * p[1][0] - p[2][0];
    int gy = p[2][0] + 2 * p[2][1] + p[2][2] - p[0][0] - 2 * p[0][1] - p[0][2];
    out[y * width + x] = (unsigned char)min(abs(gx) + abs(gy), 255);
}

// The largest of nine bytes, of those inside the picture.
extern "C" __global__ void dilate(unsigned char* out, const unsigned char* in, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    int most = 0;
    for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx) {
            int u = x + dx, v = y + dy;
            if (u >= 0 && u < width && v >= 0 && v < height) most = max(most, (int)in[v * width + u]);
        }
    out[y * width + x] = (unsigned char)most;
}

// The median of nine bytes, by a network; the border is copied.
extern "C" __global__ void median9(unsigned char* out, const unsigned char* in, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    int at = y * width + x;
    if (x == 0 || y == 0 || x == width - 1 || y == height - 1) { out[at] = in[at]; return; }
    int v[9];
    for (int k = 0; k < 9; ++k) v[k] = in[at + (k / 3 - 1) * width + k % 3 - 1];
#define SORT(a, b) { int low = min(v[a], v[b]); v[b] = max(v[a], v[b]); v[a] = low; }
    SORT(1, 2) SORT(4, 5) SORT(7, 8) SORT(0, 1) SORT(3, 4) SORT(6, 7) SORT(1, 2) SORT(4, 5) SORT(7, 8)
    SORT(0, 3) SORT(5, 8) SORT(4, 7) SORT(3, 6) SORT(1, 4) SORT(2, 5) SORT(4, 7) SORT(4, 2) SORT(6, 4) SORT(4, 2)
#undef SORT
    out[at] = (unsigned char)v[4];
}

// The inverse of each matrix of 3 by 3.
extern "C" __global__ void inverse3(float* out, const float* in, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float* m = in + 9 * i;
    float a = m[0] + 2, b = m[1], c = m[2], d = m[3], e = m[4] + 2, f = m[5], g = m[6], h = m[7], k = m[8] + 2;
    float p = e * k - f * h, q = f * g - d * k, r = d * h - e * g, scale = 1.0f / (a * p + b * q + c * r);
    float* o = out + 9 * i;
    o[0] = p * scale; o[1] = (c * h - b * k) * scale; o[2] = (b * f - c * e) * scale;
    o[3] = q * scale; o[4] = (a * k - c * g) * scale; o[5] = (c * d - a * f) * scale;
    o[6] = r * scale; o[7] = (b * g - a * h) * scale; o[8] = (a * e - b * d) * scale;
}

// Points turned by quaternions.
extern "C" __global__ void turn_points(float4* out, const float4* points, const float4* turns, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 p = points[i], q = turns[i];
    float scale = rsqrtf(q.x * q.x + q.y * q.y + q.z * q.z + q.w * q.w);
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
extern "C" __global__ void product4(float* c, const float* a, const float* b, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned first = i & ~15u, row = i >> 2 & 3, column = i & 3;
    float sum = 0;
    for (unsigned k = 0; k < 4; ++k) sum += a[first + 4 * row + k] * b[first + 4 * k + column];
    c[i] = sum;
}

// A step of diffusion with seven points; what lies outside is the point itself.
extern "C" __global__ void diffuse7(float* out, const float* in, int nx, int ny, int nz) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, z = blockIdx.z;
    if (x >= nx || y >= ny) return;
    int at = (z * ny + y) * nx + x;
    float v = in[at];
    float left = x > 0 ? in[at - 1] : v, right = x < nx - 1 ? in[at + 1] : v;
    float front = y > 0 ? in[at - nx] : v, back = y < ny - 1 ? in[at + nx] : v;
    float below = z > 0 ? in[at - nx * ny] : v, above = z < nz - 1 ? in[at + nx * ny] : v;
    out[at] = v + 0.1f * (left + right + front + back + below + above - 6 * v);
}

// Transposes tiles in shared memory with padded rows.
extern "C" __global__ void transpose_padded(float* out, const float* in, unsigned width, unsigned height) {
    __shared__ float tile[32][33];
    unsigned x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (unsigned k = 0; k < 32; k += 8) tile[threadIdx.y + k][threadIdx.x] = in[(y + k) * width + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    for (unsigned k = 0; k < 32; k += 8) out[(y + k) * height + x] = tile[threadIdx.x][threadIdx.y + k];
}

// Characters and sums of code points of text in UTF-8, 48 bytes or a little more a thread.
extern "C" __global__ void characters(unsigned* out, const unsigned char* text, const unsigned* starts, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
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
extern "C" __global__ void insert_keys(unsigned* table, const unsigned* keys, unsigned mask, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned key = keys[i] + 1, slot = key * 2654435769u >> 8 & mask;
    while (true) {
        unsigned old = atomicCAS(&table[slot], 0u, key);
        if (old == 0 || old == key) break;
        slot = (slot + 1) & mask;
    }
}

// Values of keys in a table with open addressing.
extern "C" __global__ void find_keys(unsigned* out, const unsigned* table, const unsigned* keys, unsigned mask, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned key = keys[i] + 1, slot = key * 2654435769u >> 8 & mask, found = 0xffffffffu;
    while (table[2 * slot] != 0) {
        if (table[2 * slot] == key) { found = table[2 * slot + 1]; break; }
        slot = (slot + 1) & mask;
    }
    out[i] = found;
}

// Sums of segments of different lengths.
extern "C" __global__ void segment_sums(float* out, const float* values, const unsigned* starts, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0;
    for (unsigned k = starts[i]; k < starts[i + 1]; ++k) sum += values[k];
    out[i] = sum;
}

// The first element of a sorted array that is not less.
extern "C" __global__ void lower_bound(unsigned* out, const unsigned* sorted, const unsigned* keys, unsigned count, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned key = keys[i], low = 0, high = count;
    while (low < high) {
        unsigned middle = (low + high) / 2;
        if (sorted[middle] < key) low = middle + 1;
        else high = middle;
    }
    out[i] = low;
}

// How many keys of each warp have each of 16 digits, by votes.
extern "C" __global__ void digit_counts(unsigned* out, const unsigned* keys, unsigned shift) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31;
    unsigned digit = keys[i] >> shift & 15, same = lane < 16 ? 0xffffffffu : 0;
    for (unsigned bit = 0; bit < 4; ++bit) {
        unsigned votes = __ballot_sync(0xffffffffu, digit >> bit & 1);
        same &= lane >> bit & 1 ? votes : ~votes;
    }
    if (lane < 16) out[(i >> 5) * 16 + lane] = __popc(same);
}

// Keeps elements that pass a test, at the start of each warp's part.
extern "C" __global__ void compact(unsigned* out, unsigned* counts, const unsigned* in) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31;
    unsigned v = in[i];
    bool keep = v % 5 < 2;
    unsigned votes = __ballot_sync(0xffffffffu, keep);
    if (keep) out[(i & ~31u) + __popc(votes & ((1u << lane) - 1))] = v;
    if (lane == 0) counts[i >> 5] = __popc(votes);
}

// Distances between pairs of words of sixteen letters.
extern "C" __global__ void edit_distance(unsigned char* out, const unsigned char* a, const unsigned char* b, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int row[17];
#pragma unroll
    for (int k = 0; k <= 16; ++k) row[k] = k;
    for (int j = 0; j < 16; ++j) {
        int letter = a[16 * i + j], corner = j;
        row[0] = j + 1;
#pragma unroll
        for (int k = 1; k <= 16; ++k) {
            int change = corner + (b[16 * i + k - 1] != letter);
            corner = row[k];
            row[k] = min(change, min(row[k], row[k - 1]) + 1);
        }
    }
    out[i] = (unsigned char)row[16];
}

// Samples of a distribution given by a table, with numbers by shifts.
extern "C" __global__ void draw(unsigned* out, const float* cumulative, unsigned seed, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
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
extern "C" __global__ void softmax_rows(float* out, const float* in, unsigned rows) {
    unsigned row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float most = -1e30f, sum = 0;
    for (unsigned k = 0; k < 64; ++k) {
        float v = 8 * in[row * 64 + k], larger = fmaxf(most, v);
        sum = sum * expf(most - larger) + expf(v - larger);
        most = larger;
    }
    for (unsigned k = 0; k < 64; ++k) out[row * 64 + k] = expf(8 * in[row * 64 + k] - most) / sum;
}

// Normalises rows of 128, one a warp, by shuffles.
extern "C" __global__ void layer_norm(float* out, const float* in, const float* scale) {
    unsigned row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x & 31;
    float v[4], sum = 0, squares = 0;
    for (int k = 0; k < 4; ++k) { v[k] = in[row * 128 + 32 * k + lane]; sum += v[k]; }
    for (int o = 16; o > 0; o >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, o);
    float mean = sum / 128;
    for (int k = 0; k < 4; ++k) squares += (v[k] - mean) * (v[k] - mean);
    for (int o = 16; o > 0; o >>= 1) squares += __shfl_xor_sync(0xffffffffu, squares, o);
    float factor = rsqrtf(squares / 128 + 1e-5f);
    for (int k = 0; k < 4; ++k) out[row * 128 + 32 * k + lane] = (v[k] - mean) * factor * scale[32 * k + lane];
}

// Bytes through a table.
extern "C" __global__ void tone_curve(unsigned char* out, const unsigned char* in, const unsigned char* curve, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = curve[in[i]];
}

// A picture turned around its middle, with its pixels interpolated.
extern "C" __global__ void turn_picture(float* out, const unsigned char* in, int width, int height, float c, float s) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    float dx = x - 0.5f * width, dy = y - 0.5f * height;
    float u = c * dx - s * dy + 0.5f * width, v = s * dx + c * dy + 0.5f * height;
    int left = (int)floorf(u), top = (int)floorf(v);
    float value = 0;
    if (left >= 0 && top >= 0 && left + 1 < width && top + 1 < height) {
        float a = u - left, b = v - top;
        const unsigned char* p = in + top * width + left;
        float upper = p[0] + a * ((float)p[1] - p[0]), lower = p[width] + a * ((float)p[width + 1] - p[width]);
        value = upper + b * (lower - upper);
    }
    out[y * width + x] = value;
}
