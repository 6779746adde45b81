// variant fast: -use_fast_math
//
// Elementary functions, float and double; the `fast` variant uses the approximate instructions for float. n threads or more.
//
// elementary_f32(out, x, n)    out[12i..12i+12] = sqrt|x|, 1/x, 1/sqrt|x|, exp(x), log|x|, sin, cos, tan, tanh, pow(|x|, 1.5), exp2(x), log2|x|
//     Without `fast`, sqrt and 1/x are correctly rounded and the rest within 4 units in the last place (for |x| <= 10); with it,
//     within 1e-5 absolute + 1e-5 relative for 0.1 <= |x| <= 3, tan away from its poles, and subnormal floats count as 0 throughout.
// elementary_f64(out, x, n)    out[8i..8i+8] = sqrt|x|, 1/x, exp(x), log|x|, sin, cos, cbrt(x), pow(|x|, 1.5): within 2 units in the last place,
//     sqrt and 1/x correctly rounded
// roundings(out, x, n)         float: out[6i..6i+6] = floor, ceil, trunc, to nearest even (rintf), half away from zero (roundf), x - trunc(x)
// directed(out, a, b, n)       float: out[12i..12i+12] = a + b, a * b, a / b, each to nearest, toward zero, up, down
// classes(out, x, n)           float; out[i] (unsigned) = bits: 1 NaN, 2 infinite, 4 finite, 8 sign bit, 16 zero, 32 normal
// minmax(out, a, b, n)         float: out[4i..4i+4] = fminf, fmaxf, copysignf(a, b), fdimf(a, b); a NaN loses against a number
// specials(out, x, n)          the approximate instructions themselves: out[7i..7i+7] = sin.approx, cos.approx, lg2.approx(|x|), ex2.approx,
//     rcp.approx, rsqrt.approx(|x|), sqrt.approx(|x|), through inline assembly, subnormals kept

#define INDEX unsigned i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return

extern "C" __global__ void elementary_f32(float* out, const float* x, unsigned n) {
    INDEX;
    float v = x[i];
    float a = fabsf(v);
    float* o = out + 12 * i;
    o[0] = sqrtf(a);
    o[1] = 1.0f / v;
    o[2] = rsqrtf(a);
    o[3] = expf(v);
    o[4] = logf(a);
    o[5] = sinf(v);
    o[6] = cosf(v);
    o[7] = tanf(v);
    o[8] = tanhf(v);
    o[9] = powf(a, 1.5f);
    o[10] = exp2f(v);
    o[11] = log2f(a);
}

extern "C" __global__ void elementary_f64(double* out, const double* x, unsigned n) {
    INDEX;
    double v = x[i];
    double a = fabs(v);
    double* o = out + 8 * i;
    o[0] = sqrt(a);
    o[1] = 1.0 / v;
    o[2] = exp(v);
    o[3] = log(a);
    o[4] = sin(v);
    o[5] = cos(v);
    o[6] = cbrt(v);
    o[7] = pow(a, 1.5);
}

extern "C" __global__ void roundings(float* out, const float* x, unsigned n) {
    INDEX;
    float v = x[i];
    float* o = out + 6 * i;
    o[0] = floorf(v);
    o[1] = ceilf(v);
    o[2] = truncf(v);
    o[3] = rintf(v);
    o[4] = roundf(v);
    o[5] = v - truncf(v);
}

extern "C" __global__ void directed(float* out, const float* a, const float* b, unsigned n) {
    INDEX;
    float u = a[i];
    float v = b[i];
    float* o = out + 12 * i;
    o[0] = __fadd_rn(u, v);
    o[1] = __fadd_rz(u, v);
    o[2] = __fadd_ru(u, v);
    o[3] = __fadd_rd(u, v);
    o[4] = __fmul_rn(u, v);
    o[5] = __fmul_rz(u, v);
    o[6] = __fmul_ru(u, v);
    o[7] = __fmul_rd(u, v);
    o[8] = __fdiv_rn(u, v);
    o[9] = __fdiv_rz(u, v);
    o[10] = __fdiv_ru(u, v);
    o[11] = __fdiv_rd(u, v);
}

extern "C" __global__ void classes(unsigned* out, const float* x, unsigned n) {
    INDEX;
    float v = x[i];
    float a = fabsf(v);
    out[i] = (unsigned)isnan(v) | (unsigned)isinf(v) << 1 | (unsigned)isfinite(v) << 2 |
             (__float_as_uint(v) >> 31) << 3 | (unsigned)(v == 0.0f) << 4 |
             (unsigned)(a >= 1.17549435e-38f && isfinite(v)) << 5;
}

extern "C" __global__ void minmax(float* out, const float* a, const float* b, unsigned n) {
    INDEX;
    out[4 * i] = fminf(a[i], b[i]);
    out[4 * i + 1] = fmaxf(a[i], b[i]);
    out[4 * i + 2] = copysignf(a[i], b[i]);
    out[4 * i + 3] = fdimf(a[i], b[i]);
}

extern "C" __global__ void specials(float* out, const float* x, unsigned n) {
    INDEX;
    float v = x[i];
    float a = fabsf(v);
    float* o = out + 7 * i;
    asm("sin.approx.f32 %0, %1;" : "=f"(o[0]) : "f"(v));
    asm("cos.approx.f32 %0, %1;" : "=f"(o[1]) : "f"(v));
    asm("lg2.approx.f32 %0, %1;" : "=f"(o[2]) : "f"(a));
    asm("ex2.approx.f32 %0, %1;" : "=f"(o[3]) : "f"(v));
    asm("rcp.approx.f32 %0, %1;" : "=f"(o[4]) : "f"(v));
    asm("rsqrt.approx.f32 %0, %1;" : "=f"(o[5]) : "f"(a));
    asm("sqrt.approx.f32 %0, %1;" : "=f"(o[6]) : "f"(a));
}
