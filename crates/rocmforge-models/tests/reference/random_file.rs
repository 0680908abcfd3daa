//! GGUF files of random weights in any size.

use std::borrow::Cow;

use rocmforge_gguf::{Gguf, TensorType, Writer, blocks};
use rocmforge_testkit::data::rng;

/// SmolLM2's tensors in another size, of random values.
pub(crate) fn random_file([layers, width, heads, kv_heads, head_dim, ff, vocab]: [usize; 7], ty: TensorType) -> Gguf {
    let mut random = rng(77);
    let mut writer = Writer::new();
    writer.metadata("general.architecture", "llama").expect("a new key");
    for (key, value) in [
        ("block_count", layers),
        ("embedding_length", width),
        ("feed_forward_length", ff),
        ("attention.head_count", heads),
        ("attention.head_count_kv", kv_heads),
        ("attention.key_length", head_dim),
        ("attention.value_length", head_dim),
        ("rope.dimension_count", head_dim),
        ("context_length", 128),
        ("vocab_size", vocab),
    ] {
        writer
            .metadata(format!("llama.{key}"), value as u32)
            .expect("a new key");
    }
    writer
        .metadata("llama.attention.layer_norm_rms_epsilon", 1e-5f32)
        .expect("a new key");
    writer.metadata("llama.rope.freq_base", 10_000f32).expect("a new key");
    let (q, kv) = (heads * head_dim, kv_heads * head_dim);
    let mut matrices = vec![("token_embd.weight".to_owned(), [vocab, width])];
    let mut norms = vec!["output_norm.weight".to_owned()];
    for layer in 0..layers {
        let names = [
            ("attn_q", [q, width]),
            ("attn_k", [kv, width]),
            ("attn_v", [kv, width]),
            ("attn_output", [width, q]),
            ("ffn_gate", [ff, width]),
            ("ffn_up", [ff, width]),
            ("ffn_down", [width, ff]),
        ];
        matrices.extend(names.map(|(name, shape)| (format!("blk.{layer}.{name}.weight"), shape)));
        norms.extend(["attn_norm", "ffn_norm"].map(|name| format!("blk.{layer}.{name}.weight")));
    }
    for (name, [n, k]) in matrices {
        // Queries and keys large enough that attention has its favourites.
        let scale = if name.contains("attn_q") || name.contains("attn_k") {
            3.0
        } else {
            1.7
        };
        let values = random.vec_in(n * k, -scale / (k as f32).sqrt(), scale / (k as f32).sqrt());
        let bytes = blocks::quantize(ty, &values).expect("whole blocks");
        writer
            .tensor(name, &[k, n], ty, Cow::Owned(bytes))
            .expect("a new tensor");
    }
    let ones: Vec<u8> = (0..width).flat_map(|_| 1f32.to_le_bytes()).collect();
    for name in norms {
        writer
            .tensor(name, &[width], TensorType::F32, Cow::Borrowed(ones.as_slice()))
            .expect("a new tensor");
    }
    Gguf::from_bytes(writer.to_bytes().expect("a file")).expect("as it was written")
}
