// Conversions between types. n threads or more.
//
// float_to_ints(out, x, n)     x float; out[8i..8i+8] (long long) = x to int: nearest even, toward zero, down, up; to unsigned toward zero;
//     to signed 64 toward zero; to unsigned 64 toward zero; to signed 8 bits, saturated. Out of range saturates; NaN gives 0 for 32 bits,
//     0x8000000000000000 for 64.
// double_to_ints(out, x, n)    x double; out[4i..4i+4] = to int toward zero, to unsigned toward zero, to signed 64 nearest even, to unsigned 64
//     toward zero; out of range saturates; NaN gives 0x80000000 (sign extended as int; as unsigned 0x80000000) or 0x8000000000000000
// ints_to_float(out, x, n)     x long long; out[4i..4i+4] (float) = of its low 32 bits as int, as unsigned; of it as signed 64, as unsigned 64, to nearest
// ints_to_double(out, x, n)    the same four as double
// narrow(out, x, n)            x int; out[4i..4i+4] (int) = x as signed char, unsigned char, short, unsigned short
// double_to_float(out, x, n)   out[4i..4i+4] = to nearest, toward zero, up, down
// float_to_double(out, x, n)   exact
// reinterpret(out, x, n)       x float; out[i] = its bits + 1, read as float again

#define INDEX unsigned i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return

extern "C" __global__ void float_to_ints(long long* out, const float* x, unsigned n) {
    INDEX;
    float v = x[i];
    long long* o = out + 8 * i;
    o[0] = __float2int_rn(v);
    o[1] = __float2int_rz(v);
    o[2] = __float2int_rd(v);
    o[3] = __float2int_ru(v);
    o[4] = __float2uint_rz(v);
    o[5] = __float2ll_rz(v);
    o[6] = (long long)__float2ull_rz(v);
    int byte;
    asm("cvt.rzi.sat.s8.f32 %0, %1;" : "=r"(byte) : "f"(v));
    o[7] = (signed char)byte;
}

extern "C" __global__ void double_to_ints(long long* out, const double* x, unsigned n) {
    INDEX;
    long long* o = out + 4 * i;
    o[0] = __double2int_rz(x[i]);
    o[1] = __double2uint_rz(x[i]);
    o[2] = __double2ll_rn(x[i]);
    o[3] = (long long)__double2ull_rz(x[i]);
}

extern "C" __global__ void ints_to_float(float* out, const long long* x, unsigned n) {
    INDEX;
    out[4 * i] = __int2float_rn((int)x[i]);
    out[4 * i + 1] = __uint2float_rn((unsigned)x[i]);
    out[4 * i + 2] = __ll2float_rn(x[i]);
    out[4 * i + 3] = __ull2float_rn((unsigned long long)x[i]);
}

extern "C" __global__ void ints_to_double(double* out, const long long* x, unsigned n) {
    INDEX;
    out[4 * i] = __int2double_rn((int)x[i]);
    out[4 * i + 1] = __uint2double_rn((unsigned)x[i]);
    out[4 * i + 2] = __ll2double_rn(x[i]);
    out[4 * i + 3] = __ull2double_rn((unsigned long long)x[i]);
}

extern "C" __global__ void narrow(int* out, const int* x, unsigned n) {
    INDEX;
    out[4 * i] = (signed char)x[i];
    out[4 * i + 1] = (unsigned char)x[i];
    out[4 * i + 2] = (short)x[i];
    out[4 * i + 3] = (unsigned short)x[i];
}

extern "C" __global__ void double_to_float(float* out, const double* x, unsigned n) {
    INDEX;
    out[4 * i] = __double2float_rn(x[i]);
    out[4 * i + 1] = __double2float_rz(x[i]);
    out[4 * i + 2] = __double2float_ru(x[i]);
    out[4 * i + 3] = __double2float_rd(x[i]);
}

extern "C" __global__ void float_to_double(double* out, const float* x, unsigned n) {
    INDEX;
    out[i] = x[i];
}

extern "C" __global__ void reinterpret(float* out, const float* x, unsigned n) {
    INDEX;
    out[i] = __int_as_float(__float_as_int(x[i]) + 1);
}
