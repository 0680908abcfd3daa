//! GGUF files of random weights in any size.

use std::borrow::Cow;

use rocmforge_gguf::{Gguf, TensorType, Writer, blocks};
use rocmforge_testkit::data::{Rng, rng};

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
        let scale = scale / (k as f32).sqrt();
        let bytes = match blocks::can_quantize(ty) {
            true => blocks::quantize(ty, &random.vec_in(n * k, -scale, scale)).expect("whole blocks"),
            false => random_blocks(ty, n * k, scale, &mut random),
        };
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

/// Random blocks of a type that nothing encodes. Their root mean square is about that of numbers between `-scale` and `scale`.
fn random_blocks(ty: TensorType, count: usize, scale: f32, random: &mut Rng) -> Vec<u8> {
    let length = count / ty.block_len() * ty.block_bytes();
    let mut bytes: Vec<u8> = (0..length).map(|_| random.next_u64() as u8).collect();
    let mut with_scale = |scale: f32| {
        for block in bytes.chunks_mut(ty.block_bytes()) {
            set_scale(ty, block, scale);
        }
        let mut values = vec![0.0; count];
        blocks::dequantize(ty, &bytes, &mut values).expect("whole blocks");
        let squares: f32 = values.iter().map(|value| value * value).sum();
        (squares / count as f32).sqrt()
    };
    let of_one = with_scale(1.0);
    with_scale(scale / 3f32.sqrt() / of_one);
    bytes
}

/// The scale of a block: f16, or a power of two near it where the format has a number of 8 bits.
fn set_scale(ty: TensorType, block: &mut [u8], scale: f32) {
    let half = blocks::quantize(TensorType::F16, &[scale]).expect("one number");
    match ty {
        TensorType::Mxfp4 => block[0] = (127.0 + scale.log2().round()) as u8,
        TensorType::Nvfp4 => block[..4].fill(((7.0 + scale.log2().round()).max(1.0) as u8) << 3),
        TensorType::Iq1M => {
            // A nibble in each of the last four numbers of 16 bits.
            for (n, high) in block[49..].iter_mut().step_by(2).enumerate() {
                *high = *high & 15 | (half[n / 2] >> (4 * (n % 2)) & 15) << 4;
            }
        }
        TensorType::Tq1_0 => block[52..54].copy_from_slice(&half),
        TensorType::Tq2_0 => block[64..66].copy_from_slice(&half),
        _ => block[..2].copy_from_slice(&half),
    }
}
