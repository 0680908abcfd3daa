"""Speed of llama.cpp (PyPI xllamacpp) on this machine's CPU: `python speed.py MODEL.gguf [threads] [runs]`.

Prints tokens a second of the prompt (512 tokens) and of decoding (128 tokens after a prompt of 16), the best and the
median of some runs, with llama.cpp's defaults (f16 KV cache, flash attention where it likes).
"""

import statistics
import sys

import numpy as np

from gguf_read import Gguf
from llamacpp import Server

PROMPT, DECODED = 512, 128


def main(path, threads=2, runs=5):
    vocabulary = len(Gguf(path).meta["tokenizer.ggml.tokens"])
    ids = np.random.default_rng(1).integers(1000, vocabulary // 2, PROMPT).tolist()
    prompt, decode = [], []
    with Server(path, context=1024, threads=threads, exact=False) as server:
        server.complete(ids[:16], n_predict=8)
        for _ in range(runs):
            timings = server.complete(ids, n_predict=1, ignore_eos=True)["timings"]
            prompt.append(timings["prompt_per_second"])
            timings = server.complete(ids[:16], n_predict=DECODED, ignore_eos=True, temperature=0)["timings"]
            assert timings["predicted_n"] == DECODED, timings
            decode.append(timings["predicted_per_second"])
    for label, values in [(f"prompt of {PROMPT}", prompt), (f"decoding {DECODED}", decode)]:
        print(f"{label}, {threads} threads: best {max(values):.1f}, median {statistics.median(values):.1f} tokens/s")


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
