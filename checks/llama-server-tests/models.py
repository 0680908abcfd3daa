#!/usr/bin/env python3
"""Writes random models of the shapes that llama.cpp's server tests use: models.py FOLDER."""
import pathlib
import sys

import gguf
import numpy as np

WORDS = " the a to and was is he she it you they in of on with said Tim Lily day big little happy play dog cat tree".split()


def vocabulary(size: int):
    tokens, types = ["<unk>", "<s>", "</s>"], [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL]
    for byte in range(256):
        tokens.append(f"<0x{byte:02X}>")
        types.append(gguf.TokenType.BYTE)
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,!?'\"\n"
    pieces = ["▁"] + list(letters) + [f"▁{letter}" for letter in letters[:52]] + [f"▁{word}" for word in WORDS]
    pieces += [a + b for a in "bcdfglmnprst" for b in "aeiou"]
    for piece in dict.fromkeys(pieces):
        if len(tokens) < size and piece not in tokens:
            tokens.append(piece)
            types.append(gguf.TokenType.NORMAL)
    while len(tokens) < size:
        tokens.append(f"▁word{len(tokens)}")
        types.append(gguf.TokenType.NORMAL)
    # Longer pieces are joined first.
    scores = [0.0] * 259 + [float(len(token)) for token in tokens[259:]]
    return tokens, scores, types


def write(path: pathlib.Path, width: int, layers: int, heads: int, kv_heads: int, inner: int, context: int):
    random = np.random.default_rng(7)
    tokens, scores, types = vocabulary(512)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name(path.stem)
    writer.add_block_count(layers)
    writer.add_context_length(context)
    writer.add_embedding_length(width)
    writer.add_feed_forward_length(inner)
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv_heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(width // heads)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores(scores)
    writer.add_token_types(types)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_add_bos_token(True)

    def tensor(name, *shape):
        writer.add_tensor(name, (random.standard_normal(shape) * 2 / np.sqrt(shape[-1])).astype(np.float32))

    def norm(name):
        writer.add_tensor(name, np.ones(width, np.float32))

    head = width // heads
    tensor("token_embd.weight", len(tokens), width)
    for layer in range(layers):
        block = f"blk.{layer}"
        norm(f"{block}.attn_norm.weight")
        tensor(f"{block}.attn_q.weight", width, width)
        tensor(f"{block}.attn_k.weight", kv_heads * head, width)
        tensor(f"{block}.attn_v.weight", kv_heads * head, width)
        tensor(f"{block}.attn_output.weight", width, width)
        norm(f"{block}.ffn_norm.weight")
        tensor(f"{block}.ffn_gate.weight", inner, width)
        tensor(f"{block}.ffn_up.weight", inner, width)
        tensor(f"{block}.ffn_down.weight", width, inner)
    norm("output_norm.weight")
    output = (random.standard_normal((len(tokens), width)) * 4 / np.sqrt(width)).astype(np.float32)
    # The model ends no text and draws no parts of characters: their logits stay 0, and others are larger.
    output[:259] = 0
    writer.add_tensor("output.weight", output)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_encoder(path: pathlib.Path, words: list[str], width: int, layers: int, heads: int, inner: int, context: int, ranks: bool):
    """A BERT of whole words; one that ranks has a pooler and a classifier of one score."""
    random = np.random.default_rng(7)
    marks = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    # Letters at the beginning and inside of words make any text of letters.
    letters = "abcdefghijklmnopqrstuvwxyz0123456789.,?-'"
    tokens = marks + [f"▁{word}" for word in dict.fromkeys([*words, *letters])] + list(letters)
    writer = gguf.GGUFWriter(path, "bert")
    writer.add_name(path.stem)
    writer.add_block_count(layers)
    writer.add_context_length(context)
    writer.add_embedding_length(width)
    writer.add_feed_forward_length(inner)
    writer.add_head_count(heads)
    writer.add_layer_norm_eps(1e-12)
    writer.add_causal_attention(False)
    writer.add_pooling_type(gguf.PoolingType.RANK if ranks else gguf.PoolingType.CLS)
    writer.add_token_type_count(2)
    writer.add_tokenizer_model("bert")
    writer.add_tokenizer_pre("jina-v2-en")
    writer.add_token_list(tokens)
    writer.add_token_types([gguf.TokenType.CONTROL] * len(marks) + [gguf.TokenType.NORMAL] * (len(tokens) - len(marks)))
    writer.add_unk_token_id(1)
    writer.add_sep_token_id(3)
    writer.add_pad_token_id(0)
    writer.add_bos_token_id(2)
    writer.add_eos_token_id(3)
    writer.add_uint32("tokenizer.ggml.cls_token_id", 2)

    def tensor(name, *shape, about=0.0):
        writer.add_tensor(name, (about + random.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32))

    def linear(name, rows, cols):
        tensor(f"{name}.weight", rows, cols)
        tensor(f"{name}.bias", rows)

    def norm(name):
        tensor(f"{name}.weight", width, about=1.0)
        tensor(f"{name}.bias", width)

    tensor("token_embd.weight", len(tokens), width)
    tensor("position_embd.weight", context, width)
    tensor("token_types.weight", 2, width)
    norm("token_embd_norm")
    for layer in range(layers):
        block = f"blk.{layer}"
        for part in ["attn_q", "attn_k", "attn_v", "attn_output"]:
            linear(f"{block}.{part}", width, width)
        norm(f"{block}.attn_output_norm")
        linear(f"{block}.ffn_up", inner, width)
        linear(f"{block}.ffn_down", width, inner)
        norm(f"{block}.layer_output_norm")
    if ranks:
        linear("cls", width, width)
        linear("cls.output", 1, width)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    write(folder / "stories260K.gguf", width=64, layers=5, heads=8, kv_heads=4, inner=172, context=2048)
    # The words whose tokens a test counts.
    words = "i believe the meaning of life is this a test another hello machine learning which city paris capitale de la".split()
    shape = {"width": 64, "layers": 2, "heads": 4, "inner": 128, "context": 512}
    write_encoder(folder / "bert-bge-small.gguf", words, **shape, ranks=False)
    write_encoder(folder / "jina-reranker-v1-tiny-en.gguf", words, **shape, ranks=True)
