// Clocks and the special registers.
//
// clocks(out)            one thread; out: 4 unsigned long long = clock64 before and after some work, globaltimer before and after;
//     neither goes backwards
// coordinates(out)       any launch; thread g (its number in the grid, counted x, then y, then z, blocks outermost):
//     out[12g..12g+12] (unsigned) = threadIdx x, y, z, blockIdx x, y, z, blockDim x, y, z, gridDim x, y, z
// warp_position(out)     one-dimensional launch; out[2g..2g+2] = lane (threadIdx % 32), warp size (32)
// nap(out)               one thread sleeps about 100 ns, then *out = 1 (unsigned)

extern "C" __global__ void clocks(unsigned long long* out) {
    unsigned long long timer;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(timer));
    out[2] = timer;
    out[0] = clock64();
    volatile int work = 0;
    for (int k = 0; k < 100; ++k) {
        work += k;
    }
    out[1] = clock64();
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(timer));
    out[3] = timer;
}

extern "C" __global__ void coordinates(unsigned* out) {
    unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    unsigned* o = out + 12 * (block * blockDim.x * blockDim.y * blockDim.z + thread);
    o[0] = threadIdx.x;
    o[1] = threadIdx.y;
    o[2] = threadIdx.z;
    o[3] = blockIdx.x;
    o[4] = blockIdx.y;
    o[5] = blockIdx.z;
    o[6] = blockDim.x;
    o[7] = blockDim.y;
    o[8] = blockDim.z;
    o[9] = gridDim.x;
    o[10] = gridDim.y;
    o[11] = gridDim.z;
}

extern "C" __global__ void warp_position(unsigned* out) {
    unsigned g = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned lane;
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
    out[2 * g] = lane;
    out[2 * g + 1] = warpSize;
}

extern "C" __global__ void nap(unsigned* out) {
    __nanosleep(100);
    *out = 1;
}
