// arch: compute_90
// A kernel that releases its successor early and waits for its predecessor's data itself.
//
// add_overlapped(data, value, n)   data[i] += value for i < n; n threads or more

extern "C" __global__ void add_overlapped(int *data, int value, unsigned n) {
    asm volatile("griddepcontrol.launch_dependents;");
    asm volatile("griddepcontrol.wait;" ::: "memory");
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] += value;
}
