// The kernels of integers.cu in OpenCL C, for `scripts/compare-pocl`: the same algorithms in the same groups. OpenCL C 1.2 has no
// atomic additions of floats: they are made by comparing and exchanging.

__kernel void nearest_code(__global unsigned* out, __global const ulong* codes, __global const ulong* in, unsigned n) {
    unsigned i = get_global_id(0);
    if (i >= n) return;
    ulong word = in[i];
    unsigned best = 0, least = 65;
    for (unsigned k = 0; k < 64; ++k) {
        unsigned differ = popcount(word ^ codes[k]);
        if (differ < least) { least = differ; best = k; }
    }
    out[i] = best << 8 | least;
}

__kernel void common_divisors(__global unsigned* out, __global const unsigned* in, unsigned n) {
    unsigned i = get_global_id(0);
    if (i >= n) return;
    unsigned a = in[2 * i], b = in[2 * i + 1];
    while (b) { unsigned rest = a % b; a = b; b = rest; }
    out[i] = a;
}

__kernel void exchange_axes(__global float* out, __global const float* in, unsigned nx, unsigned ny, unsigned nz) {
    unsigned i = get_global_id(0);
    if (i >= nx * ny * nz) return;
    unsigned z = i % nz, y = i / nz % ny, x = i / nz / ny;
    out[i] = in[(z * ny + y) * nx + x];
}

__kernel void digit_sums(__global unsigned* out, __global const unsigned* in, unsigned n) {
    unsigned i = get_global_id(0);
    if (i >= n) return;
    unsigned sum = 0, base = 2 + (i & 15);
    for (unsigned v = in[i]; v; v /= base) sum += v % base;
    out[i] = sum;
}

void add_local(volatile __local float* at, float more) {
    volatile __local unsigned* bits = (volatile __local unsigned*)at;
    unsigned old = *bits, found;
    while ((found = atomic_cmpxchg(bits, old, as_uint(as_float(old) + more))) != old) old = found;
}

void add_global(volatile __global float* at, float more) {
    volatile __global unsigned* bits = (volatile __global unsigned*)at;
    unsigned old = *bits, found;
    while ((found = atomic_cmpxchg(bits, old, as_uint(as_float(old) + more))) != old) old = found;
}

__kernel void weigh_bins(__global float* bins, __global const unsigned* keys, __global const float* weights) {
    __local float own[64];
    unsigned t = get_local_id(0), i = get_group_id(0) * 1024 + t;
    if (t < 64) own[t] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (unsigned k = 0; k < 4; ++k) add_local(&own[keys[i + 256 * k] & 63], weights[i + 256 * k]);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (t < 64) add_global(&bins[t], own[t]);
}

__kernel void code_lengths(__global unsigned* out, __global const unsigned* in, unsigned n) {
    unsigned i = get_global_id(0);
    if (i >= n) return;
    unsigned v = in[i] >> (i & 31), length = 2 * (32 - clz(v | 1)) - 1;
    unsigned lowest = v ? 32 - clz(v & -v) : 0;
    out[i] = length << 16 | lowest << 8 | popcount(v);
}

__kernel void fold_products(__global ulong* out, __global const ulong* in, unsigned n) {
    unsigned i = get_global_id(0);
    if (i >= n) return;
    ulong h = in[i];
    for (unsigned k = 0; k < 8; ++k) {
        ulong a = h ^ 0xa0761d6478bd642ful, b = (h << 29 | h >> 35) ^ 0xe7037ed1a0b428dbul + k;
        h = a * b ^ mul_hi(a, b);
    }
    out[i] = h;
}

__kernel void ranks(__global unsigned* out, __global const unsigned* words, __global const unsigned* places, unsigned n) {
    unsigned i = get_global_id(0);
    if (i >= n) return;
    unsigned place = places[i] & 0x1ffff, first = place >> 5 & ~7u, count = 0;
    for (unsigned k = 0; k < 8; ++k) {
        unsigned start = (first + k) * 32, inside = place > start ? min(place - start, 32u) : 0;
        unsigned mask = inside == 32 ? 0xffffffffu : (1u << inside) - 1;
        count += popcount(words[first + k] & mask);
    }
    out[i] = count;
}
