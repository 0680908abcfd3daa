"""The quantisation kernels of bitsandbytes, called in its ROCm library without PyTorch: quantise.py [ROCM, 64 without]

Blocks of 64 values in four bits (NF4, FP4) and of 256 in eight, there and back. The largest value of each block, and every code of
eight bits, must be numpy's.
"""

import ctypes
import importlib.util
import pathlib
import sys

import numpy as np

COUNT = 4096


class Device:
    """Device memory through HIP's C interface: of the major version that the library was built for."""

    def __init__(self, major):
        self.hip = ctypes.CDLL(f"libamdhip64.so.{major}", mode=ctypes.RTLD_GLOBAL)

    def check(self, status):
        assert status == 0, f"HIP answers {status}"

    def room(self, size):
        pointer = ctypes.c_void_p()
        self.check(self.hip.hipMalloc(ctypes.byref(pointer), ctypes.c_size_t(size)))
        return pointer

    def copied(self, array):
        pointer = self.room(array.nbytes)
        host = array.ctypes.data_as(ctypes.c_void_p)
        self.check(self.hip.hipMemcpy(pointer, host, ctypes.c_size_t(array.nbytes), 1))
        return pointer

    def read(self, pointer, count, kind):
        array = np.empty(count, kind)
        host = array.ctypes.data_as(ctypes.c_void_p)
        self.check(self.hip.hipMemcpy(host, pointer, ctypes.c_size_t(array.nbytes), 2))
        return array


def main():
    rocm = sys.argv[1] if len(sys.argv) > 1 else "64"
    device = Device("6" if rocm.startswith("6") else "7")
    # The package itself wants PyTorch.
    folder = pathlib.Path(importlib.util.find_spec("bitsandbytes").origin).parent
    library = ctypes.CDLL(str(folder / f"libbitsandbytes_rocm{rocm}.so"))

    values = np.random.default_rng(0).standard_normal(COUNT).astype(np.float32)
    table = np.linspace(-1, 1, 256).astype(np.float32)
    for kind, block, bits in [("_nf4", 64, 4), ("_fp4", 64, 4), ("", 256, 8)]:
        code = None if kind else device.copied(table)
        source = device.copied(values)
        largest, packed, back = device.room(COUNT // block * 4), device.room(COUNT * bits // 8), device.room(COUNT * 4)
        getattr(library, f"cquantize_blockwise_fp32{kind}")(code, source, largest, packed, block, COUNT)
        getattr(library, f"cdequantize_blockwise_fp32{kind}")(code, packed, largest, back, block, COUNT, None)
        device.check(device.hip.hipDeviceSynchronize())
        blocks = values.reshape(-1, block)
        found = device.read(largest, COUNT // block, np.float32)
        assert np.array_equal(found, np.abs(blocks).max(1)), "the largest values differ from numpy's"
        error = np.abs(device.read(back, COUNT, np.float32).reshape(-1, block) - blocks) / found[:, None]
        print(f"{kind[1:] or 'eight bits'}: largest error {error.max():.4f} of the block's largest value")
        # Half the widest gap of the table.
        assert error.max() <= {"_nf4": 0.153, "_fp4": 0.168, "": 0.00394}[kind]
        if code:
            nearest = np.abs((blocks / found[:, None])[..., None] - table).argmin(-1).reshape(-1)
            assert np.array_equal(device.read(packed, COUNT, np.uint8), nearest), "codes differ from numpy's"
    print("all right")


main()
