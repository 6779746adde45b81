// What a kernel prints.
//
// hello()                      each thread prints "hello from block %d, thread %d\n"
// print_formats(i, u, l, d)    one thread prints, one line each:
//     "int %d, unsigned %u, hex %08x, char %c\n" with i, u, u, 'A' + (i & 15);
//     "long %lld, unsigned long %llu, hex %llx\n" with l three times;
//     "float %.3f, scientific %e, general %g, right [%10.2f], left [%-10.2f]\n" with d five times;
//     "string %s, percent %%, pointer %s\n" with "text" and "end";
//     "nothing to convert\n"
// print_count(out, value)      one thread: *out = what printf returned for "%d %d\n", 2 on a GPU (the number of arguments)

extern "C" __global__ void hello() {
    printf("hello from block %d, thread %d\n", blockIdx.x, threadIdx.x);
}

extern "C" __global__ void print_formats(int i, unsigned u, long long l, double d) {
    printf("int %d, unsigned %u, hex %08x, char %c\n", i, u, u, 'A' + (i & 15));
    printf("long %lld, unsigned long %llu, hex %llx\n", l, l, l);
    printf("float %.3f, scientific %e, general %g, right [%10.2f], left [%-10.2f]\n", d, d, d, d, d);
    printf("string %s, percent %%, pointer %s\n", "text", "end");
    printf("nothing to convert\n");
}

extern "C" __global__ void print_count(int* out, int value) {
    *out = printf("%d %d\n", value, value + 1);
}
