"""GGUF files: metadata, and tensors decoded to f32 by the definition of each block format.

Apart from the product's reader on purpose: it is what the product is compared with. It reads trusted files only.
Run it with a file name to list what the file holds.
"""

import mmap
import struct
import sys

import numpy as np

# Value types of metadata: number in the file -> struct code.
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9


class Gguf:
    """One file: `meta` (dict of keys), `infos` (name -> (shape, type, offset)), `tensor(name)`."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if self.data[:4] != b"GGUF":
            raise ValueError(f"{path}: no GGUF file")
        self.at = 4
        version, tensors, keys = self.scalars("IQQ")
        if version not in (2, 3):
            raise ValueError(f"{path}: version {version}")
        self.meta = {}
        for _ in range(keys):
            key = self.string()
            self.meta[key] = self.value(*self.scalars("I"))
        self.infos = {}
        for _ in range(tensors):
            name = self.string()
            (dims,) = self.scalars("I")
            ne = self.scalars("Q" * dims)
            kind, offset = self.scalars("IQ")
            # The file lists the contiguous dimension first; numpy lists it last.
            self.infos[name] = (tuple(reversed(ne)), kind, offset)
        alignment = self.meta.get("general.alignment", 32)
        self.start = -(-self.at // alignment) * alignment

    def scalars(self, codes):
        values = struct.unpack_from("<" + codes, self.data, self.at)
        self.at += struct.calcsize("<" + codes)
        return values

    def string(self):
        (length,) = self.scalars("Q")
        self.at += length
        return self.data[self.at - length : self.at].decode("utf-8", "surrogateescape")

    def value(self, kind):
        if kind == STRING:
            return self.string()
        if kind == ARRAY:
            element, count = self.scalars("IQ")
            if element == STRING:
                return [self.string() for _ in range(count)]
            return list(self.scalars(SCALARS[element] * count))
        return self.scalars(SCALARS[kind])[0]

    def __contains__(self, name):
        return name in self.infos

    def type_name(self, name):
        return TYPES[self.infos[name][1]][0]

    def tensor(self, name):
        """The tensor as f32, shape [out, in]."""
        shape, kind, offset = self.infos[name]
        _, elements, size, decode = TYPES[kind]
        blocks = int(np.prod(shape)) // elements
        begin = self.start + offset
        raw = np.frombuffer(self.data, np.uint8, blocks * size, begin)
        return decode(raw.reshape(blocks, size)).reshape(shape)


# Each decoder takes [blocks, bytes] u8 and returns [blocks, elements] f32, in f32 arithmetic in the order written.


def half_at(raw, at):
    """The f16 at byte `at` of each block, as an f32 column."""
    return np.ascontiguousarray(raw[:, at : at + 2]).view("<f2").astype(np.float32)


def nibbles(qs):
    """Elements 0..n are the low nibbles of n bytes, n..2n the high ones."""
    return np.concatenate([qs & 15, qs >> 4], axis=1)


def bits32(raw, at):
    """Bit i of the u32 at byte `at`, for i in 0..32."""
    word = np.ascontiguousarray(raw[:, at : at + 4]).view("<u4")
    return ((word >> np.arange(32, dtype=np.uint32)) & 1).astype(np.int32)


def signed(raw, begin, end):
    return np.ascontiguousarray(raw[:, begin:end]).view(np.int8)


def f32(raw):
    return np.ascontiguousarray(raw).view("<f4").astype(np.float32)


def f16(raw):
    return np.ascontiguousarray(raw).view("<f2").astype(np.float32)


def bf16(raw):
    return (np.ascontiguousarray(raw).view("<u2").astype(np.uint32) << 16).view(np.float32)


def q4_0(raw):
    return (nibbles(raw[:, 2:18]).astype(np.int32) - 8).astype(np.float32) * half_at(raw, 0)


def q4_1(raw):
    return nibbles(raw[:, 4:20]).astype(np.float32) * half_at(raw, 0) + half_at(raw, 2)


def q5_0(raw):
    q = (nibbles(raw[:, 6:22]).astype(np.int32) | bits32(raw, 2) << 4) - 16
    return q.astype(np.float32) * half_at(raw, 0)


def q5_1(raw):
    q = nibbles(raw[:, 8:24]).astype(np.int32) | bits32(raw, 4) << 4
    return q.astype(np.float32) * half_at(raw, 0) + half_at(raw, 2)


def q8_0(raw):
    return signed(raw, 2, 34).astype(np.float32) * half_at(raw, 0)


def pairs6(scales):
    """The eight 6-bit (scale, minimum) pairs in 12 bytes of q4_K and q5_K."""
    s = scales.astype(np.int32)
    sc = np.concatenate([s[:, 0:4] & 63, (s[:, 8:12] & 15) | (s[:, 0:4] >> 6) << 4], axis=1)
    mn = np.concatenate([s[:, 4:8] & 63, s[:, 8:12] >> 4 | (s[:, 4:8] >> 6) << 4], axis=1)
    return sc, mn


def scale_minus_minimum(raw, q):
    """(d*sc_j)*q - dmin*m_j for q of shape [blocks, 8, 32]."""
    sc, mn = pairs6(raw[:, 4:16])
    scale = half_at(raw, 0) * sc.astype(np.float32)
    minimum = half_at(raw, 2) * mn.astype(np.float32)
    return (scale[:, :, None] * q.astype(np.float32) - minimum[:, :, None]).reshape(len(raw), 256)


def groups_of_nibbles(qs):
    """[blocks, 128] bytes -> [blocks, 8, 32]: group 2c holds the low nibbles of bytes 32c.., group 2c+1 the high ones."""
    qs = qs.reshape(len(qs), 4, 1, 32)
    return np.concatenate([qs & 15, qs >> 4], axis=2).reshape(len(qs), 8, 32)


def q4_k(raw):
    return scale_minus_minimum(raw, groups_of_nibbles(raw[:, 16:144]))


def q5_k(raw):
    high = (raw[:, 16:48][:, None, :] >> np.arange(8, dtype=np.uint8)[None, :, None]) & 1
    return scale_minus_minimum(raw, groups_of_nibbles(raw[:, 48:176]) | high << 4)


def q6_k(raw):
    ql = raw[:, 0:128].reshape(-1, 2, 2, 32)  # half H, byte group g%2, lane l
    qh = raw[:, 128:192].reshape(-1, 2, 1, 32)
    low = np.concatenate([ql & 15, ql >> 4], axis=2)  # g = 0..4
    high = (qh >> np.array([0, 2, 4, 6], dtype=np.uint8)[None, None, :, None]) & 3
    q = (low | high << 4).astype(np.int32).reshape(-1, 16, 16) - 32
    scale = half_at(raw, 208) * signed(raw, 192, 208).astype(np.float32)
    return (scale[:, :, None] * q.astype(np.float32)).reshape(-1, 256)


def two_bits(qs):
    """[blocks, 64] bytes -> [blocks, 256] crumbs: half, shift, byte."""
    qs = qs.reshape(-1, 2, 1, 32)
    return ((qs >> np.array([0, 2, 4, 6], dtype=np.uint8)[None, None, :, None]) & 3).reshape(-1, 256)


def q2_k(raw):
    s = raw[:, 0:16]
    scale = half_at(raw, 80) * (s & 15).astype(np.float32)
    minimum = half_at(raw, 82) * (s >> 4).astype(np.float32)
    q = two_bits(raw[:, 16:80]).reshape(-1, 16, 16).astype(np.float32)
    return (scale[:, :, None] * q - minimum[:, :, None]).reshape(-1, 256)


def q3_k(raw):
    mask = (raw[:, 0:32][:, None, :] >> np.arange(8, dtype=np.uint8)[None, :, None]) & 1
    q = two_bits(raw[:, 32:96]).astype(np.int32) - 4 * (1 - mask.reshape(-1, 256).astype(np.int32))
    s, j = raw[:, 96:108].astype(np.int32), np.arange(16)
    sc = ((s[:, j % 8] >> 4 * (j // 8)) & 15) | ((s[:, 8 + j % 4] >> 2 * (j // 4)) & 3) << 4
    scale = half_at(raw, 108) * (sc - 32).astype(np.float32)
    return (scale[:, :, None] * q.reshape(-1, 16, 16).astype(np.float32)).reshape(-1, 256)


IQ4 = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.float32)


def iq4_nl(raw):
    return IQ4[nibbles(raw[:, 2:18])] * half_at(raw, 0)


def iq4_xs(raw):
    g = np.arange(8)
    h = np.ascontiguousarray(raw[:, 2:4]).view("<u2").astype(np.int32)
    low = (raw[:, 4:8].astype(np.int32)[:, g // 2] >> 4 * (g % 2)) & 15
    scale = half_at(raw, 0) * ((low | ((h >> 2 * g) & 3) << 4) - 32).astype(np.float32)
    q = raw[:, 8:136].reshape(-1, 8, 16)
    values = IQ4[np.concatenate([q & 15, q >> 4], axis=2)]
    return (scale[:, :, None] * values).reshape(-1, 256)


FP4 = np.array([0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12], np.float32)


def mxfp4(raw):
    return np.ldexp(FP4[nibbles(raw[:, 1:17])], raw[:, 0:1].astype(np.int32) - 128).astype(np.float32)


# Type number in the file -> name, elements a block, bytes a block, decoder.
TYPES = {
    0: ("f32", 1, 4, f32),
    1: ("f16", 1, 2, f16),
    2: ("q4_0", 32, 18, q4_0),
    3: ("q4_1", 32, 20, q4_1),
    6: ("q5_0", 32, 22, q5_0),
    7: ("q5_1", 32, 24, q5_1),
    8: ("q8_0", 32, 34, q8_0),
    10: ("q2_k", 256, 84, q2_k),
    11: ("q3_k", 256, 110, q3_k),
    12: ("q4_k", 256, 144, q4_k),
    13: ("q5_k", 256, 176, q5_k),
    14: ("q6_k", 256, 210, q6_k),
    20: ("iq4_nl", 32, 18, iq4_nl),
    23: ("iq4_xs", 256, 136, iq4_xs),
    30: ("bf16", 1, 2, bf16),
    39: ("mxfp4", 32, 17, mxfp4),
}

# First 12 hex digits of the SHA-256 of four decoded blocks whose bytes follow a fixed rule.
HASHES = {
    "q4_0": "632a9e9e9d18",
    "q4_1": "03df3760ffe1",
    "q5_0": "a5adb62859a3",
    "q5_1": "15cd9eac025a",
    "q8_0": "d8bdb76b9e56",
    "q2_k": "89079b37bfce",
    "q3_k": "34ef3425a80a",
    "q4_k": "d776f537a3d4",
    "q5_k": "7a435c3125d1",
    "q6_k": "5a04fc315aef",
    "iq4_nl": "5627c11d8177",
    "iq4_xs": "5c8d7dc2abb7",
    "mxfp4": "a32e12850df3",
}
# Where the f16 scale, and the f16 minimum, of a block lie.
SCALE_AT = {"q2_k": 80, "q3_k": 108, "q6_k": 208}
MINIMUM_AT = {"q4_1": 2, "q5_1": 2, "q4_k": 2, "q5_k": 2, "q2_k": 82}


def check_decoders():
    """Compares each decoder with the hash of what it has to give."""
    import hashlib

    for name, elements, size, decode in TYPES.values():
        if name not in HASHES:
            continue
        k = np.arange(4 * size, dtype=np.uint64)
        raw = ((k * 2654435761 % 2**32) >> 24).astype(np.uint8).reshape(4, size)
        if name == "mxfp4":
            raw[:, 0] = 120 + np.arange(4)
        else:
            at = SCALE_AT.get(name, 0)
            raw[:, at : at + 2] = [0x66, 0x2E]
            if name in MINIMUM_AT:
                at = MINIMUM_AT[name]
                raw[:, at : at + 2] = [0x1F, 0x25]
        found = hashlib.sha256(decode(raw).astype("<f4").tobytes()).hexdigest()[:12]
        print(f"{name:7} {found} {'as expected' if found == HASHES[name] else 'EXPECTED ' + HASHES[name]}")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        check_decoders()
    for path in sys.argv[1:]:
        file = Gguf(path)
        for key, value in file.meta.items():
            print(f"{key} = {len(value)} values" if isinstance(value, list) else f"{key} = {str(value)[:100]!r}")
        for name in file.infos:
            print(file.type_name(name), file.infos[name][0], name)
