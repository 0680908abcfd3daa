"""Writes tiny encoders with random weights to tiny/*.gguf, and what an f64 forward gives for them to encoders.json.

The forward is written from the definition of each architecture. The embedding of a text is pooled as the file says, and has the length 1.
With `confirm` it compares the embeddings with those of llama.cpp (PyPI xllamacpp), and prints a table.
"""

import json
import math
import pathlib
import sys

import gguf
import numpy as np

import tiny
from forward import Model
from gguf_read import Gguf

HERE = pathlib.Path(__file__).parent
CONTEXT = 64
LENGTHS = [40, 17, 1]
SMALL = {"width": 32, "layers": 2, "heads": 4, "head": 8, "ff": 48}

# tokenizer; sizes; metadata; what the layers have. tables: of "types" (rows) and "positions". norms: "post" for BERT's order, "pre", "around".
# network: "plain", "gated" (two matrices), "joined" (gate and up in one). biases: of all maps.
MODELS = {
    # XLM-RoBERTa: BERT with another tokenizer, and one type of tokens.
    "xlm-roberta": {
        "arch": "bert",
        "tokenizer": "t5",
        "sizes": SMALL,
        "pooling": 2,
        "types": 1,
        "positions": True,
        "biases": True,
        "network": "plain",
        "activation": "gelu",
    },
    "nomic-bert": {
        "arch": "nomic-bert",
        "tokenizer": "bert",
        "sizes": SMALL,
        "pooling": 1,
        "types": 2,
        "joined_qkv": True,
        "network": "gated",
        "activation": "silu",
        "rope": 1000.0,
    },
    # A tokenizer and maps as XLM-RoBERTa's; each third layer from the second one on has experts.
    "nomic-bert-moe": {
        "arch": "nomic-bert-moe",
        "tokenizer": "t5",
        "sizes": SMALL | {"layers": 5, "ff": 16},
        "pooling": 1,
        "types": 1,
        "biases": True,
        "joined_qkv": True,
        "network": "plain",
        "activation": "gelu",
        "rope": 10000.0,
        "experts": {"count": 4, "used": 2, "every": 3},
    },
    # BERT's layers with rotary embedding in place of positions.
    "jina-bert-v3": {
        "arch": "jina-bert-v3",
        "tokenizer": "t5",
        "sizes": SMALL,
        "pooling": 1,
        "types": 1,
        "biases": True,
        "joined_qkv": True,
        "network": "plain",
        "activation": "gelu",
        "rope": 20000.0,
    },
    # Llama's layers without a mask.
    "neo-bert": {
        "arch": "neo-bert",
        "tokenizer": "bert",
        "sizes": SMALL | {"ff": 24},
        "pooling": 2,
        "norms": "pre",
        "rms": True,
        "output_norm": "enc.output_norm",
        "joined_qkv": True,
        "network": "joined",
        "activation": "silu",
        "rope": 10000.0,
        "pairs": True,
    },
    "eurobert": {
        "arch": "eurobert",
        "tokenizer": "t5",
        "sizes": SMALL | {"kv_heads": 2, "ff": 24},
        "pooling": 1,
        "norms": "pre",
        "rms": True,
        "network": "gated",
        "activation": "silu",
        "rope": 250000.0,
    },
    "modern-bert": {
        "arch": "modern-bert",
        "tokenizer": "t5",
        "sizes": SMALL | {"layers": 4, "ff": 16},
        "pooling": 2,
        "norms": "pre",
        "joined_qkv": True,
        "network": "joined",
        "activation": "gelu",
        "rope": 160000.0,
        "window_rope": 10000.0,
        # Every third layer from the first one on has none.
        "window": 12,
        "windowed": [False, True, True, False],
    },
    "gemma-embedding": {
        "arch": "gemma-embedding",
        "tokenizer": "t5",
        "rms": True,
        "sizes": {"width": 24, "layers": 7, "heads": 2, "kv_heads": 1, "head": 16, "ff": 24},
        "pooling": 1,
        "norms": "around",
        "network": "gated",
        "activation": "gelu_tanh",
        "rope": 1000000.0,
        "window_rope": 10000.0,
        "window": 10,
        "windowed": [True] * 5 + [False, True],
        "dense": 32,
    },
    "jina-bert-v2": {
        "arch": "jina-bert-v2",
        "tokenizer": "bert",
        # Slopes of a number of heads that is no power of two have a rule of their own.
        "sizes": {"width": 24, "layers": 2, "heads": 3, "head": 8, "ff": 40},
        "pooling": 1,
        "types": 2,
        "biases": True,
        "network": "joined",
        "activation": "gelu",
        "alibi": 8.0,
    },
    # As the one for code: norms of queries and keys, and one more norm of each layer.
    "jina-bert-v2-code": {
        "arch": "jina-bert-v2",
        "tokenizer": "t5",
        "sizes": {"width": 32, "layers": 2, "heads": 4, "head": 8, "ff": 24},
        "pooling": 1,
        "types": 2,
        "biases": True,
        "query_norm": True,
        "norm_2": True,
        "network": "joined",
        "activation": "gelu",
        "alibi": 8.0,
    },
}


# A classifier behind the mean, which is what counts where the file says nothing, or behind the first state.
MODELS["modern-bert-ranks"] = MODELS["modern-bert"] | {"pooling": 4, "classifier": "modern"}
MODELS["modern-bert-ranks-first"] = MODELS["modern-bert-ranks"] | {"classifier_pooling": 2}
MODELS["xlm-roberta-ranks"] = MODELS["xlm-roberta"] | {"pooling": 4, "classifier": "bert"}

# A decoder that ranks: two scores of the last state, of yes and of no, and a prompt for pairs.
RERANKER = "qwen3-reranker"
PROMPT = "<bos>Judge.\nquery: {query}\ndocument: {document}<eos>\nanswer:"
tiny.MODELS[RERANKER] = tiny.MODELS["qwen3"] | {
    "metadata": tiny.MODELS["qwen3"].get("metadata", {}) | {"pooling_type": 4, "classifier.output_labels": ["yes", "no"]}
}

# Decoders of tiny.py whose states are pooled, by no word of their files: softcaps, windows, sinks, a norm of heads, queries that grow, experts.
DECODERS = {"qwen3": 3, "qwen2": 1, "gemma2": 1, "gemma3": 3, "gpt-oss": 3, "mistral3": 3, "llama4": 1}


def vocabulary(kind):
    """Tokens, their types, and scores where the kind has them."""
    normal, control = gguf.TokenType.NORMAL, gguf.TokenType.CONTROL
    letters = [chr(letter) for letter in range(ord("a"), ord("z") + 1)]
    if kind == "bert":
        marks = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
        tokens = marks + ["\u2581" + letter for letter in letters] + letters
        return tokens, [control] * 4 + [normal] * (len(tokens) - 4), None
    marks = ["<s>", "<pad>", "</s>", "<unk>"]
    words = ["\u2581"] + ["\u2581" + letter for letter in letters] + letters
    scores = [0.0] * 4 + [-2.0 - 0.03 * number for number in range(len(words))]
    types = [control] * 3 + [gguf.TokenType.UNKNOWN] + [normal] * len(words)
    return marks + words, types, scores


def add_tokenizer(writer, spec):
    kind = spec["tokenizer"]
    if "types" in spec:
        writer.add_token_type_count(spec["types"])
    writer.add_tokenizer_model(kind)
    tokens, types, scores = vocabulary(kind)
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    if kind == "bert":
        writer.add_pad_token_id(0)
        writer.add_unk_token_id(1)
        writer.add_uint32("tokenizer.ggml.cls_token_id", 2)
        writer.add_bos_token_id(2)
        writer.add_sep_token_id(3)
        writer.add_eos_token_id(3)
        return
    writer.add_token_scores(scores)
    writer.add_add_space_prefix(True)
    writer.add_remove_extra_whitespaces(True)
    writer.add_bos_token_id(0)
    writer.add_pad_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_sep_token_id(2)
    writer.add_unk_token_id(3)
    writer.add_add_bos_token(True)
    writer.add_add_eos_token(True)
    writer.add_add_sep_token(True)


def tokens_of(spec):
    return len(vocabulary(spec["tokenizer"])[0])


def has_experts(spec, layer):
    return "experts" in spec and layer % spec["experts"]["every"] == 1


def tensors(name):
    spec, random = MODELS[name], tiny.seeded(name)
    size, found = spec["sizes"], []
    width, ff, inner = size["width"], size["ff"], size["heads"] * size["head"]
    kv = size.get("kv_heads", size["heads"]) * size["head"]
    has_bias = spec["arch"] != "modern-bert" and not spec.get("rms")

    def vector(label, values):
        found.append((label, values.astype(np.float32), gguf.GGMLQuantizationType.F32))

    def weight(label, outputs, inputs, bias=False):
        found.append((f"{label}.weight", *tiny.matrix(random, outputs, inputs, "f16")))
        if bias:
            vector(f"{label}.bias", 0.5 * random.standard_normal(outputs))

    def norm(label, length=width):
        vector(f"{label}.weight", 1 + 0.3 * random.standard_normal(length))
        if has_bias:
            vector(f"{label}.bias", 0.3 * random.standard_normal(length))

    biases = spec.get("biases", False)
    weight("token_embd", tokens_of(spec), width)
    if "types" in spec:
        vector("token_types.weight", random.standard_normal((spec["types"], width)) / 4)
    if spec.get("positions"):
        vector("position_embd.weight", random.standard_normal((CONTEXT, width)) / 4)
    norms = spec.get("norms", "post")
    if norms != "around" and not spec.get("rms"):
        norm("token_embd_norm")
    if norms != "post":
        norm(spec.get("output_norm", "output_norm"))
    if "classifier" in spec:
        weight("cls", width, width, spec["classifier"] == "bert")
        if spec["classifier"] == "modern":
            norm("cls.norm")
        weight("cls.output", 1, width, True)
    if "dense" in spec:
        weight("dense_2", spec["dense"], width)
        weight("dense_3", width, spec["dense"])
    for layer in range(size["layers"]):
        at = f"blk.{layer}."
        if norms == "around" or norms == "pre" and (layer > 0 or spec.get("rms")):
            norm(at + "attn_norm")
        if spec.get("joined_qkv"):
            weight(at + "attn_qkv", inner + 2 * kv, width, biases)
        else:
            for part, rows in [("q", inner), ("k", kv), ("v", kv)]:
                weight(at + "attn_" + part, rows, width, biases)
        if spec.get("query_norm"):
            norm(at + "attn_q_norm", inner)
            norm(at + "attn_k_norm", kv)
        if norms == "around":
            norm(at + "attn_q_norm", size["head"])
            norm(at + "attn_k_norm", size["head"])
        weight(at + "attn_output", width, inner, biases)
        if norms == "post":
            norm(at + "attn_output_norm")
        if spec.get("norm_2"):
            norm(at + "attn_norm_2")
        if norms == "around":
            norm(at + "post_attention_norm")
        if norms != "post":
            norm(at + "ffn_norm")
        if has_experts(spec, layer):
            count = spec["experts"]["count"]
            weight(at + "ffn_gate_inp", count, width)
            for part, outputs, inputs in [("up", ff, width), ("down", width, ff)]:
                data, kind = tiny.matrix(random, count * outputs, inputs, "f16")
                found.append((f"{at}ffn_{part}_exps.weight", data.reshape(count, outputs, inputs), kind))
        elif spec["network"] == "joined":
            weight(at + "ffn_up", 2 * ff, width)
        else:
            if spec["network"] == "gated":
                weight(at + "ffn_gate", ff, width)
            weight(at + "ffn_up", ff, width, biases)
        if not has_experts(spec, layer):
            weight(at + "ffn_down", width, ff, biases)
        if norms == "post":
            norm(at + "layer_output_norm")
        if norms == "around":
            norm(at + "post_ffw_norm")
    return found


def write(name, path, decoded=False):
    """Writes the model to `path`; `decoded` to f32 throughout."""
    spec = MODELS[name]
    size, arch = spec["sizes"], spec["arch"]
    writer = gguf.GGUFWriter(path, arch)
    writer.add_name("tiny")
    writer.add_block_count(size["layers"])
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(size["width"])
    writer.add_feed_forward_length(size["ff"])
    writer.add_head_count(size["heads"])
    writer.add_head_count_kv(size.get("kv_heads", size["heads"]))
    writer.add_pooling_type(gguf.PoolingType(spec["pooling"]))
    if "classifier_pooling" in spec:
        writer.add_uint32(f"{arch}.classifier.pooling_type", spec["classifier_pooling"])
    if "classifier" in spec:
        writer.add_classifier_output_labels(["score"])
    if spec.get("rms"):
        writer.add_layer_norm_rms_eps(1e-6)
    if spec.get("rms") and arch != "gemma-embedding":
        writer.add_causal_attention(False)
    if arch == "gemma-embedding":
        writer.add_key_length(size["head"])
        writer.add_value_length(size["head"])
        writer.add_uint32(f"{arch}.dense_2_feat_in", size["width"])
        writer.add_uint32(f"{arch}.dense_2_feat_out", spec["dense"])
        writer.add_uint32(f"{arch}.dense_3_feat_in", spec["dense"])
        writer.add_uint32(f"{arch}.dense_3_feat_out", size["width"])
    elif not spec.get("rms"):
        writer.add_layer_norm_eps(1e-5)
        writer.add_causal_attention(False)
    if "experts" in spec:
        writer.add_expert_count(spec["experts"]["count"])
        writer.add_expert_used_count(spec["experts"]["used"])
        writer.add_moe_every_n_layers(spec["experts"]["every"])
    if "rope" in spec:
        writer.add_rope_freq_base(spec["rope"])
    if "window" in spec:
        writer.add_sliding_window(spec["window"])
    if arch == "modern-bert":
        writer.add_float32(f"{arch}.rope.freq_base_swa", spec["window_rope"])
        writer.add_uint32(f"{arch}.attention.sliding_window_pattern", 3)
    add_tokenizer(writer, spec)
    for label, data, kind in tensors(name):
        if decoded:
            data, kind = gguf.quants.dequantize(data, kind), gguf.GGMLQuantizationType.F32
        writer.add_tensor(label, data, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def gelu(x):
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


ACTIVATIONS = {"gelu": gelu, "gelu_tanh": gelu_tanh, "silu": lambda x: x / (1 + np.exp(-x))}


def slopes(heads, bias):
    """ALiBi's slopes of heads: a geometric series, and for heads beyond a power of two every second one of the finer series."""
    of = lambda count: [2.0 ** (-bias * (head + 1) / count) for head in range(count)]
    whole = 2 ** int(math.log2(heads))
    return of(whole) + of(2 * whole)[0::2][: heads - whole]


class Encoder:
    """A model with its weights as f64."""

    def __init__(self, name):
        self.spec = MODELS[name]
        self.file = Gguf(HERE / "tiny" / f"{name}.gguf")

    def weight(self, label):
        return self.file.tensor(label).astype(np.float64)

    def has(self, label):
        return label in self.file

    def linear(self, label, x):
        bias = self.weight(label + ".bias") if self.has(label + ".bias") else 0
        return x @ self.weight(label + ".weight").T + bias

    def norm(self, label, x):
        weight = self.weight(label + ".weight")
        if self.spec.get("rms"):
            return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-6) * weight
        x = x - x.mean(axis=-1, keepdims=True)
        x = x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-5)
        return x * weight + (self.weight(label + ".bias") if self.has(label + ".bias") else 0)

    def rotated(self, x, base):
        """Element i of a head and element i + half of it are one pair, or two neighbours."""
        half = x.shape[2] // 2
        angle = np.arange(len(x))[:, None, None] * base ** (-np.arange(half) / half)
        if self.spec.get("pairs"):
            out = np.empty_like(x)
            first, second = x[..., 0::2], x[..., 1::2]
            out[..., 0::2] = first * np.cos(angle) - second * np.sin(angle)
            out[..., 1::2] = first * np.sin(angle) + second * np.cos(angle)
            return out
        first, second = x[..., :half], x[..., half:]
        return np.concatenate([first * np.cos(angle) - second * np.sin(angle), first * np.sin(angle) + second * np.cos(angle)], axis=2)

    def attention(self, layer, x):
        spec, size, at = self.spec, self.spec["sizes"], f"blk.{layer}."
        heads, head = size["heads"], size["head"]
        kv_heads = size.get("kv_heads", heads)
        if self.has(at + "attn_qkv.weight"):
            q, k, v = np.split(self.linear(at + "attn_qkv", x), [heads * head, (heads + kv_heads) * head], axis=1)
        else:
            q, k, v = (self.linear(at + "attn_" + part, x) for part in "qkv")
        if spec.get("query_norm"):
            q, k = self.norm(at + "attn_q_norm", q), self.norm(at + "attn_k_norm", k)
        q, k, v = (rows.reshape(len(x), -1, head) for rows in [q, k, v])
        if spec["arch"] == "gemma-embedding":
            q, k = self.norm(at + "attn_q_norm", q), self.norm(at + "attn_k_norm", k)
        windowed = "window" in spec and spec["windowed"][layer]
        if "rope" in spec:
            base = spec["window_rope"] if windowed else spec["rope"]
            q, k = self.rotated(q, base), self.rotated(k, base)
        place = np.arange(len(x))
        distance = np.abs(place[:, None] - place[None, :])
        out = np.zeros((len(x), heads, head))
        for number in range(heads):
            of = number * kv_heads // heads
            scores = q[:, number] @ k[:, of].T / math.sqrt(head)
            if "alibi" in spec:
                scores = scores - slopes(heads, spec["alibi"])[number] * distance
            if windowed:
                scores = np.where(distance <= spec["window"] // 2, scores, -np.inf)
            shares = np.exp(scores - scores.max(axis=1, keepdims=True))
            out[:, number] = shares / shares.sum(axis=1, keepdims=True) @ v[:, of]
        return self.linear(at + "attn_output", out.reshape(len(x), -1))

    def network(self, layer, x):
        at, activation = f"blk.{layer}.", ACTIVATIONS[self.spec["activation"]]
        if has_experts(self.spec, layer):
            return self.experts(at, activation, x)
        up = self.linear(at + "ffn_up", x)
        if self.spec["network"] == "gated":
            inner = activation(self.linear(at + "ffn_gate", x)) * up
        elif self.spec["network"] == "joined":
            gate, up = np.split(up, 2, axis=1)
            inner = activation(gate) * up
        else:
            inner = activation(up)
        return self.linear(at + "ffn_down", inner)

    def experts(self, at, activation, x):
        """The softmax is over all experts, and the shares of the chosen ones stay as they are."""
        scores = np.exp(self.linear(at + "ffn_gate_inp", x))
        shares = scores / scores.sum(axis=1, keepdims=True)
        up, down = (self.weight(f"{at}ffn_{part}_exps.weight") for part in ["up", "down"])
        out = np.zeros_like(x)
        for row, of in enumerate(shares):
            for expert in np.argsort(-of)[: self.spec["experts"]["used"]]:
                out[row] += of[expert] * (down[expert] @ activation(up[expert] @ x[row]))
        return out

    def layer(self, number, x):
        at, norms = f"blk.{number}.", self.spec.get("norms", "post")
        if norms == "post":
            y = self.norm(at + "attn_output_norm", x + self.attention(number, x))
            if self.spec.get("norm_2"):
                y = self.norm(at + "attn_norm_2", x + y)
            return self.norm(at + "layer_output_norm", y + self.network(number, y))
        seen = self.norm(at + "attn_norm", x) if self.has(at + "attn_norm.weight") else x
        out = self.attention(number, seen)
        x = x + (self.norm(at + "post_attention_norm", out) if norms == "around" else out)
        out = self.network(number, self.norm(at + "ffn_norm", x))
        return x + (self.norm(at + "post_ffw_norm", out) if norms == "around" else out)

    def embedding(self, ids):
        x = self.weight("token_embd.weight")[ids]
        if self.spec["arch"] == "gemma-embedding":
            x = x * math.sqrt(x.shape[1])
        if "types" in self.spec:
            x = x + self.weight("token_types.weight")[0]
        if self.spec.get("positions"):
            x = x + self.weight("position_embd.weight")[: len(ids)]
        if self.has("token_embd_norm.weight"):
            x = self.norm("token_embd_norm", x)
        for number in range(self.spec["sizes"]["layers"]):
            x = self.layer(number, x)
        output_norm = self.spec.get("output_norm", "output_norm")
        if self.has(output_norm + ".weight"):
            x = self.norm(output_norm, x)
        if "classifier" in self.spec:
            return self.score(x)
        pooled = {1: x.mean(axis=0), 2: x[0], 3: x[-1]}[self.spec["pooling"]]
        if "dense" in self.spec:
            pooled = self.linear("dense_3", self.linear("dense_2", pooled))
        return pooled / np.sqrt((pooled * pooled).sum())


    def score(self, x):
        """A map and a function, of ModernBERT a norm, and a map to one score."""
        if self.spec["classifier"] == "bert":
            return self.linear("cls.output", np.tanh(self.linear("cls", x[0])))
        pooled = x[0] if self.spec.get("classifier_pooling") == 2 else x.mean(axis=0)
        return self.linear("cls.output", self.norm("cls.norm", ACTIVATIONS["gelu"](self.linear("cls", pooled))))


def write_reranker(path):
    random = tiny.seeded(RERANKER + " classifier")
    answers = random.standard_normal((2, tiny.MODELS[RERANKER]["sizes"]["width"])).astype(np.float32)

    def more(writer):
        writer.add_string("tokenizer.chat_template.rerank", PROMPT)
        writer.add_tensor("cls.output.weight", answers)

    tiny.write(RERANKER, path, more=more)


def share_of_yes(model, ids):
    """The share of the first of two scores in their softmax."""
    model.reset()
    scores = model.file.tensor("cls.output.weight").astype(np.float64) @ model.forward(ids)[-1]
    return np.exp(scores[:1]) / np.exp(scores).sum()


def texts(name):
    random, tokens = tiny.seeded(name + " ids"), tokens_of(MODELS[name])
    return [random.integers(4, tokens - 4, length).tolist() for length in LENGTHS]


def confirm():
    """Weights are decoded to f32. llama.cpp's GELU is a table of f16 values, and of the tanh form."""
    import tempfile

    from llamacpp import Server

    print("| file | run | largest difference | rms |\n|---|---|---|---|")
    params = lambda params: params.__setattr__("embedding", True)
    for name in MODELS:
        encoder, ids = Encoder(name), texts(name)
        runs = [("as it is", ACTIVATIONS["gelu"])]
        if encoder.spec["activation"] == "gelu":
            runs.append(("with the tanh form of GELU in the f64 forward", gelu_tanh))
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder) / "model.gguf"
            write(name, copy, decoded=True)
            with Server(copy, 256, change=params) as server:
                norm = -1 if "classifier" in encoder.spec else 2
                replies = [server.post("/embeddings", {"content": text, "embd_normalize": norm}) for text in ids]
        # Of a classifier the first component is the score.
        width = 1 if "classifier" in encoder.spec else None
        theirs = np.array([np.ravel(reply[0]["embedding"])[:width] for reply in replies])
        for label, form in runs:
            ACTIVATIONS["gelu"] = form
            error = np.abs(theirs - np.array([encoder.embedding(text) for text in ids]))
            print(f"| {name}.gguf | {label} | {error.max():.1e} | {np.sqrt((error**2).mean()):.1e} |", flush=True)
        ACTIVATIONS["gelu"] = gelu
    confirm_reranker()


def confirm_reranker():
    """llama.cpp makes the prompt itself, from the file's template."""
    import xllamacpp
    from llamacpp import Server

    def change(params):
        params.embedding, params.pooling_type = True, xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_RANK

    path, query, documents = HERE / "tiny" / f"{RERANKER}.gguf", "a river", ["b", "the bank of a river", "x" * 40]
    model, prompts = Model(path), [PROMPT.replace("{query}", query).replace("{document}", text) for text in documents]
    with Server(path, 256, change=change) as server:
        reply = server.post("/rerank", {"query": query, "documents": documents})
        ids = [server.tokenize(prompt, True, False) for prompt in prompts]
    theirs = {result["index"]: result["relevance_score"] for result in reply["results"]}
    error = np.array([theirs[index] - share_of_yes(model, of)[0] for index, of in enumerate(ids)])
    print(f"| {path.name} | as it is | {np.abs(error).max():.1e} | {np.sqrt((error**2).mean()):.1e} |", flush=True)


def main():
    write_reranker(HERE / "tiny" / f"{RERANKER}.gguf")
    results, bytes_of_all = [], 0
    for name in MODELS:
        path = HERE / "tiny" / f"{name}.gguf"
        write(name, path)
        encoder = Encoder(name)
        found = [{"ids": ids, "embedding": tiny.rounded(encoder.embedding(ids))} for ids in texts(name)]
        results.append({"file": path.name, "pooling": None, "texts": found})
        bytes_of_all += path.stat().st_size
        print(f"{path.name:24} {path.stat().st_size:7} B")
    print(bytes_of_all, "B")
    for name, pooling in DECODERS.items():
        model = Model(HERE / "tiny" / f"{name}.gguf")
        found = []
        for length in LENGTHS:
            ids = tiny.token_ids(name)[:length]
            model.reset()
            states = model.forward(ids)
            pooled = states.mean(axis=0) if pooling == 1 else states[-1]
            found.append({"ids": ids, "embedding": tiny.rounded(pooled / np.sqrt((pooled * pooled).sum()))})
        results.append({"file": f"{name}.gguf", "pooling": pooling, "texts": found})
    model, ids = Model(HERE / "tiny" / f"{RERANKER}.gguf"), tiny.token_ids(RERANKER)
    found = [{"ids": ids[:length], "embedding": tiny.rounded(share_of_yes(model, ids[:length]))} for length in LENGTHS]
    results.append({"file": f"{RERANKER}.gguf", "pooling": None, "texts": found})
    tiny.write_results("encoders.json", results)


if __name__ == "__main__":
    confirm() if sys.argv[1:] == ["confirm"] else main()
