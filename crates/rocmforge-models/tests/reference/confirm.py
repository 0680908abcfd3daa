"""Runs the tiny models through llama.cpp (PyPI xllamacpp) and compares all log-probabilities with the f64 forward.

A model whose weights are not f32 runs twice: as it is (llama.cpp then rounds activations to 8 bits, f16 or bf16), and
with the same weights decoded to f32. Gemma's second run is compared with a forward whose GELU is rounded to f16 on both
sides, as llama.cpp's table is. Prints one row of a table for each, then how far each of some planted mistakes is from
the right result: a difference that a test must be able to see.
"""

import pathlib
import tempfile

import numpy as np

import forward
import tiny
from forward import Model, log_softmax
from gguf_read import Gguf
from llamacpp import Server


def their_logprobs(path, ids, context):
    """llama.cpp's log-probabilities after each prefix of `ids`: [ids, vocabulary].

    It reports them as they were before biases. The bias makes it choose "a": it reports nothing for a byte that is no
    whole character, nor for the end of the text.
    """
    out = np.full((len(ids), tiny.VOCABULARY), np.nan)
    with Server(path, context or 256) as server:
        for length in range(1, len(ids) + 1):
            choose_a = [[ord("a"), 1000]]
            reply = server.complete(ids[:length], n_predict=1, n_probs=tiny.VOCABULARY, logit_bias=choose_a)
            for entry in reply["completion_probabilities"][0]["top_logprobs"]:
                out[length - 1, entry["id"]] = entry["logprob"]
    return out


def as_f32(name, path, to):
    file = Gguf(path)
    kind = tiny.TYPES["f32"][0]
    tiny.write(name, to, lambda label, data, _: (file.tensor(label), kind))


def gelu_f16_of(gelu, x):
    """llama.cpp's GELU: a table with f16 arguments and values, the identity or zero beyond 10."""
    table = gelu(x.astype(np.float16).astype(np.float64)).astype(np.float16).astype(np.float64)
    return np.where(x <= -10, 0, np.where(x >= 10, x, table))


def other_rope(model):
    model.rule = model.rule | {"rope": "half" if model.rule["rope"] == "pairs" else "pairs"}


def other_gate(model):
    model.rule = model.rule | {"gate": "gelu" if model.rule.get("gate") is None else "silu"}


def without(*parts):
    def drop(model):
        for block in model.blocks:
            for part in parts:
                block.pop(part, None)

    return drop


def setting(**values):
    return lambda model: model.__dict__.update(values)


def kept_embedding(model):
    model.rule = model.rule | {"embedding_scale": False}


def base_theta(model):
    base = model.meta.get(f"{model.arch}.rope.freq_base", 10000.0)
    model.theta = base ** (-2.0 * np.arange(model.rotated // 2) / model.rotated)


# Model, context, what is done wrong, the change to the model that does it.
MISTAKES = [
    ("llama", None, "other rope style", other_rope),
    ("llama", None, "GELU for SiLU", other_gate),
    ("llama", None, "eps 1e-6 for 1e-5", setting(eps=1e-6)),
    ("llama-gqa-freqs", None, "rope_freqs ignored", base_theta),
    ("qwen2", None, "biases ignored", without("attn_q.bias", "attn_k.bias", "attn_v.bias")),
    ("qwen2", None, "other rope style", other_rope),
    ("qwen3", None, "no norm of q and k", without("attn_q_norm", "attn_k_norm")),
    ("qwen3", None, "scale by width / heads", setting(scale=(32 / 3) ** -0.5)),
    ("phi3", 256, "factors ignored", base_theta),
    ("phi3", 256, "cos and sin not scaled", setting(magnitude=1.0)),
    ("phi3", 256, "all of the head rotated", setting(rotated=8, theta=10000.0 ** (-np.arange(4) / 4))),
    ("gemma3", None, "window ignored", setting(window=1 << 30)),
    ("gemma3", None, "window one too long", setting(window=17)),
    ("gemma3", None, "one rope base for all layers", lambda model: setting(theta_window=model.theta)(model)),
    ("gemma3", None, "embedding not scaled", kept_embedding),
    ("gemma3", None, "no norm after the branches", without("post_attention_norm", "post_ffw_norm")),
    ("gemma3", None, "SiLU for GELU", other_gate),
    ("gemma3-linear", None, "factor ignored", base_theta),
]


def logprobs(model, ids):
    model.reset()
    return log_softmax(model.logits(model.forward(ids)))


def compare(name, context):
    """Rows (file, context, weights, largest difference, rms) of one model."""
    path = tiny.HERE / "tiny" / f"{name}.gguf"
    ids = tiny.token_ids(name)
    model = Model(path, context)
    ours = logprobs(model, ids)
    with tempfile.TemporaryDirectory() as folder:
        runs = [("as it is", path, ours)]
        if "weights" in tiny.MODELS[name]:
            copy = pathlib.Path(folder) / path.name
            as_f32(name, path, copy)
            runs.append(("decoded to f32", copy, ours))
        if model.rule.get("gate") == "gelu":
            exact, forward.gelu = forward.gelu, lambda x: gelu_f16_of(exact, x)
            runs.append(("as it is, f16 GELU in the f64 forward", path, logprobs(model, ids)))
            forward.gelu = exact
        for label, file, expected in runs:
            theirs = their_logprobs(file, ids, context)
            assert not np.isnan(theirs).any(), "llama.cpp did not report every token"
            error = np.abs(theirs - expected)
            yield path.name, context or "", label, error.max(), np.sqrt((error**2).mean())


def main():
    print("| file | context | run | largest difference | rms |\n|---|---|---|---|---|", flush=True)
    for name, spec in tiny.MODELS.items():
        for context in spec.get("contexts", [None]):
            for file, context, label, largest, rms in compare(name, context):
                print(f"| {file} | {context} | {label} | {largest:.1e} | {rms:.1e} |", flush=True)
    print("\n| file | context | mistake | largest difference |\n|---|---|---|---|")
    for name, context, label, change in MISTAKES:
        model, ids = Model(tiny.HERE / "tiny" / f"{name}.gguf", context), tiny.token_ids(name)
        right = logprobs(model, ids)
        change(model)
        print(f"| {name} | {context or ''} | {label} | {np.abs(logprobs(model, ids) - right).max():.1e} |")


if __name__ == "__main__":
    main()
