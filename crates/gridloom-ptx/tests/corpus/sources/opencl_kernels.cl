// OpenCL C through clang's NVPTX back end, for its `texmode_independent` target and address spaces in parameters.

typedef unsigned int uint;

uint __attribute__((overloadable, const)) tid(void) { return __nvvm_read_ptx_sreg_tid_x(); }

kernel void scale(global float* out, global const float* in, float factor) {
    out[tid()] = in[tid()] * factor;
}

kernel void gather(global int* out, constant int* table, local int* scratch, uint n) {
    uint i = tid();
    scratch[i] = table[i % n];
    __syncthreads();
    out[i] = scratch[n - 1 - i] + scratch[i];
}

typedef float float4 __attribute__((ext_vector_type(4)));

kernel void blend(global float4* out, global const float4* a, global const float4* b, float4 weight) {
    uint i = tid();
    out[i] = a[i] * weight + b[i].wzyx * (1.0f - weight);
}
