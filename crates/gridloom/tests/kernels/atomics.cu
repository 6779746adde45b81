// Atomic operations. Any launch size; T = the number of threads launched, t = a thread's number in the whole grid.
//
// atomic_integers(cells)          cells: 10 unsigned. Each thread: add t to [0]; sub 1 from [1]; min t into [2]; max t into [3];
//     and ~(1 << t % 32) into [4]; or (1 << t % 32) into [5]; xor t into [6]; inc [7] with wrap at 9; dec [8] with wrap at 9; exch t into [9]
// atomic_signed(cells)            cells: 3 int. min of -t into [0], max of -t into [1], add -1 to [2]
// atomic_longs(cells)             cells: 6 unsigned long long. add 2^33 + t to [0]; min, max of t * 2^32 into [1], [2];
//     and/or/xor of ~0 << t % 64, 1 << t % 64, t * 2^32 into [3], [4], [5]
// atomic_floats(cells)            cells: 2 float then (8 bytes in) 1 double: add 0.5 to [0], t % 8 to [1]; add 0.25 to the double
// cas_max_float(cell, x, n)       *cell = max over x[i] and itself, by a compare-and-swap loop on the bits (float)
// cas_multiply(cell, n)           *cell *= 3 for each thread i < n, by a 64-bit compare-and-swap loop, wrapping
// cas_half(cells, n)              thread i < n adds 1 to the 16-bit counter i % 2 of one word, by 16-bit compare-and-swap (compute_70)
// spin_lock(lock, total, n)       thread i < n in turn holds *lock (0 free, 1 held) while it adds i + 1 to *total, not atomically
// shared_tickets(out, n)          one block: out[k] for k < n gets each ticket 0 .. n-1 once, from a counter in shared memory
// scopes(cells)                   one block; cells: 3 unsigned. add 1 with block, device and system scope to [0], [1], [2]

#define THREAD unsigned t = blockIdx.x * blockDim.x + threadIdx.x

extern "C" __global__ void atomic_integers(unsigned* cells) {
    THREAD;
    atomicAdd(&cells[0], t);
    atomicSub(&cells[1], 1u);
    atomicMin(&cells[2], t);
    atomicMax(&cells[3], t);
    atomicAnd(&cells[4], ~(1u << t % 32));
    atomicOr(&cells[5], 1u << t % 32);
    atomicXor(&cells[6], t);
    atomicInc(&cells[7], 9u);
    atomicDec(&cells[8], 9u);
    atomicExch(&cells[9], t);
}

extern "C" __global__ void atomic_signed(int* cells) {
    THREAD;
    atomicMin(&cells[0], -(int)t);
    atomicMax(&cells[1], -(int)t);
    atomicAdd(&cells[2], -1);
}

extern "C" __global__ void atomic_longs(unsigned long long* cells) {
    THREAD;
    unsigned long long wide = t;
    atomicAdd(&cells[0], (1ull << 33) + wide);
    atomicMin(&cells[1], wide << 32);
    atomicMax(&cells[2], wide << 32);
    atomicAnd(&cells[3], ~0ull << t % 64);
    atomicOr(&cells[4], 1ull << t % 64);
    atomicXor(&cells[5], wide << 32);
}

extern "C" __global__ void atomic_floats(float* cells) {
    THREAD;
    atomicAdd(&cells[0], 0.5f);
    atomicAdd(&cells[1], (float)(t % 8));
    atomicAdd((double*)(cells + 2), 0.25);
}

extern "C" __global__ void cas_max_float(float* cell, const float* x, unsigned n) {
    THREAD;
    if (t < n) {
        int* bits = (int*)cell;
        int seen = *(volatile int*)bits;
        while (__int_as_float(seen) < x[t]) {
            int found = atomicCAS(bits, seen, __float_as_int(x[t]));
            if (found == seen) {
                break;
            }
            seen = found;
        }
    }
}

extern "C" __global__ void cas_multiply(unsigned long long* cell, unsigned n) {
    THREAD;
    if (t < n) {
        unsigned long long seen = *(volatile unsigned long long*)cell;
        while (true) {
            unsigned long long found = atomicCAS(cell, seen, seen * 3);
            if (found == seen) {
                break;
            }
            seen = found;
        }
    }
}

extern "C" __global__ void cas_half(unsigned short* cells, unsigned n) {
    THREAD;
    if (t < n) {
        unsigned short* cell = &cells[t % 2];
        unsigned short seen = *(volatile unsigned short*)cell;
        while (true) {
            unsigned short found = atomicCAS(cell, seen, (unsigned short)(seen + 1));
            if (found == seen) {
                break;
            }
            seen = found;
        }
    }
}

extern "C" __global__ void spin_lock(unsigned* lock, unsigned* total, unsigned n) {
    THREAD;
    if (t < n) {
        bool done = false;
        while (!done) {
            if (atomicCAS(lock, 0u, 1u) == 0u) {
                __threadfence();
                *(volatile unsigned*)total += t + 1;
                __threadfence();
                atomicExch(lock, 0u);
                done = true;
            }
        }
    }
}

extern "C" __global__ void shared_tickets(unsigned* out, unsigned n) {
    __shared__ unsigned next;
    if (threadIdx.x == 0) {
        next = 0;
    }
    __syncthreads();
    while (true) {
        unsigned ticket = atomicAdd(&next, 1u);
        if (ticket >= n) {
            break;
        }
        out[ticket] = ticket;
    }
}

extern "C" __global__ void scopes(unsigned* cells) {
    atomicAdd_block(&cells[0], 1u);
    atomicAdd(&cells[1], 1u);
    atomicAdd_system(&cells[2], 1u);
}
