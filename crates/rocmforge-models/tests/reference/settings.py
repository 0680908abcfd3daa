"""Writes settings.json: what the f64 forward gives for the tiny models under settings that only a config.json has.

The rules are computed here from their definitions: linear, YaRN (Peng et al. 2023), Llama 3's divisors, windows of the layers that a model_type
gives one to, and a tied output matrix beside another one in the file. The Rust tests write each model as a directory with `config` over its own
settings; null takes a setting out.
"""

from statistics import NormalDist

import numpy as np

import forward
from forward import Model, log_softmax
from tiny import HERE, of_logs, token_ids, write_results


def base(model, theta):
    model.theta = theta ** (-2.0 * np.arange(model.rotated // 2) / model.rotated)


def linear(theta, factor):
    def change(model):
        base(model, theta)
        model.theta = model.theta / factor

    return change


def llama3(theta, factor, low, high, context):
    """A wavelength above context/low is stretched by `factor`, one below context/high is kept, those between are mixed."""

    def change(model):
        base(model, theta)
        scaled = []
        for frequency in model.theta:
            turns = context * frequency / (2 * np.pi)
            smooth = min(1.0, max(0.0, (turns - low) / (high - low)))
            scaled.append((1 - smooth) * frequency / factor + smooth * frequency)
        model.theta = np.array(scaled)

    return change


def yarn(theta, factor, context, magnitude, fast=32.0, slow=1.0):
    def change(model):
        base(model, theta)
        model.theta = forward.yarn(model.theta, factor, context, theta, model.rotated, fast, slow)
        model.magnitude = magnitude

    return change


def window(length, first=0):
    def change(model):
        model.window = length
        model.windowed = [number >= first for number in range(model.layers)]

    return change


def tied(model):
    model.output = model.embedding


def local_base(theta):
    def change(model):
        model.theta_window = theta ** (-2.0 * np.arange(model.rotated // 2) / model.rotated)

    return change


def both(*changes):
    def change(model):
        for one in changes:
            one(model)

    return change


def plain_shares(model):
    model.normalised = False


def more_experts(used):
    return lambda model: setattr(model, "used", used)


def cut_at(*shares):
    """Gates are cut where so large a share of a normal distribution lies, with the deviation of all gates."""

    def change(model):
        model.cut = [NormalDist().inv_cdf(share) if share else -np.inf for share in shares]
        model.sample = 0

    return change


def fewer_inputs(tokens):
    return lambda model: setattr(model, "input_tokens", tokens)


def score_divisor(value):
    return lambda model: setattr(model, "scale", 1 / np.sqrt(value))


def chunks(length, growth=forward.LLAMA4_GROWTH, unrotated=None):
    def change(model):
        model.chunk, model.growth = length, growth
        model.unrotated = unrotated or model.unrotated

    return change


def without_query_norm(model):
    model.query_norm = None


YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}

# Name, model, allocated context, settings over those of the model, and the change of the forward that they stand for.
CASES = [
    ("linear", "llama", None, {"rope_scaling": {"type": "linear", "factor": 4.0}}, linear(10000.0, 4.0)),
    ("llama3", "llama", None, {"rope_scaling": LLAMA3}, llama3(10000.0, 8.0, 1.0, 4.0, 64)),
    ("yarn", "qwen2", None, {"rope_scaling": YARN}, yarn(2000.0, 4.0, 64, 0.1 * np.log(4.0) + 1)),
    (
        "yarn with a factor on cosines",
        "qwen2",
        None,
        {"rope_scaling": YARN | {"attention_factor": 1.25, "beta_fast": 8.0, "beta_slow": 2.0}},
        yarn(2000.0, 4.0, 64, 1.25, 8.0, 2.0),
    ),
    (
        "yarn with two scales",
        "qwen2",
        None,
        {"rope_scaling": YARN | {"mscale": 1.5, "mscale_all_dim": 0.5}},
        yarn(2000.0, 4.0, 64, (0.15 * np.log(4.0) + 1) / (0.05 * np.log(4.0) + 1)),
    ),
    ("mistral", "llama", None, {"model_type": "mistral", "sliding_window": 16}, window(16)),
    ("phi3 with a window", "phi3", 256, {"sliding_window": 16}, window(16)),
    (
        "qwen2 with a window",
        "qwen2",
        None,
        {"use_sliding_window": True, "sliding_window": 16, "max_window_layers": 1},
        window(16, 1),
    ),
    ("tied", "llama", None, {"tie_word_embeddings": True}, tied),
    ("qwen3moe with plain shares", "qwen3moe", None, {"norm_topk_prob": False}, plain_shares),
    ("qwen3moe with other experts", "qwen3moe", None, {"num_experts_per_tok": 4}, more_experts(4)),
    ("llama4 with chunks", "llama4", None, {"attention_chunk_size": 16}, chunks(16)),
    (
        "llama4 with chunks and growth",
        "llama4",
        None,
        {"attention_chunk_size": 32, "attn_temperature_tuning": 4, "attn_scale": 0.5, "floor_scale": 7},
        chunks(32, (0.5, 7, 1)),
    ),
    (
        "llama4 with other layers without rotary embedding",
        "llama4",
        None,
        {"attention_chunk_size": 16, "no_rope_layers": [1, 0, 1, 0], "attn_scale": 0.5, "floor_scale": 7},
        chunks(16, (0.5, 7, 1), [False, True, False, True]),
    ),
    (
        "llama4 with growth alone",
        "llama4",
        None,
        {"attention_chunk_size": None, "no_rope_layer_interval": 2, "attn_scale": 0.5, "floor_scale": 7},
        chunks(None, (0.5, 7, 1), [False, True, False, True]),
    ),
    (
        "llama4 with chunks of listed layers",
        "llama4",
        None,
        {
            "attention_chunk_size": 16,
            "no_rope_layers": [],
            "layer_types": ["full_attention", "chunked_attention", "chunked_attention", "full_attention"],
            "attn_temperature_tuning": False,
            "use_qk_norm": False,
        },
        both(
            chunks(16, None),
            lambda model: setattr(model, "chunked", [False, True, True, False]),
            without_query_norm,
        ),
    ),
    (
        "ministral3",
        "mistral3",
        None,
        {
            "rope_scaling": {
                "type": "yarn",
                "factor": 2.0,
                "original_max_position_embeddings": 6,
                "mscale": 1.0,
                "mscale_all_dim": 1.0,
                "llama_4_scaling_beta": 0.25,
                "max_position_embeddings": 512,
            }
        },
        both(yarn(10000.0, 2.0, 6, 1.0), lambda model: setattr(model, "growth", (0.25, 6, 0))),
    ),
    (
        "gemma3 with other bases",
        "gemma3-linear",
        None,
        {"rope_theta": 500.0, "rope_local_base_freq": 300.0, "query_pre_attn_scalar": 24},
        both(linear(500.0, 8.0), local_base(300.0), score_divisor(24)),
    ),
    (
        "gemma3n",
        "gemma3n",
        None,
        {"activation_sparsity_pattern": [0.9, 0.7, 0.0, 0.8, 0.0, 0.25], "vocab_size_per_layer_input": 200},
        both(cut_at(0.9, 0.7, 0, 0.8, 0, 0.25), fewer_inputs(200)),
    ),
    (
        "gemma3n without cut gates",
        "gemma3n",
        None,
        {"activation_sparsity_pattern": [0.0] * 6, "final_logit_softcapping": 8.0, "rms_norm_eps": 1e-4},
        both(cut_at(0, 0, 0, 0, 0, 0), lambda model: model.__dict__.update(logit_softcap=8.0, eps=1e-4)),
    ),
]


def main():
    results = []
    for name, file, context, config, change in CASES:
        model = Model(HERE / "tiny" / f"{file}.gguf", context)
        ids = token_ids(file)
        plain = log_softmax(model.logits(model.forward(ids)))
        model.reset()
        change(model)
        logs = log_softmax(model.logits(model.forward(ids)))
        results.append(
            {
                "name": name,
                "file": f"{file}.gguf",
                "context": context,
                "config": config,
                **of_logs(logs, ids),
            }
        )
        print(f"{name:32} moves a log-probability by up to {np.abs(logs - plain).max():.1e}", flush=True)
    write_results("settings.json", results)


if __name__ == "__main__":
    main()
