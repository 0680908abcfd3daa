"""PyTorch's side of `cargo xtask bench compare`: timed requests on standard input, one JSON object a line, answers on
standard output. Ours (`tools/gpu-bench/benches/gpu/serve.rs`) says what the requests are; here `time` and `sample`
name a variant too, and `prepare` answers with the variants there are.

f32 and TF32 off, except for the operations of HALVES. Inputs are the same hashes of seed and index."""
import json
import math
import struct
import sys
import warnings

answers = sys.stdout
sys.stdout = sys.stderr  # whatever a library prints is no answer


def answer(**fields):
    answers.write(json.dumps(fields) + "\n")
    answers.flush()


try:
    import torch
    import torch.nn.functional as F
    from torch.nn.attention import SDPBackend, sdpa_kernel

    if not torch.cuda.is_available():
        raise RuntimeError("PyTorch sees no GPU: install a build of it with CUDA (or ROCm) support")
    torch.set_float32_matmul_precision("highest")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.set_grad_enabled(False)
    failure = None
except Exception as error:  # reported with the first answer
    failure = f"{type(error).__name__}: {error}"

MASK = 0xFFFFFFFF
CHUNK = 1 << 24


def numbers(seed, shape):
    n = math.prod(shape)
    out = torch.empty(n, dtype=torch.float32, device="cuda")
    for begin in range(0, n, CHUNK):
        end = min(begin + CHUNK, n)
        h = torch.arange(begin, end, dtype=torch.int64, device="cuda")
        h = (h + seed * 0x9E3779B9) & MASK
        h = ((h ^ (h >> 16)) * 0x7FEB352D) & MASK
        h = ((h ^ (h >> 15)) * 0x846CA68B) & MASK
        h = h ^ (h >> 16)
        out[begin:end] = (h >> 8).to(torch.float32) / (1 << 23) - 1.0
    return out.view(shape)


HALVES = {"matmul_f16", "attention_f16", "attention_f16_causal", "attention_f16_decode"}  # f16 in and out
BACKENDS = {"math": "MATH", "efficient": "EFFICIENT_ATTENTION", "flash": "FLASH_ATTENTION", "cudnn": "CUDNN_ATTENTION"}


def attention(backend, causal):
    def run(x, y):
        with sdpa_kernel(getattr(SDPBackend, BACKENDS[backend])):
            shared = x[0].shape[1] != x[1].shape[1]
            return F.scaled_dot_product_attention(x[0], x[1], x[2], is_causal=causal, enable_gqa=shared)

    return run


def plan(op, shape):
    """Shapes of the inputs, shape of the output, and the variants by name."""
    if op in ("copy", "driver_copy"):
        return [shape], shape, {"copy_": lambda x, y: y.copy_(x[0])}
    if op == "scale":
        return [shape], shape, {"mul": lambda x, y: torch.mul(x[0], 1.5, out=y)}
    if op == "add":
        return [shape, shape], shape, {"add": lambda x, y: torch.add(x[0], x[1], out=y)}
    if op == "softmax":
        return [shape], shape, {"softmax": lambda x, y: torch.softmax(x[0], -1)}
    if op == "layer_norm":
        cols = shape[1:]
        return [shape, cols, cols], shape, {"layer_norm": lambda x, y: F.layer_norm(x[0], cols, x[1], x[2], 1e-5)}
    if op == "rms_norm":
        cols = shape[1:]
        return [shape, cols], shape, {"rms_norm": lambda x, y: F.rms_norm(x[0], cols, x[1], 1e-5)}
    if op == "matmul_nn":
        m, n, k = shape
        return [[m, k], [k, n]], [m, n], {"matmul": lambda x, y: torch.matmul(x[0], x[1], out=y)}
    if op == "matmul_nt":
        m, n, k = shape
        return [[m, k], [n, k]], [m, n], {"linear": lambda x, y: F.linear(x[0], x[1])}
    if op == "matmul_f16":
        m, n, k = shape
        return [[m, k], [n, k]], [m, n], {"matmul": lambda x, y: torch.matmul(x[0], x[1].T, out=y)}
    if op in ("flash_attention", "flash_attention_causal", "attention_f16", "attention_f16_causal"):
        b, h, q, k, d = shape
        causal = op.endswith("causal")
        # In f16 those that store no scores.
        backends = ["flash", "cudnn"] if op in HALVES else BACKENDS
        variants = {f"sdpa {name}": attention(name, causal) for name in backends}
        return [[b, h, q, d], [b, h, k, d], [b, h, k, d]], [b, h, q, d], variants
    if op == "attention_f16_decode":
        b, h, kv, k, d = shape
        variants = {f"sdpa {name}": attention(name, False) for name in ("flash", "cudnn")}
        return [[b, h, 1, d], [b, kv, k, d], [b, kv, k, d]], [b, h, 1, d], variants
    raise ValueError(f"no counterpart of {op}")


class Prepared:
    def __init__(self, op, shape, sets):
        inputs, output, self.variants = plan(op, shape)
        self.sets = []
        dtype = torch.float16 if op in HALVES else torch.float32
        for s in range(max(sets, 1)):
            x = [numbers(s * 8 + i, of).to(dtype) for i, of in enumerate(inputs)]
            self.sets.append((x, torch.empty(output, dtype=dtype, device="cuda")))
        self.next = 0
        torch.cuda.synchronize()

    def time(self, variant, iterations):
        run = self.variants[variant]
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(iterations):
            x, y = self.sets[self.next]
            self.next = (self.next + 1) % len(self.sets)
            run(x, y)
        end.record()
        end.synchronize()
        return start.elapsed_time(end) / 1e3 / iterations

    def sample(self, variant, runs, length):
        x, y = self.sets[0]
        flat = self.variants[variant](x, y).contiguous().view(-1)
        n = flat.numel()
        length = min(max(length, 1), n)
        runs = min(max(runs, 1), n // length)
        at = torch.arange(runs, device="cuda")[:, None] * (n // runs) + torch.arange(length, device="cuda")[None, :]
        values = flat[at.view(-1)].to(torch.float32).cpu().tolist()
        return [struct.unpack("<I", struct.pack("<f", value))[0] for value in values]


prepared = None


def handle(request):
    global prepared
    do = request["do"]
    if failure is not None:
        raise RuntimeError(failure)
    if do == "hello":
        name = torch.cuda.get_device_name()
        return {"device": name, "torch": torch.__version__, "cuda": torch.version.cuda or torch.version.hip}
    if do == "prepare":
        prepared = None
        torch.cuda.empty_cache()
        prepared = Prepared(request["op"], request["shape"], request["sets"])
        return {"variants": list(prepared.variants)}
    if do == "time":
        return {"seconds": prepared.time(request["variant"], request["iterations"])}
    if do == "sample":
        return {"bits": prepared.sample(request["variant"], request["runs"], request["length"])}
    if do == "drop":
        prepared = None
        torch.cuda.empty_cache()
        return {}
    raise ValueError(f"no request is called {do}")


reasons = {}  # PyTorch says only once why a backend cannot be used


def why(request, error, caught):
    first = (str(error).strip().splitlines() or [""])[0]
    variant = request.get("variant")
    for warning in caught:
        text = str(warning.message)
        if "dtype" in text:
            reasons[variant] = text.split(". Got")[0].split(" (Triggered")[0]
    return reasons.get(variant) or f"{type(error).__name__}: {first}"


for line in sys.stdin:
    request = {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            request = json.loads(line)
            answer(ok=handle(request))
        except Exception as error:
            answer(error=why(request, error, caught))
