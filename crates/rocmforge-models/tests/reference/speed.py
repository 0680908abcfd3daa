"""Speed of llama.cpp (PyPI xllamacpp) on this machine's CPU: `python speed.py MODEL.gguf [threads] [runs]`.

Prints tokens a second of the prompt (512 tokens) and of decoding (128 tokens after a prompt of 16), the best and the
median of some runs, with llama.cpp's defaults (f16 KV cache, flash attention where it likes); and the least processor
time of all threads for a token, which other programs on the machine lengthen less. Threads of llama.cpp that wait spin:
with one thread this is the time of its work.
"""

import resource
import statistics
import sys

import numpy as np

from gguf_read import Gguf
from llamacpp import Server

PROMPT, DECODED = 512, 128


def processor_time():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def main(path, threads=2, runs=5):
    vocabulary = len(Gguf(path).meta["tokenizer.ggml.tokens"])
    ids = np.random.default_rng(1).integers(1000, vocabulary // 2, PROMPT).tolist()
    prompt, decode = [], []
    with Server(path, context=1024, threads=threads, exact=False) as server:
        server.complete(ids[:16], n_predict=8)
        for _ in range(runs):
            began = processor_time()
            timings = server.complete(ids, n_predict=1, ignore_eos=True)["timings"]
            prompt.append((timings["prompt_per_second"], (processor_time() - began) / PROMPT))
            server.complete(ids[:16], n_predict=1, ignore_eos=True)
            began = processor_time()
            timings = server.complete(ids[:16], n_predict=DECODED, ignore_eos=True, temperature=0)["timings"]
            assert timings["predicted_n"] == DECODED, timings
            decode.append((timings["predicted_per_second"], (processor_time() - began) / DECODED))
    for label, values in [(f"prompt of {PROMPT}", prompt), (f"decoding {DECODED}", decode)]:
        rates, seconds = zip(*values)
        print(
            f"{label}, {threads} threads: best {max(rates):.1f}, median {statistics.median(rates):.1f} tokens/s, "
            f"processor time {min(seconds) * 1e3:.2f} ms a token"
        )


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
