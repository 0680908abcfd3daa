"""A random Gemma 3n of 22 layers, made by transformers, as a directory and as the GGUF that llama.cpp's converter makes of it; judged by both.

    python gemma3n.py LLAMA_CPP FOLDER

`FOLDER/directory` is the checkpoint, `FOLDER/model.gguf` the file. `directory.json` has what transformers gives, `gguf.json` what the f64 forward gives
for the file, in the format of tiny.json. A row is printed for each pair of judges: the largest difference of a log-probability, and the rms. transformers
has the deviation of all gates of a row, llama.cpp that of a sample, and its GELU is a table of f16 values. The sizes that a GGUF does not state are
those that llama.cpp has fixed: 4 streams, a map of rank 64, inputs of 256 elements, 20 layers with keys and values of their own.

It needs the packages torch, transformers, gguf and xllamacpp.
"""

import json
import math
import pathlib
import sys

import gguf
import numpy as np
import torch
from safetensors.torch import load_file, save_file
from transformers import Gemma3nForCausalLM, Gemma3nTextConfig

import confirm
import forward
import tiny
from forward import Model, log_softmax

CONFIG = Gemma3nTextConfig(
    vocab_size=tiny.VOCABULARY,
    vocab_size_per_layer_input=tiny.VOCABULARY,
    hidden_size=64,
    intermediate_size=96,
    num_hidden_layers=22,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=32,
    hidden_size_per_layer_input=256,
    num_kv_shared_layers=2,
    sliding_window=12,
    max_position_embeddings=512,
    attn_implementation="eager",
)
# Branches are small beside the streams, and so are coefficients and scores: else 22 layers make 1e-2 of a rounding.
# Parameters with one value for each element of a row; the matrix of a router meets rows that are divided by the width.
NORMS, ROUTER = ("norm.weight", "layernorm.weight", "correct_output_scale"), "modality_router.weight"


def randomised(model):
    random = torch.Generator().manual_seed(3)
    for name, weight in model.named_parameters():
        values = torch.randn(weight.shape, generator=random, dtype=torch.float64)
        if name.endswith(NORMS):
            values = (1 + 0.3 * values) * (0.2 if "post_" in name else 0.5 if name.endswith(("q_norm.weight", "k_norm.weight")) else 1)
        elif name.endswith(ROUTER):
            values = values * math.sqrt(weight.shape[1])
        elif name.endswith("coefs.weight"):
            values = 0.1 * values
        else:
            values = values * 1.5 / math.sqrt(weight.shape[1])
        weight.data.copy_(values)


def with_unused(path):
    """Adds what the published checkpoints have and nobody uses: keys and values of layers that read those of others."""
    tensors = load_file(path)
    for layer in range(CONFIG.num_hidden_layers - CONFIG.num_kv_shared_layers, CONFIG.num_hidden_layers):
        for part in ["k_proj", "v_proj", "k_norm"]:
            tensors[f"model.layers.{layer}.self_attn.{part}.weight"] = tensors[f"model.layers.0.self_attn.{part}.weight"].clone()
    save_file(tensors, path, {"format": "pt"})


def convert(llama_cpp, directory, path):
    """llama.cpp's converter, with the vocabulary of the tiny models."""
    sys.path.insert(0, str(llama_cpp))
    from conversion.gemma import Gemma3NModel

    def set_vocab(self):
        tokens, merges = tiny.vocabulary()
        text = len(tokens) - len(tiny.CONTROLS)
        self.gguf_writer.add_tokenizer_model("gpt2")
        self.gguf_writer.add_tokenizer_pre("gpt-2")
        self.gguf_writer.add_token_list(tokens)
        self.gguf_writer.add_token_types(
            [gguf.TokenType.NORMAL] * text + [gguf.TokenType.CONTROL] * len(tiny.CONTROLS)
        )
        self.gguf_writer.add_token_merges(merges)

    Gemma3NModel.set_vocab = set_vocab
    with torch.inference_mode():
        Gemma3NModel(directory, gguf.LlamaFileType.ALL_F32, path).write()


def row(first, second, one, other):
    error = np.abs(one - other)
    print(f"| {first} | {second} | {error.max():.1e} | {np.sqrt((error**2).mean()):.1e} |", flush=True)


def main(llama_cpp, folder):
    directory, path = folder / "directory", folder / "model.gguf"
    folder.mkdir(parents=True, exist_ok=True)
    model = Gemma3nForCausalLM(CONFIG).eval()
    randomised(model)
    model.save_pretrained(directory)
    with_unused(directory / "model.safetensors")
    convert(llama_cpp, directory, path)
    ids = tiny.token_ids("gemma3n by transformers")
    with torch.no_grad():
        logits = model.to(torch.float64)(torch.tensor([ids])).logits[0]
    by_transformers = log_softmax(logits.numpy().astype(np.float64))
    f64 = Model(path)
    of_sample = confirm.logprobs(f64, ids)
    f64.sample = 0
    of_all = confirm.logprobs(f64, ids)
    f64.sample, exact = 1, forward.gelu
    forward.gelu = lambda x: confirm.gelu_f16_of(exact, x)
    with_table = confirm.logprobs(f64, ids)
    forward.gelu = exact
    by_llama_cpp = confirm.their_logprobs(path, ids, None)
    for name, logs in [("directory", by_transformers), ("gguf", of_sample)]:
        result = {"file": "model.gguf", "context": None, **tiny.of_logs(logs, ids)}
        (folder / f"{name}.json").write_text(json.dumps(result))
    row("transformers", "f64 forward, deviation of all gates", by_transformers, of_all)
    row("llama.cpp", "f64 forward", by_llama_cpp, of_sample)
    row("llama.cpp", "f64 forward, f16 GELU", by_llama_cpp, with_table)
    row("transformers", "f64 forward, deviation of a sample", by_transformers, of_sample)


if __name__ == "__main__":
    main(*map(pathlib.Path, sys.argv[1:3]))
