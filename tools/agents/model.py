#!/usr/bin/env python3
"""Writes a model that says the same to every prompt: model.py VOCABULARY.gguf OUT.gguf [TEXT].

It has the tokenizer and the chat template of the first file, a context of 131072 tokens and one layer that adds nothing. Each token's embedding is
a state; the output matrix has one token for each state, so the model is a chain: any token but those of the text, the text, the end.
"""

import sys

import gguf
import numpy as np

WIDTH = 64


def main():
    source, out, *text = sys.argv[1:]
    text = text[0] if text else "Done."
    reader = gguf.GGUFReader(source)
    value = lambda key: reader.fields[key].contents()
    tokens = value("tokenizer.ggml.tokens")
    writer = gguf.GGUFWriter(out, "llama")
    for key, field in reader.fields.items():
        if not key.startswith("tokenizer."):
            continue
        if field.types[0] == gguf.GGUFValueType.ARRAY:
            writer.add_array(key, field.contents())
        else:
            writer.add_key_value(key, field.contents(), field.types[0])
    writer.add_name("script")
    writer.add_block_count(1)
    writer.add_context_length(131072)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(WIDTH)
    writer.add_head_count(1)
    writer.add_head_count_kv(1)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH)
    writer.add_vocab_size(len(tokens))

    # Single letters are tokens of every vocabulary.
    chain = [tokens.index(letter) for letter in text]
    assert len(set(chain)) == len(chain) < WIDTH, "each letter may be in the text once"
    embedding, output = np.zeros((len(tokens), WIDTH), np.float32), np.zeros((len(tokens), WIDTH), np.float32)
    embedding[:, 0] = 1
    for state, token in enumerate(chain):
        embedding[token] = 0
        embedding[token, state + 1] = 1
        output[token, state] = 10
    output[value("tokenizer.ggml.eos_token_id"), len(chain)] = 10

    writer.add_tensor("token_embd.weight", embedding)
    for name in ["attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"]:
        writer.add_tensor(f"blk.0.{name}.weight", np.zeros((WIDTH, WIDTH), np.float32))
    for name in ["blk.0.attn_norm", "blk.0.ffn_norm", "output_norm"]:
        writer.add_tensor(f"{name}.weight", np.ones(WIDTH, np.float32))
    writer.add_tensor("output.weight", output)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


main()
