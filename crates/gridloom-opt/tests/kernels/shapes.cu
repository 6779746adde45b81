// arch: compute_80
//
// More kernels as a compiler writes them, for blocks and grids of any shape with 64 threads in each
// block. Each works on a row of `data` of its own for each block, at INDEX for its thread.

#include <cuda_fp16.h>

typedef unsigned int u32;
typedef unsigned long long u64;
typedef unsigned char u8;

#define KERNEL extern "C" __global__ void
#define THREAD ((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x)
#define BLOCK ((blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x)
#define INDEX (BLOCK * 64 + THREAD)

KERNEL all_extents(u32 *data, u32 by) {
    u32 sum = blockDim.x + 3 * blockDim.y + 5 * blockDim.z + 7 * gridDim.x + 11 * gridDim.y + 13 * gridDim.z;
    sum += 17 * threadIdx.x + 19 * threadIdx.y + 23 * threadIdx.z + 29 * blockIdx.x + 31 * blockIdx.y + 37 * blockIdx.z;
    data[INDEX] = data[INDEX] * 3 + sum + by;
}

KERNEL tile_of_bytes(u32 *data, u32 by) {
    __shared__ u8 tile[65];
    tile[THREAD + 1] = u8(data[INDEX] + by);
    if (THREAD == 0) tile[0] = 9;
    __syncthreads();
    data[INDEX] = data[INDEX] * 5 + tile[THREAD] * 256 + tile[64 - THREAD];
}

extern __shared__ double doubles[];

KERNEL dynamic_doubles(u32 *data, u32 by) {
    float *floats = reinterpret_cast<float *>(doubles + 32);
    if (THREAD < 32) doubles[THREAD] = double(data[INDEX]) * 0.5;
    else floats[THREAD - 32] = float(data[INDEX] & 4095);
    __syncthreads();
    data[INDEX] = u32(doubles[THREAD % 32]) + u32(floats[31 - THREAD % 32]) + by;
}

KERNEL grid_stride(u32 *data, u32 by) {
    u32 all = gridDim.x * gridDim.y * gridDim.z * 64;
    u32 sum = 0;
    for (u32 at = THREAD; at < 64; at += 16) sum = sum * 3 + (at ^ by);
    for (u32 at = INDEX; at < all; at += all) data[at] = data[at] * 9 + sum;
}

// Every barrier is passed by all or by none, as a value of the whole block decides.
KERNEL barriers_in_a_loop(u32 *data, u32 by) {
    __shared__ u32 words[64];
    u32 value = data[INDEX];
    for (u32 pass = 0; pass < 1 + by % 4; pass++) {
        words[THREAD] = value;
        __syncthreads();
        value = value * 3 + words[(THREAD + pass + 1) % 64];
        __syncthreads();
        if (blockIdx.x + pass == 2) break;
    }
    data[INDEX] = value;
}

// The block votes whether it goes on, so all decide alike.
KERNEL votes_to_go_on(u32 *data, u32 by) {
    u32 value = data[INDEX], passes = 0;
    while (__syncthreads_or(value > 1000 + by) && passes++ < 40) value = value / 3 + passes % 2;
    data[INDEX] = value + passes;
}

__shared__ u32 outside[64];

KERNEL shared_of_the_module(u32 *data, u32 by) {
    outside[THREAD] = data[INDEX];
    __syncthreads();
    data[INDEX] = outside[63 - THREAD] + by;
}

__device__ __noinline__ u32 place_of_the_thread(u32 value) {
    return value * 3 + THREAD + BLOCK * blockDim.x;
}

KERNEL functions_that_read_places(u32 *data, u32 by) { data[INDEX] = place_of_the_thread(data[INDEX]) + by; }

__device__ __noinline__ void leaves(u32 value) {
    if (value % 3 == 0) asm volatile("exit;");
}

KERNEL functions_that_exit(u32 *data, u32 by) {
    leaves(data[INDEX] + by);
    data[INDEX] = data[INDEX] * 5 + 1;
}

struct Pair {
    u64 first;
    u32 second[3];
};

__device__ __noinline__ Pair pair_of(u32 value, const u32 *words) {
    Pair pair;
    pair.first = u64(value) * 0x100000001ull;
    for (u32 at = 0; at < 3; at++) pair.second[at] = words[at] + value;
    return pair;
}

KERNEL functions_that_return_structures(u32 *data, u32 by) {
    u32 own[3] = {data[INDEX], by, 7};
    Pair pair = pair_of(data[INDEX] ^ by, own);
    data[INDEX] = u32(pair.first >> 32) + pair.second[0] * 3 + pair.second[data[INDEX] % 3];
}

KERNEL lanes_and_warps(u32 *data, u32 by) {
    u32 lane, below;
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
    asm volatile("mov.u32 %0, %%lanemask_lt;" : "=r"(below));
    data[INDEX] = data[INDEX] * 3 + lane * 5 + __popc(below) + by;
}

KERNEL number_of_the_warp(u32 *data, u32 by) {
    u32 warp;
    asm volatile("mov.u32 %0, %%warpid;" : "=r"(warp));
    data[INDEX] = data[INDEX] * 3 + warp * 0 + by;
}

KERNEL halves_of_a_warp(u32 *data, u32 by) {
    u32 value = data[INDEX] + by;
    u32 mask = (THREAD & 16) ? 0xffff0000u : 0x0000ffffu;
    if (THREAD & 16) value = __shfl_xor_sync(mask, value, 3) * 3;
    else value = __shfl_down_sync(mask, value, 2, 16) + 1;
    __syncwarp();
    data[INDEX] = value + __shfl_sync(0xffffffffu, value, 5);
}

KERNEL wide_accesses(u32 *data, u32 by) {
    if (THREAD % 4 == 0) {
        uint4 four = *reinterpret_cast<uint4 *>(&data[INDEX]);
        four.x = four.x * 3 + by, four.y += four.x, four.z ^= four.y, four.w -= four.z;
        *reinterpret_cast<uint4 *>(&data[INDEX]) = four;
    }
}

KERNEL narrow_accesses(u32 *data, u32 by) {
    u8 *bytes = reinterpret_cast<u8 *>(&data[INDEX]);
    unsigned short *halves = reinterpret_cast<unsigned short *>(&data[INDEX]);
    bytes[0] = u8(bytes[3] + by);
    halves[1] = (unsigned short)(halves[0] * 3);
    bytes[2] ^= bytes[1];
}

KERNEL float_atomics(u32 *data, u32 by) {
    __shared__ float most;
    if (THREAD == 0) most = 0.0f;
    __syncthreads();
    atomicMax(reinterpret_cast<int *>(&most), __float_as_int(float(data[INDEX] % 4096)));
    __syncthreads();
    data[INDEX] += u32(most) + by;
}

// A lock of the block, taken by one thread of each warp.
KERNEL locks(u32 *data, u32 by) {
    __shared__ u32 lock, sum;
    if (THREAD == 0) lock = 0, sum = by;
    __syncthreads();
    if (THREAD % 32 == 0) {
        while (atomicCAS(&lock, 0, 1) != 0) {}
        __threadfence_block();
        sum = sum + data[INDEX];
        __threadfence_block();
        atomicExch(&lock, 0);
    }
    __syncthreads();
    data[INDEX] = data[INDEX] * 3 + sum;
}

KERNEL compare_and_swap(u32 *data, u32 by) {
    u32 seen = data[INDEX], old;
    do {
        old = seen;
        seen = atomicCAS(&data[INDEX], old, old * 3 + by);
    } while (seen != old);
}

// One warp writes, tells the other by a barrier that it does not wait at itself.
KERNEL producer_and_consumer(u32 *data, u32 by) {
    __shared__ u32 words[32];
    if (THREAD < 32) {
        words[THREAD] = data[INDEX] + by;
        asm volatile("barrier.arrive 3, 64;" ::: "memory");
    } else {
        asm volatile("barrier.sync 3, 64;" ::: "memory");
        data[INDEX] += words[THREAD - 32] * 3;
    }
}

KERNEL last_numbers_of_barriers(u32 *data, u32 by) {
    __shared__ u32 words[64];
    words[THREAD] = data[INDEX];
    asm volatile("barrier.sync 14;" ::: "memory");
    data[INDEX] = words[63 - THREAD] + by;
}

KERNEL number_15(u32 *data, u32 by) {
    __shared__ u32 words[64];
    words[THREAD] = data[INDEX];
    asm volatile("barrier.sync 15;" ::: "memory");
    data[INDEX] = words[63 - THREAD] + by;
}

KERNEL spaces(u32 *data, u32 by) {
    __shared__ u32 word[64];
    u32 own = data[INDEX];
    word[THREAD] = own;
    const u32 *any = (own & 1) ? &word[THREAD] : (own & 2) ? &own : &data[INDEX];
    u32 kind = __isGlobal(any) + 2 * __isShared(any) + 4 * __isLocal(any);
    data[INDEX] = *any * 3 + kind + by;
}

KERNEL size_of_shared(u32 *data, u32 by) {
    u32 bytes;
    asm volatile("mov.u32 %0, %%dynamic_smem_size;" : "=r"(bytes));
    data[INDEX] += bytes * 3 + by;
}

KERNEL size_of_all_shared(u32 *data, u32 by) {
    u32 bytes;
    asm volatile("mov.u32 %0, %%total_smem_size;" : "=r"(bytes));
    data[INDEX] += (bytes > 0) + by;
}

KERNEL zero_filled_copy(u32 *data, u32 by) {
    __shared__ __align__(16) u32 words[64];
    u32 at = (u32)__cvta_generic_to_shared(&words[THREAD & ~3u]);
    if (THREAD % 4 == 0) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" : : "r"(at), "l"(&data[INDEX]), "r"(by % 2 ? 8 : 16) : "memory");
    }
    asm volatile("cp.async.commit_group; cp.async.wait_all;" ::: "memory");
    __syncthreads();
    data[INDEX] = words[THREAD] * 3 + words[63 - THREAD];
}

KERNEL waits_for_one_group(u32 *data, u32 by) {
    __shared__ u32 words[3][64];
    for (u32 stage = 0; stage < 3; stage++) {
        u32 at = (u32)__cvta_generic_to_shared(&words[stage][THREAD]);
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4; cp.async.commit_group;" : : "r"(at), "l"(&data[INDEX]) : "memory");
    }
    asm volatile("cp.async.wait_group 2;" ::: "memory");
    data[INDEX] = words[0][THREAD] * 3 + by;
}

KERNEL jumps(u32 *data, u32 by) {
    u32 value = data[INDEX];
    for (u32 pass = 0; pass < 6; pass++) {
        switch ((value + by) % 9) {
        case 0: value += 3; break;
        case 1: value = value * 5 + 1; break;
        case 2: value ^= 0x1234; break;
        case 3: value >>= 1; continue;
        case 4: value -= by; break;
        case 5: value = __brev(value); break;
        case 6: value = __popc(value) * 77; break;
        case 7: if (pass > 2) goto out; value += 9; break;
        default: value = ~value;
        }
        value += pass;
    }
out:
    data[INDEX] = value;
}

KERNEL dots_and_permutations(u32 *data, u32 by) {
    u32 value = data[INDEX];
    value = __dp4a(value, by, value) + __byte_perm(value, by, 0x2541) + __funnelshift_l(value, by, by & 31);
    data[INDEX] = value * 3 + __clz(value) + __ffs(by);
}

KERNEL sums_of_neighbours(u32 *data, u32 by) {
    __shared__ u32 words[66];
    words[THREAD + 1] = data[INDEX];
    if (THREAD < 2) words[THREAD * 65] = by;
    __syncthreads();
    if (THREAD >= 60) return;
    data[INDEX] = words[THREAD] + words[THREAD + 1] * 3 + words[THREAD + 2];
}

KERNEL whole_blocks_return(u32 *data, u32 by) {
    if (BLOCK % 2 == by % 2) return;
    __shared__ u32 words[64];
    words[THREAD] = data[INDEX];
    __syncthreads();
    data[INDEX] = words[(THREAD * 5) % 64] + by;
}

KERNEL loops_over_reads(u32 *data, u32 by) {
    const u32 *row = data + BLOCK * 64;
    u32 sum = by;
    if (THREAD == 5) {
        for (u32 at = 6; at < 6 + by % 50; at++) sum = sum * 3 + row[at];
        data[INDEX] = sum;
    }
}

KERNEL own_device_allocation(u32 *data, u32 by) {
    u32 *own = static_cast<u32 *>(malloc(8));
    if (own) {
        own[0] = data[INDEX];
        data[INDEX] = own[0] * 3 + by;
        free(own);
    }
}

KERNEL waits_by_itself(u32 *data, u32 by) { data[INDEX] = data[INDEX] * 7 + by; }

KERNEL static_of_a_function(u32 *data, u32 by) {
    static __device__ u32 calls;
    if (INDEX == 0x7fffffff) calls++;
    data[INDEX] += by;
}

KERNEL variable_stack(u32 *data, u32 by) {
    u32 own[40];
    u32 count = data[INDEX] % 40 + 1;
    for (u32 at = 0; at < count; at++) own[(at * by) % count] = at;
    for (u32 at = 0; at < count; at++) if ((at * by) % count == 0) own[0] += at;
    data[INDEX] = own[0] * 3 + count;
}
