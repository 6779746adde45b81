// Threads of one warp that go their own ways. n threads or more.
//
// collatz(out, in, n)              out[i] = the number of steps of in[i] (unsigned, >= 1) to 1 under x -> x/2 or 3x + 1, in 64 bits
// mandelbrot(out, width, height, limit)  2-D launch; out[y * width + x] (unsigned) = the passes of z = z^2 + c before |z|^2 > 4, at most limit;
//     c = (-2 + 3 x / width, -1.5 + 3 y / height) in float, each operation rounded on its own, in the order written below
// nested_exits(out, n)             out[i] by two nested loops with break, continue and return inside; the code is the definition
// gcd(out, a, b, n)                out[i] = the greatest common divisor (unsigned), by subtraction-free Euclid; gcd(x, 0) = x
// binary_search(out, sorted, count, keys, n)  out[i] = how many of sorted[0..count] (int, ascending) are less than keys[i] (unsigned result)

#define INDEX unsigned i = blockIdx.x * blockDim.x + threadIdx.x

extern "C" __global__ void collatz(unsigned* out, const unsigned* in, unsigned n) {
    INDEX;
    if (i < n) {
        unsigned long long x = in[i];
        unsigned steps = 0;
        while (x != 1) {
            x = x % 2 == 0 ? x / 2 : 3 * x + 1;
            ++steps;
        }
        out[i] = steps;
    }
}

extern "C" __global__ void mandelbrot(unsigned* out, int width, int height, unsigned limit) {
    int px = blockIdx.x * blockDim.x + threadIdx.x;
    int py = blockIdx.y * blockDim.y + threadIdx.y;
    if (px >= width || py >= height) {
        return;
    }
    float cx = __fadd_rn(-2.0f, __fdiv_rn(__fmul_rn(3.0f, (float)px), (float)width));
    float cy = __fadd_rn(-1.5f, __fdiv_rn(__fmul_rn(3.0f, (float)py), (float)height));
    float x = 0.0f;
    float y = 0.0f;
    unsigned passes = 0;
    while (passes < limit) {
        float xx = __fmul_rn(x, x);
        float yy = __fmul_rn(y, y);
        if (__fadd_rn(xx, yy) > 4.0f) {
            break;
        }
        y = __fadd_rn(__fmul_rn(__fmul_rn(2.0f, x), y), cy);
        x = __fadd_rn(__fsub_rn(xx, yy), cx);
        ++passes;
    }
    out[py * width + px] = passes;
}

extern "C" __global__ void nested_exits(unsigned* out, unsigned n) {
    INDEX;
    if (i >= n) {
        return;
    }
    unsigned sum = 0;
    for (unsigned a = 0; a < 10; ++a) {
        if ((a + i) % 3 == 0) {
            continue;
        }
        for (unsigned b = 0; b < 10; ++b) {
            if (b > i % 7) {
                break;
            }
            if (a * b == 42 + i % 5) {
                out[i] = 100000 + sum;
                return;
            }
            sum += a * b + 1;
        }
        if (sum > 300 + i) {
            break;
        }
    }
    out[i] = sum;
}

extern "C" __global__ void gcd(unsigned* out, const unsigned* a, const unsigned* b, unsigned n) {
    INDEX;
    if (i < n) {
        unsigned x = a[i];
        unsigned y = b[i];
        while (y != 0) {
            unsigned rest = x % y;
            x = y;
            y = rest;
        }
        out[i] = x;
    }
}

extern "C" __global__ void binary_search(
    unsigned* out, const int* sorted, unsigned count, const int* keys, unsigned n
) {
    INDEX;
    if (i < n) {
        unsigned low = 0;
        unsigned high = count;
        while (low < high) {
            unsigned middle = low + (high - low) / 2;
            if (sorted[middle] < keys[i]) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        out[i] = low;
    }
}
