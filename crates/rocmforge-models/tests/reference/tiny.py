"""Writes tiny models with random weights to tiny/*.gguf, and what the f64 forward gives for them to tiny.json.

Each model has a few hundred thousand bytes: one to seven layers, 320 tokens. Weights are normal with deviation
1.5/sqrt(inputs), norm weights 1 + 0.3 n. The seed is the file's name, so that a new model changes no other.
"""

import json
import pathlib
import re
import sys
import zlib

import gguf
import numpy as np

from forward import Model, log_softmax

HERE = pathlib.Path(__file__).parent
VOCABULARY = 320
TOKENS = 40
# Tokens at the end of the vocabulary that are no text.
CONTROLS = ["<unk>", "<bos>", "<eos>", "<pad>"]

# Sizes: width, layers, heads, KV heads, head (elements of one head), ff (hidden width of the feed-forward part).
SMALL = {"width": 48, "layers": 2, "heads": 3, "kv_heads": 1, "head": 16, "ff": 64}
BLOCKS_256 = {"width": 256, "layers": 1, "heads": 2, "kv_heads": 1, "head": 32, "ff": 256}
SCAN = {
    "ssm.conv_kernel": 4,
    "ssm.inner_size": 24,
    "ssm.state_size": 5,
    "ssm.time_step_rank": 4,
    "ssm.group_count": 2,
}
GEMMA4 = {
    "attention.sliding_window": 12,
    "attention.key_length": 16,
    "attention.value_length": 16,
    "attention.key_length_swa": 8,
    "attention.value_length_swa": 8,
    "rope.freq_base": 1000.0,
    "rope.freq_base_swa": 100.0,
    "rope.dimension_count": 16,
    "rope.dimension_count_swa": 8,
    "final_logit_softcapping": 5.0,
}
GEMMA = {"width": 24, "layers": 7, "heads": 2, "kv_heads": 1, "head": 16, "ff": 40, "tied": True}

DELTA_NET = {
    "rope.dimension_count": 4,
    "rope.dimension_sections": [1, 1, 0, 0],
    "full_attention_interval": 3,
    "ssm.conv_kernel": 4,
    "ssm.group_count": 2,
    "ssm.time_step_rank": 4,
    "ssm.state_size": 8,
    "ssm.inner_size": 32,
}

# Latent attention without a vector for queries, and experts.
LATENT = {
    "attention.q_lora_rank": 0,
    "attention.kv_lora_rank": 16,
    "attention.key_length": 24,
    "attention.value_length": 16,
    "attention.key_length_mla": 14,
    "attention.value_length_mla": 12,
    "rope.dimension_count": 8,
    "expert_count": 5,
    "expert_used_count": 2,
    "expert_feed_forward_length": 24,
    "expert_shared_count": 1,
    "expert_gating_func": 1,
}

# arch; sizes; weights (type of the matrices, f32 if absent); tied; metadata (further keys of the architecture).
# contexts: the allocated contexts for which results are written (only Phi-3's results depend on it).
MODELS = {
    "llama": {
        "arch": "llama",
        "sizes": {"width": 32, "layers": 2, "heads": 4, "kv_heads": 4, "head": 8, "ff": 48},
    },
    "llama-layers": {
        "arch": "llama",
        "sizes": {"width": 32, "layers": 3, "heads": [4, 2, 6], "kv_heads": [2, 2, 1], "head": 8, "ff": [48, 24, 40]},
    },
    "llama-heads": {
        "arch": "llama",
        "sizes": {"width": 32, "layers": 3, "heads": [4, 2, 3], "kv_heads": [2, 2, 1], "head": [8, 16, 24], "ff": 48},
        "metadata": {"rope.dimension_count": [6, 12, 18]},
    },
    "llama-gqa-freqs": {
        "arch": "llama",
        "sizes": SMALL | {"tied": True},
        "metadata": {"rope.freq_base": 500.0},
        "rope_freqs": True,
    },
    "llama-biases": {"arch": "llama", "sizes": SMALL, "bias": True, "biases": True},
    "llama-fused-biases": {"arch": "llama", "sizes": SMALL, "bias": True, "biases": True, "fused": True},
    "llama-scales": {"arch": "llama", "sizes": SMALL | {"tied": True}, "bias": True, "biases": True, "scales": True},
    "llama-fused-scales": {"arch": "llama", "sizes": SMALL, "bias": True, "fused": True, "scales": True},
    "llama-experts": {
        "arch": "llama",
        "sizes": {"width": 32, "layers": 2, "heads": 4, "kv_heads": 2, "head": 8, "ff": 48},
        "metadata": {"rope.freq_base": 2000.0, "expert_count": 5, "expert_used_count": 2},
    },
    "llama-experts-joined": {
        "arch": "llama",
        "sizes": {"width": 32, "layers": 2, "heads": 4, "kv_heads": 2, "head": 8, "ff": 24},
        "metadata": {"expert_count": 4, "expert_used_count": 3},
        "biases": True,
        "joined_experts": True,
    },
    "llama-f16": {"arch": "llama", "sizes": SMALL | {"tied": True}, "weights": "f16"},
    "llama-bf16": {"arch": "llama", "sizes": SMALL | {"tied": True}, "weights": "bf16"},
    "llama-q8_0": {
        "arch": "llama",
        "sizes": {"width": 64, "layers": 2, "heads": 4, "kv_heads": 2, "head": 16, "ff": 96, "tied": True},
        "weights": "q8_0",
    },
    "llama-q4_k": {"arch": "llama", "sizes": BLOCKS_256 | {"tied": True}, "weights": "q4_k"},
    "llama-q6_k": {"arch": "llama", "sizes": BLOCKS_256 | {"tied": True}, "weights": "q6_k"},
    "qwen2": {
        "arch": "qwen2",
        "sizes": SMALL | {"tied": True},
        "metadata": {"rope.freq_base": 2000.0},
        "bias": True,
    },
    "qwen2moe": {
        "arch": "qwen2moe",
        "sizes": {"width": 48, "layers": 2, "heads": 3, "kv_heads": 1, "head": 16, "ff": 64},
        "metadata": {
            "rope.freq_base": 2000.0,
            "expert_count": 6,
            "expert_used_count": 3,
            "expert_feed_forward_length": 24,
            "expert_shared_feed_forward_length": 40,
        },
        "bias": True,
    },
    "qwen3": {
        "arch": "qwen3",
        "sizes": {"width": 32, "layers": 2, "heads": 3, "kv_heads": 1, "head": 24, "ff": 64, "tied": True},
        "metadata": {"rope.freq_base": 2000.0},
        "qk_norm": True,
    },
    "qwen3moe": {
        "arch": "qwen3moe",
        "sizes": {"width": 32, "layers": 2, "heads": 3, "kv_heads": 1, "head": 24, "ff": 64},
        "metadata": {
            "rope.freq_base": 2000.0,
            "expert_count": 6,
            "expert_used_count": 2,
            "expert_feed_forward_length": 40,
        },
        "qk_norm": True,
    },
    "qwen3moe-q8_0": {
        "arch": "qwen3moe",
        "sizes": {"width": 64, "layers": 2, "heads": 2, "kv_heads": 2, "head": 32, "ff": 64, "tied": True},
        "metadata": {"expert_count": 5, "expert_used_count": 3, "expert_feed_forward_length": 32},
        "weights": "q8_0",
        "qk_norm": True,
    },
    "qwen3moe-scales": {
        "arch": "qwen3moe",
        "sizes": {"width": 32, "layers": 2, "heads": 3, "kv_heads": 1, "head": 24, "ff": 64},
        "metadata": {"expert_count": 6, "expert_used_count": 2, "expert_feed_forward_length": 40},
        "qk_norm": True,
        "scales": True,
    },
    "qwen2-unused-scales": {
        "arch": "qwen2",
        "sizes": SMALL | {"tied": True},
        "bias": True,
        "scales": True,
    },
    "phi3": {
        "arch": "phi3",
        "sizes": {"width": 32, "layers": 2, "heads": 4, "kv_heads": 2, "head": 8, "ff": 48},
        "metadata": {
            # Fewer than the head has, as in Phi-4-mini.
            "rope.dimension_count": 6,
            "rope.scaling.original_context_length": 300,
            "rope.scaling.attn_factor": 1.19,
            # llama.cpp wants it to be there, and does not use it.
            "attention.sliding_window": 16,
        },
        "fused": True,
        "longrope": True,
        "contexts": [256, 512],
    },
    "gemma3": {
        "arch": "gemma3",
        "sizes": GEMMA,
        "metadata": {"rope.freq_base": 1000.0, "attention.sliding_window": 16},
        "qk_norm": True,
        "post_norms": True,
    },
    "gemma3-heads": {
        "arch": "gemma3",
        # Layer 5 has no window.
        "sizes": GEMMA | {"head": [8, 8, 8, 8, 8, 16, 8]},
        "metadata": {
            "rope.freq_base": 1000.0,
            "attention.sliding_window": 16,
            "attention.key_length": 16,
            "attention.value_length": 16,
            "attention.key_length_swa": 8,
            "attention.value_length_swa": 8,
            "rope.dimension_count": 12,
            "rope.dimension_count_swa": 6,
        },
        "qk_norm": True,
        "post_norms": True,
    },
    "gemma3-linear": {
        "arch": "gemma3",
        "sizes": GEMMA,
        "metadata": {
            "rope.freq_base": 1000.0,
            "attention.sliding_window": 16,
            "rope.scaling.type": "linear",
            "rope.scaling.factor": 8.0,
        },
        "qk_norm": True,
        "post_norms": True,
    },
    # Every second layer has a window; five experts of which two are chosen.
    "gpt-oss": {
        "arch": "gpt-oss",
        "weights": "f16",
        "sizes": {"width": 32, "layers": 3, "heads": 4, "kv_heads": 2, "head": 16, "ff": 24},
        "metadata": {
            "rope.freq_base": 2000.0,
            "attention.sliding_window": 12,
            "expert_count": 5,
            "expert_used_count": 2,
            "expert_feed_forward_length": 24,
        },
        "bias": True,
        "norms": ["attn_norm", "post_attention_norm"],
        "output_bias": True,
        "router_bias": True,
        "expert_biases": True,
        "sinks": True,
    },
    "gemma2": {
        "arch": "gemma2",
        "weights": "f16",
        "sizes": GEMMA | {"layers": 3},
        "metadata": {
            "attention.sliding_window": 12,
            "attn_logit_softcapping": 3.0,
            "final_logit_softcapping": 5.0,
        },
        "post_norms": True,
    },
    # Layers 4 and 5 read the keys and values of layers 2 and 3; layer 3 and 5 have no window, and half of their pairs are turned.
    "gemma4": {
        "arch": "gemma4",
        "weights": "f16",
        "sizes": {
            "width": 32,
            "layers": 6,
            "heads": 4,
            "kv_heads": [1, 1, 1, 2, 1, 2],
            "head": [8, 8, 8, 16, 8, 16],
            "ff": [40, 40, 40, 40, 72, 72],
            "tied": True,
        },
        "metadata": GEMMA4
        | {
            "attention.sliding_window_pattern": [True, True, True, False, True, False],
            "attention.shared_kv_layers": 2,
            "embedding_length_per_layer_input": 12,
        },
        "rope_freqs": [1.0] * 4 + [1e30] * 4,
        "qk_norm": True,
        "post_norms": True,
        "end_factor": True,
    },
    # Three streams; layers 4 and 5 read the keys and values of layers 2 and 3; gates are cut in four layers, in one of them below the mean.
    "gemma3n": {
        "arch": "gemma3n",
        "weights": "f16",
        "sizes": {
            "width": 32,
            "layers": 6,
            "heads": 4,
            "kv_heads": 2,
            "head": 16,
            "ff": [40, 40, 56, 40, 40, 56],
            "tied": True,
        },
        "metadata": {
            "altup.active_idx": 0,
            "altup.num_inputs": 3,
            "activation_sparsity_scale": [1.25, 0.5, -np.inf, 0.75, -np.inf, -0.375],
            "attention.sliding_window": 12,
            "attention.sliding_window_pattern": [True, True, False, True, False, True],
            "attention.shared_kv_layers": 2,
            "embedding_length_per_layer_input": 12,
            "rope.freq_base": 1000.0,
            "rope.freq_base_swa": 100.0,
            "final_logit_softcapping": 5.0,
        },
        "qk_norm": True,
        "post_norms": True,
        "low_rank": 6,
    },
    # Experts beside the network; layers without a window have no matrix of values.
    "gemma4-beside": {
        "arch": "gemma4",
        "weights": "f16",
        "sizes": {
            "width": 32,
            "layers": 3,
            "heads": 4,
            "kv_heads": [2, 1, 2],
            "head": [8, 16, 8],
            "ff": 40,
            "tied": True,
        },
        "metadata": GEMMA4
        | {
            "attention.sliding_window_pattern": [True, False, True],
            "embedding_length_per_layer_input": 0,
            "expert_count": 6,
            "expert_used_count": 2,
            "expert_feed_forward_length": 24,
        },
        "rope_freqs": [1.0] * 2 + [1e30] * 6,
        "qk_norm": True,
        "post_norms": True,
        "end_factor": True,
        "no_values": [1],
        "joined_experts": True,
        "beside": True,
    },
    "olmo2": {
        "arch": "olmo2",
        "weights": "f16",
        "sizes": {"width": 32, "layers": 4, "heads": 4, "kv_heads": 2, "head": 8, "ff": 48},
        "metadata": {
            "attention.sliding_window": 12,
            "rope.scaling.type": "linear",
            "rope.scaling.factor": 4.0,
        },
        "query_norm": "whole",
        "norms": [],
        "post_norms": True,
    },
    "smollm3": {
        "arch": "smollm3",
        "weights": "f16",
        "sizes": {"width": 32, "layers": 4, "heads": 4, "kv_heads": 2, "head": 8, "ff": 48, "tied": True},
    },
    # Queries grow with each 12 positions.
    "mistral3": {
        "arch": "mistral3",
        "weights": "f16",
        "sizes": {"width": 32, "layers": 2, "heads": 4, "kv_heads": 2, "head": 8, "ff": 48, "tied": True},
        "metadata": {
            "attention.temperature_scale": 0.5,
            "rope.scaling.type": "yarn",
            "rope.scaling.factor": 4.0,
            "rope.scaling.original_context_length": 12,
            "rope.scaling.yarn_log_multiplier": 0.5,
        },
    },
    # The last layer is not rotated; one of three experts in the second and the last layer.
    "llama4": {
        "arch": "llama4",
        "weights": "f16",
        "sizes": {"width": 32, "layers": 4, "heads": 4, "kv_heads": 2, "head": 8, "ff": 48},
        "metadata": {
            "expert_count": 3,
            "expert_used_count": 1,
            "expert_feed_forward_length": 24,
            "expert_shared_count": 1,
            "interleave_moe_layer_step": 2,
        },
        "shared_gate": False,
    },
    # No chunks, all layers rotated; two of four experts.
    "llama4-full": {
        "arch": "llama4",
        "weights": "f16",
        "sizes": {"width": 32, "layers": 4, "heads": 4, "kv_heads": 2, "head": 8, "ff": 48, "tied": True},
        "metadata": {
            "attention.sliding_window": 0,
            "expert_count": 4,
            "expert_used_count": 2,
            "expert_feed_forward_length": 24,
            "expert_shared_count": 1,
            "interleave_moe_layer_step": 2,
        },
        "rope_freqs": True,
        "shared_gate": False,
    },
    # As Maverick: queries and keys are not normalised.
    "llama4-unnormed": {
        "arch": "llama4",
        "weights": "f16",
        "sizes": {"width": 16, "layers": 4, "heads": 2, "kv_heads": 1, "head": 8, "ff": 24, "tied": True},
        "metadata": {
            "expert_count": 128,
            "expert_used_count": 1,
            "expert_feed_forward_length": 4,
            "expert_shared_count": 1,
            "interleave_moe_layer_step": 4,
        },
        "shared_gate": False,
    },
    "glm4": {
        "arch": "glm4",
        "weights": "f16",
        "sizes": {"width": 32, "layers": 2, "heads": 4, "kv_heads": 2, "head": 8, "ff": 48, "tied": True},
        "metadata": {"rope.dimension_count": 4},
        "bias": True,
        "fused_network": True,
        "post_norms": True,
    },
    "cohere2": {
        "arch": "cohere2",
        "weights": "f16",
        "sizes": {"width": 32, "layers": 4, "heads": 4, "kv_heads": 2, "head": 8, "ff": 48, "tied": True},
        "metadata": {"attention.sliding_window": 12, "logit_scale": 0.25},
        "norms": ["attn_norm"],
        "layer_norm": "plain",
    },
    "starcoder2": {
        "arch": "starcoder2",
        "weights": "f16",
        "sizes": {"width": 32, "layers": 2, "heads": 4, "kv_heads": 2, "head": 8, "ff": 64, "tied": True},
        "bias": True,
        "biases": True,
        "layer_norm": "bias",
        "no_gate": True,
    },
    "stablelm": {
        "arch": "stablelm",
        "weights": "f16",
        "sizes": {"width": 32, "layers": 2, "heads": 4, "kv_heads": 2, "head": 8, "ff": 48},
        "metadata": {"rope.dimension_count": 2},
        "layer_norm": "bias",
    },
    # As the one of 12B: norms of heads, and both branches side by side.
    "stablelm-parallel": {
        "arch": "stablelm",
        "weights": "f16",
        "sizes": {"width": 32, "layers": 2, "heads": 4, "kv_heads": 2, "head": 8, "ff": 48},
        "metadata": {"rope.dimension_count": 2},
        "layer_norm": "bias",
        "norms": ["attn_norm"],
        "query_norm": "of_heads",
    },
    "granitemoe": {
        "arch": "granitemoe",
        "weights": "f16",
        "sizes": {"width": 32, "layers": 2, "heads": 4, "kv_heads": 2, "head": 8, "ff": 24, "tied": True},
        "metadata": {
            "embedding_scale": 3.0,
            "residual_scale": 0.4,
            "logit_scale": 2.0,
            "attention.scale": 0.2,
            "expert_count": 5,
            "expert_used_count": 2,
            "expert_shared_feed_forward_length": 40,
        },
        "shared_gate": False,
    },
    "hunyuan-moe": {
        "arch": "hunyuan-moe",
        "weights": "f16",
        "sizes": {"width": 32, "layers": 2, "heads": 4, "kv_heads": 2, "head": 8, "ff": 24, "tied": True},
        "metadata": {
            "expert_count": 5,
            "expert_used_count": 2,
            "expert_feed_forward_length": 24,
            "expert_shared_feed_forward_length": 40,
        },
        "query_norm": "heads",
        "shared_gate": False,
    },
    # The first layer has one network; llama.cpp does not add the bias of the output.
    "ernie4_5-moe": {
        "arch": "ernie4_5-moe",
        "weights": "f16",
        "sizes": {"width": 32, "layers": 2, "heads": 4, "kv_heads": 2, "head": 8, "ff": 48, "tied": True},
        "metadata": {
            "leading_dense_block_count": 1,
            "interleave_moe_layer_step": 2,
            "expert_count": 5,
            "expert_used_count": 2,
            "expert_feed_forward_length": 24,
        },
        "choice_bias": True,
        "output_bias": True,
    },
    # The first layer has one network, and one behind the last predicts further tokens.
    "glm4moe": {
        "arch": "glm4moe",
        "weights": "f16",
        "sizes": {"width": 32, "layers": 3, "heads": 4, "kv_heads": 2, "head": 8, "ff": 48, "tied": True},
        "metadata": {
            "rope.dimension_count": 4,
            "leading_dense_block_count": 1,
            "nextn_predict_layers": 1,
            "expert_count": 6,
            "expert_used_count": 3,
            "expert_feed_forward_length": 24,
            "expert_shared_count": 2,
            "expert_gating_func": 2,
            "expert_weights_norm": True,
            "expert_weights_scale": 2.5,
        },
        "bias": True,
        "query_norm": "heads",
        "norms": ["attn_norm", "post_attention_norm"],
        "choice_bias": True,
        "shared_gate": False,
    },
    # Keys longer than values; the first layer has a network; lists have entries for a layer that predicts further tokens.
    "mimo2": {
        "arch": "mimo2",
        "weights": "f16",
        "sizes": {"width": 32, "layers": 3, "heads": 4, "kv_heads": [1, 2, 2], "head": 12, "value": 8, "ff": 48},
        "metadata": {
            "attention.value_length": 8,
            "attention.sliding_window": 12,
            "attention.sliding_window_pattern": [False, True, True],
            "attention.value_scale": 0.7,
            "rope.freq_base": 5000.0,
            "rope.freq_base_swa": 300.0,
            "rope.dimension_count": 4,
            "expert_count": 6,
            "expert_used_count": 3,
            "expert_feed_forward_length": 24,
        },
        "choice_bias": True,
        "sinks": [1, 2],
        "dense": [0],
    },
    "minimax-m2": {
        "arch": "minimax-m2",
        "weights": "f16",
        "sizes": {"width": 32, "layers": 2, "heads": 4, "kv_heads": 2, "head": 8, "ff": 24},
        "metadata": {
            "rope.dimension_count": 4,
            "expert_count": 6,
            "expert_used_count": 3,
            "expert_feed_forward_length": 24,
            "expert_gating_func": 2,
        },
        "query_norm": "whole",
        "choice_bias": True,
    },
    # Selective scans: 4 heads of 6 rows in 2 groups, 5 columns.
    "mamba2": {
        "arch": "mamba2",
        "weights": "f16",
        "sizes": {"width": 32, "layers": 2, "heads": 0, "kv_heads": 0, "head": 8, "ff": 0, "tied": True},
        "metadata": SCAN,
        "norms": ["attn_norm"],
        "scan": [0, 1],
    },
    # Attention in the last layer, and factors; experts in all.
    "granitehybrid": {
        "arch": "granitehybrid",
        "weights": "f16",
        "sizes": {
            "width": 12,
            "layers": 3,
            "heads": [3, 3, 3],
            "kv_heads": [0, 0, 1],
            "head": 8,
            "ff": 24,
            "tied": True,
        },
        "metadata": SCAN
        | {
            "embedding_scale": 3.0,
            "residual_scale": 0.4,
            "logit_scale": 2.0,
            "attention.scale": 0.2,
            "expert_count": 5,
            "expert_used_count": 2,
            "expert_shared_feed_forward_length": 16,
        },
        "shared_gate": False,
        "scan": [0, 1],
    },
    # Both in each layer.
    "falcon-h1": {
        "arch": "falcon-h1",
        "weights": "f16",
        "sizes": {"width": 32, "layers": 2, "heads": 4, "kv_heads": 2, "head": 8, "ff": 48},
        "metadata": SCAN | {"rope.freq_base": 2000.0},
        "norms": ["attn_norm", "ffn_norm."],
        "scan": [0, 1],
        "beside_scan": True,
    },
    # A scan, attention, a network.
    "nemotron_h": {
        "arch": "nemotron_h",
        "weights": "f16",
        "sizes": {
            "width": 32,
            "layers": 3,
            "heads": 4,
            "kv_heads": [0, 2, 0],
            "head": 8,
            "ff": [0, 0, 48],
            "tied": True,
        },
        "metadata": SCAN | {"attention.layer_norm_epsilon": 1e-5},
        "norms": ["attn_norm"],
        "no_gate": True,
        "scan": [0],
        "network": [2],
    },
    "nemotron_h_moe": {
        "arch": "nemotron_h_moe",
        "weights": "f16",
        "sizes": {
            "width": 32,
            "layers": 3,
            "heads": 4,
            "kv_heads": [0, 2, 0],
            "head": 8,
            "ff": [0, 0, 48],
            "tied": True,
        },
        "metadata": SCAN
        | {
            "attention.layer_norm_epsilon": 1e-5,
            "expert_count": 6,
            "expert_used_count": 3,
            "expert_feed_forward_length": 24,
            "expert_shared_count": 1,
            "expert_shared_feed_forward_length": 40,
            "expert_weights_norm": True,
            "expert_weights_scale": 1.5,
        },
        "norms": ["attn_norm"],
        "choice_bias": True,
        "shared_gate": False,
        "no_gate": True,
        "scan": [0],
        "network": [2],
    },
    # Two heads of keys for four of values; two of three layers have a delta net.
    "qwen35": {
        "arch": "qwen35",
        "weights": "f16",
        "sizes": {"width": 32, "layers": 3, "heads": 4, "kv_heads": 2, "head": 8, "ff": 48, "tied": True},
        "metadata": DELTA_NET,
        "query_norm": "heads",
        "norms": ["attn_norm", "post_attention_norm"],
        "delta_net": "apart",
    },
    "qwen3next": {
        "arch": "qwen3next",
        "weights": "f16",
        "sizes": {"width": 32, "layers": 3, "heads": 4, "kv_heads": 2, "head": 8, "ff": 24, "tied": True},
        "metadata": {
            key: value
            for key, value in DELTA_NET.items()
            if key != "rope.dimension_sections"
        }
        | {
            "expert_count": 5,
            "expert_used_count": 2,
            "expert_feed_forward_length": 24,
            "expert_shared_feed_forward_length": 40,
        },
        "query_norm": "heads",
        "norms": ["attn_norm", "post_attention_norm"],
        "delta_net": "joined",
    },
    # Short convolutions in two of three layers, experts in all but the first.
    "lfm2moe": {
        "arch": "lfm2moe",
        "weights": "f16",
        "sizes": {"width": 32, "layers": 3, "heads": 4, "kv_heads": [0, 2, 0], "head": 8, "ff": 48, "tied": True},
        "metadata": {
            "shortconv.l_cache": 3,
            "leading_dense_block_count": 1,
            "expert_count": 5,
            "expert_used_count": 2,
            "expert_feed_forward_length": 24,
            "expert_gating_func": 2,
        },
        "query_norm": "heads",
        "choice_bias": True,
        "output_norm": "token_embd_norm",
    },
    # Experts from two of three groups; two shared ones.
    "bailingmoe2": {
        "arch": "bailingmoe2",
        "weights": "f16",
        "sizes": {"width": 32, "layers": 2, "heads": 4, "kv_heads": 2, "head": 8, "ff": 48},
        "metadata": {
            "rope.dimension_count": 4,
            "expert_count": 6,
            "expert_used_count": 2,
            "expert_group_count": 3,
            "expert_group_used_count": 2,
            "expert_feed_forward_length": 24,
            "expert_shared_count": 2,
            "expert_shared_feed_forward_length": 16,
            "expert_gating_func": 2,
            "expert_weights_norm": True,
            "expert_weights_scale": 2.5,
        },
        "fused": True,
        "query_norm": "heads",
        "choice_bias": True,
        "shared_gate": False,
    },
    # Keys and values from one short vector of a token; experts from two of four groups.
    "deepseek2": {
        "arch": "deepseek2",
        "weights": "f16",
        "sizes": {"width": 32, "layers": 3, "heads": 3, "kv_heads": 1, "head": 24, "ff": 48},
        "metadata": {
            "attention.q_lora_rank": 20,
            "attention.kv_lora_rank": 16,
            "attention.key_length": 24,
            "attention.value_length": 16,
            "attention.key_length_mla": 20,
            "attention.value_length_mla": 10,
            "rope.dimension_count": 8,
            "rope.scaling.type": "yarn",
            "rope.scaling.factor": 4.0,
            "rope.scaling.original_context_length": 128,
            "rope.scaling.yarn_log_multiplier": 0.0707,
            "leading_dense_block_count": 1,
            "expert_count": 12,
            "expert_used_count": 3,
            "expert_group_count": 4,
            "expert_group_used_count": 2,
            "expert_feed_forward_length": 24,
            "expert_shared_count": 2,
            "expert_gating_func": 2,
            "expert_weights_norm": True,
            "expert_weights_scale": 2.5,
        },
        "choice_bias": True,
        "shared_gate": False,
    },
    # One matrix makes queries; a softmax over all scores gives the factors.
    "deepseek2-lite": {
        "arch": "deepseek2",
        "weights": "f16",
        "sizes": {"width": 32, "layers": 2, "heads": 2, "kv_heads": 1, "head": 24, "ff": 48},
        "metadata": LATENT,
        "shared_gate": False,
    },
    # Queries grow with each 9 positions.
    "deepseek2-growth": {
        "arch": "deepseek2",
        "weights": "f16",
        "sizes": {"width": 32, "layers": 2, "heads": 2, "kv_heads": 1, "head": 24, "ff": 48, "tied": True},
        "metadata": {
            "attention.temperature_scale": 0.5,
            "attention.temperature_length": 9,
        }
        | LATENT
        | {"attention.q_lora_rank": 20},
        "shared_gate": False,
    },
    # A delta net with a decay for each column in two of three layers; the other has latent attention and does not know positions.
    "kimi-linear": {
        "arch": "kimi-linear",
        "weights": "f16",
        "sizes": {"width": 32, "layers": 3, "heads": 3, "kv_heads": [0, 1, 0], "head": 24, "ff": 48},
        "metadata": {
            "ssm.conv_kernel": 4,
            "kda.head_dim": 10,
            "attention.kv_lora_rank": 16,
            "attention.key_length": 24,
            # As in published files: that of no part.
            "attention.value_length": 7,
            "attention.key_length_mla": 20,
            "attention.value_length_mla": 12,
            "rope.dimension_count": 8,
            "leading_dense_block_count": 1,
            "expert_count": 6,
            "expert_used_count": 2,
            "expert_feed_forward_length": 24,
            "expert_shared_count": 1,
            "expert_gating_func": 2,
            "expert_weights_norm": True,
            "expert_weights_scale": 2.446,
        },
        "choice_bias": True,
        "shared_gate": False,
    },
    # More is kept of a token than the heads of other models have.
    "deepseek2-wide": {
        "arch": "deepseek2",
        "weights": "f16",
        "sizes": {"width": 32, "layers": 1, "heads": 2, "kv_heads": 1, "head": 288, "ff": 48},
        "metadata": {
            "attention.q_lora_rank": 0,
            "attention.kv_lora_rank": 256,
            "attention.key_length": 288,
            "attention.value_length": 256,
            "attention.key_length_mla": 40,
            "attention.value_length_mla": 12,
            "rope.dimension_count": 32,
            "expert_count": 4,
            "expert_used_count": 2,
            "expert_feed_forward_length": 24,
            "expert_shared_count": 1,
            "expert_gating_func": 2,
        },
        "shared_gate": False,
    },
}


def seeded(name):
    return np.random.default_rng(zlib.crc32(name.encode()))


def vocabulary():
    """The 256 bytes as GPT-2 writes them, 60 tokens of two letters with their merges, four control tokens."""
    visible = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in visible]
    letters = {byte: chr(byte) for byte in visible} | {byte: chr(256 + i) for i, byte in enumerate(hidden)}
    merges = [f"{first} {second}" for first in "bcdfghlmnprt" for second in "aeiou"]
    tokens = [letters[byte] for byte in range(256)] + [merge.replace(" ", "") for merge in merges] + CONTROLS
    assert len(set(tokens)) == VOCABULARY
    return tokens, merges


# Random blocks of the K types, which the gguf package decodes but does not encode: [count, bytes] with values of about
# the given deviation.


def f16_bytes(values):
    return np.asarray(values, "<f2").view(np.uint8).reshape(-1, 2)


def q4_k_blocks(random, count, deviation):
    scale = random.integers(16, 64, (count, 8))
    minimum = np.clip(scale + random.integers(-4, 5, (count, 8)), 0, 63)
    # (q - 7.5) * scale has a deviation of about 195.
    d = deviation / 195 * random.uniform(0.8, 1.2, count)
    packed = np.zeros((count, 12), np.uint8)
    packed[:, 0:4] = scale[:, 0:4] | (scale[:, 4:8] >> 4) << 6
    packed[:, 4:8] = minimum[:, 0:4] | (minimum[:, 4:8] >> 4) << 6
    packed[:, 8:12] = (scale[:, 4:8] & 15) | (minimum[:, 4:8] & 15) << 4
    quants = random.integers(0, 256, (count, 128), dtype=np.uint8)
    return np.concatenate([f16_bytes(d), f16_bytes(7.5 * d), packed, quants], axis=1)


def q6_k_blocks(random, count, deviation):
    quants = random.integers(0, 256, (count, 192), dtype=np.uint8)
    scale = random.integers(40, 128, (count, 16)) * random.choice([-1, 1], (count, 16))
    # (q - 32) * scale has a deviation of about 1600.
    d = deviation / 1600 * random.uniform(0.8, 1.2, count)
    return np.concatenate([quants, scale.astype(np.int8).view(np.uint8), f16_bytes(d)], axis=1)


# Name -> type in the gguf package, elements a block.
TYPES = {
    "f32": (gguf.GGMLQuantizationType.F32, 1),
    "f16": (gguf.GGMLQuantizationType.F16, 1),
    "bf16": (gguf.GGMLQuantizationType.BF16, 1),
    "q8_0": (gguf.GGMLQuantizationType.Q8_0, 32),
    "q4_k": (gguf.GGMLQuantizationType.Q4_K, 256),
    "q6_k": (gguf.GGMLQuantizationType.Q6_K, 256),
}
RANDOM_BLOCKS = {"q4_k": q4_k_blocks, "q6_k": q6_k_blocks}


def matrix(random, outputs, inputs, kind):
    """A random matrix as (what the file holds, its type). Rows that are no whole blocks become q8_0."""
    if inputs % TYPES[kind][1]:
        kind = "q8_0"
    deviation = 1.5 / np.sqrt(inputs)
    if kind in RANDOM_BLOCKS:
        blocks = RANDOM_BLOCKS[kind](random, outputs * inputs // 256, deviation)
        return blocks.reshape(outputs, -1), TYPES[kind][0]
    values = (random.standard_normal((outputs, inputs)) * deviation).astype(np.float32)
    return gguf.quants.quantize(values, TYPES[kind][0]), TYPES[kind][0]


def of_layer(value, number):
    """A size of a layer: one for all, or a list."""
    return value[number] if isinstance(value, list) else value


def tensors(name):
    """All tensors of the model: (name, what the file holds, type)."""
    spec, random = MODELS[name], seeded(name)
    size, kind = spec["sizes"], spec.get("weights", "f32")
    width = size["width"]
    found = []

    def weight(label, outputs, inputs):
        found.append((f"{label}.weight", *matrix(random, outputs, inputs, kind)))

    def stacked(label, count, outputs, inputs):
        parts = [matrix(random, outputs, inputs, kind) for _ in range(count)]
        found.append((f"{label}.weight", np.stack([data for data, _ in parts]), parts[0][1]))

    def vector(label, values):
        found.append((label, values.astype(np.float32), TYPES["f32"][0]))

    def norm(label, length):
        vector(f"{label}.weight", 1 + 0.3 * random.standard_normal(length))
        if spec.get("layer_norm") == "bias" and not label.endswith(("q_norm", "k_norm")):
            vector(f"{label}.bias", 0.3 * random.standard_normal(length))

    def bias(label, length):
        if spec.get("biases"):
            vector(f"{label}.bias", 0.5 * random.standard_normal(length))

    metadata_of = spec.get("metadata", {})
    weight("token_embd", VOCABULARY, width)
    norm(spec.get("output_norm", "output_norm"), width)
    if not size.get("tied"):
        weight("output", VOCABULARY, width)
        bias("output", VOCABULARY)
    rotated = spec.get("metadata", {}).get("rope.dimension_count", size["head"])
    if isinstance(spec.get("rope_freqs"), list):
        vector("rope_freqs.weight", np.array(spec["rope_freqs"]))
    elif spec.get("rope_freqs"):
        vector("rope_freqs.weight", random.uniform(1, 8, rotated // 2))
    input_width = metadata_of.get("embedding_length_per_layer_input")
    if input_width:
        weight("per_layer_token_embd", VOCABULARY, size["layers"] * input_width)
        weight("per_layer_model_proj", size["layers"] * input_width, width)
        norm("per_layer_proj_norm", input_width)
    streams = metadata_of.get("altup.num_inputs", 4) if "low_rank" in spec else 1
    if streams > 1:
        stacked("altup_proj", streams - 1, width, width)
        stacked("altup_unembd_proj", streams - 1, width, width)
    if spec.get("longrope"):
        vector("rope_factors_long.weight", random.uniform(1, 10, rotated // 2))
        vector("rope_factors_short.weight", random.uniform(1, 1.5, rotated // 2))
    for number in range(size["layers"]):
        at = f"blk.{number}."
        heads, kv_heads, ff, head = (of_layer(size[key], number) for key in ["heads", "kv_heads", "ff", "head"])
        q_width, kv_width = heads * head, kv_heads * head
        value = of_layer(size.get("value", size["head"]), number)
        shares = number >= size["layers"] - metadata_of.get("attention.shared_kv_layers", 0)
        norms = spec.get("norms", ["attn_norm", "ffn_norm"])
        if "attn_norm" in norms:
            norm(at + "attn_norm", width)
        if number in spec.get("scan", []):
            sizes = (metadata_of["ssm." + key] for key in ["time_step_rank", "group_count", "state_size", "conv_kernel", "inner_size"])
            scan_heads, groups, dim, taps, inner = sizes
            channels = inner + 2 * groups * dim
            weight(at + "ssm_in", inner + channels + scan_heads, width)
            vector(at + "ssm_conv1d.weight", random.standard_normal((channels, taps)))
            vector(at + "ssm_conv1d.bias", 0.3 * random.standard_normal(channels))
            vector(at + "ssm_dt.bias", random.standard_normal(scan_heads))
            vector(at + "ssm_a", -random.uniform(0.05, 1.0, (scan_heads, 1)))
            vector(at + "ssm_d", random.standard_normal((scan_heads, 1)))
            norm(at + "ssm_norm", (groups, inner // groups))
            weight(at + "ssm_out", width, inner)
        is_scan = number in spec.get("scan", []) and not spec.get("beside_scan")
        if is_scan or number in spec.get("network", []):
            pass
        elif kv_heads == 0 and "kda.head_dim" in metadata_of:
            dim, taps = metadata_of["kda.head_dim"], metadata_of["ssm.conv_kernel"]
            for part in "qkv":
                weight(f"{at}attn_{part}", heads * dim, width)
                # Converters write dimensions of 1.
                vector(f"{at}ssm_conv1d_{part}.weight", random.standard_normal((1, heads * dim, 1, taps)))
            for part in "fg":
                weight(f"{at}ssm_{part}_a", dim, width)
                weight(f"{at}ssm_{part}_b", heads * dim, dim)
            weight(at + "ssm_beta", heads, width)
            vector(at + "ssm_a", -random.uniform(0.05, 1.0, (1, 1, heads, 1)))
            vector(at + "ssm_dt.bias", random.standard_normal(heads * dim))
            norm(at + "ssm_norm", dim)
            q_width = heads * dim
        elif kv_heads == 0:
            weight(at + "shortconv.in_proj", 3 * width, width)
            vector(at + "shortconv.conv.weight", random.standard_normal((width, metadata_of["shortconv.l_cache"])))
            weight(at + "shortconv.out_proj", width, width)
        elif spec.get("delta_net") and (number + 1) % metadata_of["full_attention_interval"]:
            sizes = (metadata_of["ssm." + key] for key in ["time_step_rank", "group_count", "state_size", "conv_kernel"])
            value_heads, key_heads, dim, taps = sizes
            weight(at + "attn_qkv", (2 * key_heads + value_heads) * dim, width)
            weight(at + "attn_gate", value_heads * dim, width)
            if spec["delta_net"] == "joined":
                weight(at + "ssm_ba", 2 * value_heads, width)
            else:
                weight(at + "ssm_beta", value_heads, width)
                weight(at + "ssm_alpha", value_heads, width)
            vector(at + "ssm_conv1d.weight", random.standard_normal(((2 * key_heads + value_heads) * dim, taps)))
            vector(at + "ssm_a", -random.uniform(0.05, 1.0, value_heads))
            vector(at + "ssm_dt.bias", random.standard_normal(value_heads))
            norm(at + "ssm_norm", dim)
            weight(at + "ssm_out", width, value_heads * dim)
        elif rank := metadata_of.get("attention.kv_lora_rank"):
            length, value = metadata_of["attention.key_length_mla"], metadata_of["attention.value_length_mla"]
            if short := metadata_of.get("attention.q_lora_rank"):
                weight(at + "attn_q_a", short, width)
                norm(at + "attn_q_a_norm", short)
                weight(at + "attn_q_b", heads * length, short)
            else:
                weight(at + "attn_q", heads * length, width)
            weight(at + "attn_kv_a_mqa", rank + rotated, width)
            norm(at + "attn_kv_a_norm", rank)
            stacked(at + "attn_k_b", heads, rank, length - rotated)
            stacked(at + "attn_v_b", heads, value, rank)
            q_width = heads * value
        elif spec.get("fused"):
            weight(at + "attn_qkv", q_width + 2 * kv_width, width)
            bias(at + "attn_qkv", q_width + 2 * kv_width)
        else:
            gate = 2 if spec.get("delta_net") else 1
            for part, rows in [("q", gate * q_width), ("k", kv_width), ("v", kv_heads * value)]:
                if part != "q" and shares or part == "v" and number in spec.get("no_values", []):
                    continue
                weight(f"{at}attn_{part}", rows, width)
                if spec.get("bias"):
                    vector(f"{at}attn_{part}.bias", 0.5 * random.standard_normal(rows))
        if spec.get("qk_norm"):
            norm(at + "attn_q_norm", head)
            if not shares:
                norm(at + "attn_k_norm", head)
        query_norm = spec.get("query_norm")
        has_attention = any(label in [at + "attn_k.weight", at + "attn_qkv.weight", at + "attn_kv_a_mqa.weight"] for label, *_ in found)
        has_attention = has_attention and at + "attn_gate.weight" not in [label for label, *_ in found]
        has_attention = has_attention or shares
        for part, count in [("q", heads), ("k", kv_heads)] if query_norm and has_attention else []:
            shape = {"heads": head, "whole": count * head, "of_heads": (count, head)}[query_norm]
            norm(f"{at}attn_{part}_norm", shape)
        if number in (spec["sinks"] if isinstance(spec.get("sinks"), list) else [number] * spec.get("sinks", False)):
            vector(at + "attn_sinks.weight", 2 * random.standard_normal(heads))
        if has_attention:
            weight(at + "attn_output", width, heads * value if "value" in size else q_width)
            bias(at + "attn_output", width)
        if spec.get("output_bias"):
            vector(at + "attn_output.bias", 0.5 * random.standard_normal(width))
        if spec.get("post_norms"):
            norm(at + "post_attention_norm", width)
        for label in norms:
            if label.endswith("."):
                # llama.cpp gives it no end.
                vector(at + label[:-1], 1 + 0.3 * random.standard_normal(width))
            elif label != "attn_norm":
                norm(at + label, width)
        if not ff or spec.get("network") and number not in spec["network"]:
            continue
        metadata = spec.get("metadata", {})
        experts = metadata.get("expert_count")
        if input_width:
            weight(at + "inp_gate", input_width, width)
            weight(at + "proj", width, input_width)
            norm(at + "post_norm", width)
        if streams > 1:
            norm(at + "altup_router_norm", width)
            # Sums over the width, which is the router's divisor.
            vector(at + "altup_router.weight", random.standard_normal((streams, width)) * np.sqrt(width))
            vector(at + "altup_predict_coef.weight", 0.15 * random.standard_normal((streams**2, streams)))
            vector(at + "altup_correct_coef.weight", 0.3 * random.standard_normal((streams, streams)))
            vector(at + "altup_correct_scale.weight", 1 + 0.3 * random.standard_normal(width))
            weight(at + "laurel_l", spec["low_rank"], width)
            weight(at + "laurel_r", width, spec["low_rank"])
            norm(at + "laurel_post_norm", width)
        if spec.get("end_factor"):
            vector(at + "layer_output_scale.weight", random.uniform(0.5, 1.5, 1))
        if spec.get("beside"):
            vector(at + "ffn_gate_inp.scale", random.uniform(0.5, 1.5, width) * np.sqrt(width))
            vector(at + "ffn_down_exps.scale", random.uniform(0.5, 1.5, experts))
            for label in ["post_ffw_norm_1", "pre_ffw_norm_2", "post_ffw_norm_2"]:
                norm(at + label, width)
        first, step = metadata.get("leading_dense_block_count", 0), metadata.get("interleave_moe_layer_step", 1)
        if experts and number >= first and (number + 1) % step == 0 and number not in spec.get("dense", []):
            inner = spec["metadata"].get("expert_feed_forward_length", ff)
            vector(at + "ffn_gate_inp.weight", random.standard_normal((experts, width)) * 3 / np.sqrt(width))
            bias(at + "ffn_gate_inp", experts)
            if spec.get("router_bias"):
                vector(at + "ffn_gate_inp.bias", random.standard_normal(experts))
            if spec.get("choice_bias"):
                vector(at + "exp_probs_b.bias", 0.3 * random.standard_normal(experts))
            if spec.get("joined_experts"):
                stacked(at + "ffn_gate_up_exps", experts, 2 * inner, width)
            elif not spec.get("no_gate"):
                stacked(at + "ffn_gate_exps", experts, inner, width)
                stacked(at + "ffn_up_exps", experts, inner, width)
            else:
                stacked(at + "ffn_up_exps", experts, inner, width)
            stacked(at + "ffn_down_exps", experts, width, inner)
            for part, rows in [("gate", inner), ("up", inner), ("down", width)] if spec.get("expert_biases") else []:
                vector(f"{at}ffn_{part}_exps.bias", 0.5 * random.standard_normal((experts, rows)))
            shared = metadata.get("expert_shared_feed_forward_length", inner if "expert_shared_count" in metadata else 0)
            shared *= metadata.get("expert_shared_count", 1)
            if shared and spec.get("shared_gate", True):
                vector(at + "ffn_gate_inp_shexp.weight", random.standard_normal(width) / np.sqrt(width))
            if shared:
                if not spec.get("no_gate"):
                    weight(at + "ffn_gate_shexp", shared, width)
                weight(at + "ffn_up_shexp", shared, width)
                weight(at + "ffn_down_shexp", width, shared)
            if not spec.get("beside"):
                continue
        if spec.get("no_gate"):
            weight(at + "ffn_up", ff, width)
            bias(at + "ffn_up", ff)
        elif spec.get("fused") or spec.get("fused_network"):
            weight(at + "ffn_up", 2 * ff, width)
            bias(at + "ffn_up", 2 * ff)
        else:
            weight(at + "ffn_gate", ff, width)
            bias(at + "ffn_gate", ff)
            weight(at + "ffn_up", ff, width)
            bias(at + "ffn_up", ff)
        weight(at + "ffn_down", width, ff)
        bias(at + "ffn_down", width)
        if spec.get("post_norms"):
            norm(at + "post_ffw_norm", width)
    if spec.get("scales"):
        # Factors on products, one for each expert.
        for label, data, _ in list(found):
            label = label.removesuffix(".weight")
            if "norm" in label or label.endswith((".bias", "token_embd", "ffn_gate_inp")):
                continue
            count = len(data) if label.endswith("_exps") else 1
            vector(label + ".scale", random.uniform(0.5, 1.5, count))
            vector(label + ".input_scale", random.uniform(0.5, 1.5, count))
    return found


def write(name, path, replace=lambda label, data, kind: (data, kind), more=lambda writer: None):
    """Writes the model to `path`; `replace` may change what is written of each tensor, `more` may add to it."""
    spec = MODELS[name]
    size = spec["sizes"]
    writer = gguf.GGUFWriter(path, spec["arch"])
    # Not Phi-3's: by that name llama.cpp expects Phi-3's own tokens.
    writer.add_name("tiny")
    writer.add_block_count(size["layers"])
    writer.add_context_length(512)
    writer.add_embedding_length(size["width"])
    writer.add_feed_forward_length(size["ff"])
    writer.add_head_count(size["heads"])
    writer.add_head_count_kv(size["kv_heads"])
    if spec.get("layer_norm"):
        writer.add_layer_norm_eps(1e-5)
    else:
        writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(VOCABULARY)
    metadata = dict(spec.get("metadata", {}))
    if isinstance(size["heads"], list) or size["heads"] == 0 or isinstance(size["head"], list) or size["head"] * size["heads"] != size["width"]:
        for length in ["attention.key_length", "attention.value_length"]:
            metadata.setdefault(length, size["head"])
    for key, value in {"rope.dimension_count": size["head"], **metadata}.items():
        add = {bool: writer.add_bool, int: writer.add_uint32, float: writer.add_float32, str: writer.add_string, list: writer.add_array}[type(value)]
        add(f"{spec['arch']}.{key}", value)
    tokens, merges = vocabulary()
    text = VOCABULARY - len(CONTROLS)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types([gguf.TokenType.NORMAL] * text + [gguf.TokenType.CONTROL] * len(CONTROLS))
    writer.add_token_merges(merges)
    for i, add in enumerate(
        [writer.add_unk_token_id, writer.add_bos_token_id, writer.add_eos_token_id, writer.add_pad_token_id]
    ):
        add(text + i)
    writer.add_add_bos_token(False)
    for label, data, kind in tensors(name):
        data, kind = replace(label, data, kind)
        writer.add_tensor(label, data, raw_dtype=kind)
    more(writer)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def token_ids(name):
    """The text that the model is given."""
    return seeded(name + " ids").integers(0, VOCABULARY - len(CONTROLS), TOKENS).tolist()


def rounded(values):
    return [round(float(v), 8) for v in values]


def of_logs(logs, ids):
    """What is kept of the log-probabilities after each of the ids."""
    return {
        "ids": ids,
        "next": rounded(logs[np.arange(TOKENS - 1), ids[1:]]),
        "best": logs.argmax(axis=1).tolist(),
        "last": rounded(logs[-1]),
    }


def write_results(name, results):
    """Writes JSON with each list of numbers on one line."""
    text = json.dumps(results, indent=1)
    text = re.sub(r"\[[^\[\]{}\"]*\]", lambda found: re.sub(r"\s+", " ", found.group()), text)
    (HERE / name).write_text(text + "\n")


def main(folder):
    folder.mkdir(exist_ok=True)
    results = []
    for name, spec in MODELS.items():
        path = folder / f"{name}.gguf"
        write(name, path)
        ids = token_ids(name)
        for context in spec.get("contexts", [None]):
            model = Model(path, context)
            logs = log_softmax(model.logits(model.forward(ids)))
            results.append(
                {
                    "file": path.name,
                    "context": context,
                    **of_logs(logs, ids),
                }
            )
            print(f"{path.name:24} {path.stat().st_size:7} B  context {context}", flush=True)
    write_results("tiny.json", results)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "tiny")
