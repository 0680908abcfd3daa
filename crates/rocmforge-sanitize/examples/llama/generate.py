"""Greedy tokens of a GGUF model by llama.cpp, through the wheel cyllama-rocm: generate.py MODEL.gguf [TOKENS] [LAYERS_ON_DEVICE]

Each line: the token, its text, and how far its logit is above the next one.
"""

import sys
import time

from cyllama.llama import llama_cpp

PROMPT = "The capital of France is"


class Model(llama_cpp.LlamaModel):
    """The wheel's `get_logits_ith` asks the model for `n_vocab`, which only the vocabulary has."""


def main():
    path = sys.argv[1]
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 16
    layers = int(sys.argv[3]) if len(sys.argv) > 3 else 99

    llama_cpp.ggml_backend_load_all()
    params = llama_cpp.LlamaModelParams()
    params.n_gpu_layers = layers
    model = Model(path, params)
    vocabulary = model.get_vocab()
    Model.n_vocab = vocabulary.n_vocab
    ids = vocabulary.tokenize(PROMPT, add_special=False, parse_special=False)

    options = llama_cpp.LlamaContextParams()
    options.n_ctx = 64
    options.offload_kqv = options.op_offload = layers > 0
    context = llama_cpp.LlamaContext(model, options)

    context.decode(llama_cpp.llama_batch_get_one(ids, 0))
    start, text = time.time(), ""
    for step in range(count):
        logits = context.get_logits_ith(-1)
        first, second = sorted(range(len(logits)), key=lambda token: -logits[token])[:2]
        piece = vocabulary.token_to_piece(first, special=True)
        text += piece
        print(f"{first:6} {piece!r:16} {logits[first] - logits[second]:.3f}", flush=True)
        if step + 1 < count:
            context.decode(llama_cpp.llama_batch_get_one([first], len(ids) + step))
    print(repr(text))
    # The first measured step includes what is left of the prompt.
    print(f"{count / (time.time() - start):.2f} tokens a second")


main()
