// Functions that call themselves, kept as calls.
//
// fibonacci(out, in, n)       out[i] = F(in[i]) with F(0) = 0, F(1) = 1, by the doubly recursive definition; in[i] <= 20
// ackermann(out, m, k, n)     out[i] = A(m[i], k[i]); keep m <= 2 and k <= 8: deep recursion needs stack
// parity(out, in, n)          out[i] = 1 where in[i] is even, by two functions that call each other; in[i] <= 64
// quicksort(rows, width, count)  thread r < count sorts its row of `width` <= 64 ints in place, ascending, recursively
// All unsigned unless said otherwise; n or count threads or more.

__device__ __noinline__ unsigned fibonacci_of(unsigned n) {
    return n < 2 ? n : fibonacci_of(n - 1) + fibonacci_of(n - 2);
}

__device__ __noinline__ unsigned ackermann_of(unsigned m, unsigned k) {
    if (m == 0) {
        return k + 1;
    }
    if (k == 0) {
        return ackermann_of(m - 1, 1);
    }
    return ackermann_of(m - 1, ackermann_of(m, k - 1));
}

__device__ __noinline__ bool is_odd(unsigned n);

__device__ __noinline__ bool is_even(unsigned n) {
    return n == 0 ? true : is_odd(n - 1);
}

__device__ __noinline__ bool is_odd(unsigned n) {
    return n == 0 ? false : is_even(n - 1);
}

__device__ __noinline__ void quicksort_range(int* row, int low, int high) {
    if (low >= high) {
        return;
    }
    int pivot = row[(low + high) / 2];
    int i = low;
    int j = high;
    while (i <= j) {
        while (row[i] < pivot) {
            ++i;
        }
        while (row[j] > pivot) {
            --j;
        }
        if (i <= j) {
            int swapped = row[i];
            row[i] = row[j];
            row[j] = swapped;
            ++i;
            --j;
        }
    }
    quicksort_range(row, low, j);
    quicksort_range(row, i, high);
}

extern "C" __global__ void fibonacci(unsigned* out, const unsigned* in, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = fibonacci_of(in[i]);
    }
}

extern "C" __global__ void ackermann(unsigned* out, const unsigned* m, const unsigned* k, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = ackermann_of(m[i], k[i]);
    }
}

extern "C" __global__ void parity(unsigned* out, const unsigned* in, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = is_even(in[i]);
    }
}

extern "C" __global__ void quicksort(int* rows, int width, unsigned count) {
    unsigned r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r < count) {
        quicksort_range(rows + (unsigned long long)r * width, 0, width - 1);
    }
}
