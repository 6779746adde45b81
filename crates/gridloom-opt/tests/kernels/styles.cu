// arch: compute_80
//
// Kernels in the styles in which people write them. Each computes `to` from `from`, both of `n`
// words, in any grid of blocks of 64 threads along x, whatever the other blocks do. `by` makes two
// launches of one kernel differ.

#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

namespace cg = cooperative_groups;

typedef unsigned int u32;
typedef unsigned long long u64;
typedef unsigned char u8;

#define KERNEL extern "C" __global__ void
#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)
#define ARGUMENTS u32 *__restrict__ to, const u32 *__restrict__ from, u32 n, u32 by

// --- One element for each thread.

KERNEL plain(ARGUMENTS) {
    u32 i = INDEX;
    if (i < n) to[i] = from[i] * 3 + by;
}

KERNEL signed_index(int *to, const int *from, int n, int by) {
    int i = int(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= n) return;
    to[i] = from[i] / (by % 7 + 2) - from[i] % 5;
}

KERNEL wide_index(ARGUMENTS) {
    size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < size_t(n)) to[i] = from[i] ^ by;
}

KERNEL pointers_move(u32 *to, const u32 *from, u32 n, u32 by) {
    const u32 *end = from + n;
    to += INDEX;
    for (from += INDEX; from < end; from += gridDim.x * blockDim.x, to += gridDim.x * blockDim.x) *to = *from + by;
}

KERNEL in_place(ARGUMENTS) {
    u32 i = INDEX;
    if (i < n) to[i] = to[i] * 5 + by;
}

KERNEL pairs(ARGUMENTS) {
    u32 i = INDEX;
    if (2 * i + 1 < n) {
        uint2 two = reinterpret_cast<const uint2 *>(from)[i];
        reinterpret_cast<uint2 *>(to)[i] = make_uint2(two.y + by, two.x * 3);
    }
}

KERNEL quadruples(ARGUMENTS) {
    for (u32 i = INDEX; i < n / 4; i += gridDim.x * blockDim.x) {
        uint4 four = reinterpret_cast<const uint4 *>(from)[i];
        four.x += by, four.y ^= four.x, four.z *= 3, four.w = __brev(four.w);
        reinterpret_cast<uint4 *>(to)[i] = four;
    }
}

KERNEL every_other(ARGUMENTS) {
    u32 i = 2 * INDEX + (by & 1);
    if (i < n) to[i] += from[i ^ 1];
}

KERNEL bytes_of_words(u8 *to, const u8 *from, u32 n, u8 by) {
    u32 i = INDEX;
    if (i < 4 * n) to[i] = u8((from[i] * 3 + by) >> 1);
}

KERNEL shorts(short *to, const short *from, unsigned short n, short by) {
    int i = INDEX;
    if (i < n) to[i] = short(max(min(from[i] * 2 - by, 9999), -9999));
}

struct Arguments {
    u32 *to;
    const u32 *from;
    u32 n, by;
};

KERNEL one_structure(Arguments all) {
    u32 i = INDEX;
    if (i < all.n) all.to[i] = all.from[i] - all.by;
}

template <typename Function>
__device__ __forceinline__ void for_each(u32 n, Function function) {
    for (u32 i = INDEX; i < n; i += gridDim.x * blockDim.x) function(i);
}

KERNEL lambda(ARGUMENTS) {
    for_each(n, [=](u32 i) { to[i] = from[i] * by + i; });
}

// --- Elements of other threads.

KERNEL stencil(ARGUMENTS) {
    u32 i = INDEX;
    if (i >= n) return;
    u32 left = i > 0 ? from[i - 1] : 1, right = i + 1 < n ? from[i + 1] : 2;
    to[i] = left * 3 + from[i] + right * 7 + by;
}

KERNEL reversed(ARGUMENTS) {
    u32 i = INDEX;
    if (i < n) to[n - 1 - i] = from[i] + by;
}

KERNEL shifted(ARGUMENTS) {
    u32 i = INDEX;
    if (i + 1 < n) to[i + 1] = from[i] + by;
}

KERNEL gather(ARGUMENTS) {
    u32 i = INDEX;
    if (i < n) to[i] = from[from[i] % n] + by;
}

KERNEL scatter(ARGUMENTS) {
    u32 i = INDEX;
    if (i < n) atomicAdd(&to[(from[i] + by) % n], i);
}

KERNEL extremes(ARGUMENTS) {
    u32 i = INDEX;
    if (i >= n) return;
    atomicMax(&to[from[i] % 8], from[i] + by);
    atomicMin(&to[8 + from[i] % 8], from[i]);
    atomicXor(&to[16 + i % 8], from[i] * by);
}

KERNEL float_sums_in_order(ARGUMENTS) {
    u32 i = INDEX;
    if (i >= n / 8) return;
    float sum = 0;
    for (u32 at = 0; at < 8; at++) sum = fmaf(sum, 0.5f, float(from[8 * i + at] & 0xffff));
    to[i] = __float_as_uint(sum + by);
}

KERNEL one_thread(ARGUMENTS) {
    if (INDEX != 0) return;
    u32 state = by;
    for (u32 i = 0; i < n; i++) state = state * 1664525 + from[i], to[i] = state >> 3;
}

KERNEL scalar_of_all(ARGUMENTS) {
    if (INDEX == 0) {
        u32 sum = 0;
        for (u32 i = 0; i < n; i++) sum += from[i];
        to[by % n] = sum;
    }
}

KERNEL uses_a_scalar(ARGUMENTS) {
    u32 i = INDEX;
    u32 scale = __ldg(from + by % n);
    if (i < n) to[i] = to[i] * (scale | 1);
}

// --- Shared memory and barriers.

KERNEL block_reduction(ARGUMENTS) {
    __shared__ u32 sums[64];
    u32 sum = 0;
    for (u32 i = INDEX; i < n; i += gridDim.x * blockDim.x) sum += from[i];
    sums[threadIdx.x] = sum;
    __syncthreads();
    for (u32 step = blockDim.x / 2; step > 0; step >>= 1) {
        if (threadIdx.x < step) sums[threadIdx.x] += sums[threadIdx.x + step];
        __syncthreads();
    }
    if (threadIdx.x == 0) to[blockIdx.x % n] = sums[0] + by;
}

KERNEL warp_reduction(ARGUMENTS) {
    __shared__ u32 warps[2];
    u32 value = INDEX < n ? from[INDEX] : 0;
    for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(0xffffffffu, value, step);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(&to[by % n], warps[0] + warps[1]);
}

KERNEL block_scan(ARGUMENTS) {
    __shared__ u32 now[64], next[64];
    u32 i = INDEX;
    now[threadIdx.x] = i < n ? from[i] : 0;
    __syncthreads();
    for (u32 step = 1; step < blockDim.x; step *= 2) {
        next[threadIdx.x] = now[threadIdx.x] + (threadIdx.x >= step ? now[threadIdx.x - step] : 0);
        __syncthreads();
        now[threadIdx.x] = next[threadIdx.x];
        __syncthreads();
    }
    if (i < n) to[i] = now[threadIdx.x] + by;
}

KERNEL group_scan(ARGUMENTS) {
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    u32 i = INDEX;
    u32 value = cg::inclusive_scan(warp, i < n ? from[i] + by : 0u);
    if (i < n) to[i] = value;
}

KERNEL labeled_groups(ARGUMENTS) {
    u32 i = INDEX;
    if (i >= n) return;
    auto group = cg::labeled_partition(cg::coalesced_threads(), from[i] % 4);
    to[i] = group.size() * 100 + group.thread_rank() + by;
}

KERNEL shared_histogram(ARGUMENTS) {
    __shared__ u32 bins[16];
    if (threadIdx.x < 16) bins[threadIdx.x] = 0;
    __syncthreads();
    for (u32 i = INDEX; i < n; i += gridDim.x * blockDim.x) atomicAdd(&bins[(from[i] + by) % 16], 1);
    __syncthreads();
    if (threadIdx.x < 16 && bins[threadIdx.x]) atomicAdd(&to[threadIdx.x % n], bins[threadIdx.x]);
}

KERNEL transposed_tile(ARGUMENTS) {
    __shared__ u32 tile[8][9];
    u32 x = threadIdx.x % 8, y = threadIdx.x / 8, i = INDEX;
    tile[y][x] = i < n ? from[i] : by;
    __syncthreads();
    if (i < n) to[i] = tile[x][y] + by;
}

KERNEL tiled_product(ARGUMENTS) {
    __shared__ u32 a[8][8], b[8][8];
    u32 x = threadIdx.x % 8, y = threadIdx.x / 8, sum = 0;
    u32 tiles = n / 64;
    for (u32 tile = 0; tile < tiles; tile++) {
        a[y][x] = from[tile * 64 + y * 8 + x];
        b[y][x] = from[((tile + blockIdx.x) % tiles) * 64 + x * 8 + y];
        __syncthreads();
#pragma unroll
        for (u32 k = 0; k < 8; k++) sum += a[y][k] * b[k][x];
        __syncthreads();
    }
    if (INDEX < n) to[INDEX] = sum + by;
}

KERNEL odd_even_sort(ARGUMENTS) {
    __shared__ u32 values[64];
    u32 i = INDEX;
    values[threadIdx.x] = i < n ? from[i] ^ by : 0xffffffffu;
    __syncthreads();
    for (u32 pass = 0; pass < 64; pass++) {
        u32 at = 2 * threadIdx.x + pass % 2;
        if (at + 1 < 64 && values[at] > values[at + 1]) {
            u32 other = values[at];
            values[at] = values[at + 1];
            values[at + 1] = other;
        }
        __syncthreads();
    }
    if (i < n) to[i] = values[threadIdx.x];
}

// How often it repeats is known to the block only once it ran.
KERNEL until_nothing_changes(ARGUMENTS) {
    __shared__ u32 values[64];
    u32 i = INDEX;
    values[threadIdx.x] = i < n ? from[i] % 64 + by % 3 : 0;
    int changed;
    do {
        __syncthreads();
        u32 own = values[threadIdx.x], next = values[(threadIdx.x + 1) % 64];
        int less = own > next + 1;
        __syncthreads();
        if (less) values[threadIdx.x] = own - 1;
        changed = __syncthreads_or(less);
    } while (changed);
    if (i < n) to[i] = values[threadIdx.x];
}

KERNEL flag_in_shared(ARGUMENTS) {
    __shared__ u32 again, steps;
    if (threadIdx.x == 0) again = 1, steps = 0;
    __syncthreads();
    while (again) {
        __syncthreads();
        if (threadIdx.x == 0) steps++, again = steps < by % 5 + 1;
        __syncthreads();
    }
    if (INDEX < n) to[INDEX] = from[INDEX] * steps;
}

KERNEL barrier_under_an_argument(ARGUMENTS) {
    __shared__ u32 values[64];
    u32 i = INDEX;
    u32 own = i < n ? from[i] : 0;
    if (by & 1) {
        values[threadIdx.x] = own;
        __syncthreads();
        own += values[63 - threadIdx.x];
    } else if (blockIdx.x % 2) {
        values[63 - threadIdx.x] = own;
        __syncthreads();
        own ^= values[threadIdx.x];
    }
    if (i < n) to[i] = own;
}

extern __shared__ u64 dynamic[];

KERNEL dynamic_in_two(ARGUMENTS) {
    u32 *words = reinterpret_cast<u32 *>(dynamic + 32);
    u32 i = INDEX, own = i < n ? from[i] : 0;
    if (threadIdx.x < 32) dynamic[threadIdx.x] = u64(own) * by;
    else words[threadIdx.x - 32] = own;
    __syncthreads();
    if (i < n) to[i] = u32(dynamic[threadIdx.x % 32] >> 7) + words[threadIdx.x % 32];
}

KERNEL volatile_warp_sum(ARGUMENTS) {
    __shared__ volatile u32 sums[64];
    u32 i = INDEX, lane = threadIdx.x % 32;
    sums[threadIdx.x] = i < n ? from[i] : 0;
    __syncwarp();
    for (u32 step = 16; step > 0; step /= 2) {
        if (lane < step) sums[threadIdx.x] += sums[threadIdx.x + step];
        __syncwarp();
    }
    if (i < n) to[i] = sums[threadIdx.x & ~31u] + by;
}

__device__ __noinline__ u32 neighbour_in(const u32 *words, u32 at) { return words[(at + 1) % 64]; }
__device__ __noinline__ void store_in(u32 *words, u32 at, u32 value) { words[at] = value; }

KERNEL shared_through_functions(ARGUMENTS) {
    __shared__ u32 words[64];
    u32 i = INDEX;
    store_in(words, threadIdx.x, i < n ? from[i] : by);
    __syncthreads();
    u32 value = neighbour_in(words, threadIdx.x);
    if (i < n) to[i] = value + by;
}

// --- Warps.

KERNEL compaction(ARGUMENTS) {
    u32 i = INDEX, lane = threadIdx.x % 32;
    u32 value = i < n ? from[i] : 0;
    u32 kept = __ballot_sync(0xffffffffu, i < n && (value + by) % 3 == 0);
    u32 place = __popc(kept & ((1u << lane) - 1));
    if (i < n) to[i] = (kept >> lane & 1) ? value + place : __popc(kept);
}

KERNEL loop_while_any(ARGUMENTS) {
    u32 i = INDEX;
    u32 value = i < n ? from[i] % 32 : 0, rounds = 0;
    while (__any_sync(0xffffffffu, value > by % 4)) {
        if (value > by % 4) value--;
        rounds++;
    }
    if (i < n) to[i] = value * 64 + rounds;
}

KERNEL broadcast_of_lanes(ARGUMENTS) {
    u32 i = INDEX;
    u32 value = i < n ? from[i] : 0, sum = 0;
    for (u32 lane = 0; lane < 32; lane += by % 3 + 1) sum = sum * 3 + __shfl_sync(0xffffffffu, value, lane);
    if (i < n) to[i] = sum;
}

// --- Arithmetic.

KERNEL collatz(ARGUMENTS) {
    u32 i = INDEX;
    if (i >= n) return;
    u32 value = from[i] % 1000 + 1, steps = 0;
    while (value != 1 && steps < 200) value = value % 2 ? 3 * value + 1 : value / 2, steps++;
    to[i] = steps + by;
}

KERNEL searches(ARGUMENTS) {
    u32 i = INDEX;
    if (i >= n) return;
    u32 low = 0, high = n, wanted = i * 7 + by;
    while (low < high) {
        u32 middle = (low + high) / 2;
        if (from[middle] % 4096 < wanted % 4096) low = middle + 1;
        else high = middle;
    }
    to[i] = low;
}

KERNEL small_matrices(ARGUMENTS) {
    u32 i = INDEX;
    if (i >= n / 9) return;
    int a[3][3], b[3][3] = {};
    for (int r = 0; r < 3; r++) for (int c = 0; c < 3; c++) a[r][c] = int(from[9 * i + 3 * r + c] % 100);
    for (int r = 0; r < 3; r++) for (int c = 0; c < 3; c++) for (int k = 0; k < 3; k++) b[r][c] += a[r][k] * a[k][c];
    for (int r = 0; r < 3; r++) for (int c = 0; c < 3; c++) to[9 * i + 3 * r + c] = u32(b[r][c]) + by;
}

KERNEL doubles(ARGUMENTS) {
    u32 i = INDEX;
    if (i >= n) return;
    double x = double(from[i]) * 1e-3 + by;
    to[i] = u32(sqrt(x) * 1e3) + u32(log(x + 1) * 1e4) + u32(1e5 / (x + 1));
}

KERNEL fast_floats(ARGUMENTS) {
    u32 i = INDEX;
    if (i >= n) return;
    float x = float(from[i] % 1000) * 0.01f;
    to[i] = __float_as_uint(rsqrtf(x + 1.0f) + __fdividef(float(by), x + 2.0f) + fabsf(truncf(x)));
}

KERNEL halves(ARGUMENTS) {
    u32 i = INDEX;
    if (i >= n) return;
    __half2 x = *reinterpret_cast<const __half2 *>(&from[i]);
    x = __hadd2(__hmul2(x, __float2half2_rn(0.25f)), __float2half2_rn(float(by % 8)));
    u32 bits = *reinterpret_cast<u32 *>(&x);
    to[i] = __hisnan(__low2half(x)) || __hisnan(__high2half(x)) ? 0 : bits;
}

KERNEL brain_floats(ARGUMENTS) {
    u32 i = INDEX;
    if (i < n) to[i] = __bfloat16_as_ushort(__float2bfloat16(float(from[i]) + float(by)));
}

KERNEL long_numbers(ARGUMENTS) {
    u32 i = INDEX;
    if (i >= n) return;
    u64 x = u64(from[i]) << 31 | by;
    u64 high = __umul64hi(x, 0x9e3779b97f4a7c15ull);
    to[i] = u32(high ^ (x % 1000003) ^ (high / 77)) + __clzll(x) + __popcll(high);
}

KERNEL bits(ARGUMENTS) {
    u32 i = INDEX;
    if (i < n) to[i] = __byte_perm(from[i], by, 0x3175) + __funnelshift_r(from[i], by, i) + (from[i] >> 5 & 0x7f);
}

KERNEL states(ARGUMENTS) {
    u32 i = INDEX;
    if (i >= n) return;
    u32 state = 0, word = from[i] + by;
    for (int bit = 0; bit < 32; bit++) {
        switch (state) {
        case 0: state = word >> bit & 1 ? 3 : 1; break;
        case 1: state = word >> bit & 1 ? 2 : 5; break;
        case 2: state = 4; break;
        case 3: if (bit > 20) goto found; state = word >> bit & 1 ? 6 : 0; break;
        case 4: state = bit % 3; break;
        case 5: state = word >> bit & 1 ? 7 : 3; break;
        case 6: to[i] = word; return;
        default: state = 0;
        }
    }
found:
    to[i] = state * 1000 + word % 7;
}

KERNEL hints(ARGUMENTS) {
    u32 i = INDEX;
    if (i >= n) return;
    u32 sum = __ldcg(from + i) + __ldcs(from + (i + 1) % n) + __ldca(from + (i + 2) % n) + __ldlu(from + i);
    __stcs(to + i, sum + by);
}

KERNEL copies_in_local(ARGUMENTS) {
    u32 i = INDEX;
    if (i >= n / 8) return;
    u32 own[8];
    memcpy(own, from + 8 * i, sizeof own);
    for (u32 at = 0; at < 8; at++) own[(at * by + i) % 8] ^= own[at];
    memcpy(to + 8 * i, own, sizeof own);
}

KERNEL __launch_bounds__(64) bounded(ARGUMENTS) {
    u32 i = INDEX;
    if (i < n) to[i] = from[i] * 11 + by;
}

KERNEL predicated_assembly(ARGUMENTS) {
    u32 i = INDEX;
    if (i >= n) return;
    u32 value = from[i];
    asm("{ .reg .pred p, q; .reg .u32 t;\n setp.gt.and.u32 p|q, %0, %1, 1;\n @p add.u32 %0, %0, 3;\n"
        " @!p mul.lo.u32 %0, %0, 5;\n selp.u32 t, %0, %1, q;\n xor.b32 %0, %0, t; }" : "+r"(value) : "r"(by));
    to[i] = value;
}

// --- What may stop a launch, or refers to its module.

KERNEL checked(ARGUMENTS) {
    u32 i = INDEX;
    if (i >= n) return;
    if (by == 0xdeadbeefu) __trap();
    to[i] = from[i] + by;
}

__constant__ u32 weights[4] = {3, 5, 7, 11};

KERNEL weighted(ARGUMENTS) {
    u32 i = INDEX;
    if (i < n) to[i] = from[i] * weights[(i + by) % 4];
}

KERNEL own_table(ARGUMENTS) {
    static const u32 primes[8] = {2, 3, 5, 7, 11, 13, 17, 19};
    u32 i = INDEX;
    if (i < n) to[i] = from[i] * primes[(from[i] + by) % 8];
}

KERNEL asserted(ARGUMENTS) {
    u32 i = INDEX;
    if (i >= n) return;
    assert(by != 0xdeadbeefu);
    to[i] = from[i] + by;
}

KERNEL asserted_between_barriers(ARGUMENTS) {
    __shared__ u32 words[64];
    u32 i = INDEX;
    words[threadIdx.x] = i < n ? from[i] : by;
    __syncthreads();
    assert(words[0] != 0xdeadbeefu && "no such word");
    if (i < n) to[i] = words[63 - threadIdx.x];
}

KERNEL printed(ARGUMENTS) {
    u32 i = INDEX;
    if (by == 0xdeadbeefu) printf("%u\n", i);
    if (i < n) to[i] = from[i] + by;
}
