// Memory that kernels allocate.
//
// heap_sum(out, n)             thread i < n allocates i + 1 ints, fills them with 1 .. i + 1, sums them, frees: out[i] = (i+1)(i+2)/2
// heap_make(slots, n)          thread i < n allocates 8 ints holding 10 * i + 0 .. 7 and leaves the address in slots[i] (8 bytes)
// heap_take(out, slots, n)     thread i < n: out[i] = the sum of the 8 ints behind slots[i], then frees them
// heap_list(out, n)            one thread: a linked list of n nodes holding 0 .. n-1, pushed at the front; out[k] = the k-th from the
//     front, that is n - 1 - k; frees all
// new_delete(out, side)        one thread: *out = 7 * side where side > 5, else side * side (int), through new, delete and a virtual function

extern "C" __global__ void heap_sum(int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        int* numbers = (int*)malloc((i + 1) * sizeof(int));
        if (numbers == nullptr) {
            out[i] = -1;
            return;
        }
        for (int k = 0; k <= i; ++k) {
            numbers[k] = k + 1;
        }
        int sum = 0;
        for (int k = 0; k <= i; ++k) {
            sum += numbers[k];
        }
        free(numbers);
        out[i] = sum;
    }
}

extern "C" __global__ void heap_make(int** slots, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        int* numbers = (int*)malloc(8 * sizeof(int));
        for (int k = 0; k < 8; ++k) {
            numbers[k] = 10 * i + k;
        }
        slots[i] = numbers;
    }
}

extern "C" __global__ void heap_take(int* out, int** slots, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        int sum = 0;
        for (int k = 0; k < 8; ++k) {
            sum += slots[i][k];
        }
        free(slots[i]);
        out[i] = sum;
    }
}

struct Link {
    int value;
    Link* next;
};

extern "C" __global__ void heap_list(int* out, int n) {
    Link* head = nullptr;
    for (int k = 0; k < n; ++k) {
        Link* link = (Link*)malloc(sizeof(Link));
        link->value = k;
        link->next = head;
        head = link;
    }
    for (int k = 0; head != nullptr; ++k) {
        out[k] = head->value;
        Link* next = head->next;
        free(head);
        head = next;
    }
}

struct Shape {
    __device__ Shape(int side) : side(side) {}
    __device__ virtual int area() const { return side * side; }
    __device__ virtual ~Shape() {}
    int side;
};

struct Box : Shape {
    __device__ Box(int side, int height) : Shape(side), height(height) {}
    __device__ int area() const override { return side * height; }
    int height;
};

extern "C" __global__ void new_delete(int* out, int side) {
    Shape* shape = side > 5 ? (Shape*)new Box(side, 7) : new Shape(side);
    *out = shape->area();
    delete shape;
}
