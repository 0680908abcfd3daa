"""The best token of a GGUF model after given ones, by llama.cpp, through the wheel cyllama-rocm: logits.py MODEL.gguf LAYERS_ON_DEVICE ID..."""

import sys

from cyllama.llama import llama_cpp


class Model(llama_cpp.LlamaModel):
    """The wheel's `get_logits_ith` asks the model for `n_vocab`, which only the vocabulary has."""


def main():
    path, layers, ids = sys.argv[1], int(sys.argv[2]), [int(word) for word in sys.argv[3:]]
    llama_cpp.ggml_backend_load_all()
    params = llama_cpp.LlamaModelParams()
    params.n_gpu_layers = layers
    model = Model(path, params)
    Model.n_vocab = model.get_vocab().n_vocab
    options = llama_cpp.LlamaContextParams()
    options.n_ctx = 64
    options.offload_kqv = options.op_offload = layers > 0
    context = llama_cpp.LlamaContext(model, options)
    context.decode(llama_cpp.llama_batch_get_one(ids, 0))
    logits = context.get_logits_ith(-1)
    print("best", max(range(len(logits)), key=lambda token: logits[token]))


main()
