"""Forward pass of decoder models in f64, from the definition, on weights decoded by gguf_read.py.

Every step is one line of numpy; speed is no aim. Keys and values of earlier positions are kept (unrotated values,
rotated keys), so that greedy decoding costs one position a step.
"""

import numpy as np

from gguf_read import Gguf

# What distinguishes the architectures. rope: which elements of a head form a pair ("pairs": 2i and 2i+1; "half": i and
# i+n/2). gate: activation of the gate half. embedding_scale: the embedding is multiplied by sqrt(width).
# network_scales: factors on the products of feed-forward networks are applied (true if absent), as llama.cpp does it.
# normalised: the factors of a token's experts sum up to 1 (true if absent).
# window_period: layer i has the sliding window unless i % period == period - 1. window_rope: layers with a window have the
# base of others and no scaling ("unscaled"), a base of their own ("own", if absent), or what others have ("same").
# rotated: only layers with a window have rotary embedding ("windowed"), or all but every fourth ("but_fourth").
# norm: "layer" for layer normalisation. A layer without a norm before the network gives it the rows of attention. query_norm: "whole" for one over
# all heads, "rotated" for one after rotary embedding. network_norm: the tensor of the norm before the network.
# scale: the factor on scores. value_norm: values have a norm without a weight. beside: experts stand beside the network.
# choice: "sigmoid" and "chosen" for the scores of experts; "softmax" if absent; "stated" where the file says which. shared_gate: a shared expert has a factor.
# chunks: layers with rotary embedding see the keys of their chunk, and in the others queries grow with the position.
# unused: tensors of a layer that llama.cpp loads and does not use.
ARCHITECTURES = {
    "llama": {"rope": "pairs"},
    "qwen2": {"rope": "half", "network_scales": False},
    "qwen2moe": {"rope": "half", "normalised": False, "network_scales": False},
    "qwen3": {"rope": "half"},
    "qwen3moe": {"rope": "half"},
    "phi3": {"rope": "half", "network_scales": False},
    "gemma3": {"rope": "half", "gate": "gelu", "embedding_scale": True, "window_period": 6, "network_scales": False},
    # Values have a norm, and may be the keys' product; experts stand beside the network.
    "gemma4": {
        "rope": "half",
        "gate": "gelu",
        "embedding_scale": True,
        "window_period": 6,
        "scale": 1.0,
        "value_norm": True,
        "beside": True,
    },
    # Several residual streams of a token; gates of some layers are cut.
    "gemma3n": {
        "rope": "half",
        "gate": "gelu",
        "embedding_scale": True,
        "window_period": 5,
        "scale": 1.0,
        "value_norm": True,
        "streams": True,
        "network_scales": False,
    },
    "gemma2": {"rope": "half", "gate": "gelu", "embedding_scale": True, "window_period": 2, "window_rope": "same"},
    "gpt-oss": {
        "rope": "half",
        "gate": "clamped",
        "window_period": 2,
        "window_rope": "same",
        "network_norm": "post_attention_norm",
        "choice": "chosen",
        "normalised": False,
    },
    "olmo2": {"rope": "half", "window_period": 4, "window_rope": "unscaled", "query_norm": "whole", "network_norm": None},
    "smollm3": {"rope": "pairs", "rotated": "but_fourth"},
    "mistral3": {"rope": "pairs"},
    # Queries and keys have a norm without a weight, but in a model with 128 experts.
    "llama4": {
        "rope": "pairs",
        "rotated": "but_fourth",
        "query_norm": "plain_rotated",
        "chunks": True,
        "choice": "on_input",
        "shared_gate": False,
    },
    "glm4": {"rope": "pairs"},
    "cohere2": {
        "rope": "pairs",
        "norm": "layer",
        "window_period": 4,
        "window_rope": "same",
        "rotated": "windowed",
    },
    "starcoder2": {"rope": "half", "norm": "layer", "gate": "plain", "network_scales": False},
    "stablelm": {"rope": "half", "norm": "layer"},
    "granitemoe": {"rope": "pairs", "shared_gate": False},
    "hunyuan-moe": {"rope": "half", "query_norm": "rotated", "shared_gate": False},
    "ernie4_5-moe": {"rope": "pairs", "shared_gate": False, "unused": ["attn_output.bias"]},
    "glm4moe": {
        "rope": "half",
        "choice": "sigmoid",
        "network_norm": "post_attention_norm",
        "shared_gate": False,
    },
    "mimo2": {"rope": "half", "choice": "sigmoid", "window_period": 6, "window_rope": "base"},
    "minimax-m2": {"rope": "half", "choice": "sigmoid", "query_norm": "whole"},
    # A short convolution in layers that have its tensors.
    "lfm2moe": {"rope": "half", "choice": "sigmoid", "output_norm": "token_embd_norm"},
    # A selective scan in layers that have its tensors, alone ("mamba2"), in place of attention, or beside it.
    "mamba2": {"rope": "half", "rotated": "never"},
    "granitehybrid": {"rope": "pairs", "shared_gate": False},
    "falcon-h1": {"rope": "half", "beside_scan": True},
    "nemotron_h": {"rope": "half", "rotated": "never", "gate": "relu_squared", "network_norm": "attn_norm"},
    "nemotron_h_moe": {
        "rope": "half",
        "rotated": "never",
        "gate": "relu_squared",
        "network_norm": "attn_norm",
        "choice": "sigmoid",
        "shared_gate": False,
    },
    # A gated delta net in layers that have its tensors; the query has a gate. key_head: of a value head.
    "qwen35": {"rope": "half", "network_norm": "post_attention_norm", "gated": True, "key_head": "in_turn"},
    "bailingmoe2": {"rope": "half", "choice": "stated", "shared_gate": False},
    # Keys and values follow from one short vector of a token.
    "deepseek2": {"rope": "pairs", "choice": "stated", "shared_gate": False},
    "qwen3next": {"rope": "half", "network_norm": "post_attention_norm", "gated": True, "key_head": "neighbours"},
    # A delta net with a decay for each column in layers that have its tensors; in the others latent attention, which knows no positions.
    "kimi-linear": {"rope": "pairs", "rotated": "never", "choice": "stated", "shared_gate": False},
}
# gpt-oss bounds gate and up projection by this.
BOUND = 7.0
# Llama 4's chunks, and how its queries grow: scale, positions of a step, and what is added to a position.
CHUNK = 8192
LLAMA4_GROWTH = (0.1, 8192, 1)
# The least divisor of the factors of experts.
LEAST_SUM = 2.0**-14
# Gemma 3n: the least mean square that a row is scaled by; standard deviations above the mean of gates where the file does not state them, which are those of
# a share of 0.95 in f32, and the first layers that have these; the first layers with keys and values of their own.
LEAST_SQUARE = 1e-5
DEVIATIONS, CUT_LAYERS, OWN_LAYERS = 1.6448533535003662, 10, 20
# Gemma 3 with this many layers (27B) scales scores by sqrt(width / heads) instead of sqrt(head size).
GEMMA3_27B_LAYERS = 62


def silu(x):
    return x / (1 + np.exp(-x))


def gelu(x):
    """The tanh form, which Gemma is defined with."""
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def clamped(gate, up):
    gate, up = np.minimum(gate, BOUND), np.clip(up, -BOUND, BOUND)
    return gate * sigmoid(1.702 * gate) * (up + 1)


def yarn(theta, factor, context, base, rotated, fast=32.0, slow=1.0):
    """Pairs that turn more than `fast` times within `context` are kept, those below `slow` turns are divided by `factor`."""
    at = lambda turns: rotated * np.log(context / (turns * 2 * np.pi)) / (2 * np.log(base))
    low, high = max(np.floor(at(fast)), 0), min(np.ceil(at(slow)), rotated - 1)
    ramp = np.clip((np.arange(rotated // 2) - low) / max(high - low, 0.001), 0, 1)
    return theta / factor * ramp + theta * (1 - ramp)


def log_softmax(x):
    x = x - x.max(axis=-1, keepdims=True)
    return x - np.log(np.exp(x).sum(axis=-1, keepdims=True))


class Model:
    """A model with its weights as f64. `context` is the allocated context: it picks Phi-3's RoPE factors."""

    def __init__(self, path, context=None):
        file = Gguf(path)
        meta, arch = file.meta, file.meta["general.architecture"]
        key = lambda name, default=None: meta.get(f"{arch}.{name}", default)
        self.arch, self.rule, self.meta, self.file = arch, ARCHITECTURES[arch], meta, file
        self.layers = key("block_count") - key("nextn_predict_layers", 0)
        self.width = key("embedding_length")
        # Of each layer.
        of_layers = lambda value: value if isinstance(value, list) else [value] * self.layers
        self.heads = of_layers(key("attention.head_count"))
        self.kv_heads = of_layers(key("attention.head_count_kv", self.heads))
        self.used, self.normalised = key("expert_used_count", 0), self.rule.get("normalised", True)
        self.eps = key("attention.layer_norm_rms_epsilon", key("attention.layer_norm_epsilon"))
        self.window = key("attention.sliding_window", 0) if "window_period" in self.rule else 0
        period = self.rule.get("window_period")
        self.windowed = [bool(period) and number % period < period - 1 for number in range(self.layers)]
        if isinstance(key("attention.sliding_window_pattern"), list):
            self.windowed = key("attention.sliding_window_pattern")[: self.layers]
        head = key("attention.key_length") or self.width // max(self.heads)
        # Layers with a window may have heads of another length, of which they rotate another part.
        differ = lambda stated, windows: [windows if w else s for w, s in zip(self.windowed, of_layers(stated))]
        self.head = differ(head, key("attention.key_length_swa", head)) if self.window else of_layers(head)
        value = key("attention.value_length")
        of_windows = key("attention.value_length_swa", value)
        self.value = self.head if value is None else differ(value, of_windows) if self.window else of_layers(value)
        # The last layers read the keys and values of earlier ones.
        streams = self.rule.get("streams")
        own = self.layers - key("attention.shared_kv_layers", max(self.layers - OWN_LAYERS, 0) if streams else 0)
        last = lambda layer: max(other for other in range(own) if self.windowed[other] == self.windowed[layer])
        self.source = [layer if layer < own else last(layer) for layer in range(self.layers)]
        self.input_width = key("embedding_length_per_layer_input", 256 if streams else 0)
        # Residual streams of a token. Gates of a layer are cut at so many standard deviations above their mean, those of a sample.
        self.streams, self.sample, self.input_tokens = key("altup.num_inputs", 4) if streams else 1, 1, None
        cut = [DEVIATIONS if number < CUT_LAYERS else -np.inf for number in range(self.layers)]
        self.cut = key("activation_sparsity_scale", cut) if streams else [-np.inf] * self.layers
        self.attention_scale = key("attention.value_scale", 1) if arch == "mimo2" else 1
        self.trained_context = key("context_length")
        self.unrotated = [self.rule.get("rotated") == "but_fourth" and number % 4 == 3 for number in range(self.layers)]
        self.chunk, self.chunked, self.growth = None, None, None
        if self.rule.get("chunks"):
            if key("attention.sliding_window") == 0:
                self.unrotated = [False] * self.layers
            else:
                self.chunk, self.growth = CHUNK, LLAMA4_GROWTH
        elif scale := key("attention.temperature_scale", 0):
            of = "rope.scaling.original_context_length" if arch == "mistral3" else "attention.temperature_length"
            self.growth = (scale, key(of), 0)
        self.query_norm = self.rule.get("query_norm", "heads")
        if self.query_norm == "plain_rotated" and key("expert_count") == 128:
            self.query_norm = None
        # Factor on scores, if not that of the head's length.
        self.scale = key("attention.scale", self.rule.get("scale"))
        self.softcap = key("attn_logit_softcapping") if arch == "gemma2" else None
        self.logit_softcap = key("final_logit_softcapping", 30.0 if streams else None) if arch in ["gemma2", "gemma3n", "gemma4"] else None
        granite = arch.startswith("granite")
        self.embedding_scale = key("embedding_scale", 1) if granite else 1
        self.branch_scale = key("residual_scale", 1) if granite else 1
        self.logit_scale = key("logit_scale", 1) or 1
        self.logit_scale = 1 / self.logit_scale if granite else self.logit_scale
        self.expert_scale = key("expert_weights_scale", 1)
        # Experts are chosen from some of their groups only.
        self.groups, self.kept_groups = key("expert_group_count", 1), key("expert_group_used_count", 1)
        self.rank = key("attention.kv_lora_rank")
        if self.rank:
            self.kv_heads, self.head = self.heads, of_layers(key("attention.key_length_mla"))
        if arch in ["nemotron_h_moe", "glm4moe", "bailingmoe2", "deepseek2"]:
            self.normalised = key("expert_weights_norm", False)
        if arch == "gemma3" and self.layers == GEMMA3_27B_LAYERS:
            self.scale = 1 / np.sqrt(self.width / self.heads[0])

        load = lambda name: file.tensor(name).astype(np.float64) if name in file else None
        self.embedding = load("token_embd.weight")
        self.output_norm, self.output_norm_bias = load(self.rule.get("output_norm", "output_norm") + ".weight"), load("output_norm.bias")
        output = load("output.weight")
        self.output = self.embedding if output is None else output
        self.tables = [load(f"per_layer_{part}.weight") for part in ["token_embd", "model_proj", "proj_norm"]]
        self.split, self.join = load("altup_proj.weight"), load("altup_unembd_proj.weight")
        self.output_bias = load("output.bias") if "output.bias" in file else 0
        names = [n for n in file.infos if n.startswith("blk.")]
        self.blocks = [{} for _ in range(self.layers)]
        for name in names:
            _, number, part = name.split(".", 2)
            if int(number) < self.layers and part not in self.rule.get("unused", []):
                self.blocks[int(number)][part.removesuffix(".weight")] = load(name)

        if "output.scale" in file:
            self.output = self.output * load("output.scale")
        for block in self.blocks:
            self.apply_scales(block)

        full = self.windowed.index(False) if self.window else 0
        self.rotated = key("rope.dimension_count", self.head[full])
        angles = lambda base, rotated: base ** (-2.0 * np.arange(rotated // 2) / rotated)
        base = key("rope.freq_base", 10000.0)
        # Layers may rotate parts of their own.
        self.thetas = None
        if isinstance(self.rotated, list):
            self.thetas = [angles(base, rotated) for rotated in self.rotated]
            self.rotated = self.rotated[0]
        theta = angles(base, self.rotated)
        self.magnitude = 1.0
        if "rope_freqs.weight" in file:
            theta = theta / load("rope_freqs.weight")
        if "rope_factors_long.weight" in file:
            trained = key("rope.scaling.original_context_length", self.trained_context)
            long = (context or self.trained_context) > trained
            theta = theta / load(f"rope_factors_{'long' if long else 'short'}.weight")
            self.magnitude = key("rope.scaling.attn_factor", 1.0)
        if key("rope.scaling.type") == "linear":
            theta = theta / (key("rope.scaling.factor") or 1)
        if key("rope.scaling.type") == "yarn":
            factor, trained = key("rope.scaling.factor"), key("rope.scaling.original_context_length")
            theta = yarn(theta, factor, trained, base, self.rotated)
            multiplier = key("rope.scaling.yarn_log_multiplier")
            if self.rank:
                # DeepSeek 2 scales scores, not cosines and sines.
                scale = 1 + multiplier * np.log(factor)
                self.scale = scale**2 / np.sqrt(self.head[0])
            else:
                self.magnitude = (1 + 0.1 * np.log(factor)) / (1 + 0.1 * multiplier * np.log(factor))
        self.theta = theta
        # Layers with a window have a base of their own, and no scaling.
        window_rope = self.rule.get("window_rope", "own")
        if window_rope == "base":
            self.theta_window = angles(key("rope.freq_base_swa", base), self.rotated)
            self.reset()
            return
        self.theta_window = theta if window_rope == "same" else angles(base, self.rotated) if window_rope == "unscaled" else angles(key("rope.freq_base_swa", 10000.0), key("rope.dimension_count_swa", self.rotated))
        self.reset()

    def reset(self):
        """Forgets all positions."""
        self.keys = [np.zeros((0, kv_heads, head)) for kv_heads, head in zip(self.kv_heads, self.head)]
        lengths = [self.meta[f"{self.arch}.attention.value_length_mla"]] * self.layers if self.rank else self.value
        self.values = [np.zeros((0, kv_heads, length)) for kv_heads, length in zip(self.kv_heads, lengths)]
        # Of a delta net: inputs of the convolution, and a matrix for each head.
        self.inputs, self.matrices = [None] * self.layers, [None] * self.layers

    def apply_scales(self, block):
        """Multiplies matrices by the factors on their products; those of networks multiply biases, too."""
        for name in [name for name in block if name.endswith(".scale")]:
            label, scale = name.removesuffix(".scale"), block[name]
            if label == "ffn_gate_inp" and self.rule.get("beside"):
                # No factor: the weight of a norm.
                continue
            of_network = label.startswith("ffn_")
            if of_network and not self.rule.get("network_scales", True):
                continue
            block[label] = block[label] * (scale[:, None, None] if label.endswith("_exps") else scale)
            if of_network and label + ".bias" in block:
                block[label + ".bias"] = block[label + ".bias"] * scale

    def norm(self, x, block, name):
        return self.normed(x, block[name], block.get(name + ".bias"))

    def normed(self, x, weight, bias=None):
        """The model's kind of norm of each row."""
        if self.rule.get("norm") != "layer":
            return self.rms(x, weight)
        x = x - x.mean(axis=-1, keepdims=True)
        return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + self.eps) * weight + (0 if bias is None else bias)

    def rms(self, x, weight):
        return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + self.eps) * weight

    def rope(self, x, positions, theta):
        """Rotates [positions, heads, head]; elements that have no frequency stay."""
        angle = positions[:, None, None] * theta
        cos, sin = np.cos(angle) * self.magnitude, np.sin(angle) * self.magnitude
        n = 2 * len(theta)
        if self.rule["rope"] == "pairs":
            first, second = slice(0, n, 2), slice(1, n, 2)
        else:
            first, second = slice(0, n // 2), slice(n // 2, n)
        out = x.copy()
        out[..., first] = x[..., first] * cos - x[..., second] * sin
        out[..., second] = x[..., first] * sin + x[..., second] * cos
        return out

    def attention(self, number, block, h, positions):
        heads, kv_heads, length = self.heads[number], self.kv_heads[number], self.head[number]
        n, q_width, kv_width, value = len(h), heads * length, kv_heads * length, self.value[number]
        shares = self.source[number] != number
        if "attn_qkv" in block:
            joined = h @ block["attn_qkv"].T + block.get("attn_qkv.bias", 0)
            q, k, v = np.split(joined, [q_width, q_width + kv_width], axis=1)
        else:
            product = lambda part: h @ block[f"attn_{part}"].T + block.get(f"attn_{part}.bias", 0)
            q, k = product("q"), None if shares else product("k")
            v = k if shares or "attn_v" not in block else product("v")
        kind = self.query_norm if "attn_q_norm" in block or self.query_norm == "plain_rotated" else None
        if kind == "whole":
            q, k = self.rms(q, block["attn_q_norm"]), self.rms(k, block["attn_k_norm"])
        gate = None
        if self.rule.get("gated"):
            q, gate = np.split(q.reshape(n, heads, 2 * length), 2, axis=2)
        q = q.reshape(n, heads, length)
        if not shares:
            k = k.reshape(n, kv_heads, length)
            v = v.reshape(n, kv_heads, value)
        if kind == "heads":
            q, k = self.normed(q, block["attn_q_norm"]), None if shares else self.normed(k, block["attn_k_norm"])
        if self.rule.get("value_norm") and not shares:
            v = self.rms(v, 1)
        window = self.window if self.windowed[number] else 0
        theta = self.theta_window if window and "window_period" in self.rule else self.theta
        theta = self.thetas[number] if self.thetas else theta
        rotated = {None: True, "never": False, "windowed": window > 0, "but_fourth": not self.unrotated[number]}[self.rule.get("rotated")]
        if rotated:
            q, k = self.rope(q, positions, theta), None if shares else self.rope(k, positions, theta)
        if kind == "rotated":
            q, k = self.rms(q, block["attn_q_norm"]), self.rms(k, block["attn_k_norm"])
        if kind == "plain_rotated" and rotated:
            q, k = self.rms(q, 1), self.rms(k, 1)
        if not self.rule.get("chunks") or not rotated:
            q = self.grown(q, positions)
        out = self.attend(number, block, q, k, v, positions, window)
        if gate is not None:
            out = out * sigmoid(gate)
        out = out.reshape(n, heads * value) @ block["attn_output"].T
        return (out + block.get("attn_output.bias", 0)) * self.attention_scale

    def grown(self, q, positions):
        """Queries, [positions, heads, head], that grow with each so many positions."""
        if not self.growth:
            return q
        scale, length, offset = self.growth
        return q * (1 + scale * np.log(1 + np.floor((positions + offset) / length)))[:, None, None]

    def latent_attention(self, number, block, h, positions):
        """Of each token a short vector and a rotated part that all heads share."""
        n, heads, length, rank = len(h), self.heads[number], self.head[number], self.rank
        plain = length - self.rotated
        if "attn_q_a" in block:
            q = self.rms(h @ block["attn_q_a"].T, block["attn_q_a_norm"]) @ block["attn_q_b"].T
        else:
            q = h @ block["attn_q"].T
        q = q.reshape(n, heads, length)
        turn = (lambda x: x) if self.rule.get("rotated") == "never" else (lambda x: self.rope(x, positions, self.theta))
        q[..., plain:] = turn(q[..., plain:])
        q = self.grown(q, positions)
        both = h @ block["attn_kv_a_mqa"].T
        short = self.rms(both[:, :rank], block["attn_kv_a_norm"])
        turned = turn(both[:, None, rank:])
        k = np.stack([short @ of_head for of_head in block["attn_k_b"]], axis=1)
        k = np.concatenate([k, np.repeat(turned, heads, axis=1)], axis=2)
        v = np.stack([short @ of_head.T for of_head in block["attn_v_b"]], axis=1)
        out = self.attend(number, block, q, k, v, positions, 0)
        return out.reshape(n, -1) @ block["attn_output"].T

    def attend(self, number, block, q, k, v, positions, window):
        """Of each token and head the mean of values, [tokens, heads, length]. Keys and values are kept."""
        heads, kv_heads, n = self.heads[number], self.kv_heads[number], len(q)
        if k is not None:
            self.keys[number] = np.concatenate([self.keys[number], k])
            self.values[number] = np.concatenate([self.values[number], v])
        number = self.source[number]
        distance = positions[:, None] - np.arange(len(self.keys[number]))[None, :]
        visible = distance >= 0
        if window:
            visible &= distance < window
        # Layers that see the keys of a chunk.
        chunked = self.chunked[number] if self.chunked else not self.unrotated[number]
        if self.chunk and chunked:
            first = positions // self.chunk * self.chunk
            visible &= np.arange(visible.shape[1])[None, :] >= first[:, None]
        scale = self.scale or 1 / np.sqrt(q.shape[2])
        out = np.empty((n, heads, self.values[number].shape[2]))
        for head in range(heads):
            shared = head // (heads // kv_heads)
            scores = q[:, head] @ self.keys[number][:, shared].T * scale
            if self.softcap:
                scores = self.softcap * np.tanh(scores / self.softcap)
            scores = np.where(visible, scores, -np.inf)
            weights = np.exp(scores - scores.max(axis=1, keepdims=True))
            total = weights.sum(axis=1, keepdims=True)
            if "attn_sinks" in block:
                # One more logit without a key.
                total = total + np.exp(block["attn_sinks"][head] - scores.max(axis=1, keepdims=True))
            out[:, head] = weights / total @ self.values[number][:, shared]
        return out

    def delta_net(self, number, block, h):
        """Token by token: the state decays to S, and beta (v - S k) k^T is added."""
        key = lambda name: self.meta[f"{self.arch}.ssm.{name}"]
        heads, key_heads, dim, taps = (key(name) for name in ["time_step_rank", "group_count", "state_size", "conv_kernel"])
        if self.inputs[number] is None:
            self.inputs[number] = np.zeros((taps - 1, block["attn_qkv"].shape[0]))
            self.matrices[number] = np.zeros((heads, dim, dim))
        each = heads // key_heads
        of = (lambda head: head // each) if self.rule["key_head"] == "neighbours" else (lambda head: head % key_heads)
        if "ssm_ba" in block:
            both = (h @ block["ssm_ba"].T).reshape(len(h), key_heads, 2, each)
            beta, alpha = both[:, :, 0].reshape(len(h), heads), both[:, :, 1].reshape(len(h), heads)
        else:
            beta, alpha = h @ block["ssm_beta"].T, h @ block["ssm_alpha"].T
        beta = sigmoid(beta)
        decay = np.exp(block["ssm_a"] * np.log1p(np.exp(alpha + block["ssm_dt.bias"])))
        gate = silu(h @ block["attn_gate"].T).reshape(len(h), heads, dim)
        length = lambda x: x / np.sqrt((x * x).sum() + self.eps)
        out = np.empty((len(h), heads, dim))
        for row, new in enumerate(h @ block["attn_qkv"].T):
            seen = np.concatenate([self.inputs[number], new[None]])
            self.inputs[number] = seen[1:]
            mixed = silu((seen * block["ssm_conv1d"].T).sum(axis=0)).reshape(-1, dim)
            for head in range(heads):
                q, k = length(mixed[of(head)]), length(mixed[key_heads + of(head)])
                v, state = mixed[2 * key_heads + head], self.matrices[number][head] * decay[row, head]
                state = state + np.outer(k, beta[row, head] * (v - k @ state))
                self.matrices[number][head] = state
                out[row, head] = q @ state / np.sqrt(dim)
        out = self.rms(out, block["ssm_norm"]) * gate
        return out.reshape(len(h), -1) @ block["ssm_out"].T

    def kimi_delta(self, number, block, h):
        """As `delta_net`, with a convolution each for query, key and value, and a decay of each column of a state."""
        heads, dim = self.heads[number], self.meta[f"{self.arch}.kda.head_dim"]
        taps = [block[f"ssm_conv1d_{part}"].reshape(heads * dim, -1).T for part in "qkv"]
        if self.inputs[number] is None:
            self.inputs[number] = [np.zeros((len(taps[0]) - 1, heads * dim)) for _ in range(3)]
            self.matrices[number] = np.zeros((heads, dim, dim))
        beta = sigmoid(h @ block["ssm_beta"].T)
        steps = np.log1p(np.exp(h @ block["ssm_f_a"].T @ block["ssm_f_b"].T + block["ssm_dt.bias"]))
        decay = np.exp(steps.reshape(len(h), heads, dim) * block["ssm_a"].reshape(heads, 1))
        gate = sigmoid(h @ block["ssm_g_a"].T @ block["ssm_g_b"].T).reshape(len(h), heads, dim)
        length = lambda x: x / np.sqrt((x * x).sum() + self.eps)
        products = [h @ block[f"attn_{part}"].T for part in "qkv"]
        out = np.empty((len(h), heads, dim))
        for row in range(len(h)):
            mixed = []
            for part in range(3):
                seen = np.concatenate([self.inputs[number][part], products[part][row : row + 1]])
                self.inputs[number][part] = seen[1:]
                mixed.append(silu((seen * taps[part]).sum(axis=0)).reshape(heads, dim))
            for head in range(heads):
                q, k, v = length(mixed[0][head]), length(mixed[1][head]), mixed[2][head]
                state = self.matrices[number][head] * decay[row, head][:, None]
                state = state + np.outer(k, beta[row, head] * (v - k @ state))
                self.matrices[number][head] = state
                out[row, head] = q @ state / np.sqrt(dim)
        out = self.rms(out, block["ssm_norm"]) * gate
        return out.reshape(len(h), -1) @ block["attn_output"].T

    def scan(self, number, block, h):
        """Mamba 2, token by token: the state decays, and what is written is added."""
        key = lambda name: self.meta[f"{self.arch}.ssm.{name}"]
        heads, groups, size, taps, inner = (
            key(name) for name in ["time_step_rank", "group_count", "state_size", "conv_kernel", "inner_size"]
        )
        channels, dim = inner + 2 * groups * size, inner // heads
        if self.inputs[number] is None:
            self.inputs[number] = np.zeros((taps - 1, channels))
            self.matrices[number] = np.zeros((heads, dim, size))
        all = h @ block["ssm_in"].T
        gate, steps = silu(all[:, :inner]), np.log1p(np.exp(all[:, inner + channels :] + block["ssm_dt.bias"]))
        out = np.empty((len(h), heads, dim))
        for row, new in enumerate(all[:, inner : inner + channels]):
            seen = np.concatenate([self.inputs[number], new[None]])
            self.inputs[number] = seen[1:]
            mixed = silu((seen * block["ssm_conv1d"].T).sum(axis=0) + block["ssm_conv1d.bias"])
            x = mixed[:inner].reshape(heads, dim)
            written, read = mixed[inner:].reshape(2, groups, size)
            for head in range(heads):
                group, step = head // (heads // groups), steps[row, head]
                state = self.matrices[number][head] * np.exp(step * block["ssm_a"][head])
                state = state + np.outer(x[head] * step, written[group])
                self.matrices[number][head] = state
                out[row, head] = state @ read[group] + block["ssm_d"][head] * x[head]
        out = out.reshape(len(h), inner) * gate
        if "ssm_norm" in block:
            out = self.rms(out.reshape(len(h), groups, -1), block["ssm_norm"]).reshape(len(h), inner)
        return out @ block["ssm_out"].T

    def short_conv(self, number, block, h):
        """The convolution of b * u, times c."""
        b, c, u = np.split(h @ block["shortconv.in_proj"].T, 3, axis=1)
        taps = block["shortconv.conv"].T
        before = np.zeros((len(taps) - 1, self.width)) if self.inputs[number] is None else self.inputs[number]
        seen = np.concatenate([before, b * u])
        self.inputs[number] = seen[len(h) :]
        convolved = np.stack([(seen[row : row + len(taps)] * taps).sum(axis=0) for row in range(len(h))])
        return (c * convolved) @ block["shortconv.out_proj"].T

    def beside(self, block, x):
        """The network and the experts, each with norms of its own; the router has another."""
        network = self.rms(self.network(block, self.rms(x, block["ffn_norm"])), block["post_ffw_norm_1"])
        routed = self.rms(x, block["ffn_gate_inp.scale"]) / np.sqrt(self.width)
        experts = self.experts(block, self.rms(x, block["pre_ffw_norm_2"]), routed)
        return network + self.rms(experts, block["post_ffw_norm_2"])

    def experts(self, block, h, routed=None):
        """Each row through the experts with the largest scores; with `normalised` their factors sum up to 1."""
        scores = (h if routed is None else routed) @ block["ffn_gate_inp"].T + block.get("ffn_gate_inp.bias", 0)
        choice = self.rule.get("choice", "softmax")
        if choice == "stated":
            choice = {1: "softmax", 2: "sigmoid"}[self.meta[f"{self.arch}.expert_gating_func"]]
        shares = {"softmax": np.exp(log_softmax(scores)), "sigmoid": sigmoid(scores)}.get(choice, scores)
        out = np.zeros_like(h)
        biases = lambda part, expert: block[f"ffn_{part}_exps.bias"][expert] if f"ffn_{part}_exps.bias" in block else 0
        for row, share in enumerate(shares):
            order = share + block.get("exp_probs_b.bias", 0)
            if self.groups > 1:
                groups = order.reshape(self.groups, -1)
                best = np.sort(groups, axis=1)[:, -2:].sum(axis=1)
                groups[np.argsort(-best, kind="stable")[self.kept_groups :]] = -np.inf
                order = groups.reshape(-1)
            chosen = np.argsort(-order, kind="stable")[: self.used]
            factors = np.exp(log_softmax(share[chosen])) if choice == "chosen" else share[chosen]
            if choice == "on_input":
                for expert in chosen:
                    seen = sigmoid(share[expert]) * h[row]
                    inner = silu(block["ffn_gate_exps"][expert] @ seen) * (block["ffn_up_exps"][expert] @ seen)
                    out[row] += block["ffn_down_exps"][expert] @ inner
                continue
            if self.normalised:
                factors = factors / max(factors.sum(), LEAST_SUM)
            for expert, factor in zip(chosen, factors * self.expert_scale):
                if "ffn_gate_exps" not in block and "ffn_gate_up_exps" not in block:
                    inner = np.maximum(block["ffn_up_exps"][expert] @ h[row], 0) ** 2
                    out[row] += factor * (block["ffn_down_exps"][expert] @ inner)
                    continue
                if "ffn_gate_up_exps" in block:
                    gate, up = np.split(block["ffn_gate_up_exps"][expert] @ h[row], 2)
                else:
                    gate, up = (block[f"ffn_{part}_exps"][expert] @ h[row] + biases(part, expert) for part in ["gate", "up"])
                activation = gelu if self.rule.get("gate") == "gelu" else silu
                inner = clamped(gate, up) if self.rule.get("gate") == "clamped" else activation(gate) * up
                result = block["ffn_down_exps"][expert] @ inner + biases("down", expert)
                out[row] += factor * result
        if "ffn_up_shexp" in block and "ffn_gate_shexp" not in block:
            out += np.maximum(h @ block["ffn_up_shexp"].T, 0) ** 2 @ block["ffn_down_shexp"].T
        elif "ffn_up_shexp" in block:
            gate, up = h @ block["ffn_gate_shexp"].T, h @ block["ffn_up_shexp"].T
            result = (silu(gate) * up) @ block["ffn_down_shexp"].T
            if self.rule.get("shared_gate", True):
                result *= sigmoid(h @ block["ffn_gate_inp_shexp"].reshape(-1))[:, None]
            out += result
        return out

    def coefficients(self, block, x):
        """Of each row, from a norm over the width."""
        return np.tanh(self.rms(x, block["altup_router_norm"]) / self.width @ block["altup_router"].T)

    def stream_layer(self, number, block, streams, positions, inputs):
        """All streams [streams, tokens, width] are predicted, the first one is computed with, and all are corrected by what came of it."""
        count = len(streams)
        mixture = (self.coefficients(block, streams[0]) @ block["altup_predict_coef"].T).reshape(-1, count, count)
        predicted = streams + np.einsum("tij,jtw->itw", mixture, streams)
        x = predicted[0]
        h = self.rms(x, block["attn_norm"])
        low = h + self.rms(h @ block["laurel_l"].T @ block["laurel_r"].T, block["laurel_post_norm"])
        attended = x + self.rms(self.attention(number, block, h, positions), block["post_attention_norm"])
        both = (attended + low) / np.sqrt(2)
        out = both + self.rms(self.network(block, self.rms(both, block["ffn_norm"]), self.cut[number]), block["post_ffw_norm"])
        parts = 1 + self.coefficients(block, out) @ block["altup_correct_coef"].T
        corrected = predicted + parts.T[:, :, None] * (out - x)
        gate = gelu((corrected[0] * block["altup_correct_scale"]) @ block["inp_gate"].T)
        corrected[1:] += self.rms((gate * inputs[:, number]) @ block["proj"].T, block["post_norm"])
        return corrected

    def as_long_as(self, x, like):
        """Rows of x with the root mean square of those of `like`."""
        square = np.maximum((x * x).mean(axis=-1, keepdims=True), LEAST_SQUARE)
        return x * np.sqrt((like * like).mean(axis=-1, keepdims=True) / square)

    def stream_layers(self, x, positions, inputs):
        """Streams of the embedding through all layers, and their mean."""
        streams = np.stack([x] + [self.as_long_as(x @ matrix.T, x) for matrix in self.split])
        for number, block in enumerate(self.blocks):
            streams = self.stream_layer(number, block, streams, positions, inputs)
        first = streams[0]
        return (first + sum(self.as_long_as(x @ matrix.T, first) for x, matrix in zip(streams[1:], self.join))) / len(streams)

    def feed_forward(self, block, h):
        if "ffn_gate_inp" in block:
            return self.experts(block, h)
        return self.network(block, h)

    def network(self, block, h, cut=-np.inf):
        if self.rule.get("gate") == "relu_squared":
            return np.maximum(h @ block["ffn_up"].T, 0) ** 2 @ block["ffn_down"].T
        if self.rule.get("gate") == "plain":
            inner = gelu(h @ block["ffn_up"].T + block["ffn_up.bias"])
            return inner @ block["ffn_down"].T + block["ffn_down.bias"]
        if "ffn_gate" in block:
            gate, up = (h @ block[f"ffn_{part}"].T + block.get(f"ffn_{part}.bias", 0) for part in ["gate", "up"])
        else:
            gate, up = np.split(h @ block["ffn_up"].T + block.get("ffn_up.bias", 0), 2, axis=1)
        if cut > -np.inf:
            gate = np.maximum(gate - gate.mean(axis=1, keepdims=True) - cut * gate.std(axis=1, keepdims=True, ddof=self.sample), 0)
        activation = gelu if self.rule.get("gate") == "gelu" else silu
        return (activation(gate) * up) @ block["ffn_down"].T + block.get("ffn_down.bias", 0)

    def forward(self, ids):
        """Appends `ids` to the sequence; returns the normed hidden state of each, [ids, width]."""
        # Layers without attention keep no keys.
        start = max(len(keys) for keys in self.keys)
        positions = np.arange(start, start + len(ids), dtype=np.float64)
        x = self.embedding[np.asarray(ids)]
        if self.rule.get("embedding_scale"):
            x = x * np.sqrt(self.width)
        x = x * self.embedding_scale
        inputs = self.layer_inputs(ids, x) if self.input_width else None
        if self.streams > 1:
            return self.normed(self.stream_layers(x, positions, inputs), self.output_norm)
        network_norm = self.rule.get("network_norm", "ffn_norm")
        for number, block in enumerate(self.blocks):
            first = self.norm(x, block, "attn_norm") if "attn_norm" in block else x
            has = lambda *names: any(name in block for name in names)
            if not has("attn_output", "ssm_out", "shortconv.out_proj"):
                # A network alone.
                x = x + self.feed_forward(block, first)
                continue
            if "ssm_in" in block:
                out = self.scan(number, block, first)
                if self.rule.get("beside_scan"):
                    out = out + self.attention(number, block, first, positions)
            elif "ssm_f_a" in block:
                out = self.kimi_delta(number, block, first)
            elif "ssm_a" in block:
                out = self.delta_net(number, block, first)
            elif "shortconv.conv" in block:
                out = self.short_conv(number, block, first)
            elif self.rank:
                out = self.latent_attention(number, block, first, positions)
            else:
                out = self.attention(number, block, first, positions)
            if not has("ffn_up", "ffn_gate_inp"):
                x = x + out
                continue
            if network_norm not in block and network_norm is not None:
                # Both branches see the same rows.
                x = x + out + self.feed_forward(block, first)
                continue
            if "post_attention_norm" in block and network_norm != "post_attention_norm":
                out = self.rms(out, block["post_attention_norm"])
            x = x + self.branch_scale * out
            if self.rule.get("beside") and "ffn_gate_inp" in block:
                out = self.beside(block, x)
            else:
                out = self.feed_forward(block, self.norm(x, block, network_norm) if network_norm else x)
            if "post_ffw_norm" in block:
                out = self.rms(out, block["post_ffw_norm"])
            x = x + self.branch_scale * out
            if self.input_width:
                out = (gelu(x @ block["inp_gate"].T) * inputs[:, number]) @ block["proj"].T
                x = x + self.rms(out, block["post_norm"])
            x = x * block.get("layer_output_scale", 1)
        return self.normed(x, self.output_norm, self.output_norm_bias)

    def layer_inputs(self, ids, x):
        """What each layer is given beside the residual stream, [ids, layers, length]."""
        table, projection, norm = self.tables
        rows = np.asarray(ids)
        if self.input_tokens:
            # The table has fewer rows than the vocabulary: the others have the first one's.
            rows = np.where(rows < self.input_tokens, rows, 0)
        of_ids = table[rows].reshape(len(ids), self.layers, self.input_width) * np.sqrt(self.input_width)
        projected = (x @ projection.T).reshape(of_ids.shape) / np.sqrt(self.width)
        return (of_ids + self.rms(projected, norm)) / np.sqrt(2)

    def logits(self, hidden):
        """[n, width] -> [n, vocabulary]."""
        logits = (hidden @ self.output.T + self.output_bias) * self.logit_scale
        return self.logit_softcap * np.tanh(logits / self.logit_softcap) if self.logit_softcap else logits

    def greedy(self, ids, count):
        """The first step's logits, and of each step the chosen id and how far the second best logit is below it."""
        self.reset()
        step, chosen, gaps, first = list(ids), [], [], None
        for _ in range(count):
            logits = self.logits(self.forward(step)[-1:])[0]
            first = logits if first is None else first
            second, best = np.sort(logits)[-2:]
            chosen.append(int(np.argmax(logits)))
            gaps.append(float(best - second))
            step = chosen[-1:]
        return first, chosen, gaps

    def score(self, ids, block=64):
        """Hidden states; of each position the NLL of the next id (NaN at the last), the best id and the gap of the two
        best logits; the last position's logits."""
        self.reset()
        hidden = self.forward(ids)
        nll, best, gaps = [], [], []
        for begin in range(0, len(ids), block):
            logits = self.logits(hidden[begin : begin + block])
            top = np.partition(logits, -2, axis=1)[:, -2:]
            best += logits.argmax(axis=1).tolist()
            gaps += (top[:, 1] - top[:, 0]).tolist()
            logs = log_softmax(logits)
            following = ids[begin + 1 : begin + 1 + len(logits)]
            nll += (-logs[np.arange(len(following)), following]).tolist()
        return hidden, np.array(nll + [np.nan]), best, gaps, logits[-1]
