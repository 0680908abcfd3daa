"""Test vectors: makes the files beside this one.

    pip install gguf==0.19.0 numpy xllamacpp==2026.10.11549
    python make_vectors.py [--out FOLDER] [--blocks N] [--seed S]

Two independent oracles: the `gguf` package (decoders, some encoders) and the ggml library inside the `xllamacpp`
package (reference encoders, called through ctypes; its code has no fused multiply-add). Where both know an encoder they
must agree.

decode_TYPE.bin: blocks, then the values that they decode to (f32).
values.bin:      values (f32), N blocks of 256.
encode_TYPE.bin: the blocks that values.bin encodes to.

`--codebooks FOLDER` writes the files of src/blocks/grids there, and nothing else.

`--blocks` larger than the default makes vectors for a longer run: `ROCMFORGE_GGUF_VECTORS=FOLDER cargo test`.
"""

import argparse
import ctypes
import importlib.util
import pathlib

import gguf
import numpy as np
from gguf import GGMLQuantizationType as T

# Type, name, bytes at which a finite f16 must stand.
DECODED = [
    (T.BF16, "bf16", []), (T.F16, "f16", []), (T.Q4_0, "q4_0", [0]), (T.Q4_1, "q4_1", [0, 2]), (T.Q5_0, "q5_0", [0]),
    (T.Q5_1, "q5_1", [0, 2]), (T.Q8_0, "q8_0", [0]), (T.Q2_K, "q2_K", [80, 82]), (T.Q3_K, "q3_K", [108]),
    (T.Q4_K, "q4_K", [0, 2]), (T.Q5_K, "q5_K", [0, 2]), (T.Q6_K, "q6_K", [208]), (T.IQ4_NL, "iq4_nl", [0]),
    (T.IQ4_XS, "iq4_xs", [0]), (T.MXFP4, "mxfp4", []),
]
# With random numbers of their own, so that the vectors of others stay as they are.
ALSO_DECODED = [
    (T.IQ2_XXS, "iq2_xxs", [0]), (T.IQ2_XS, "iq2_xs", [0]),
    (T.IQ2_S, "iq2_s", [0]), (T.IQ3_XXS, "iq3_xxs", [0]), (T.IQ3_S, "iq3_s", [0]), (T.IQ1_S, "iq1_s", [0]),
    (T.IQ1_M, "iq1_m", []), (T.TQ1_0, "tq1_0", [52]), (T.TQ2_0, "tq2_0", [64]), (T.NVFP4, "nvfp4", []),
]
# File in src/blocks/grids, class that has the codebook, bits of a place among its levels.
CODEBOOKS = [("iq2_xxs", "IQ2_XXS", 2), ("iq2_xs", "IQ2_XS", 2), ("iq2_s", "IQ2_S", 2), ("iq3_xxs", "IQ3_XXS", 4),
             ("iq3_s", "IQ3_S", 4), ("iq1", "IQ1_S", 2)]
BY_GGUF = [(T.F16, "f16"), (T.BF16, "bf16"), (T.Q4_0, "q4_0"), (T.Q4_1, "q4_1"), (T.Q5_0, "q5_0"), (T.Q5_1, "q5_1"),
           (T.Q8_0, "q8_0")]
BY_GGML = [(T.Q4_0, "q4_0"), (T.Q4_1, "q4_1"), (T.Q5_0, "q5_0"), (T.Q5_1, "q5_1"), (T.Q8_0, "q8_0"), (T.Q8_1, "q8_1"),
           (T.Q2_K, "q2_K"), (T.Q3_K, "q3_K"), (T.Q4_K, "q4_K"), (T.Q5_K, "q5_K"), (T.Q6_K, "q6_K"), (T.Q8_K, "q8_K")]

# The package has 40 bytes for q8_1, from a time when its scales were f32.
SIZES = gguf.GGML_QUANT_SIZES | {T.Q8_1: (32, 36)}


def ggml_library():
    folder = pathlib.Path(importlib.util.find_spec("xllamacpp").submodule_search_locations[0])
    library = ctypes.CDLL(str(next(folder.glob("xllamacpp*.so"))))

    class InitParams(ctypes.Structure):
        _fields_ = [("mem_size", ctypes.c_size_t), ("mem_buffer", ctypes.c_void_p), ("no_alloc", ctypes.c_bool)]

    # Fills the tables that the conversions of f16 use.
    library.ggml_init.argtypes, library.ggml_init.restype = [InitParams], ctypes.c_void_p
    assert library.ggml_init(InitParams(1 << 16, None, False))
    return library


def encode_by_ggml(library, name, values, block, size):
    encode = getattr(library, f"quantize_row_{name}_ref")
    encode.argtypes, encode.restype = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64], None
    out = np.zeros(values.size // block * size, np.uint8)
    encode(values.ctypes.data, out.ctypes.data, values.size)
    return out


def blocks_of(name, data):
    """The blocks for the comparison of the oracles. A zero minimum may have either sign where there are zeros of both:
    ggml takes the first, numpy any. The vectors have ggml's."""
    blocks = data.reshape(-1, SIZES[T[name.upper()]][1]).copy()
    if name in ("q4_1", "q5_1"):
        minimum = blocks[:, 2:4]
        minimum[(minimum == [0, 0x80]).all(axis=1)] = 0
    return blocks


def some_values(random, blocks):
    """Groups of 16 values of several kinds, in blocks of one kind or mixed."""
    def group():
        kind = random.integers(12)
        x = random.standard_normal(16)
        match kind:
            case 0: x = np.zeros(16)
            case 1: x = np.full(16, x[0])
            case 2: x = np.abs(x)
            case 3: x = -np.abs(x) - 0.5
            case 4: x[random.integers(16)] *= 40
            case 5: x = x * 1e-6
            case 6: x = x * 3000
            case 7: x = random.integers(-8, 9, 16) / 2
            case 8: x = random.uniform(-1, 1, 16)
            case 9: x[random.random(16) < 0.6] = -0.0
        return x
    out = []
    for number in range(blocks):
        match number % 4:
            case 0: out.append(random.standard_normal(256) * 0.05)
            case 1: out.append(np.concatenate([group() for _ in range(16)]))
            case 2: out.append(random.laplace(0, 10.0 ** random.uniform(-4, 2), 256))
            case 3 if number % 8 == 3: out.append(np.concatenate([group()] * 16))
            case _: out.append(np.repeat(random.standard_normal(64), 4))
    out[-1] = np.zeros(256)
    out[-2] = random.standard_normal(256) * 1e-9
    return np.concatenate(out).astype(np.float32)


def vectors_of_decoders(random, types, blocks_of_values, save):
    for ty, name, scales in types:
        block, size = SIZES[ty]
        blocks = {1: 256, 32: 9, 64: 9, 256: 3}[block] * max(1, blocks_of_values // 8)
        data = random.integers(0, 256, (blocks, size), np.uint8)
        for at in scales:
            # Any finite f16: sign, exponent below 31, fraction. The first block's is subnormal.
            half = random.integers(0, 31 << 10, blocks) | random.integers(0, 2, blocks) << 15
            half[0] &= 0x83FF
            data[:, at:at + 2] = half.astype("<u2").view(np.uint8).reshape(-1, 2)
        if ty == T.IQ1_M:
            data[:, 55] &= 0xBF  # the scale's exponent, in the highest nibbles of four words, is not that of an infinity
        if ty == T.NVFP4:
            data[0, :4] = [0, 7, 0x7F, 0xFF]
        if ty == T.MXFP4:
            data[:6, 0] = [0, 1, 2, 3, 254, 255]
        if ty in (T.F16, T.BF16):
            bits = data.view("<u2")
            limit = 0x7C00 if ty == T.F16 else 0x7F80
            bits[(bits & 0x7FFF) > limit] &= 0x83FF  # no NaN
        with np.errstate(all="ignore"):
            save(f"decode_{name}.bin", data, gguf.dequantize(data.reshape(-1), ty).astype("<f4"))


def write_codebooks(folder):
    for name, of, bits in CODEBOOKS:
        of = getattr(gguf.quants, of)
        of.init_grid()
        levels, places = np.unique(of.grid, return_inverse=True)
        assert len(levels) <= 1 << bits
        places = places.reshape(-1, 8 // bits).astype(np.uint8) << np.arange(0, 8, bits, dtype=np.uint8)
        (folder / f"{name}.bin").write_bytes(np.bitwise_or.reduce(places, axis=1).tobytes())


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent)
    arguments.add_argument("--blocks", type=int, default=8)
    arguments.add_argument("--seed", type=int, default=20240)
    arguments.add_argument("--codebooks", type=pathlib.Path)
    arguments = arguments.parse_args()
    if arguments.codebooks:
        return write_codebooks(arguments.codebooks)
    random = np.random.default_rng(arguments.seed)
    save = lambda name, *arrays: (arguments.out / name).write_bytes(b"".join(a.tobytes() for a in arrays))

    vectors_of_decoders(random, DECODED, arguments.blocks, save)
    vectors_of_decoders(np.random.default_rng(arguments.seed + 1), ALSO_DECODED, arguments.blocks, save)

    values = some_values(random, arguments.blocks)
    save("values.bin", values.astype("<f4"))
    encoded = {}
    for ty, name in BY_GGUF:
        with np.errstate(all="ignore"):
            encoded[name] = gguf.quantize(values.reshape(-1, 256), ty).reshape(-1).view(np.uint8)
    library = ggml_library()
    for ty, name in BY_GGML:
        out = encode_by_ggml(library, name, values, *SIZES[ty])
        if name in encoded:
            unequal = np.flatnonzero((blocks_of(name, encoded[name]) != blocks_of(name, out)).any(axis=1))
            assert unequal.size == 0, f"{name}: the oracles differ in blocks {unequal[:5]} and {unequal.size} in all"
        encoded[name] = out
    for name, out in encoded.items():
        save(f"encode_{name}.bin", out)


if __name__ == "__main__":
    main()
