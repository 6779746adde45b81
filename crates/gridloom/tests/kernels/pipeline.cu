// arch: compute_80
//
// Asynchronous copies from global to shared memory.
//
// pipelined_sum(out, in, tiles)   one block of 64 threads; in: tiles * 256 floats, 16-byte aligned. Two buffers, the next tile copied
//     (cp.async.cg, 16 bytes a thread) while this one is added: out[t] (256 floats) = sum of in[256 k + t] for k = 0, 1, ..., from 0, in order
// copy_sizes(out, in, n)          one block of n <= 256 threads: thread t copies 4 bytes (cp.async.ca 4) and, where t is even and t + 1 < n, 8 bytes
//     over them (the same values), waits for all, out[t] = in[n-1-t] (int; in 8-byte aligned)
// zero_filled(out, in)            one thread: copies 16 bytes with a source size of 8: out[0..4] (int) = in[0], in[1], 0, 0

__device__ unsigned shared_address(const void* pointer) {
    return (unsigned)__cvta_generic_to_shared(pointer);
}

__device__ void copy16(float4* to, const float4* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from) : "memory");
}

extern "C" __global__ void pipelined_sum(float4* out, const float4* in, unsigned tiles) {
    __shared__ float4 buffer[2][64];
    unsigned t = threadIdx.x;
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (tiles > 0) {
        copy16(&buffer[0][t], &in[t]);
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
    for (unsigned k = 0; k < tiles; ++k) {
        if (k + 1 < tiles) {
            copy16(&buffer[(k + 1) % 2][t], &in[(k + 1) * 64 + t]);
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        __syncthreads();
        float4 v = buffer[k % 2][t];
        sum.x += v.x;
        sum.y += v.y;
        sum.z += v.z;
        sum.w += v.w;
        __syncthreads();
    }
    out[t] = sum;
}

extern "C" __global__ void copy_sizes(int* out, const int* in, unsigned n) {
    __shared__ __align__(16) int buffer[256];
    unsigned t = threadIdx.x;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared_address(&buffer[t])), "l"(&in[t]) : "memory");
    if (t % 2 == 0 && t + 1 < n) {
        asm volatile(
            "cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(shared_address(&buffer[t])), "l"(&in[t]) : "memory"
        );
    }
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
    out[t] = buffer[n - 1 - t];
}

extern "C" __global__ void zero_filled(int4* out, const int4* in) {
    __shared__ int4 buffer;
    asm volatile(
        "cp.async.cg.shared.global [%0], [%1], 16, 8;" ::"r"(shared_address(&buffer)), "l"(in) : "memory"
    );
    asm volatile("cp.async.wait_all;" ::: "memory");
    *out = buffer;
}
