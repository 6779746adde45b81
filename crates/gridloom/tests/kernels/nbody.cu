// Gravity between n bodies, double precision, tiles of 128 in shared memory.
//
// nbody_step(position, velocity, next, n, dt, softening)   block 128, grid ceil(n / 128);
//     position, next: n double4 (x, y, z, mass); velocity: n double4 (x, y, z, unused), updated in place.
//     For each body i, over j = 0 .. n-1 in order (j = i adds exact zeros):
//         d = p[j] - p[i]; r2 = fma(d.x, d.x, fma(d.y, d.y, fma(d.z, d.z, softening)));
//         inverse = 1 / sqrt(r2); s = mass[j] * inverse * inverse * inverse, from the left; a = fma(d, s, a) for each axis.
//     Then v = fma(a, dt, v), next = fma(v, dt, p); next.w = mass. All to nearest even: a host reference gives the same bits.
//     Bodies past n in the last tile have mass 0 at the origin and add exact zeros while all values are finite.

extern "C" __global__ void nbody_step(
    const double4* position, double4* velocity, double4* next, unsigned n, double dt, double softening
) {
    __shared__ double4 tile[128];
    unsigned i = blockIdx.x * 128 + threadIdx.x;
    double4 p = i < n ? position[i] : make_double4(0.0, 0.0, 0.0, 0.0);
    double ax = 0.0;
    double ay = 0.0;
    double az = 0.0;
    for (unsigned base = 0; base < n; base += 128) {
        unsigned mine = base + threadIdx.x;
        tile[threadIdx.x] = mine < n ? position[mine] : make_double4(0.0, 0.0, 0.0, 0.0);
        __syncthreads();
        #pragma unroll 1
        for (unsigned j = 0; j < 128; ++j) {
            double4 q = tile[j];
            double dx = q.x - p.x;
            double dy = q.y - p.y;
            double dz = q.z - p.z;
            double r2 = __fma_rn(dx, dx, __fma_rn(dy, dy, __fma_rn(dz, dz, softening)));
            double inverse = __ddiv_rn(1.0, __dsqrt_rn(r2));
            double s = __dmul_rn(__dmul_rn(__dmul_rn(q.w, inverse), inverse), inverse);
            ax = __fma_rn(dx, s, ax);
            ay = __fma_rn(dy, s, ay);
            az = __fma_rn(dz, s, az);
        }
        __syncthreads();
    }
    if (i < n) {
        double4 v = velocity[i];
        v.x = __fma_rn(ax, dt, v.x);
        v.y = __fma_rn(ay, dt, v.y);
        v.z = __fma_rn(az, dt, v.z);
        velocity[i] = v;
        next[i] = make_double4(
            __fma_rn(v.x, dt, p.x), __fma_rn(v.y, dt, p.y), __fma_rn(v.z, dt, p.z), p.w
        );
    }
}
