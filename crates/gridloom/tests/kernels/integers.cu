// Integer arithmetic and bits. n threads or more. Divisors are not 0, and never -1 under the smallest dividend.
//
// divisions32(out, a, b, n)   a, b int; out[4i..4i+4] (int) = a / b, a % b (truncating), then unsigned a / b, a % b
// divisions64(out, a, b, n)   the same in 64 bits
// constant_divisions(out, a, n)  a int; out[6i..6i+6] = a / 7, a % 7, unsigned a / 10, unsigned a % 1000, a / 8, a % 8
// bits32(out, a, b, n)        a, b unsigned; out[10i..10i+10] = popcount of a; leading zeros of a (32 of 0); a's bits reversed; number of a's
//     lowest set bit counted from 1 (0 of 0); high half of a * b unsigned; the same signed; |a - b| as signed (unsigned result); low half of a
//     with the low half of b above it; high word of (b:a) << 5; low word of (b:a) >> 5, with b the high word
// bits64(out, a, b, n)        unsigned 64; out[6i..6i+6] = popcount, leading zeros, reversed, lowest set bit + 1, high half of a * b unsigned, signed
// dot_products(out, a, b, c, n)  four-byte dot products; a, b unsigned words; out[4i..4i+4] (int) = c + dp4a signed, unsigned,
//     then dp2a (low, signed halves of a with low bytes of b) and dp2a high
// saturating(out, a, b, n)    int; out[3i..3i+3] = a + b saturated, a - b saturated (PTX add.sat / sub.sat), (a * b) >> 16 of the 64-bit product
// shifts(out, a, s, n)        a unsigned, s unsigned (may exceed 31); out[3i..3i+3] = shl, shr unsigned, shr signed as PTX defines them:
//     amounts above 31 count as 32
// fields(out, a, n)           unsigned; out[4i..4i+4] = bfe.u32(a, 5, 7), bfe.s32(a, 5, 7), bfi(a, 0xffff0000, 8, 12), bfind.u32(a)
// carries(out, a, b, n)       a, b: n pairs of unsigned long long (low, high): out = the 128-bit sums, then (2n on) the differences, by carry flags
// wide_products(out, a, b, n) int; out[3i..3i+3] (long long) = mul.wide.s32, mad.wide of (a, b, -7), mul24.lo of the low 24 bits signed

#define INDEX unsigned i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return

extern "C" __global__ void divisions32(int* out, const int* a, const int* b, unsigned n) {
    INDEX;
    out[4 * i] = a[i] / b[i];
    out[4 * i + 1] = a[i] % b[i];
    out[4 * i + 2] = (unsigned)a[i] / (unsigned)b[i];
    out[4 * i + 3] = (unsigned)a[i] % (unsigned)b[i];
}

extern "C" __global__ void divisions64(long long* out, const long long* a, const long long* b, unsigned n) {
    INDEX;
    typedef unsigned long long u64;
    out[4 * i] = a[i] / b[i];
    out[4 * i + 1] = a[i] % b[i];
    out[4 * i + 2] = (u64)a[i] / (u64)b[i];
    out[4 * i + 3] = (u64)a[i] % (u64)b[i];
}

extern "C" __global__ void constant_divisions(int* out, const int* a, unsigned n) {
    INDEX;
    int v = a[i];
    unsigned u = (unsigned)v;
    out[6 * i] = v / 7;
    out[6 * i + 1] = v % 7;
    out[6 * i + 2] = u / 10;
    out[6 * i + 3] = u % 1000;
    out[6 * i + 4] = v / 8;
    out[6 * i + 5] = v % 8;
}

extern "C" __global__ void bits32(unsigned* out, const unsigned* a, const unsigned* b, unsigned n) {
    INDEX;
    unsigned u = a[i];
    unsigned v = b[i];
    unsigned* o = out + 10 * i;
    o[0] = __popc(u);
    o[1] = __clz(u);
    o[2] = __brev(u);
    o[3] = __ffs(u);
    o[4] = __umulhi(u, v);
    o[5] = __mulhi((int)u, (int)v);
    o[6] = __sad((int)u, (int)v, 0u);
    o[7] = __byte_perm(u, v, 0x5410);
    o[8] = __funnelshift_l(u, v, 5);
    o[9] = __funnelshift_r(u, v, 37);
}

extern "C" __global__ void bits64(
    unsigned long long* out, const unsigned long long* a, const unsigned long long* b, unsigned n
) {
    INDEX;
    unsigned long long* o = out + 6 * i;
    o[0] = __popcll(a[i]);
    o[1] = __clzll(a[i]);
    o[2] = __brevll(a[i]);
    o[3] = __ffsll(a[i]);
    o[4] = __umul64hi(a[i], b[i]);
    o[5] = __mul64hi(a[i], b[i]);
}

extern "C" __global__ void dot_products(int* out, const unsigned* a, const unsigned* b, const int* c, unsigned n) {
    INDEX;
    out[4 * i] = __dp4a((int)a[i], (int)b[i], c[i]);
    out[4 * i + 1] = __dp4a(a[i], b[i], (unsigned)c[i]);
    out[4 * i + 2] = __dp2a_lo((int)a[i], (int)b[i], c[i]);
    out[4 * i + 3] = __dp2a_hi((int)a[i], (int)b[i], c[i]);
}

extern "C" __global__ void saturating(int* out, const int* a, const int* b, unsigned n) {
    INDEX;
    int sum;
    int difference;
    asm("add.sat.s32 %0, %1, %2;" : "=r"(sum) : "r"(a[i]), "r"(b[i]));
    asm("sub.sat.s32 %0, %1, %2;" : "=r"(difference) : "r"(a[i]), "r"(b[i]));
    out[3 * i] = sum;
    out[3 * i + 1] = difference;
    out[3 * i + 2] = (int)(((long long)a[i] * b[i]) >> 16);
}

extern "C" __global__ void shifts(unsigned* out, const unsigned* a, const unsigned* s, unsigned n) {
    INDEX;
    unsigned left;
    unsigned right;
    unsigned arithmetic;
    asm("shl.b32 %0, %1, %2;" : "=r"(left) : "r"(a[i]), "r"(s[i]));
    asm("shr.u32 %0, %1, %2;" : "=r"(right) : "r"(a[i]), "r"(s[i]));
    asm("shr.s32 %0, %1, %2;" : "=r"(arithmetic) : "r"(a[i]), "r"(s[i]));
    out[3 * i] = left;
    out[3 * i + 1] = right;
    out[3 * i + 2] = arithmetic;
}

extern "C" __global__ void fields(unsigned* out, const unsigned* a, unsigned n) {
    INDEX;
    unsigned v;
    asm("bfe.u32 %0, %1, 5, 7;" : "=r"(v) : "r"(a[i]));
    out[4 * i] = v;
    asm("bfe.s32 %0, %1, 5, 7;" : "=r"(v) : "r"(a[i]));
    out[4 * i + 1] = v;
    asm("bfi.b32 %0, %1, %2, 8, 12;" : "=r"(v) : "r"(a[i]), "r"(0xffff0000u));
    out[4 * i + 2] = v;
    asm("bfind.u32 %0, %1;" : "=r"(v) : "r"(a[i]));
    out[4 * i + 3] = v;
}

extern "C" __global__ void carries(
    unsigned long long* out, const unsigned long long* a, const unsigned long long* b, unsigned n
) {
    INDEX;
    unsigned long long low;
    unsigned long long high;
    asm("{\n\tadd.cc.u64 %0, %2, %4;\n\taddc.u64 %1, %3, %5;\n\t}"
        : "=l"(low), "=l"(high)
        : "l"(a[2 * i]), "l"(a[2 * i + 1]), "l"(b[2 * i]), "l"(b[2 * i + 1]));
    out[2 * i] = low;
    out[2 * i + 1] = high;
    asm("{\n\tsub.cc.u64 %0, %2, %4;\n\tsubc.u64 %1, %3, %5;\n\t}"
        : "=l"(low), "=l"(high)
        : "l"(a[2 * i]), "l"(a[2 * i + 1]), "l"(b[2 * i]), "l"(b[2 * i + 1]));
    out[2 * n + 2 * i] = low;
    out[2 * n + 2 * i + 1] = high;
}

extern "C" __global__ void wide_products(long long* out, const int* a, const int* b, unsigned n) {
    INDEX;
    out[3 * i] = (long long)a[i] * b[i];
    out[3 * i + 1] = (long long)a[i] * b[i] - 7;
    out[3 * i + 2] = __mul24(a[i], b[i]);
}
