// Three things to do to one integer, for a switch to choose from. One thread each.
//
// negate(value)     *value = -*value
// double_it(value)  *value = 2 * *value
// square(value)     *value = *value * *value
// choose(handle, selector)
//     The condition behind `handle` becomes *selector: a body's number, or one past the last for none.

extern "C" __device__ __cudart_builtin__ void cudaGraphSetConditional(unsigned long long handle, unsigned int value);

extern "C" __global__ void negate(int* value) {
    *value = -*value;
}

extern "C" __global__ void double_it(int* value) {
    *value *= 2;
}

extern "C" __global__ void square(int* value) {
    *value *= *value;
}

extern "C" __global__ void choose(unsigned long long handle, const unsigned* selector) {
    cudaGraphSetConditional(handle, *selector);
}
