"""Speed of ggml's CPU backend (in PyPI xllamacpp): `python ggml_cpu.py [threads] [seconds per row]`.

Prints the rows of `cargo bench -p rocmforge-ggml --bench cpu` (its attention over a paged cache beside ggml's FLASH_ATTN_EXT), each the best of several runs; with one thread the thread's CPU time, as
there. Weights lie in ggml's default buffers: not
repacked, as a product of a graph without a model's loader finds them.
"""

import ctypes
import sys
import time
from ctypes import c_bool, c_float, c_int, c_int64, c_size_t, c_void_p

import numpy as np
import xllamacpp.xllamacpp as library

ROWS, COLUMNS = 4096, 14336
KEYS, KV_HEADS, GROUP = 4096, 8, 4
# Values of ggml's `enum ggml_type`.
F32, F16 = 0, 1
TYPES = {"f32": 0, "f16": 1, "bf16": 30, "q4_0": 2, "q4_1": 3, "q8_0": 8, "q4_K": 12, "q6_K": 14}

ggml = ctypes.CDLL(library.__file__)


class InitParams(ctypes.Structure):
    _fields_ = [("mem_size", c_size_t), ("mem_buffer", c_void_p), ("no_alloc", c_bool)]


def function(name, result, *arguments):
    f = getattr(ggml, name)
    f.restype, f.argtypes = result, arguments
    return f


init = function("ggml_init", c_void_p, InitParams)
free = function("ggml_free", None, c_void_p)
new_tensor = function("ggml_new_tensor_4d", c_void_p, c_void_p, c_int, c_int64, c_int64, c_int64, c_int64)
get_data = function("ggml_get_data", c_void_p, c_void_p)
nbytes = function("ggml_nbytes", c_size_t, c_void_p)
quantize = function(
    "ggml_quantize_chunk", c_size_t, c_int, c_void_p, c_void_p, c_int64, c_int64, c_int64, c_void_p
)
mul_mat = function("ggml_mul_mat", c_void_p, c_void_p, c_void_p, c_void_p)
flash = function(
    "ggml_flash_attn_ext", c_void_p, *[c_void_p] * 5, c_float, c_float, c_float
)
new_graph = function("ggml_new_graph", c_void_p, c_void_p)
expand = function("ggml_build_forward_expand", None, c_void_p, c_void_p)
compute = function("ggml_graph_compute_with_ctx", c_int, c_void_p, c_void_p, c_int)


def values(count):
    """The values of the Rust bench."""
    noise = np.arange(count, dtype=np.uint64) * 2654435761 % 2**32 // 256
    return (noise / 8388608.0 - 1.0).astype(np.float32)


def fill(tensor, array):
    assert nbytes(tensor) == array.nbytes, (nbytes(tensor), array.nbytes)
    ctypes.memmove(get_data(tensor), array.ctypes.data, array.nbytes)


def best(threads, seconds, build):
    """Best time of a graph of one op; `build` makes its tensor."""
    context = init(InitParams(1 << 30, None, False))
    graph = new_graph(context)
    expand(graph, build(context))
    clock = time.thread_time if threads == 1 else time.perf_counter
    started, best, runs = time.perf_counter(), float("inf"), 0
    while runs < 3 or time.perf_counter() - started < seconds:
        # The context keeps each run's work buffer: a run takes some of its memory.
        if runs == 30:
            break
        since = clock()
        assert compute(context, graph, threads) == 0
        best = min(best, clock() - since)
        runs += 1
    free(context)
    return best


def product(kind, n):
    def build(context):
        weight = new_tensor(context, kind, COLUMNS, ROWS, 1, 1)
        row = values(COLUMNS)
        blocks = np.empty(nbytes(weight) // ROWS, np.uint8)
        if kind == F32:
            blocks = row.view(np.uint8)
        else:
            quantize(kind, row.ctypes.data, blocks.ctypes.data, 0, 1, COLUMNS, None)
        fill(weight, np.tile(blocks, ROWS))
        x = new_tensor(context, F32, COLUMNS, n, 1, 1)
        fill(x, values(COLUMNS * n))
        return mul_mat(context, weight, x)

    return build


def attention(dim, n):
    def build(context):
        q = new_tensor(context, F32, dim, n, KV_HEADS * GROUP, 1)
        fill(q, values(dim * n * KV_HEADS * GROUP))
        k, v = (new_tensor(context, F16, dim, KEYS, KV_HEADS, 1) for _ in range(2))
        for tensor in (k, v):
            fill(tensor, values(dim * KEYS * KV_HEADS).astype(np.float16))
        return flash(context, q, k, v, None, dim**-0.5, 0.0, 0.0)

    return build


def main(threads=2, seconds=0.7):
    print(f"{threads} threads; product: [n, {COLUMNS}] by [{COLUMNS}, {ROWS}]\n| op | n | us | GFLOP/s |\n|---|---|---|---|")

    def report(label, n, build, flops):
        time = best(threads, seconds, build)
        print(f"| {label} | {n} | {time * 1e6:.0f} | {flops / time / 1e9:.1f} |", flush=True)

    for name, kind in TYPES.items():
        for n in (1, 512):
            report(f"product {name}", n, product(kind, n), 2 * n * ROWS * COLUMNS)
    for dim in (64, 128):
        for n in (1, 512):
            flops = 4 * n * KEYS * KV_HEADS * GROUP * dim
            report(f"FLASH_ATTN_EXT f16, heads of {dim}", n, attention(dim, n), flops)


if __name__ == "__main__":
    main(*(kind(value) for kind, value in zip((int, float), sys.argv[1:])))
