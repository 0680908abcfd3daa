//! Shapes of models, and files of random weights in these shapes.

use std::borrow::Cow;
use std::path::Path;

use rocmforge::ggml::DType;
use rocmforge::gguf::{TensorType, Writer, blocks};

use super::Failure;

/// What decides a model's speed.
#[derive(Debug)]
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    layers: usize,
    width: usize,
    heads: usize,
    kv_heads: usize,
    head_dim: usize,
    ff: usize,
    vocab: usize,
    /// The embedding is the output matrix.
    tied: bool,
}

const SHAPES: [Shape; 3] = [
    Shape {
        name: "llama-8b",
        layers: 32,
        width: 4096,
        heads: 32,
        kv_heads: 8,
        head_dim: 128,
        ff: 14_336,
        vocab: 128_256,
        tied: false,
    },
    Shape {
        name: "smollm2-135m",
        layers: 30,
        width: 576,
        heads: 9,
        kv_heads: 3,
        head_dim: 64,
        ff: 1536,
        vocab: 49_152,
        tied: true,
    },
    // For the simulator.
    Shape {
        name: "tiny",
        layers: 2,
        width: 256,
        heads: 4,
        kv_heads: 2,
        head_dim: 64,
        ff: 512,
        vocab: 320,
        tied: false,
    },
];

/// Values of which every matrix is made, over and over: a prime number of blocks, so that rows differ.
const PATTERN_BLOCKS: usize = 1021;

impl Shape {
    pub(crate) fn of(name: &str) -> Result<&'static Self, Failure> {
        let found = SHAPES.iter().find(|shape| shape.name == name);
        let names: Vec<&str> = SHAPES.iter().map(|shape| shape.name).collect();
        found.ok_or_else(|| format!("no shape is called {name:?}; there are {}", names.join(", ")).into())
    }

    /// Weights that a token reads: all matrices, without the embedding's other rows.
    fn matrices(&self) -> impl Iterator<Item = (String, [usize; 2])> {
        let (q, kv) = (self.heads * self.head_dim, self.kv_heads * self.head_dim);
        let layer = move |index: usize| {
            [
                ("attn_q", [q, self.width]),
                ("attn_k", [kv, self.width]),
                ("attn_v", [kv, self.width]),
                ("attn_output", [self.width, q]),
                ("ffn_gate", [self.ff, self.width]),
                ("ffn_up", [self.ff, self.width]),
                ("ffn_down", [self.width, self.ff]),
            ]
            .map(|(name, shape)| (format!("blk.{index}.{name}.weight"), shape))
        };
        let output = if self.tied {
            "token_embd.weight"
        } else {
            "output.weight"
        };
        let output = (output.to_owned(), [self.vocab, self.width]);
        (0..self.layers).flat_map(layer).chain([output])
    }

    /// Bytes of weights that a step reads, and of caches of `depth` tokens together.
    pub(crate) fn bytes_of_a_step(&self, ty: TensorType, kv: DType, depth: usize) -> u64 {
        let weights: usize = self.matrices().map(|(_, shape)| bytes(ty, shape)).sum();
        let elements = 2 * self.layers * self.kv_heads * self.head_dim * depth;
        let cache = elements / kv.block_len() * kv.block_bytes();
        (weights + cache) as u64
    }

    /// Writes a model of random weights of one type. A vocabulary without words is enough for llama.cpp.
    pub(crate) fn write(&self, ty: TensorType, context: usize, path: &Path) -> Result<(), Failure> {
        let pattern = pattern(ty, self.width)?;
        let ones: Vec<u8> = (0..self.width).flat_map(|_| 1f32.to_le_bytes()).collect();
        let mut writer = Writer::new();
        writer.metadata("general.architecture", "llama")?;
        writer.metadata("tokenizer.ggml.model", "no_vocab")?;
        let numbers = [
            ("block_count", self.layers),
            ("embedding_length", self.width),
            ("feed_forward_length", self.ff),
            ("attention.head_count", self.heads),
            ("attention.head_count_kv", self.kv_heads),
            ("rope.dimension_count", self.head_dim),
            ("context_length", context),
            ("vocab_size", self.vocab),
        ];
        for (key, value) in numbers {
            writer.metadata(format!("llama.{key}"), u32::try_from(value)?)?;
        }
        writer.metadata("llama.attention.layer_norm_rms_epsilon", 1e-5f32)?;
        writer.metadata("llama.rope.freq_base", 500_000f32)?;
        let embedding = ("token_embd.weight".to_owned(), [self.vocab, self.width]);
        let more = (!self.tied).then_some(embedding);
        // Matrices are the beginning of one long piece of memory, which the file's tensors share.
        let largest = self.matrices().map(|(_, shape)| bytes(ty, shape)).max().unwrap_or(0);
        let memory: Vec<u8> = pattern.iter().copied().cycle().take(largest).collect();
        for (name, shape) in self.matrices().chain(more) {
            let part = Cow::Borrowed(&memory[..bytes(ty, shape)]);
            // A file has the inner dimension first.
            let [n, k] = shape;
            writer.tensor(name, &[k, n], ty, part)?;
        }
        let norms = (0..self.layers)
            .flat_map(|index| ["attn_norm", "ffn_norm"].map(|name| format!("blk.{index}.{name}.weight")));
        for name in norms.chain(["output_norm.weight".to_owned()]) {
            writer.tensor(name, &[self.width], TensorType::F32, Cow::Borrowed(ones.as_slice()))?;
        }
        writer.write_file(path)?;
        Ok(())
    }
}

fn bytes(ty: TensorType, [n, k]: [usize; 2]) -> usize {
    n * k / ty.block_len() * ty.block_bytes()
}

/// Blocks of numbers around 0 whose products with a row of a model's width stay near 1.
fn pattern(ty: TensorType, width: usize) -> Result<Vec<u8>, Failure> {
    let mut state = 0x2545_F491_4F6C_DD1Du64;
    let scale = (3.0 / width as f32).sqrt();
    let values = (0..PATTERN_BLOCKS * ty.block_len()).map(|_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        ((state >> 40) as f32 / (1u64 << 23) as f32 - 1.0) * scale
    });
    Ok(blocks::quantize(ty, &values.collect::<Vec<_>>())?)
}
