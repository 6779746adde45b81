// One step of k-means in the plane.
//
// kmeans_step(labels, sums, counts, points, centroids, n, k)   n threads or more: labels[i] = the nearest of k centroids, the first of
//     several; sums[2 c], sums[2 c + 1] and counts[c] add up the points of each. points and centroids: x and y by turns.
//     Distances: dx = x - cx; dy = y - cy; d = fma(dx, dx, dy * dy). Sums are exact where the coordinates are small whole numbers.

extern "C" __global__ void kmeans_step(
    unsigned* labels, float* sums, unsigned* counts, const float* points, const float* centroids, unsigned n, unsigned k
) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) {
        return;
    }
    float x = points[2 * i];
    float y = points[2 * i + 1];
    unsigned nearest = 0;
    float least = __int_as_float(0x7f800000);
    for (unsigned c = 0; c < k; ++c) {
        float dx = x - centroids[2 * c];
        float dy = y - centroids[2 * c + 1];
        float d = __fmaf_rn(dx, dx, __fmul_rn(dy, dy));
        if (d < least) {
            least = d;
            nearest = c;
        }
    }
    labels[i] = nearest;
    atomicAdd(&sums[2 * nearest], x);
    atomicAdd(&sums[2 * nearest + 1], y);
    atomicAdd(&counts[nearest], 1u);
}
