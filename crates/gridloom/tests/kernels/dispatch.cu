// Switch statements, which compilers turn into trees of branches, and a branch through a table.
//
// calculate(out, op, a, b, n)    out[i] by op[i]: 0 a+b, 1 a-b, 2 a*b, 3 a&b, 4 a|b, 5 a^b, 6 a << (b & 31), 7 a >> (b & 31) (arithmetic),
//     8 min, 9 max, 10 ~a, 11 a rotated left by b & 31; anything else -1. Wrapping int; op unsigned; lanes of a warp may differ.
// automaton(out, text, length, n)  thread i < n starts in state i % 5 and reads text[0..length]; states 0..4 with the moves in the code;
//     out[i] = the state at the end * 1000 + the number of moves that changed the state
// fall_through(out, in, n)       out[i]: by in[i] = 0, 1, 2, 3, 4 the sums 11111, 1111, 111, 11, 1; anything else 0
// branch_table(out, in, n)       the indirect branch itself (brx.idx): out[i] by in[i] % 4 (unsigned): in + 100, in * 3, 7 - in, ~in;
//     lanes of a warp may differ

#define INDEX unsigned i = blockIdx.x * blockDim.x + threadIdx.x

extern "C" __global__ void calculate(int* out, const unsigned* op, const int* a, const int* b, unsigned n) {
    INDEX;
    if (i >= n) {
        return;
    }
    int x = a[i];
    int y = b[i];
    int result;
    switch (op[i]) {
        case 0: result = x + y; break;
        case 1: result = x - y; break;
        case 2: result = x * y; break;
        case 3: result = x & y; break;
        case 4: result = x | y; break;
        case 5: result = x ^ y; break;
        case 6: result = x << (y & 31); break;
        case 7: result = x >> (y & 31); break;
        case 8: result = min(x, y); break;
        case 9: result = max(x, y); break;
        case 10: result = ~x; break;
        case 11: result = (int)__funnelshift_l((unsigned)x, (unsigned)x, (unsigned)y); break;
        default: result = -1; break;
    }
    out[i] = result;
}

extern "C" __global__ void automaton(unsigned* out, const unsigned char* text, unsigned length, unsigned n) {
    INDEX;
    if (i >= n) {
        return;
    }
    unsigned state = i % 5;
    unsigned changes = 0;
    for (unsigned k = 0; k < length; ++k) {
        unsigned c = text[k];
        unsigned next;
        switch (state) {
            case 0: next = c == 'a' ? 1 : 0; break;
            case 1: next = c == 'b' ? 2 : c == 'a' ? 1 : 0; break;
            case 2: next = c < 'm' ? 3 : 4; break;
            case 3: next = c & 1 ? 4 : 2; break;
            default: next = c % 5; break;
        }
        changes += next != state;
        state = next;
    }
    out[i] = state * 1000 + changes;
}

extern "C" __global__ void fall_through(int* out, const int* in, unsigned n) {
    INDEX;
    if (i >= n) {
        return;
    }
    volatile int sum = 0;
    switch (in[i]) {
        case 0: sum += 10000;
        case 1: sum += 1000;
        case 2: sum += 100;
        case 3: sum += 10;
        case 4: sum += 1;
    }
    out[i] = sum;
}

extern "C" __global__ void branch_table(unsigned* out, const unsigned* in, unsigned n) {
    INDEX;
    if (i >= n) {
        return;
    }
    unsigned result;
    asm volatile(
        "{\n\t"
        ".reg .u32 %%which;\n\t"
        "and.b32 %%which, %1, 3;\n\t"
        "$targets: .branchtargets $plus, $times, $minus, $invert;\n\t"
        "brx.idx %%which, $targets;\n"
        "$plus:\n\t"
        "add.u32 %0, %1, 100;\n\t"
        "bra.uni $done;\n"
        "$times:\n\t"
        "mul.lo.u32 %0, %1, 3;\n\t"
        "bra.uni $done;\n"
        "$minus:\n\t"
        "sub.u32 %0, 7, %1;\n\t"
        "bra.uni $done;\n"
        "$invert:\n\t"
        "not.b32 %0, %1;\n"
        "$done:\n\t"
        "}"
        : "=r"(result)
        : "r"(in[i])
    );
    out[i] = result;
}
