// arch: compute_80
//
// What the lanes of a warp do together. Blocks whose size is a multiple of 32; t = a thread's number in the whole grid, all launched.
//
// votes(out, x)              x int. out[4t..4t+4] (unsigned) = over the lanes' x > 0: ballot, all, any, popcount of the ballot below this lane
// matches(out, x)            out[2t] = the mask of the lanes whose x (unsigned) equals this lane's; out[2t+1] = the mask of match_all (0 if they differ)
// reductions(out, x)         x unsigned; out[8t..8t+8] = over the lanes: add, min, max (unsigned), and, or, xor, then min, max as signed
// shuffles(out, x)           x int; out[5t..5t+5] = x from lane (l + 1) % 32 (idx); from l - 3, own if none (up); from l + 5, own if none (down);
//     from l ^ 9 (bfly); from lane 2 of each group of 8 (idx, width 8)
// shuffle_wide(out, x)       x double; out[t] = x from lane 31 - l (two 32-bit shuffles)
// compact(out, count, x, n)  x int, n <= T: the positive x[i] go to out[*count ...] (one atomic per warp, order within a warp kept); *count ends
//     as their number (start 0)
// partial_masks(out)         lanes below 10 and the others vote apart: out[t] = ballot over its own group of (l % 3 == 0), under a mask of that group
// elect(out)                 out[t] = 1 for the lowest active lane among those with l % 4 == t / 32 % 4, in a divergent branch; else 0
// lane_masks(out)            out[7t..7t+7] = %laneid, lanemask_lt, le, eq, ge, gt, activemask (all lanes active)

#define THREAD unsigned t = blockIdx.x * blockDim.x + threadIdx.x
#define LANE unsigned l = threadIdx.x % 32
constexpr unsigned ALL = 0xffffffffu;

extern "C" __global__ void votes(unsigned* out, const int* x) {
    THREAD;
    LANE;
    unsigned ballot = __ballot_sync(ALL, x[t] > 0);
    out[4 * t] = ballot;
    out[4 * t + 1] = __all_sync(ALL, x[t] > 0);
    out[4 * t + 2] = __any_sync(ALL, x[t] > 0);
    out[4 * t + 3] = __popc(ballot & ((1u << l) - 1));
}

extern "C" __global__ void matches(unsigned* out, const unsigned* x) {
    THREAD;
    int same;
    out[2 * t] = __match_any_sync(ALL, x[t]);
    out[2 * t + 1] = __match_all_sync(ALL, x[t], &same);
}

extern "C" __global__ void reductions(unsigned* out, const unsigned* x) {
    THREAD;
    unsigned v = x[t];
    unsigned* o = out + 8 * t;
    o[0] = __reduce_add_sync(ALL, v);
    o[1] = __reduce_min_sync(ALL, v);
    o[2] = __reduce_max_sync(ALL, v);
    o[3] = __reduce_and_sync(ALL, v);
    o[4] = __reduce_or_sync(ALL, v);
    o[5] = __reduce_xor_sync(ALL, v);
    o[6] = __reduce_min_sync(ALL, (int)v);
    o[7] = __reduce_max_sync(ALL, (int)v);
}

extern "C" __global__ void shuffles(int* out, const int* x) {
    THREAD;
    LANE;
    int v = x[t];
    out[5 * t] = __shfl_sync(ALL, v, l + 1);
    out[5 * t + 1] = __shfl_up_sync(ALL, v, 3);
    out[5 * t + 2] = __shfl_down_sync(ALL, v, 5);
    out[5 * t + 3] = __shfl_xor_sync(ALL, v, 9);
    out[5 * t + 4] = __shfl_sync(ALL, v, 2, 8);
}

extern "C" __global__ void shuffle_wide(double* out, const double* x) {
    THREAD;
    LANE;
    out[t] = __shfl_sync(ALL, x[t], 31 - l);
}

extern "C" __global__ void compact(int* out, unsigned* count, const int* x, unsigned n) {
    THREAD;
    LANE;
    int value = t < n ? x[t] : 0;
    unsigned ballot = __ballot_sync(ALL, value > 0);
    unsigned base = 0;
    if (l == 0) {
        base = atomicAdd(count, __popc(ballot));
    }
    base = __shfl_sync(ALL, base, 0);
    if (value > 0) {
        out[base + __popc(ballot & ((1u << l) - 1))] = value;
    }
}

extern "C" __global__ void partial_masks(unsigned* out) {
    THREAD;
    LANE;
    if (l < 10) {
        out[t] = __ballot_sync(0x3ffu, l % 3 == 0);
    } else {
        out[t] = __ballot_sync(~0x3ffu, l % 3 == 0);
    }
    __syncwarp();
}

extern "C" __global__ void elect(unsigned* out) {
    THREAD;
    LANE;
    unsigned leads = 0;
    if (l % 4 == t / 32 % 4) {
        unsigned mask = 0x11111111u << t / 32 % 4;
        unsigned active = __ballot_sync(mask, 1);
        leads = l == __ffs(active) - 1;
    }
    out[t] = leads;
}

extern "C" __global__ void lane_masks(unsigned* out) {
    THREAD;
    unsigned* o = out + 7 * t;
    unsigned v;
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(v));
    o[0] = v;
    asm volatile("mov.u32 %0, %%lanemask_lt;" : "=r"(v));
    o[1] = v;
    asm volatile("mov.u32 %0, %%lanemask_le;" : "=r"(v));
    o[2] = v;
    asm volatile("mov.u32 %0, %%lanemask_eq;" : "=r"(v));
    o[3] = v;
    asm volatile("mov.u32 %0, %%lanemask_ge;" : "=r"(v));
    o[4] = v;
    asm volatile("mov.u32 %0, %%lanemask_gt;" : "=r"(v));
    o[5] = v;
    o[6] = __activemask();
}
