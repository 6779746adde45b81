"""Kernels for Triton, compiled to PTX without a GPU: `python triton_kernels.py FOLDER CASE` writes FOLDER/CASE.ptx.

They exercise what other compilers do not write: vector accesses under predicates, tensor-core instructions, asynchronous
copies, barriers in shared memory, and inline blocks with registers of their own.
"""

import pathlib
import sys

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out + offsets, tl.load(x + offsets, mask) + tl.load(y + offsets, mask), mask)


@triton.jit
def softmax(out, x, stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    values = tl.load(x + row * stride + offsets, mask, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, 0))
    tl.store(out + row * stride + offsets, powers / tl.sum(powers, 0), mask)


@triton.jit
def layer_norm(out, x, weight, bias, columns, epsilon, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    values = tl.load(x + row * columns + offsets, mask, other=0.0).to(tl.float32)
    mean = tl.sum(values, 0) / columns
    centred = tl.where(mask, values - mean, 0.0)
    inverse = 1 / tl.sqrt(tl.sum(centred * centred, 0) / columns + epsilon)
    scaled = centred * inverse * tl.load(weight + offsets, mask) + tl.load(bias + offsets, mask)
    tl.store(out + row * columns + offsets, scaled, mask)


@triton.jit
def matmul(a, b, c, m, n, k, BLOCK: tl.constexpr, DEPTH: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    depth = tl.arange(0, DEPTH)
    sums = tl.zeros((BLOCK, BLOCK), tl.float32)
    for base in range(0, k, DEPTH):
        left = tl.load(a + rows[:, None] * k + (base + depth)[None, :])
        right = tl.load(b + (base + depth)[:, None] * n + columns[None, :])
        sums = tl.dot(left, right, sums)
    tl.store(c + rows[:, None] * n + columns[None, :], sums.to(tl.float16))


@triton.jit
def count(bins, x, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.atomic_add(bins + (tl.load(x + offsets, mask, other=0) & 63), 1, mask)


@triton.jit
def running_sum(out, x, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out + offsets, tl.cumsum(tl.load(x + offsets), 0))


VECTORS = {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32"}
ROWS = {"out": "*fp32", "x": "*fp32", "stride": "i32", "columns": "i32"}
NORM = {"out": "*bf16", "x": "*bf16", "weight": "*bf16", "bias": "*bf16", "columns": "i32", "epsilon": "fp32"}
PRODUCT = {"a": "*fp16", "b": "*fp16", "c": "*fp16", "m": "i32", "n": "i32", "k": "i32"}
# file name, kernel, signature, constants, arguments known to be multiples of 16, compute capability;
# a name with `lineinfo` in it asks for line tables and debug data
CASES = [
    ("add.sm80", add, VECTORS, {"BLOCK": 1024}, ["x", "y", "out", "n"], 80),
    ("add.unaligned.sm90", add, VECTORS, {"BLOCK": 256}, [], 90),
    ("add.lineinfo.sm80", add, VECTORS, {"BLOCK": 256}, ["x", "y", "out"], 80),
    ("softmax.sm75", softmax, ROWS, {"BLOCK": 512}, ["out", "x"], 75),
    ("softmax.sm90", softmax, ROWS, {"BLOCK": 512}, ["out", "x"], 90),
    ("layer_norm.sm90", layer_norm, NORM, {"BLOCK": 512}, ["out", "x", "weight", "bias"], 90),
    ("matmul.sm80", matmul, PRODUCT, {"BLOCK": 32, "DEPTH": 32}, ["a", "b", "c", "n", "k"], 80),
    ("matmul.sm90", matmul, PRODUCT, {"BLOCK": 64, "DEPTH": 32}, ["a", "b", "c", "n", "k"], 90),
    ("count.sm80", count, {"bins": "*i32", "x": "*i32", "n": "i32"}, {"BLOCK": 128}, ["x"], 80),
    ("running_sum.sm80", running_sum, {"out": "*fp32", "x": "*fp32"}, {"BLOCK": 256}, ["out", "x"], 80),
    ("matmul.lineinfo.sm80", matmul, PRODUCT, {"BLOCK": 32, "DEPTH": 32}, ["a", "b", "c", "n", "k"], 80),
]


def main(folder, wanted):
    for name, kernel, signature, constants, aligned, capability in CASES:
        if name != wanted:
            continue
        triton.knobs.compilation.disable_line_info = "lineinfo" not in name
        # Debug data names the source by its whole path, which says nothing to anyone else.
        kernel.fn.__code__ = kernel.fn.__code__.replace(co_filename=pathlib.Path(__file__).name)
        places = list(signature)
        source = ASTSource(
            kernel,
            signature | {constant: "constexpr" for constant in constants},
            constants,
            {(places.index(argument),): [["tt.divisibility", 16]] for argument in aligned},
        )
        compiled = triton.compile(source, target=GPUTarget("cuda", capability, 32))
        (folder / f"{name}.ptx").write_text(compiled.asm["ptx"].strip() + "\n")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), sys.argv[2])
