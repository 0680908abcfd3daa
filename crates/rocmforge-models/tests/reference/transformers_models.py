"""Random models of transformers against rocmforge: directories of safetensors, and the GGUF that llama.cpp's converter makes of them.

For each model_type a model of a few layers, with one whole period of its pattern of layers, is made, every parameter is drawn anew, and it is saved by
`save_pretrained`, some in several files. transformers computes the logits in f64 from the saved directory. `rocmforge run --logits` computes them from the
directory, and from the GGUF where the converter takes the model; a stub stands for the tokenizer, which no model has.

python transformers_models.py ROCMFORGE DIR [--llama LLAMA_CPP] [MODEL...]
"""

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from transformers import CONFIG_MAPPING, AutoModelForCausalLM

SIZES = dict(
    vocab_size=160, hidden_size=32, intermediate_size=48, num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64,
    bos_token_id=1, eos_token_id=2, pad_token_id=0,
)
MOE = dict(moe_intermediate_size=24, num_experts_per_tok=2)
ROPE = dict(rope_theta=10000.0, rope_type="default")
YARN = dict(
    rope_type="yarn", rope_theta=10000.0, factor=4.0, original_max_position_embeddings=12, mscale=1.0, mscale_all_dim=1.0, beta_fast=32.0,
    beta_slow=1.0, llama_4_scaling_beta=0.5,
)
LLAMA3 = dict(
    rope_type="llama3", rope_theta=10000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=16,
)
LLAMA4 = dict(
    num_hidden_layers=4, head_dim=8, intermediate_size=24, intermediate_size_mlp=48, num_local_experts=3, interleave_moe_layer_step=2,
    attention_chunk_size=16, floor_scale=7, attn_scale=0.5,
)
# A GGUF has neither the length of chunks nor that of steps: these are what llama.cpp takes.
LONG = dict(attention_chunk_size=8192, floor_scale=8192, attn_scale=0.1)
SCAN = dict(mamba_n_heads=8, mamba_d_head=8, mamba_n_groups=2, mamba_d_state=8, mamba_d_conv=4, mamba_expand=2)
DELTA = dict(
    head_dim=16, linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=8, linear_value_head_dim=8,
    rope_parameters=dict(ROPE, partial_rotary_factor=0.5),
)
KIMI = dict(
    MOE, num_hidden_layers=5, num_key_value_heads=4, kv_lora_rank=16, qk_nope_head_dim=8, qk_rope_head_dim=8, v_head_dim=12, num_experts=6,
    num_shared_experts=2, routed_scaling_factor=1.5,
)
FALCON = dict(
    lm_head_multiplier=0.5, embedding_multiplier=2.0, mlp_multipliers=[0.7, 0.9], key_multiplier=0.8, attention_out_multiplier=1.2,
    attention_in_multiplier=1.1, ssm_multipliers=[0.9, 1.1, 0.8, 1.2, 0.7], ssm_in_multiplier=1.3, ssm_out_multiplier=0.6,
)

# Name of a model, its model_type, and settings over SIZES; "shards": it is saved in several files; "published": with the published files' names.
MODELS = {
    "gemma2": ("gemma2", dict(num_hidden_layers=4, head_dim=16, sliding_window=12, query_pre_attn_scalar=20, shards=True)),
    "smollm3": ("smollm3", dict(num_hidden_layers=4)),
    "olmo2": ("olmo2", dict(num_hidden_layers=2)),
    "olmo3": ("olmo3", dict(
        num_hidden_layers=4, sliding_window=12,
        rope_parameters={
            "sliding_attention": dict(ROPE),
            "full_attention": dict(rope_type="yarn", rope_theta=10000.0, factor=4.0, original_max_position_embeddings=16),
        },
    )),
    "glm4": ("glm4", dict(num_hidden_layers=2, head_dim=8, rope_parameters=dict(ROPE, partial_rotary_factor=0.5), shards=True)),
    "seed_oss": ("seed_oss", dict(num_hidden_layers=2, head_dim=16, attention_out_bias=True)),
    "granite": ("granite", dict(
        num_hidden_layers=2, embedding_multiplier=3.0, logits_scaling=2.0, residual_multiplier=0.5, attention_multiplier=0.2,
    )),
    "starcoder2": ("starcoder2", dict(num_hidden_layers=2, sliding_window=None)),
    "starcoder2-window": ("starcoder2", dict(num_hidden_layers=2, sliding_window=12, tie_word_embeddings=False)),
    "stablelm": ("stablelm", dict(num_hidden_layers=2, use_qkv_bias=True, rope_parameters=dict(ROPE, partial_rotary_factor=0.25))),
    "stablelm-parallel": ("stablelm", dict(
        num_hidden_layers=2, qk_layernorm=True, use_parallel_residual=True, rope_parameters=dict(ROPE, partial_rotary_factor=0.25),
    )),
    "cohere2": ("cohere2", dict(num_hidden_layers=4, sliding_window=12, logit_scale=0.25, rotary_pct=1.0, shards=True)),
    "ernie4_5": ("ernie4_5", dict(num_hidden_layers=2, head_dim=16)),
    "hunyuan_v1_dense": ("hunyuan_v1_dense", dict(
        num_hidden_layers=2, head_dim=16, rope_parameters=dict(
            rope_type="dynamic", alpha=20.0, factor=1.0, rope_theta=10000.0, beta_fast=32, beta_slow=1, mscale=1.0, mscale_all_dim=1.0,
        ),
    )),
    "exaone4": ("exaone4", dict(num_hidden_layers=4, sliding_window=12)),
    "exaone4-full": ("exaone4", dict(num_hidden_layers=2, sliding_window=None, layer_types=["full_attention"] * 2)),
    "gpt_oss": ("gpt_oss", dict(
        num_hidden_layers=2, head_dim=16, sliding_window=12, num_local_experts=5, num_experts_per_tok=2, shards=True,
        rope_parameters=dict(
            rope_type="yarn", rope_theta=10000.0, factor=4.0, beta_fast=32.0, beta_slow=1.0, truncate=False, original_max_position_embeddings=16,
        ),
    )),
    "glm4_moe": ("glm4_moe", dict(
        MOE, num_hidden_layers=3, head_dim=16, n_routed_experts=6, n_shared_experts=2, first_k_dense_replace=1, routed_scaling_factor=1.5,
        use_qk_norm=True, attention_bias=True, num_nextn_predict_layers=0, rope_parameters=dict(ROPE, partial_rotary_factor=0.5),
    )),
    "minimax_m2": ("minimax_m2", dict(num_hidden_layers=2, head_dim=16, num_local_experts=6, num_experts_per_tok=2, rotary_dim=8)),
    "deepseek_v2": ("deepseek_v2", dict(
        MOE, num_hidden_layers=2, num_key_value_heads=4, kv_lora_rank=16, q_lora_rank=None, qk_nope_head_dim=8, qk_rope_head_dim=8,
        v_head_dim=12, n_routed_experts=6, n_shared_experts=2, first_k_dense_replace=1, routed_scaling_factor=1.5,
    )),
    "deepseek_v3": ("deepseek_v3", dict(
        MOE, num_hidden_layers=3, num_key_value_heads=4, kv_lora_rank=16, q_lora_rank=24, qk_nope_head_dim=8, qk_rope_head_dim=8,
        v_head_dim=12, n_routed_experts=8, n_shared_experts=1, first_k_dense_replace=1, n_group=4, topk_group=2, routed_scaling_factor=2.5,
        shards=True, scoring_func="sigmoid", num_nextn_predict_layers=0, rope_parameters=dict(
            rope_type="yarn", rope_theta=10000.0, factor=4.0, original_max_position_embeddings=16, mscale=1.0, mscale_all_dim=0.8,
        ),
    )),
    "ernie4_5_moe": ("ernie4_5_moe", dict(
        num_hidden_layers=4, moe_intermediate_size=24, moe_k=2, moe_num_experts=6, moe_num_shared_experts=2, moe_layer_start_index=1,
        moe_layer_end_index=3, moe_layer_interval=2,
    )),
    "hunyuan_v1_moe": ("hunyuan_v1_moe", dict(num_hidden_layers=2, head_dim=16, num_experts=5, moe_topk=2)),
    "granitemoe": ("granitemoe", dict(
        num_hidden_layers=2, num_local_experts=5, num_experts_per_tok=2, embedding_multiplier=3.0, logits_scaling=2.0,
        residual_multiplier=0.5, attention_multiplier=0.2,
    )),
    "granitemoeshared": ("granitemoeshared", dict(
        num_hidden_layers=2, num_local_experts=5, num_experts_per_tok=2, shared_intermediate_size=40, attention_multiplier=0.2,
    )),
    "lfm2": ("lfm2", dict(
        num_hidden_layers=3, layer_types=["conv", "full_attention", "conv"], full_attn_idxs=None, block_auto_adjust_ff_dim=False,
    )),
    "lfm2-adjusted": ("lfm2", dict(
        num_hidden_layers=2, layer_types=["conv", "full_attention"], full_attn_idxs=None, block_multiple_of=20,
        block_ffn_dim_multiplier=1.5,
    )),
    "lfm2_moe": ("lfm2_moe", dict(
        MOE, num_hidden_layers=3, layer_types=["conv", "full_attention", "conv"], num_dense_layers=1, num_experts=6,
        routed_scaling_factor=1.5,
    )),
    "qwen3_next": ("qwen3_next", dict(
        MOE, **DELTA, num_hidden_layers=4, num_experts=6, shared_expert_intermediate_size=24, shards=True,
    )),
    "qwen3_5": ("qwen3_5_text", dict(DELTA, num_hidden_layers=4)),
    "qwen3_5_moe": ("qwen3_5_moe_text", dict(MOE, **DELTA, num_hidden_layers=4, num_experts=6, shared_expert_intermediate_size=24)),
    "mamba2": ("mamba2", dict(num_hidden_layers=2, intermediate_size=64, num_heads=8, head_dim=8, state_size=8, n_groups=2, expand=2, chunk_size=16)),
    "falcon_h1": ("falcon_h1", dict(
        SCAN, **FALCON, num_hidden_layers=2, head_dim=16, mamba_d_ssm=64, mamba_chunk_size=16, mamba_rms_norm=False,
    )),
    "falcon_h1-norm": ("falcon_h1", dict(
        SCAN, **FALCON, num_hidden_layers=2, head_dim=16, mamba_d_ssm=64, mamba_chunk_size=16, mamba_rms_norm=True, mamba_norm_before_gate=False,
    )),
    "granitemoehybrid": ("granitemoehybrid", dict(
        SCAN, num_hidden_layers=3, mamba_chunk_size=16, layer_types=["linear_attention", "full_attention", "linear_attention"],
        num_local_experts=5, num_experts_per_tok=2, shared_intermediate_size=40, attention_multiplier=0.2, embedding_multiplier=3.0,
        logits_scaling=2.0, residual_multiplier=0.5,
    )),
    "granitemoehybrid-dense": ("granitemoehybrid", dict(
        SCAN, num_hidden_layers=2, mamba_chunk_size=16, layer_types=["linear_attention", "full_attention"], num_local_experts=0,
        num_experts_per_tok=0, shared_intermediate_size=40, position_embedding_type="rope",
    )),
    "nemotron_h": ("nemotron_h", dict(
        num_hidden_layers=4, layers_block_type=["linear_attention", "moe", "full_attention", "mlp"], head_dim=16, ssm_state_size=8,
        mamba_num_heads=8, mamba_head_dim=8, n_groups=2, chunk_size=16, n_routed_experts=6, moe_intermediate_size=24,
        moe_shared_expert_intermediate_size=40, num_experts_per_tok=2, routed_scaling_factor=1.5,
        # A lower bound of steps, which transformers applies and llama.cpp does not.
        time_step_min=1e-30,
    )),
    "gemma4": ("gemma4_text", dict(
        num_hidden_layers=6, head_dim=8, sliding_window=12, vocab_size_per_layer_input=160, hidden_size_per_layer_input=8,
        num_kv_shared_layers=0, global_head_dim=16, final_logit_softcapping=30.0,
    )),
    "gemma4-shared": ("gemma4_text", dict(
        num_hidden_layers=6, head_dim=8, sliding_window=12, vocab_size_per_layer_input=160, hidden_size_per_layer_input=8,
        num_kv_shared_layers=2, global_head_dim=16, use_double_wide_mlp=True, layer_types=["sliding_attention", "full_attention"] * 3,
    )),
    "gemma4-experts": ("gemma4_text", dict(
        num_hidden_layers=6, head_dim=8, sliding_window=12, hidden_size_per_layer_input=0, global_head_dim=16, attention_k_eq_v=True,
        num_global_key_value_heads=1, enable_moe_block=True, num_experts=6, top_k_experts=2, moe_intermediate_size=24,
    )),
    "llama4": ("llama4_text", LLAMA4),
    "llama4-scout": ("llama4_text", dict(LLAMA4, interleave_moe_layer_step=1, rope_parameters=dict(LLAMA3, high_freq_factor=1.0))),
    "llama4-unnormed": ("llama4_text", dict(LLAMA4, use_qk_norm=False, rope_parameters=LLAMA3)),
    "llama4-two": ("llama4_text", dict(LLAMA4, interleave_moe_layer_step=1, num_experts_per_tok=2)),
    "llama4-full": ("llama4_text", dict(LLAMA4, interleave_moe_layer_step=1, no_rope_layers=[1] * 4, attention_chunk_size=None)),
    "llama4-long": ("llama4_text", dict(LLAMA4, **LONG)),
    "llama4-maverick": ("llama4_text", {**LLAMA4, **LONG, "num_local_experts": 128, "intermediate_size": 8, "use_qk_norm": False}),
    "ministral3": ("ministral3", dict(num_hidden_layers=2, head_dim=8, rope_parameters=YARN)),
    "ministral3-scales": ("ministral3", dict(num_hidden_layers=2, head_dim=8, rope_parameters=dict(YARN, mscale_all_dim=0.5))),
    "kimi_linear": ("kimi_linear", dict(
        KIMI, linear_attn_config=dict(head_dim=8, num_heads=4, short_conv_kernel_size=4, full_attn_layers=[2, 5], kda_layers=[1, 3, 4]),
        first_k_dense_replace=1, rms_norm_eps=1e-6, published=True,
    )),
    "kimi_linear-listed": ("kimi_linear", dict(
        KIMI, linear_head_dim=8, linear_num_heads=3, linear_conv_kernel_dim=3, num_expert_group=3, topk_group=2, q_lora_rank=24,
        mlp_layer_types=["sparse", "dense", "sparse", "sparse", "dense"], shards=True,
        # Far from the 1e-6 that the norms within latent attention have in any case.
        rms_norm_eps=1e-3,
    )),
}


def randomise(model):
    """Draws every parameter and every saved buffer anew; what is 1 or counts at first keeps it as its mean."""
    for name, value in model.state_dict().items():
        if not value.is_floating_point():
            continue
        noise = torch.randn(value.shape, dtype=torch.float64)
        if value.dim() < 2 or value.shape[-1] == 1 or "norm" in name:
            drawn = value.double().nan_to_num() + 0.3 * noise
        elif "conv" in name and value.dim() == 3:
            drawn = noise / value.shape[-1] ** 0.5
        elif "embed" in name:
            drawn = noise
        else:
            # Llama 4 has a row for each input in the matrices of its experts.
            turned = model.config.model_type == "llama4_text" and value.dim() == 3
            drawn = 1.2 * noise / value.shape[-2 if turned else -1] ** 0.5
        value.copy_(drawn)


def make(name, folder):
    model_type, settings = MODELS[name]
    settings = {**SIZES, **settings}
    shards, published = settings.pop("shards", False), settings.pop("published", False)
    config = CONFIG_MAPPING[model_type](**settings)
    torch.manual_seed(sum(name.encode()))
    model = AutoModelForCausalLM.from_config(config).float().eval()
    with torch.no_grad():
        randomise(model)
    model.save_pretrained(folder, **(dict(max_shard_size="60KB") if shards else {}))
    if published:
        # transformers saves the networks of dense layers under the name of a mixture.
        file = folder / "model.safetensors"
        names = {name: re.sub(r"block_sparse_moe\.(gate|up|down)_proj", r"mlp.\1_proj", name) for name in load_file(file)}
        save_file({names[name]: value for name, value in load_file(file).items()}, file, metadata={"format": "pt"})


def logits(folder, ids):
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64, attn_implementation="eager", experts_implementation="eager").eval()
    with torch.no_grad():
        return model(torch.tensor([ids]), use_cache=False).logits[0].double().numpy()


def ours(rocmforge, model, ids, out):
    run = [rocmforge, "run", "--device", "cpu", "--kv", "f32", "--model", str(model), "--ids", ",".join(map(str, ids)), "--logits", str(out)]
    done = subprocess.run(run, capture_output=True, text=True)
    if done.returncode != 0:
        lines = [line for line in done.stderr.strip().splitlines() if line]
        return None, (lines or ["no message"])[-1][:300]
    return np.fromfile(out, dtype="<f4").reshape(len(ids), -1).astype(np.float64), ""


def convert(llama, folder, gguf):
    """Runs llama.cpp's converter with a stub in place of the vocabulary."""
    # Without layers that predict further tokens.
    options = ["--no-mtp"] if folder.name.startswith("qwen3_") else []
    # The converter counts the tokens of Gemma 4.
    if folder.name.startswith("gemma4"):
        vocabulary = {"model": {"vocab": {str(id): id for id in range(SIZES["vocab_size"])}}, "added_tokens": []}
        (folder / "tokenizer.json").write_text(json.dumps(vocabulary))
    code = f"""
import sys
sys.path[:0] = [{str(llama)!r}, {str(llama / 'gguf-py')!r}]
import conversion, convert_hf_to_gguf
from conversion.base import TextModel
def stub(self):
    size = self.find_hparam(["vocab_size"])
    self.gguf_writer.add_tokenizer_model("none")
    self.gguf_writer.add_vocab_size(size)
load = conversion.get_model_class
def get(*args, **kwargs):
    found = load(*args, **kwargs)
    for of in [found, *found.__mro__, *vars(found).values()]:
        if isinstance(of, type) and issubclass(of, TextModel):
            of.set_vocab = stub
    return found
conversion.get_model_class = get
convert_hf_to_gguf.get_model_class = get
sys.argv = ["convert", {str(folder)!r}, "--outfile", {str(gguf)!r}, "--outtype", "f32", *{options!r}]
convert_hf_to_gguf.main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stderr.strip().splitlines()[-1][:200]


def difference(rocmforge, model, ids, out, expected):
    """The largest difference of a logit, or why there is none."""
    found, why = ours(rocmforge, model, ids, out)
    return why if found is None else f"{np.abs(found - expected).max():.1e}"


def compare(args, name, ids):
    """A row of the table."""
    folder, out = args.folder / name, args.folder / "logits.f32"
    if not (folder / "config.json").exists():
        make(name, folder)
    expected = logits(folder, ids)
    of_directory = difference(args.rocmforge, folder, ids, out, expected)
    of_gguf = ""
    if args.llama:
        gguf = args.folder / f"{name}.gguf"
        why = "" if gguf.exists() else convert(args.llama, folder, gguf)
        of_gguf = f"not converted: {why}" if why else difference(args.rocmforge, gguf, ids, out, expected)
    return f"| {name} | {np.abs(expected).max():.1f} | {of_directory} | {of_gguf} |"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("rocmforge")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--llama", type=Path)
    parser.add_argument("names", nargs="*")
    args = parser.parse_intermixed_args()
    ids = [int(id) for id in np.random.default_rng(5).integers(3, 160, 40)]
    for name in args.names or MODELS:
        print(compare(args, name, ids), flush=True)


if __name__ == "__main__":
    main()
