// The square root of a number by bisection, then one Newton step where it is still needed. One thread each.
//
// The state lives in device memory: ends[0] and ends[1] bracket the root of x * x - target.
//
// set_bracket(ends, left, low, high, passes)
//     ends[0] = low; ends[1] = high; *left = passes.
// evaluate(handle, ends, target)
//     With m the middle of the bracket, the condition becomes 1 where m * m < target (the root is to the right), else 0.
// raise_low(ends)
//     Moves the low end to the middle.
// lower_high(ends)
//     Moves the high end to the middle.
// countdown(handle, left)
//     *left -= 1, and the condition becomes 1 while passes are left, else 0.
// check(handle, root, ends, target, tolerance)
//     *root = the middle; the condition becomes 1 where |root * root - target| > tolerance, else 0.
// newton(root, target)
//     *root = (root + target / root) / 2.

extern "C" __device__ __cudart_builtin__ void cudaGraphSetConditional(unsigned long long handle, unsigned int value);

static __device__ double middle(const double* ends) {
    return 0.5 * (ends[0] + ends[1]);
}

extern "C" __global__ void set_bracket(double* ends, int* left, double low, double high, int passes) {
    ends[0] = low;
    ends[1] = high;
    *left = passes;
}

extern "C" __global__ void evaluate(unsigned long long handle, const double* ends, double target) {
    double m = middle(ends);
    cudaGraphSetConditional(handle, __dmul_rn(m, m) < target);
}

extern "C" __global__ void raise_low(double* ends) {
    ends[0] = middle(ends);
}

extern "C" __global__ void lower_high(double* ends) {
    ends[1] = middle(ends);
}

extern "C" __global__ void countdown(unsigned long long handle, int* left) {
    int remaining = *left - 1;
    *left = remaining;
    cudaGraphSetConditional(handle, remaining > 0);
}

extern "C" __global__ void check(
    unsigned long long handle, double* root, const double* ends, double target, double tolerance
) {
    double m = middle(ends);
    *root = m;
    cudaGraphSetConditional(handle, fabs(__dsub_rn(__dmul_rn(m, m), target)) > tolerance);
}

extern "C" __global__ void newton(double* root, double target) {
    *root = 0.5 * (*root + target / *root);
}
