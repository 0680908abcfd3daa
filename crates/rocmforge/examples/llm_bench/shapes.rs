//! Shapes of models, and files of random weights in these shapes.

use std::borrow::Cow;
use std::path::Path;

use rocmforge::ggml::DType;
use rocmforge::gguf::{TensorType, Value, Writer, blocks};

use super::Failure;

/// Matrices by name: results, inputs.
type Named<const N: usize> = [(&'static str, [usize; 2]); N];

/// What decides a model's speed.
#[derive(Debug)]
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    arch: Arch,
    layers: usize,
    width: usize,
    heads: usize,
    kv_heads: usize,
    head_dim: usize,
    ff: usize,
    vocab: usize,
    /// The embedding is the output matrix.
    tied: bool,
    experts: Option<Experts>,
}

/// Experts of each layer.
#[derive(Clone, Copy, Debug)]
struct Experts {
    count: usize,
    /// Of a token.
    used: usize,
}

/// What the files of an architecture have beside the matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arch {
    Llama,
    /// Norms of each head of queries and keys.
    Qwen3Moe,
    /// Biases, sinks, and a window in every other layer.
    GptOss,
    /// A gated delta net in three of four layers, gated attention in the others, and an expert that every token is given to.
    Qwen35Moe,
    /// Latent attention; a dense network in the first layer, and in the others an expert that every token is given to.
    Deepseek2,
}

/// Latent attention of GLM 4.7 Flash.
struct Latent {
    /// Elements of a query and of what is kept of a token, on the way.
    query: usize,
    rank: usize,
    /// Elements of a head's key: those of its own, and those that all heads share and that are rotated.
    nope: usize,
    shared: usize,
    value: usize,
}
const LATENT: Latent = Latent {
    query: 768,
    rank: 512,
    nope: 192,
    shared: 64,
    value: 256,
};
/// Width of its first layer's network.
const DENSE: usize = 10_240;

/// Layers of Qwen 3.5 of which the last attends.
const INTERVAL: usize = 4;
/// Its delta nets: heads of keys and of values, elements of each, and tokens that the convolution sees.
const NET: [usize; 4] = [16, 32, 128, 4];

/// What a tensor of floats holds.
#[derive(Clone, Copy)]
enum Floats {
    Ones,
    MinusOnes,
    Random,
}

/// A matrix, or one for each expert.
struct Matrix {
    name: String,
    experts: Option<Experts>,
    /// Results, inputs.
    shape: [usize; 2],
}

const SHAPES: [Shape; 9] = [
    Shape {
        layers: 32,
        width: 4096,
        heads: 32,
        kv_heads: 8,
        ff: 14_336,
        vocab: 128_256,
        ..Shape::of_llama("llama-8b")
    },
    Shape {
        layers: 30,
        width: 576,
        heads: 9,
        kv_heads: 3,
        head_dim: 64,
        ff: 1536,
        vocab: 49_152,
        tied: true,
        ..Shape::of_llama("smollm2-135m")
    },
    // For the simulator.
    Shape {
        layers: 2,
        width: 256,
        heads: 4,
        kv_heads: 2,
        head_dim: 64,
        ff: 512,
        vocab: 320,
        ..Shape::of_llama("tiny")
    },
    Shape {
        arch: Arch::Qwen3Moe,
        layers: 48,
        width: 2048,
        heads: 32,
        kv_heads: 4,
        ff: 768,
        vocab: 151_936,
        experts: Some(Experts { count: 128, used: 8 }),
        ..Shape::of_llama("qwen3-30b-a3b")
    },
    Shape {
        arch: Arch::Qwen35Moe,
        layers: 40,
        width: 2048,
        heads: 16,
        kv_heads: 2,
        head_dim: 256,
        ff: 512,
        vocab: 248_320,
        experts: Some(Experts { count: 256, used: 8 }),
        ..Shape::of_llama("qwen35-35b-a3b")
    },
    Shape {
        arch: Arch::GptOss,
        layers: 24,
        width: 2880,
        heads: 64,
        kv_heads: 8,
        head_dim: 64,
        ff: 2880,
        vocab: 201_088,
        experts: Some(Experts { count: 32, used: 4 }),
        ..Shape::of_llama("gpt-oss-20b")
    },
    Shape {
        arch: Arch::Deepseek2,
        layers: 47,
        width: 2048,
        heads: 20,
        kv_heads: 1,
        head_dim: LATENT.rank + LATENT.shared,
        ff: 1536,
        vocab: 154_880,
        experts: Some(Experts { count: 64, used: 4 }),
        ..Shape::of_llama("glm-4.7-flash")
    },
    // For the simulator.
    Shape {
        arch: Arch::Qwen3Moe,
        layers: 2,
        width: 256,
        heads: 4,
        kv_heads: 2,
        head_dim: 64,
        ff: 256,
        vocab: 320,
        experts: Some(Experts { count: 8, used: 2 }),
        ..Shape::of_llama("tiny-moe")
    },
    Shape {
        arch: Arch::Deepseek2,
        layers: 2,
        width: 256,
        heads: 4,
        kv_heads: 1,
        head_dim: LATENT.rank + LATENT.shared,
        ff: 256,
        vocab: 320,
        experts: Some(Experts { count: 8, used: 2 }),
        ..Shape::of_llama("tiny-latent")
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

    const fn of_llama(name: &'static str) -> Self {
        Self {
            name,
            arch: Arch::Llama,
            layers: 0,
            width: 0,
            heads: 0,
            kv_heads: 0,
            head_dim: 128,
            ff: 0,
            vocab: 0,
            tied: false,
            experts: None,
        }
    }

    /// Whether a layer has attention.
    fn attends(&self, layer: usize) -> bool {
        self.arch != Arch::Qwen35Moe || (layer + 1).is_multiple_of(INTERVAL)
    }

    /// Whether all tokens share the network of a layer.
    fn is_dense(&self, layer: usize) -> bool {
        self.experts.is_none() || self.arch == Arch::Deepseek2 && layer == 0
    }

    /// Width of a layer's network, or of one of its experts.
    fn network(&self, layer: usize) -> usize {
        match self.arch {
            Arch::Deepseek2 if self.is_dense(layer) => DENSE,
            _ => self.ff,
        }
    }

    /// Matrices of latent attention, beside those that have one for each head: their names, and the dimensions of one.
    fn latent(&self) -> (Named<4>, Named<2>) {
        let Latent {
            query,
            rank,
            nope,
            shared,
            value,
        } = LATENT;
        (
            [
                ("attn_q_a", [query, self.width]),
                ("attn_q_b", [self.heads * (nope + shared), query]),
                ("attn_kv_a_mqa", [rank + shared, self.width]),
                ("attn_output", [self.width, self.heads * value]),
            ],
            [("attn_k_b", [rank, nope]), ("attn_v_b", [value, rank])],
        )
    }

    /// The matrices that a token may read, without the embedding's other rows.
    fn matrices(&self) -> impl Iterator<Item = Matrix> {
        let (q, kv) = (self.heads * self.head_dim, self.kv_heads * self.head_dim);
        let layer = move |index: usize| {
            let named = move |name: &str, experts: Option<Experts>, shape| Matrix {
                name: format!("blk.{index}.{name}.weight"),
                experts,
                shape,
            };
            let matrix = move |name: &str, shape| named(name, None, shape);
            // Gated attention has as many rows for the gate.
            let queries = if self.arch == Arch::Qwen35Moe { 2 * q } else { q };
            let mut all = match self.attends(index) {
                true if self.arch == Arch::Deepseek2 => {
                    let (whole, of_heads) = self.latent();
                    let heads = Some(Experts {
                        count: self.heads,
                        used: self.heads,
                    });
                    let whole = whole.map(|(name, shape)| matrix(name, shape)).into_iter();
                    whole
                        .chain(of_heads.map(|(name, shape)| named(name, heads, shape)))
                        .collect()
                }
                true => vec![
                    matrix("attn_q", [queries, self.width]),
                    matrix("attn_k", [kv, self.width]),
                    matrix("attn_v", [kv, self.width]),
                    matrix("attn_output", [self.width, q]),
                ],
                false => {
                    let [key_heads, heads, dim, _] = NET;
                    vec![
                        matrix("attn_qkv", [(2 * key_heads + heads) * dim, self.width]),
                        matrix("attn_gate", [heads * dim, self.width]),
                        matrix("ssm_out", [self.width, heads * dim]),
                    ]
                }
            };
            let dense = self.is_dense(index);
            let ff = self.network(index);
            for (name, shape) in [
                ("ffn_gate", [ff, self.width]),
                ("ffn_up", [ff, self.width]),
                ("ffn_down", [self.width, ff]),
            ] {
                if dense {
                    all.push(matrix(name, shape));
                    continue;
                }
                all.push(named(&format!("{name}_exps"), self.experts, shape));
                if matches!(self.arch, Arch::Qwen35Moe | Arch::Deepseek2) {
                    all.push(matrix(&format!("{name}_shexp"), shape));
                }
            }
            all
        };
        let output = if self.tied { "token_embd" } else { "output" };
        let output = Matrix {
            name: format!("{output}.weight"),
            experts: None,
            shape: [self.vocab, self.width],
        };
        (0..self.layers).flat_map(layer).chain([output])
    }

    /// Bytes of weights that a step of one token reads, and of caches of `depth` tokens together.
    pub(crate) fn bytes_of_a_step(&self, ty: TensorType, kv: DType, depth: usize) -> u64 {
        let read = |matrix: Matrix| matrix.experts.map_or(1, |experts| experts.used) * bytes(ty, matrix.shape);
        let weights: usize = self.matrices().map(read).sum();
        let attend = (0..self.layers).filter(|&layer| self.attends(layer)).count();
        // Latent attention keeps one row of a token, which is key and value.
        let rows = if self.arch == Arch::Deepseek2 { 1 } else { 2 };
        let elements = rows * attend * self.kv_heads * self.head_dim * depth;
        let cache = elements / kv.block_len() * kv.block_bytes();
        // Layers without attention read and write the state of a sequence.
        let [key_heads, heads, dim, taps] = NET;
        let state = heads * dim * dim + (2 * key_heads + heads) * dim * (taps - 1);
        let states = 2 * (self.layers - attend) * state * size_of::<f32>();
        (weights + cache + states) as u64
    }

    /// Vectors and small matrices: the name, the dimensions as a file has them, and what they hold.
    fn floats(&self) -> Vec<(String, Vec<usize>, Floats)> {
        use Floats::{MinusOnes, Ones, Random};
        let mut all = vec![("output_norm.weight".to_owned(), vec![self.width], Ones)];
        let (q, kv) = (self.heads * self.head_dim, self.kv_heads * self.head_dim);
        for index in 0..self.layers {
            let mut add =
                |name: &str, dims: &[usize], holds| all.push((format!("blk.{index}.{name}"), dims.to_vec(), holds));
            add("attn_norm.weight", &[self.width], Ones);
            let network = match self.arch {
                Arch::GptOss | Arch::Qwen35Moe => "post_attention_norm",
                Arch::Llama | Arch::Qwen3Moe | Arch::Deepseek2 => "ffn_norm",
            };
            add(&format!("{network}.weight"), &[self.width], Ones);
            if self.arch == Arch::Deepseek2 {
                add("attn_q_a_norm.weight", &[LATENT.query], Ones);
                add("attn_kv_a_norm.weight", &[LATENT.rank], Ones);
            }
            let Some(Experts { count, .. }) = self.experts.filter(|_| !self.is_dense(index)) else {
                continue;
            };
            add("ffn_gate_inp.weight", &[self.width, count], Random);
            if matches!(self.arch, Arch::Qwen3Moe | Arch::Qwen35Moe) && self.attends(index) {
                add("attn_q_norm.weight", &[self.head_dim], Ones);
                add("attn_k_norm.weight", &[self.head_dim], Ones);
            }
            match self.arch {
                Arch::Llama | Arch::Qwen3Moe => {}
                Arch::Deepseek2 => add("exp_probs_b.bias", &[count], Random),
                Arch::Qwen35Moe => {
                    add("ffn_gate_inp_shexp.weight", &[self.width], Random);
                    if !self.attends(index) {
                        let [key_heads, heads, dim, taps] = NET;
                        add("ssm_beta.weight", &[self.width, heads], Random);
                        add("ssm_alpha.weight", &[self.width, heads], Random);
                        add("ssm_conv1d.weight", &[taps, (2 * key_heads + heads) * dim], Random);
                        add("ssm_a", &[heads], MinusOnes);
                        add("ssm_dt.bias", &[heads], Random);
                        add("ssm_norm.weight", &[dim], Ones);
                    }
                }
                Arch::GptOss => {
                    let experts = [
                        ("ffn_gate_exps", self.ff),
                        ("ffn_up_exps", self.ff),
                        ("ffn_down_exps", self.width),
                    ];
                    for (name, rows) in experts {
                        add(&format!("{name}.bias"), &[rows, count], Random);
                    }
                    let others = [
                        ("attn_q", q),
                        ("attn_k", kv),
                        ("attn_v", kv),
                        ("attn_output", self.width),
                        ("ffn_gate_inp", count),
                    ];
                    for (name, rows) in others {
                        add(&format!("{name}.bias"), &[rows], Random);
                    }
                    add("attn_sinks.weight", &[self.heads], Random);
                }
            }
        }
        all
    }

    /// Writes a model of random weights of one type. A vocabulary without words is enough for llama.cpp.
    ///
    /// # Errors
    /// A matrix has rows that are no whole blocks of the type, or the file cannot be written.
    pub(crate) fn write(&self, ty: TensorType, context: usize, path: &Path) -> Result<(), Failure> {
        if let Some(matrix) = self.matrices().find(|matrix| matrix.shape[1] % ty.block_len() != 0) {
            let [_, inputs] = matrix.shape;
            return Err(format!("{}: {inputs} inputs are no whole blocks of {}", self.name, ty.name()).into());
        }
        let arch = match self.arch {
            Arch::Llama => "llama",
            Arch::Qwen3Moe => "qwen3moe",
            Arch::GptOss => "gpt-oss",
            Arch::Qwen35Moe => "qwen35moe",
            Arch::Deepseek2 => "deepseek2",
        };
        // Qwen 3.5 turns a quarter of each head.
        let rotated = match self.arch {
            Arch::Qwen35Moe => self.head_dim / 4,
            Arch::Deepseek2 => LATENT.shared,
            _ => self.head_dim,
        };
        let value_length = match self.arch {
            Arch::Deepseek2 => LATENT.rank,
            _ => self.head_dim,
        };
        let mut writer = Writer::new();
        writer.metadata("general.architecture", arch)?;
        writer.metadata("tokenizer.ggml.model", "no_vocab")?;
        let mut numbers = vec![
            ("block_count", self.layers),
            ("embedding_length", self.width),
            ("feed_forward_length", self.network(0)),
            ("attention.head_count", self.heads),
            ("attention.head_count_kv", self.kv_heads),
            ("attention.key_length", self.head_dim),
            ("attention.value_length", value_length),
            ("rope.dimension_count", rotated),
            ("context_length", context),
            ("vocab_size", self.vocab),
        ];
        if let Some(Experts { count, used }) = self.experts {
            numbers.extend([
                ("expert_count", count),
                ("expert_used_count", used),
                ("expert_feed_forward_length", self.ff),
            ]);
        }
        match self.arch {
            Arch::Llama | Arch::Qwen3Moe => {}
            Arch::Deepseek2 => {
                numbers.extend([
                    ("attention.key_length_mla", LATENT.nope + LATENT.shared),
                    ("attention.value_length_mla", LATENT.value),
                    ("attention.q_lora_rank", LATENT.query),
                    ("attention.kv_lora_rank", LATENT.rank),
                    ("leading_dense_block_count", 1),
                    ("expert_shared_count", 1),
                    // A sigmoid, with a bias that only chooses.
                    ("expert_gating_func", 2),
                ]);
                writer.metadata(format!("{arch}.expert_weights_scale"), 1.8f32)?;
                writer.metadata(format!("{arch}.expert_weights_norm"), true)?;
            }
            Arch::GptOss => numbers.push(("attention.sliding_window", 128)),
            Arch::Qwen35Moe => {
                let [key_heads, heads, dim, taps] = NET;
                numbers.extend([
                    ("expert_shared_feed_forward_length", self.ff),
                    ("full_attention_interval", INTERVAL),
                    ("ssm.conv_kernel", taps),
                    ("ssm.state_size", dim),
                    ("ssm.group_count", key_heads),
                    ("ssm.time_step_rank", heads),
                    ("ssm.inner_size", heads * dim),
                ]);
                writer.metadata(
                    format!("{arch}.rope.dimension_sections"),
                    Value::from(vec![11_u32, 11, 10, 0]),
                )?;
            }
        }
        for (key, value) in numbers {
            writer.metadata(format!("{arch}.{key}"), u32::try_from(value)?)?;
        }
        writer.metadata(format!("{arch}.attention.layer_norm_rms_epsilon"), 1e-5f32)?;
        writer.metadata(format!("{arch}.rope.freq_base"), 500_000f32)?;
        let embedding = (!self.tied).then(|| Matrix {
            name: "token_embd.weight".to_owned(),
            experts: None,
            shape: [self.vocab, self.width],
        });
        // Matrices are the beginning of one long piece of memory, which the file's tensors share.
        let whole = |matrix: &Matrix| matrix.experts.map_or(1, |experts| experts.count) * bytes(ty, matrix.shape);
        let pattern = pattern(ty, self.width)?;
        let largest = self.matrices().map(|matrix| whole(&matrix)).max().unwrap_or(0);
        let memory: Vec<u8> = pattern.iter().copied().cycle().take(largest).collect();
        for matrix in self.matrices().chain(embedding) {
            let part = Cow::Borrowed(&memory[..whole(&matrix)]);
            // A file has the inner dimension first.
            let [n, k] = matrix.shape;
            let count = matrix.experts.map(|experts| experts.count);
            let dims: Vec<usize> = [k, n].into_iter().chain(count).collect();
            writer.tensor(matrix.name, &dims, ty, part)?;
        }
        let floats = self.floats();
        let most = floats
            .iter()
            .map(|(_, dims, _)| dims.iter().product())
            .max()
            .unwrap_or(0);
        let all = |value: f32| -> Vec<u8> { (0..most).flat_map(|_| value.to_le_bytes()).collect() };
        let (ones, minus_ones) = (all(1.0), all(-1.0));
        let random: Vec<u8> = random(most, self.width).flat_map(f32::to_le_bytes).collect();
        for (name, dims, holds) in floats {
            let elements: usize = dims.iter().product();
            let from = match holds {
                Floats::Ones => &ones,
                Floats::MinusOnes => &minus_ones,
                Floats::Random => &random,
            };
            let part = Cow::Borrowed(&from[..elements * size_of::<f32>()]);
            writer.tensor(name, &dims, TensorType::F32, part)?;
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
    if ty != TensorType::Mxfp4 {
        let values: Vec<f32> = random(PATTERN_BLOCKS * ty.block_len(), width).collect();
        return Ok(blocks::quantize(ty, &values)?);
    }
    // It has no encoder: an exponent, then elements of four bits, whose values have a root mean square of 3.
    let exponent = 127 - (3.0 * (width as f32).sqrt()).log2().round() as u8;
    let bits = random(PATTERN_BLOCKS * ty.block_bytes(), 3).map(|x| (x * 128.0 + 128.0) as u8);
    let bytes = bits
        .enumerate()
        .map(|(at, bits)| if at % ty.block_bytes() == 0 { exponent } else { bits });
    Ok(bytes.collect())
}

/// Numbers around 0 whose products with a row of a model's width stay near 1.
fn random(count: usize, width: usize) -> impl Iterator<Item = f32> {
    let mut state = 0x2545_F491_4F6C_DD1Du64;
    let scale = (3.0 / width as f32).sqrt();
    (0..count).map(move |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        ((state >> 40) as f32 / (1u64 << 23) as f32 - 1.0) * scale
    })
}
