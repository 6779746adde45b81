// arch: compute_80
//
// Kernels as a compiler writes them, for the optimiser to combine or to refuse. Each has blocks of
// 64 threads and works on a row of `data` of its own for each block: data[i] for its thread i of the
// grid. `by` makes two launches of one kernel differ.

#include <cuda_fp16.h>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_pipeline_primitives.h>

namespace cg = cooperative_groups;

typedef unsigned int u32;
typedef unsigned long long u64;

#define KERNEL extern "C" __global__ void
#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)

// Threads past the end return before a barrier of the block.
KERNEL early_return_before_barrier(u32 *data, u32 by) {
    __shared__ u32 words[64];
    if (threadIdx.x >= 48) return;
    words[threadIdx.x] = data[INDEX] + by;
    __syncthreads();
    data[INDEX] = words[47 - threadIdx.x] * 3;
}

// The whole block returns or nobody does.
KERNEL uniform_return_before_barrier(u32 *data, u32 by) {
    __shared__ u32 words[64];
    if (by % 7 == 3) return;
    words[threadIdx.x] = data[INDEX] + by;
    __syncthreads();
    data[INDEX] = words[63 - threadIdx.x] * 5;
}

// A whole warp returns. The other one synchronises only itself.
KERNEL warp_returns(u32 *data, u32 by) {
    if (threadIdx.x >= 32) return;
    u32 value = data[INDEX] + by;
    for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step) >> 1;
    data[INDEX] = value;
}

// Some lanes return, and the others vote among themselves.
KERNEL lanes_return_before_vote(u32 *data, u32 by) {
    if ((data[INDEX] + by) % 3 == 0) return;
    u32 mask = __activemask();
    data[INDEX] += __popc(__ballot_sync(mask, data[INDEX] & 1)) + by;
}

KERNEL tree_reduction(u32 *data, u32 by) {
    __shared__ u32 words[64];
    words[threadIdx.x] = data[INDEX] ^ by;
    __syncthreads();
    for (u32 step = 32; step > 0; step /= 2) {
        if (threadIdx.x < step) words[threadIdx.x] += words[threadIdx.x + step];
        __syncthreads();
    }
    data[INDEX] += words[0] + threadIdx.x;
}

KERNEL cooperative_tiles(u32 *data, u32 by) {
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<16> tile = cg::tiled_partition<16>(block);
    u32 sum = cg::reduce(tile, data[INDEX] + by, cg::plus<u32>());
    block.sync();
    if (tile.thread_rank() % 2) {
        cg::coalesced_group odd = cg::coalesced_threads();
        sum += odd.shfl(sum, 0) + odd.size();
    }
    data[INDEX] = sum + tile.meta_group_rank();
}

KERNEL pipelined_copy(u32 *data, u32 by) {
    __shared__ u32 words[2][64];
    __pipeline_memcpy_async(&words[0][threadIdx.x], &data[INDEX], 4);
    __pipeline_commit();
    __pipeline_memcpy_async(&words[1][63 - threadIdx.x], &data[INDEX], 4);
    __pipeline_commit();
    __pipeline_wait_prior(1);
    u32 own = words[0][threadIdx.x];
    __pipeline_wait_prior(0);
    __syncthreads();
    data[INDEX] = own * 7 + words[1][threadIdx.x] + by;
}

// Leaves a copy that nobody waited for.
KERNEL unwaited_copy(u32 *data, u32 by) {
    __shared__ u32 words[64];
    __pipeline_memcpy_async(&words[threadIdx.x], &data[INDEX], 4);
    if (threadIdx.x % 2) return;
    __pipeline_wait_prior(0);
    data[INDEX] = words[threadIdx.x] + by;
}

KERNEL prints(u32 *data, u32 by) {
    if (data[INDEX] == 0x12345678u) printf("%u\n", by);
    data[INDEX] += by;
}

KERNEL packed_halves(u32 *data, u32 by) {
    __half2 value = __floats2half2_rn(float(data[INDEX] & 255), float(by & 31));
    value = __hfma2(value, value, __float2half2_rn(0.5f));
    value = __hmax2(value, __hneg2(value));
    data[INDEX] = *reinterpret_cast<u32 *>(&value);
}

KERNEL textures(u32 *data, cudaTextureObject_t texture) {
    data[INDEX] = tex1Dfetch<u32>(texture, threadIdx.x);
}

KERNEL volatile_words(u32 *data, u32 by) {
    __shared__ volatile u32 words[64];
    volatile u32 *own = data + INDEX;
    words[threadIdx.x] = *own;
    __threadfence_block();
    __syncthreads();
    *own = words[(threadIdx.x + 1) % 64] + by;
    *own = *own * 3;
}

KERNEL scoped_atomics(u32 *data, u32 by) {
    __shared__ u32 sum;
    if (threadIdx.x == 0) sum = by;
    __syncthreads();
    atomicAdd_block(&sum, data[INDEX]);
    __syncthreads();
    u32 old, seen;
    asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], %2;" : "=r"(old) : "l"(data + INDEX), "r"(sum) : "memory");
    asm volatile("red.release.cta.global.max.u32 [%0], %1;" : : "l"(data + INDEX), "r"(old) : "memory");
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(data + INDEX) : "memory");
    asm volatile("st.release.cluster.global.u32 [%0], %1;" : : "l"(data + INDEX), "r"(seen * 3) : "memory");
}

KERNEL acquire_release_in_block(u32 *data, u32 by) {
    __shared__ u32 flag, value;
    if (threadIdx.x == 0) flag = 0;
    __syncthreads();
    if (threadIdx.x == 0) {
        value = data[INDEX] + by;
        asm volatile("fence.acq_rel.cta;" ::: "memory");
        atomicExch(&flag, 1);
    }
    if (threadIdx.x == 32) {
        while (atomicAdd(&flag, 0) == 0) {}
        asm volatile("fence.acq_rel.cta;" ::: "memory");
        data[INDEX] = value * 3;
    }
}

KERNEL memory_barriers(u32 *data, u32 by) {
    __shared__ u64 barrier;
    __shared__ u32 words[64];
    u32 address = (u32)__cvta_generic_to_shared(&barrier);
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], %1;" : : "r"(address), "r"(64) : "memory");
    __syncthreads();
    words[threadIdx.x] = data[INDEX] + by;
    u64 state;
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(address) : "memory");
    u32 done = 0;
    while (!done)
        asm volatile("{ .reg .pred p; mbarrier.test_wait.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                     : "=r"(done) : "r"(address), "l"(state) : "memory");
    data[INDEX] = words[63 - threadIdx.x];
}

KERNEL reads_its_processor(u32 *data, u32 by) {
    u32 processor;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(processor));
    data[INDEX] += by + processor * 0;
}

KERNEL reads_the_clock(u32 *data, u32 by) {
    long long start = clock64();
    data[INDEX] += by;
    if (clock64() < start) data[INDEX] = 0;
}

KERNEL sleeps(u32 *data, u32 by) {
    __nanosleep(20);
    data[INDEX] += by;
}

KERNEL exits(u32 *data, u32 by) {
    if (threadIdx.x % 5 == by % 5) asm volatile("exit;");
    data[INDEX] = data[INDEX] * 3 + by;
}

KERNEL asserts(u32 *data, u32 by) {
    if (data[INDEX] == 0x12345678u) __trap();
    data[INDEX] += by;
}

// Scopes of inline assembly declare the same names again and again.
KERNEL inline_assembly(u32 *data, u32 by) {
    u32 value = data[INDEX];
#pragma unroll
    for (int pass = 0; pass < 3; pass++)
        asm volatile("{\n .reg .pred p;\n .reg .u32 glue1, glue2;\n setp.lt.u32 p, %0, %1;\n @p bra $AGAIN;\n"
                     " add.u32 glue1, %0, 3;\n mov.u32 %0, glue1;\n bra.uni $DONE;\n$AGAIN:\n"
                     " mul.lo.u32 glue2, %0, 5;\n mov.u32 %0, glue2;\n$DONE:\n}"
                     : "+r"(value) : "r"(by));
    data[INDEX] = value;
}

// Two kernels whose shared arrays have the same name and other sizes.
namespace one { __device__ __forceinline__ u32 *words() { static __shared__ u32 tile[64]; return tile; } }
namespace two { __device__ __forceinline__ u64 *words() { static __shared__ u64 tile[128]; return tile; } }

KERNEL shared_tile_of_words(u32 *data, u32 by) {
    u32 *tile = one::words();
    tile[threadIdx.x] = data[INDEX];
    __syncthreads();
    data[INDEX] = tile[threadIdx.x ^ 1] + by;
}

KERNEL shared_tile_of_long_words(u32 *data, u32 by) {
    u64 *tile = two::words();
    tile[2 * threadIdx.x + 1] = data[INDEX];
    tile[2 * threadIdx.x] = by;
    __syncthreads();
    data[INDEX] = u32(tile[2 * (63 - threadIdx.x) + 1] + tile[2 * threadIdx.x]);
}

extern __shared__ u32 dynamic[];

KERNEL dynamic_words(u32 *data, u32 by) {
    dynamic[threadIdx.x] = data[INDEX];
    __syncthreads();
    data[INDEX] = dynamic[(threadIdx.x + 5) % 64] * 3 + by;
}

KERNEL dynamic_beside_static(u32 *data, u32 by) {
    __shared__ u32 words[64];
    words[threadIdx.x] = data[INDEX];
    dynamic[63 - threadIdx.x] = data[INDEX] + by;
    __syncthreads();
    data[INDEX] = dynamic[threadIdx.x] * 3 + words[63 - threadIdx.x];
}

__constant__ u32 table[8] = {1, 1, 2, 3, 5, 8, 13, 21};
__device__ u32 counter = 1;

KERNEL constant_table(u32 *data, u32 by) { data[INDEX] += table[(threadIdx.x + by) % 8]; }

KERNEL module_counter(u32 *data, u32 by) {
    if (INDEX == 0) counter = counter * 3 + by;
    data[INDEX] += by;
}

__device__ __noinline__ u32 thrice(u32 value) { return value * 3; }
__device__ __noinline__ u32 halved(u32 value) { return value / 2; }
__device__ u32 (*const functions[2])(u32) = {thrice, halved};

KERNEL function_pointers(u32 *data, u32 by) { data[INDEX] = functions[(data[INDEX] + by) % 2](data[INDEX]); }

__device__ __noinline__ u32 fibonacci(u32 value) {
    return value < 2 ? value : fibonacci(value - 1) * 3 + fibonacci(value - 2);
}

KERNEL recursion(u32 *data, u32 by) { data[INDEX] += fibonacci((data[INDEX] + by) % 8); }

KERNEL local_arrays(u32 *data, u32 by) {
    u32 own[24];
    for (u32 at = 0; at < 24; at++) own[(at * 7 + by) % 24] = data[INDEX] + at;
    u32 sum = 0;
    for (u32 at = 0; at < 24; at++) sum = sum * 5 + own[(at * data[INDEX]) % 24];
    data[INDEX] = sum;
}

__device__ __noinline__ void fill_both(u32 *words, u32 *own, u32 value) {
    *words = value;
    *own = value * 3;
}

// Addresses of shared and of local memory go to a function.
KERNEL generic_addresses(u32 *data, u32 by) {
    __shared__ u32 words[64];
    u32 own[2];
    fill_both(&words[threadIdx.x], &own[by & 1], data[INDEX] + by);
    own[1 - (by & 1)] = 7;
    __syncthreads();
    data[INDEX] = words[63 - threadIdx.x] + own[0] * own[1];
}

__device__ __noinline__ u32 sum_in_block(u32 *words, u32 value) {
    words[threadIdx.x] = value;
    __syncthreads();
    u32 sum = words[0] + words[63];
    __syncthreads();
    return sum;
}

KERNEL barriers_in_functions(u32 *data, u32 by) {
    __shared__ u32 words[64];
    data[INDEX] += sum_in_block(words, data[INDEX] + by) * 3;
}

struct Settings {
    u32 words[6];
    u32 *data;
    double scale;
    u32 by;
};

KERNEL large_argument(const __grid_constant__ Settings settings) {
    const u32 *word = &settings.words[threadIdx.x % 6];
    settings.data[INDEX] = u32(double(settings.data[INDEX] % 1024) * settings.scale) + *word + settings.by;
}

__device__ __noinline__ u32 total(const Settings *settings, u32 from) {
    u32 sum = 0;
    for (u32 at = from % 6; at < 6; at++) sum = sum * 3 + settings->words[at];
    return sum;
}

KERNEL address_of_an_argument(const __grid_constant__ Settings settings) {
    settings.data[INDEX] += total(&settings, settings.data[INDEX]) + settings.by;
}

// Half a block waits at a barrier of its own.
KERNEL named_barriers(u32 *data, u32 by) {
    __shared__ u32 words[64];
    words[threadIdx.x] = data[INDEX];
    if (threadIdx.x < 32) asm volatile("barrier.sync 1, 32;" ::: "memory");
    else asm volatile("barrier.sync 2, 32;" ::: "memory");
    data[INDEX] = words[threadIdx.x ^ 1] + by;
}

KERNEL reducing_barriers(u32 *data, u32 by) {
    u32 odd = __syncthreads_count(data[INDEX] & 1);
    u32 any = __syncthreads_or(data[INDEX] == by);
    u32 all = __syncthreads_and(data[INDEX] != by);
    data[INDEX] += odd * 4 + any * 2 + all;
}

KERNEL warp_operations(u32 *data, u32 by) {
    u32 value = data[INDEX] + by;
    u32 same = __match_any_sync(0xffffffffu, value % 4);
    u32 sum = __reduce_add_sync(0xffffffffu, value % 16);
    __syncwarp();
    data[INDEX] = sum + __popc(same) + (__any_sync(0xffffffffu, value == 0) ? 1 : 0);
}

__device__ __noinline__ u32 one_of(u32 value, u32 way) {
    switch (way % 6) {
    case 0: return value + 3;
    case 1: return value * 5;
    case 2: return value ^ 0x55;
    case 3: return value >> 2;
    case 4: return value - 7;
    default: return value << 1;
    }
}

KERNEL switches(u32 *data, u32 by) { data[INDEX] = one_of(data[INDEX], data[INDEX] / 4 + by); }

KERNEL strides(u32 *data, u32 by) {
    for (u32 at = INDEX; at < 64 * gridDim.x; at += gridDim.x * blockDim.x / 2)
        if (at == INDEX) data[at] = data[at] * 3 + by + gridDim.x;
}

KERNEL read_only_loads(u32 *data, u32 by) { data[INDEX] = __ldg(data + INDEX) * 3 + by; }

KERNEL __launch_bounds__(64, 2) bounded(u32 *data, u32 by) { data[INDEX] = data[INDEX] * 9 + by; }

KERNEL tangents(u32 *data, u32 by) {
    data[INDEX] = __float_as_uint(tanf(float(data[INDEX] % 100000) * 1000.0f + float(by)));
}

KERNEL long_sines(u32 *data, u32 by) {
    double value = sin(double(data[INDEX]) * 1e5 + by);
    data[INDEX] = u32(__double2hiint(value)) ^ u32(__double2loint(value));
}

// The last block to arrive does something else.
KERNEL last_block(u32 *data, u32 *arrivals) {
    __shared__ bool is_last;
    data[INDEX] = data[INDEX] * 3 + 1;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) is_last = atomicInc(arrivals, gridDim.x - 1) == gridDim.x - 1;
    __syncthreads();
    if (is_last) {
        for (u32 block = 0; block < gridDim.x; block++) atomicAdd(&data[block * 64 + threadIdx.x], block + 1);
    }
}
