// Arrays of a thread's own, indexed by run-time values, so that they live in local memory.
//
// digits(out, in, n)          out[i] = the decimal digits of in[i] (unsigned) reversed, as a number: 1203 -> 3021
// permute(out, in, order, n)  thread i < n: takes the 16 ints in[16i..], writes them as out[16i + k] = in[16i + order[k] % 16]
// life(out, in, steps, n)     thread i < n: a row of 32 cells (bit k of in[i] is cell k, a ring) under rule 110 for `steps` steps
// stack_machine(out, code, length, in, n)   thread i < n runs the bytes code[0..length] with a stack of 16 ints, in[i] pushed first:
//     0 add, 1 subtract (second minus top), 2 multiply, 3 duplicate, 4 swap, 5 negate, 16 + k pushes k. out[i] = the top. Wrapping.

#define INDEX unsigned i = blockIdx.x * blockDim.x + threadIdx.x

extern "C" __global__ void digits(unsigned* out, const unsigned* in, unsigned n) {
    INDEX;
    if (i < n) {
        unsigned char digit[10];
        int count = 0;
        unsigned value = in[i];
        do {
            digit[count++] = value % 10;
            value /= 10;
        } while (value != 0);
        unsigned reversed = 0;
        for (int k = 0; k < count; ++k) {
            reversed = reversed * 10 + digit[k];
        }
        out[i] = reversed;
    }
}

extern "C" __global__ void permute(int* out, const int* in, const unsigned* order, unsigned n) {
    INDEX;
    if (i < n) {
        int row[16];
        for (int k = 0; k < 16; ++k) {
            row[k] = in[16 * i + k];
        }
        for (int k = 0; k < 16; ++k) {
            out[16 * i + k] = row[order[k] % 16];
        }
    }
}

extern "C" __global__ void life(unsigned* out, const unsigned* in, unsigned steps, unsigned n) {
    INDEX;
    if (i < n) {
        bool now[32];
        bool next[32];
        for (int k = 0; k < 32; ++k) {
            now[k] = in[i] >> k & 1;
        }
        for (unsigned step = 0; step < steps; ++step) {
            #pragma unroll 1
            for (int k = 0; k < 32; ++k) {
                int pattern = now[(k + 1) % 32] << 2 | now[k] << 1 | now[(k + 31) % 32];
                next[k] = 110 >> pattern & 1;
            }
            #pragma unroll 1
            for (int k = 0; k < 32; ++k) {
                now[k] = next[k];
            }
        }
        unsigned cells = 0;
        for (int k = 0; k < 32; ++k) {
            cells |= (unsigned)now[k] << k;
        }
        out[i] = cells;
    }
}

extern "C" __global__ void stack_machine(
    int* out, const unsigned char* code, unsigned length, const int* in, unsigned n
) {
    INDEX;
    if (i >= n) {
        return;
    }
    int stack[16];
    int top = 0;
    stack[top] = in[i];
    for (unsigned pc = 0; pc < length; ++pc) {
        unsigned op = code[pc];
        switch (op) {
            case 0: --top; stack[top] += stack[top + 1]; break;
            case 1: --top; stack[top] -= stack[top + 1]; break;
            case 2: --top; stack[top] *= stack[top + 1]; break;
            case 3: ++top; stack[top] = stack[top - 1]; break;
            case 4: {
                int swapped = stack[top];
                stack[top] = stack[top - 1];
                stack[top - 1] = swapped;
                break;
            }
            case 5: stack[top] = -stack[top]; break;
            default: ++top; stack[top] = (int)op - 16; break;
        }
    }
    out[i] = stack[top];
}
