"""Triton kernels of the usual kinds, launched by Triton itself on a simulated Radeon and compared with numpy.

    pip install 'triton==3.9.*' numpy
    rocmforge-sanitize run --card gfx1201 -- python kernels.py [NAME...]

Triton usually finds the card and its memory through PyTorch. Here `Driver` and `Array` take its place: they call the HIP library
that `rocmforge-sanitize run` names in TRITON_LIBHIP_PATH. The exit status is 1 if a result is wrong.
"""

import ctypes
import os
import sys
import time

import numpy as np
import triton
import triton.language as tl
from triton.backends.amd.driver import HIPDriver, HIPLauncher, HIPUtils

HIP = ctypes.CDLL(os.environ["TRITON_LIBHIP_PATH"])


def hip(name, *arguments):
    status = getattr(HIP, name)(*arguments)
    if status != 0:
        raise RuntimeError(f"{name}: HIP error {status}")


class Driver(HIPDriver):
    """Triton's driver for AMD cards, for the first card and its default stream, without PyTorch."""

    def __init__(self):
        self.utils = HIPUtils()
        self.launcher_cls = HIPLauncher

    def get_current_device(self):
        return 0

    def set_current_device(self, device):
        assert device == 0

    def get_current_stream(self, device):
        return 0


class Array:
    """A numpy array in the card's memory. bfloat16 values are the upper halves of float32 ones."""

    def __init__(self, host, dtype=None):
        host = np.ascontiguousarray(host)
        self.dtype = dtype or str(host.dtype)
        self.shape, self.host_dtype, self.nbytes = host.shape, host.dtype, host.nbytes
        self.pointer = ctypes.c_void_p()
        hip("hipMalloc", ctypes.byref(self.pointer), ctypes.c_size_t(self.nbytes))
        hip("hipMemcpy", self.pointer, host.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(self.nbytes), 1)

    @classmethod
    def bfloat16(cls, host):
        return cls(to_bfloat16(host), "bfloat16")

    def data_ptr(self):
        return self.pointer.value

    def numpy(self):
        host = np.empty(self.shape, self.host_dtype)
        hip("hipMemcpy", host.ctypes.data_as(ctypes.c_void_p), self.pointer, ctypes.c_size_t(self.nbytes), 2)
        return from_bfloat16(host) if self.dtype == "bfloat16" else host

    def __del__(self):
        HIP.hipFree(self.pointer)


def to_bfloat16(values):
    """Rounds to the nearest, ties to even. No NaN comes here."""
    bits = np.asarray(values, np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bfloat16(bits):
    return (np.asarray(bits).astype(np.uint32) << 16).view(np.float32)


def zeros(shape, dtype=np.float32):
    return Array(np.zeros(shape, dtype))


RANDOM = np.random.default_rng(1)


def normal(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def expect(got, want, tolerance=0.0):
    """Compares two arrays. The tolerance is a part of the largest expected value; 0 asks for equal bits."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape, f"shape {got.shape}, expected {want.shape}"
    if tolerance == 0.0:
        wrong = np.count_nonzero(got != want)
        assert wrong == 0, f"{wrong} of {want.size} values differ"
    else:
        error = np.max(np.abs(got.astype(np.float64) - want)) / max(np.max(np.abs(want)), 1e-30)
        assert error <= tolerance, f"relative error {error:.3g}, allowed {tolerance:.3g}"


@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, at < n) + tl.load(y + at, at < n), at < n)


@case
def add():
    x, y, out = normal(1000), normal(1000), zeros(1000)
    add_kernel[(triton.cdiv(1000, 256), )](Array(x), Array(y), out, 1000, BLOCK=256)
    expect(out.numpy(), x + y)


@triton.jit
def masked_kernel(x, mask, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = tl.load(mask + at, at < n, other=0) != 0
    value = tl.load(x + at, keep & (at < n), other=-1.0)
    tl.store(out + at, value, (at < n) & (at % 3 != 0))


@case
def masked():
    x, mask, out = normal(777), RANDOM.integers(0, 2, 777, dtype=np.int8), zeros(777)
    masked_kernel[(4, )](Array(x), Array(mask), out, 777, BLOCK=256)
    want = np.where(mask != 0, x, np.float32(-1))
    want[np.arange(777) % 3 == 0] = 0
    expect(out.numpy(), want)


@triton.jit
def select_kernel(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a, b = tl.load(x + at, at < n, other=0.0), tl.load(y + at, at < n, other=0.0)
    value = tl.where(a > b, tl.maximum(a, 0.5), tl.minimum(b, -a))
    tl.store(out + at, tl.clamp(value, -1.0, 1.0), at < n)


@case
def select():
    x, y, out = normal(500), normal(500), zeros(500)
    select_kernel[(4, )](Array(x), Array(y), out, 500, BLOCK=128)
    expect(out.numpy(), np.clip(np.where(x > y, np.maximum(x, np.float32(0.5)), np.minimum(y, -x)), -1, 1))


@triton.jit
def pointers_2d_kernel(x, out, rows, columns, stride, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = (i[:, None] < rows) & (j[None, :] < columns)
    value = tl.load(x + i[:, None] * stride + j[None, :], inside)
    tl.store(out + i[:, None] * columns + j[None, :], value * 2, inside)


@case
def pointers_2d():
    x, out = normal(45, 80), zeros((45, 70))
    pointers_2d_kernel[(2, 3)](Array(x), out, 45, 70, 80, BLOCK=32)
    expect(out.numpy(), x[:, :70] * 2)


@triton.jit
def softmax_kernel(x, out, columns, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    value = tl.load(x + row * columns + at, at < columns, other=-float("inf"))
    power = tl.exp(value - tl.max(value, 0))
    tl.store(out + row * columns + at, power / tl.sum(power, 0), at < columns)


def numpy_softmax(x):
    power = np.exp(x.astype(np.float64) - x.max(-1, keepdims=True))
    return power / power.sum(-1, keepdims=True)


@case
def softmax():
    x, out = normal(7, 781), zeros((7, 781))
    softmax_kernel[(7, )](Array(x), out, 781, BLOCK=1024)
    expect(out.numpy(), numpy_softmax(x), 2e-6)


@triton.jit
def layer_norm_kernel(x, weight, bias, out, columns, epsilon, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    inside = at < columns
    value = tl.load(x + row * columns + at, inside, other=0.0)
    mean = tl.sum(value, 0) / columns
    centred = tl.where(inside, value - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, 0) / columns + epsilon)
    result = centred * scale * tl.load(weight + at, inside) + tl.load(bias + at, inside)
    tl.store(out + row * columns + at, result, inside)


@case
def layer_norm():
    x, weight, bias, out = normal(5, 300), normal(300), normal(300), zeros((5, 300))
    layer_norm_kernel[(5, )](Array(x), Array(weight), Array(bias), out, 300, 1e-5, BLOCK=512)
    wide = x.astype(np.float64)
    want = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5) * weight + bias
    expect(out.numpy(), want, 2e-6)


@triton.jit
def rms_norm_kernel(x, weight, out, columns, epsilon, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    inside = at < columns
    value = tl.load(x + row * columns + at, inside, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(value * value, 0) / columns + epsilon)
    tl.store(out + row * columns + at, (value * scale * tl.load(weight + at, inside)).to(tl.float16), inside)


@case
def rms_norm():
    x, weight, out = normal(6, 576).astype(np.float16), normal(576), zeros((6, 576), np.float16)
    rms_norm_kernel[(6, )](Array(x), Array(weight), out, 576, 1e-6, BLOCK=1024)
    wide = x.astype(np.float64)
    expect(out.numpy(), wide / np.sqrt((wide * wide).mean(1, keepdims=True) + 1e-6) * weight, 1e-3)


@triton.jit
def matmul_kernel(a, b, out, M, N, K, batch_a, batch_b, batch_out, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
                  BLOCK_K: tl.constexpr, ACCUMULATOR: tl.constexpr):
    batch = tl.program_id(2)
    i = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    j = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    a += batch * batch_a
    b += batch * batch_b
    total = tl.zeros((BLOCK_M, BLOCK_N), ACCUMULATOR)
    for start in range(0, K, BLOCK_K):
        in_a = (i[:, None] < M) & (start + k[None, :] < K)
        in_b = (start + k[:, None] < K) & (j[None, :] < N)
        left = tl.load(a + i[:, None] * K + start + k[None, :], in_a, other=0)
        right = tl.load(b + (start + k[:, None]) * N + j[None, :], in_b, other=0)
        total += tl.dot(left, right, out_dtype=ACCUMULATOR)
    inside = (i[:, None] < M) & (j[None, :] < N)
    tl.store(out + batch * batch_out + i[:, None] * N + j[None, :], total, inside)


def run_matmul(a, b, want, accumulator, tolerance, block=(32, 32, 32), warps=4):
    batches = want.shape[0] if want.ndim == 3 else 1
    (m, n), k = want.shape[-2:], a.shape[-1]
    out = zeros(want.shape, np.int32 if accumulator is tl.int32 else np.float32)
    grid = (triton.cdiv(m, block[0]), triton.cdiv(n, block[1]), batches)
    matmul_kernel[grid](a, b, out, m, n, k, m * k, k * n, m * n, *block, ACCUMULATOR=accumulator, num_warps=warps)
    expect(out.numpy(), want, tolerance)


@case
def matmul_f16():
    a, b = normal(64, 96).astype(np.float16), normal(96, 64).astype(np.float16)
    run_matmul(Array(a), Array(b), a.astype(np.float64) @ b.astype(np.float64), tl.float32, 2e-6)


@case
def matmul_bf16():
    a, b = normal(64, 64), normal(64, 64)
    want = from_bfloat16(to_bfloat16(a)).astype(np.float64) @ from_bfloat16(to_bfloat16(b)).astype(np.float64)
    run_matmul(Array.bfloat16(a), Array.bfloat16(b), want, tl.float32, 2e-6)


@case
def matmul_f32():
    a, b = normal(48, 40), normal(40, 56)
    run_matmul(Array(a), Array(b), a.astype(np.float64) @ b, tl.float32, 2e-6, (16, 16, 16))


@case
def matmul_int8():
    a, b = RANDOM.integers(-128, 128, (64, 96), dtype=np.int8), RANDOM.integers(-128, 128, (96, 32), dtype=np.int8)
    run_matmul(Array(a), Array(b), a.astype(np.int32) @ b.astype(np.int32), tl.int32, 0.0)


@case
def matmul_batched():
    a, b = normal(3, 32, 48).astype(np.float16), normal(3, 48, 32).astype(np.float16)
    run_matmul(Array(a), Array(b), a.astype(np.float64) @ b.astype(np.float64), tl.float32, 2e-6, warps=2)


@case
def matmul_masked():
    a, b = normal(37, 53).astype(np.float16), normal(53, 41).astype(np.float16)
    run_matmul(Array(a), Array(b), a.astype(np.float64) @ b.astype(np.float64), tl.float32, 2e-6, warps=8)


@triton.jit
def attention_kernel(q, k, v, out, length, scale, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    i, d = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.arange(0, WIDTH)
    query = tl.load(q + i[:, None] * WIDTH + d[None, :], i[:, None] < length, other=0.0)
    top = tl.full((BLOCK, ), -float("inf"), tl.float32)
    below = tl.zeros((BLOCK, ), tl.float32)
    total = tl.zeros((BLOCK, WIDTH), tl.float32)
    for start in range(0, (tl.program_id(0) + 1) * BLOCK, BLOCK):
        j = start + tl.arange(0, BLOCK)
        key = tl.load(k + j[None, :] * WIDTH + d[:, None], j[None, :] < length, other=0.0)
        score = tl.where(i[:, None] >= j[None, :], tl.dot(query, key) * scale, -float("inf"))
        new_top = tl.maximum(top, tl.max(score, 1))
        power = tl.exp(score - new_top[:, None])
        old = tl.exp(top - new_top)
        value = tl.load(v + j[:, None] * WIDTH + d[None, :], j[:, None] < length, other=0.0)
        total = total * old[:, None] + tl.dot(power.to(tl.float16), value)
        below = below * old + tl.sum(power, 1)
        top = new_top
    tl.store(out + i[:, None] * WIDTH + d[None, :], total / below[:, None], i[:, None] < length)


@case
def attention():
    q, k, v = (normal(75, 32).astype(np.float16) for _ in range(3))
    out = zeros((75, 32))
    attention_kernel[(3, )](Array(q), Array(k), Array(v), out, 75, 32**-0.5, WIDTH=32, BLOCK=32)
    score = q.astype(np.float32) @ k.astype(np.float32).T * np.float32(32**-0.5)
    score[np.triu_indices(75, 1)] = -np.inf
    expect(out.numpy(), numpy_softmax(score) @ v.astype(np.float64), 1e-3)


@triton.jit
def reductions_kernel(x, sums, maxima, total, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i, j = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    value = tl.load(x + i[:, None] * COLUMNS + j[None, :])
    tl.store(sums + i, tl.sum(value, 1))
    tl.store(maxima + j, tl.max(value, 0))
    tl.store(total, tl.sum(value))
    tl.store(total + 1, tl.xor_sum(value))


@case
def reductions():
    x = RANDOM.integers(-1000, 1000, (64, 128), dtype=np.int32)
    sums, maxima, total = zeros(64, np.int32), zeros(128, np.int32), zeros(2, np.int32)
    reductions_kernel[(1, )](Array(x), sums, maxima, total, 64, 128)
    expect(sums.numpy(), x.sum(1))
    expect(maxima.numpy(), x.max(0))
    expect(total.numpy(), [x.sum(), np.bitwise_xor.reduce(x, None)])


@triton.jit
def arg_kernel(x, largest, smallest, columns, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    inside = at < columns
    tl.store(largest + row, tl.argmax(tl.load(x + row * columns + at, inside, other=-float("inf")), 0))
    tl.store(smallest + row, tl.argmin(tl.load(x + row * columns + at, inside, other=float("inf")), 0))


@case
def argmax():
    x = RANDOM.integers(-20, 20, (9, 300)).astype(np.float32)  # with equal values: the first of them counts
    largest, smallest = zeros(9, np.int32), zeros(9, np.int32)
    arg_kernel[(9, )](Array(x), largest, smallest, 300, BLOCK=512)
    expect(largest.numpy(), x.argmax(1))
    expect(smallest.numpy(), x.argmin(1))


@triton.jit
def cumsum_kernel(x, out, back, COLUMNS: tl.constexpr):
    at = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    value = tl.load(x + at)
    tl.store(out + at, tl.cumsum(value, 0))
    tl.store(back + at, tl.cumsum(value, 0, reverse=True))


@case
def cumsum():
    x = RANDOM.integers(-9, 9, (3, 512), dtype=np.int32)
    out, back = zeros((3, 512), np.int32), zeros((3, 512), np.int32)
    cumsum_kernel[(3, )](Array(x), out, back, 512)
    expect(out.numpy(), x.cumsum(1))
    expect(back.numpy(), x[:, ::-1].cumsum(1)[:, ::-1])


@triton.jit
def linear_step(scale_a, offset_a, scale_b, offset_b):
    return scale_a * scale_b, offset_a * scale_b + offset_b


@triton.jit
def scan_kernel(scale, offset, out, COLUMNS: tl.constexpr):
    at = tl.arange(0, COLUMNS)
    _, state = tl.associative_scan((tl.load(scale + at), tl.load(offset + at)), 0, linear_step)
    tl.store(out + at, state)


@case
def associative_scan():
    scale, offset, out = RANDOM.random(256).astype(np.float32), normal(256), zeros(256)
    scan_kernel[(1, )](Array(scale), Array(offset), out, 256)
    state, want = 0.0, []
    for factor, term in zip(scale, offset):
        state = state * factor + term
        want.append(state)
    expect(out.numpy(), want, 2e-6)


@triton.jit
def atomics_kernel(x, keys, sums, floats, largest, claims, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    key, value = tl.load(keys + at, at < n, other=0), tl.load(x + at, at < n, other=0)
    tl.atomic_add(sums + key, value, at < n)
    tl.atomic_add(floats + key, value.to(tl.float32), at < n)
    tl.atomic_max(largest + key, value, at < n)
    if tl.atomic_cas(claims, 0, 1) == 0:
        tl.atomic_add(claims + 1, 1)
    tl.atomic_xchg(claims + 2, 7)


@case
def atomics():
    x, keys = RANDOM.integers(0, 1000, 900, dtype=np.int32), RANDOM.integers(0, 10, 900, dtype=np.int32)
    sums, floats, largest, claims = zeros(10, np.int32), zeros(10), zeros(10, np.int32), zeros(3, np.int32)
    atomics_kernel[(4, )](Array(x), Array(keys), sums, floats, largest, claims, 900, BLOCK=256)
    want = np.bincount(keys, x, 10)
    expect(sums.numpy(), want)
    expect(floats.numpy(), want)  # whole numbers below 2^24: exact in any order
    expect(largest.numpy(), [x[keys == key].max() for key in range(10)])
    expect(claims.numpy(), [1, 1, 7])


@triton.jit
def histogram_kernel(x, out, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    counts = tl.histogram(tl.load(x + at, at < n, other=0), BINS, mask=at < n)
    tl.atomic_add(out + tl.arange(0, BINS), counts)


@case
def histogram():
    x, out = RANDOM.integers(0, 64, 1500, dtype=np.int32), zeros(64, np.int32)
    histogram_kernel[(3, )](Array(x), out, 1500, BINS=64, BLOCK=512)
    expect(out.numpy(), np.bincount(x, minlength=64))


@triton.jit
def dropout_kernel(x, out, bits, n, seed, share, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    random = tl.randint(seed, at)
    keep = tl.rand(seed, at) > share
    value = tl.load(x + at, at < n)
    tl.store(bits + at, random, at < n)
    tl.store(out + at, tl.where(keep, value / (1 - share), 0.0), at < n)


def philox(seed, counter):
    """The first word of Philox4x32-10 (Salmon et al. 2011), for a seed below 2^32."""
    c = [counter.astype(np.uint64)] + [np.zeros_like(counter, np.uint64)] * 3
    key = [np.uint64(seed), np.uint64(0)]
    low = np.uint64(0xFFFFFFFF)
    for _ in range(10):
        product = [np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]]
        high = [value >> np.uint64(32) for value in product]
        c = [high[1] ^ c[1] ^ key[0], product[1] & low, high[0] ^ c[3] ^ key[1], product[0] & low]
        key = [(key[0] + np.uint64(0x9E3779B9)) & low, (key[1] + np.uint64(0xBB67AE85)) & low]
    return c[0].astype(np.uint32).view(np.int32)


@case
def dropout():
    x, out, bits = normal(1000), zeros(1000), zeros(1000, np.int32)
    dropout_kernel[(2, )](Array(x), out, bits, 1000, 1234, 0.25, BLOCK=512)
    word = philox(1234, np.arange(1000))
    expect(bits.numpy(), word)
    uniform = np.where(word < 0, -word - 1, word).astype(np.float32) * np.float32(4.6566127342e-10)
    expect(out.numpy(), np.where(uniform > 0.25, x / np.float32(0.75), 0), 1e-6)


@triton.jit
def gather_kernel(table, index, out, inner, COLUMNS: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, COLUMNS)
    value = tl.load(table + tl.load(index + row) * COLUMNS + at)
    tl.store(out + row * COLUMNS + at, tl.gather(value, tl.load(inner + at), 0))


@case
def gather():
    table, out = normal(50, 128), zeros((12, 128))
    index = RANDOM.integers(0, 50, 12, dtype=np.int64)
    inner = RANDOM.integers(0, 128, 128, dtype=np.int32)
    gather_kernel[(12, )](Array(table), Array(index), out, Array(inner), 128)
    expect(out.numpy(), table[index][:, inner])


@triton.jit
def transpose_kernel(x, out, rows, columns, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = (i[:, None] < rows) & (j[None, :] < columns)
    tile = tl.trans(tl.load(x + i[:, None] * columns + j[None, :], inside))
    tl.store(out + j[:, None] * rows + i[None, :], tile, (j[:, None] < columns) & (i[None, :] < rows))


@case
def transpose():
    x, out = normal(50, 90), zeros((90, 50))
    transpose_kernel[(2, 3)](Array(x), out, 50, 90, BLOCK=32)
    expect(out.numpy(), x.T)


@triton.jit
def cast_kernel(x, half, brain, whole, byte, back, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.load(x + at)
    tl.store(half + at, value.to(tl.float16))
    tl.store(brain + at, value.to(tl.bfloat16))
    tl.store(whole + at, value.to(tl.int64))
    tl.store(byte + at, value.to(tl.int32).to(tl.int8))
    tl.store(back + at, value.to(tl.int32, bitcast=True).to(tl.float64))


@case
def cast():
    x = normal(512) * 100
    half, brain, whole = zeros(512, np.float16), Array.bfloat16(np.zeros(512)), zeros(512, np.int64)
    byte, back = zeros(512, np.int8), zeros(512, np.float64)
    cast_kernel[(1, )](Array(x), half, brain, whole, byte, back, BLOCK=512)
    expect(half.numpy(), x.astype(np.float16))
    expect(brain.numpy(), from_bfloat16(to_bfloat16(x)))
    expect(whole.numpy(), x.astype(np.int64))
    expect(byte.numpy(), x.astype(np.int32).astype(np.int8))
    expect(back.numpy(), x.view(np.int32).astype(np.float64))


@triton.jit
def math_kernel(x, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.load(x + at)
    tl.store(out + at, tl.exp(value))
    tl.store(out + n + at, tl.log(tl.abs(value) + 0.1))
    tl.store(out + 2 * n + at, tl.sigmoid(value))
    tl.store(out + 3 * n + at, tl.sqrt(tl.abs(value)))
    tl.store(out + 4 * n + at, tl.sin(value) * tl.cos(value))
    tl.store(out + 5 * n + at, tl.erf(value))
    tl.store(out + 6 * n + at, tl.floor(value) + tl.ceil(value * 3))
    tl.store(out + 7 * n + at, tl.exp2(value) + tl.log2(tl.abs(value) + 0.1))


@case
def math():
    from math import erf
    x, out = normal(256), zeros((8, 256))
    math_kernel[(1, )](Array(x), out, 256, BLOCK=256)
    wide = x.astype(np.float64)
    above = np.abs(wide) + 0.1
    want = [np.exp(wide), np.log(above), 1 / (1 + np.exp(-wide)), np.sqrt(np.abs(wide)), np.sin(wide) * np.cos(wide),
            [erf(value) for value in wide], np.floor(x) + np.ceil(x * 3), np.exp2(wide) + np.log2(above)]
    for row, wanted in zip(out.numpy(), want):
        expect(row, np.asarray(wanted), 3e-6)


@triton.jit
def conv_kernel(x, weight, out, length, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    channel = tl.program_id(1)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, ), tl.float32)
    for tap in tl.static_range(WIDTH):
        source = at + tap - WIDTH // 2
        value = tl.load(x + channel * length + source, (source >= 0) & (source < length), other=0.0)
        total += value * tl.load(weight + channel * WIDTH + tap)
    tl.store(out + channel * length + at, total, at < length)


@case
def convolution():
    x, weight, out = normal(4, 200), normal(4, 5), zeros((4, 200))
    conv_kernel[(2, 4)](Array(x), Array(weight), out, 200, WIDTH=5, BLOCK=128)
    want = [np.convolve(row, taps[::-1], "same") for row, taps in zip(x.astype(np.float64), weight)]
    expect(out.numpy(), np.asarray(want), 2e-6)


@triton.jit
def rope_kernel(x, cosines, sines, out, HALF: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, HALF)
    first, second = tl.load(x + row * 2 * HALF + at), tl.load(x + row * 2 * HALF + HALF + at)
    cosine, sine = tl.load(cosines + row * HALF + at), tl.load(sines + row * HALF + at)
    tl.store(out + row * 2 * HALF + at, first * cosine - second * sine)
    tl.store(out + row * 2 * HALF + HALF + at, second * cosine + first * sine)


@case
def rope():
    x, out = normal(10, 64), zeros((10, 64))
    angle = np.arange(10)[:, None] * 10000.0**(-np.arange(32) / 32)
    cosine, sine = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
    rope_kernel[(10, )](Array(x), Array(cosine), Array(sine), out, HALF=32)
    first, second = x[:, :32].astype(np.float64), x[:, 32:]
    expect(out.numpy(), np.hstack([first * cosine - second * sine, second * cosine + first * sine]), 1e-6)


@triton.jit
def cross_entropy_kernel(x, labels, loss, gradient, columns, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    inside = at < columns
    value = tl.load(x + row * columns + at, inside, other=-float("inf"))
    label = tl.load(labels + row)
    top = tl.max(value, 0)
    total = tl.sum(tl.exp(value - top), 0)
    tl.store(loss + row, tl.log(total) + top - tl.load(x + row * columns + label))
    tl.store(gradient + row * columns + at, tl.exp(value - top) / total - tl.where(at == label, 1.0, 0.0), inside)


@case
def cross_entropy():
    x, labels = normal(8, 400), RANDOM.integers(0, 400, 8, dtype=np.int32)
    loss, gradient = zeros(8), zeros((8, 400))
    cross_entropy_kernel[(8, )](Array(x), Array(labels), loss, gradient, 400, BLOCK=512)
    share = numpy_softmax(x)
    expect(loss.numpy(), -np.log(share[np.arange(8), labels]), 1e-6)
    share[np.arange(8), labels] -= 1
    expect(gradient.numpy(), share, 1e-6)


@triton.jit
def quantise_kernel(x, out, scales, columns, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    value = tl.load(x + row * columns + at, at < columns, other=0.0)
    scale = tl.max(tl.abs(value), 0) / 127
    level = value / scale
    tl.store(out + row * columns + at, (level + tl.where(level < 0, -0.5, 0.5)).to(tl.int8), at < columns)
    tl.store(scales + row, scale)


@case
def quantise():
    x, out, scales = normal(6, 250), zeros((6, 250), np.int8), zeros(6)
    quantise_kernel[(6, )](Array(x), out, scales, 250, BLOCK=256)
    scale = np.abs(x).max(1) / 127
    expect(scales.numpy(), scale, 1e-6)
    error = np.abs(out.numpy() * scale[:, None] - x) / scale[:, None]
    assert error.max() <= 0.5001, f"an error of {error.max()} steps"


@triton.jit
def sort_kernel(x, out, top, COLUMNS: tl.constexpr, K: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, COLUMNS)
    value = tl.load(x + row * COLUMNS + at)
    tl.store(out + row * COLUMNS + at, tl.sort(value))
    tl.store(top + row * K + tl.arange(0, K), tl.topk(value, K))


@case
def sort():
    x, out, top = normal(4, 256), zeros((4, 256)), zeros((4, 8))
    sort_kernel[(4, )](Array(x), out, top, 256, 8)
    expect(out.numpy(), np.sort(x, 1))
    expect(top.numpy(), np.sort(x, 1)[:, :-9:-1])


@triton.jit
def shared_total_kernel(x, out, turns, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out, tl.sum(tl.load(x + at, at < n, other=0), 0), sem="relaxed")
    # The last of the workgroups sees what all have added.
    if tl.atomic_add(turns, 1, sem="acq_rel") == tl.num_programs(0) - 1:
        tl.store(out + 1, tl.atomic_add(out, 0, sem="relaxed") * 2)


@case
def cooperation():
    x, out, turns = RANDOM.integers(0, 100, 2000, dtype=np.int32), zeros(2, np.int32), zeros(1, np.int32)
    # Triton refuses cooperative launches on a card that does not say that it has them.
    cooperative = bool(triton.runtime.driver.active.utils.get_device_properties(0)["cooperativeLaunch"])
    shared_total_kernel[(8, )](Array(x), out, turns, 2000, BLOCK=256, launch_cooperative_grid=cooperative)
    expect(out.numpy(), [x.sum(), 2 * x.sum()])


def main(names):
    unknown = [name for name in names if name not in CASES]
    if unknown:
        sys.exit(f"no such kernel: {', '.join(unknown)}; there are {', '.join(CASES)}")
    triton.runtime.driver.set_active(Driver())
    card = triton.runtime.driver.active.get_current_target().arch
    wrong = 0
    for name in names or CASES:
        start = time.monotonic()
        try:
            CASES[name]()
            result = "ok"
        except Exception as error:  # a refused launch must not hide the kernels after it
            result, wrong = f"WRONG: {type(error).__name__}: {error}", wrong + 1
        print(f"{card} {name}: {result} ({time.monotonic() - start:.1f} s)", flush=True)
    print(f"{card}: {len(names or CASES) - wrong} of {len(names or CASES)} right")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
