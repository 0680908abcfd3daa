//! Models of the self-test: tiny ones whose weights follow from a rule, one for each family of kernels.

use rocmforge::ggml::DType;
use rocmforge::gguf::{Gguf, TensorType, Value, Writer, blocks};
use rocmforge::models::{KvType, Model};

use crate::failure::Failure;

/// Elements of a hidden vector, and of a network's.
const WIDTH: usize = 256;
const HEADS: usize = 4;
const KV_HEADS: usize = 2;
/// Tokens of the vocabulary.
const VOCAB: usize = 64;
/// The same where candidates are searched: more than a wave, so that the search has several.
const WIDE_VOCAB: usize = 512;
const EXPERTS: usize = 5;
/// Columns of a recurrent state, heads of them, and heads of what writes and reads it.
const STATE: usize = 128;
const STATE_HEADS: usize = 4;
const STATE_GROUPS: usize = 2;
/// Tokens that a convolution sees.
const TAPS: usize = 4;
/// Of these models' 39 tokens a window hides most.
const WINDOW: u32 = 12;

/// What a model has that the others have not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// A Llama with heads of 64 elements.
    Plain,
    /// A Llama with heads of so many.
    Heads(usize),
    /// A Mixtral: two of five experts.
    Experts,
    /// As gpt-oss: sinks, a window in the first of two layers, biases, two of five experts.
    Sinks,
    /// As Gemma 3: GELU with a gate, a window, norms of heads and behind the parts of a layer.
    Gelu,
    /// As StarCoder 2: GELU without a gate, layer normalisation, biases.
    LayerNorm,
    /// As Qwen 3.5: a gated delta net in place of attention.
    DeltaNet,
    /// As Mamba 2: a selective scan in place of attention and network.
    Scan,
    /// [`Shape::Plain`], of whose logits the device searches the largest.
    Candidates,
}

impl Shape {
    /// Those that have one model each.
    pub(super) const OTHERS: [Self; 6] = [
        Self::Sinks,
        Self::Gelu,
        Self::LayerNorm,
        Self::DeltaNet,
        Self::Scan,
        Self::Candidates,
    ];
}

/// A family of kernels: a type of weights, one of the cache, and a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Family {
    pub(super) weights: TensorType,
    pub(super) kv: KvType,
    pub(super) shape: Shape,
}

/// Types that can be packed and nothing here encodes: their blocks are random, with a scale that suits.
const WITHOUT_ENCODER: [TensorType; 3] = [TensorType::Iq4Nl, TensorType::Iq4Xs, TensorType::Mxfp4];

impl Family {
    pub(super) const fn plain(weights: TensorType) -> Self {
        Self::shaped(Shape::Plain, weights)
    }

    pub(super) const fn shaped(shape: Shape, weights: TensorType) -> Self {
        Self {
            weights,
            kv: KvType::F16,
            shape,
        }
    }

    /// The types of weights that have an encoder or a scale that is set here, all types of the cache, and all shapes.
    pub(super) fn all() -> Vec<Self> {
        let is_made = |ty: &TensorType| {
            let is_encodable = |dtype: DType| dtype.is_weight() && dtype.is_encodable();
            DType::of_tensor_type(*ty).is_some_and(is_encodable) || WITHOUT_ENCODER.contains(ty)
        };
        let weights = TensorType::ALL.iter().copied().filter(is_made).map(Self::plain);
        let caches = [KvType::F32, KvType::Bf16, KvType::Q8_0].map(|kv| Self {
            kv,
            ..Self::plain(TensorType::F16)
        });
        let heads = [32, 80, 128, 256].map(|dim| Self::shaped(Shape::Heads(dim), TensorType::F16));
        let experts = [TensorType::F16, TensorType::Q4_0, TensorType::Q4K, TensorType::Mxfp4];
        let experts = experts.map(|ty| Self::shaped(Shape::Experts, ty));
        let others = Shape::OTHERS.map(|shape| Self::shaped(shape, TensorType::F16));
        weights
            .chain(caches)
            .chain(heads)
            .chain(experts)
            .chain(others)
            .collect()
    }

    pub(super) fn name(self) -> String {
        match (self.shape, self.kv) {
            (Shape::Plain, KvType::F16) => format!("weights {}", self.weights.name()),
            (Shape::Plain, kv) => format!("cache {}", DType::from(kv)),
            (Shape::Heads(dim), _) => format!("heads of {dim}"),
            (Shape::Experts, _) => format!("experts {}", self.weights.name()),
            (Shape::Sinks, _) => "sinks and window".to_owned(),
            (Shape::Gelu, _) => "GELU and window".to_owned(),
            (Shape::LayerNorm, _) => "GELU and layer norm".to_owned(),
            (Shape::DeltaNet, _) => "gated delta net".to_owned(),
            (Shape::Scan, _) => "selective scan".to_owned(),
            (Shape::Candidates, _) => format!("largest {CANDIDATES} logits"),
        }
    }

    /// How many of the largest logits the device searches; 0: none.
    pub(super) fn candidates(self) -> usize {
        match self.shape {
            Shape::Candidates => CANDIDATES,
            _ => 0,
        }
    }

    fn vocab(self) -> usize {
        match self.shape {
            Shape::Candidates => WIDE_VOCAB,
            _ => VOCAB,
        }
    }
}

/// Logits that the device searches.
const CANDIDATES: usize = 16;

/// A change of a model, which the self-test must find.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Change {
    /// Factor of the last matrix of each network, of sinks, and of what is added to steps of recurrent layers.
    pub(super) factor: f32,
    pub(super) window: u32,
}

impl Change {
    pub(super) const NONE: Self = Self {
        factor: 1.0,
        window: WINDOW,
    };
}

/// Random numbers that are the same on every machine.
struct Rule(u64);

impl Rule {
    fn of(name: &str) -> Self {
        Self(name.bytes().fold(0x2545_F491_4F6C_DD1D, |state, byte| {
            (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
        }))
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Between -1 and 1.
    fn value(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1_u32 << 23) as f32 - 1.0
    }
}

/// Numbers between -1 and 1, times `scale`.
fn values(name: &str, count: usize, scale: f32) -> Vec<f32> {
    let mut rule = Rule::of(name);
    (0..count).map(|_| rule.value() * scale).collect()
}

fn bytes_of(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// Blocks of a type: encoded numbers between -1 / 8 and 1 / 8, or random blocks with numbers of about this size.
fn matrix(name: &str, ty: TensorType, count: usize, factor: f32) -> Result<Vec<u8>, Failure> {
    // A product's results are near 1.
    let scale = 0.125 * factor;
    if ty == TensorType::F32 {
        return Ok(bytes_of(&values(name, count, scale)));
    }
    if !WITHOUT_ENCODER.contains(&ty) {
        return Ok(blocks::quantize(ty, &values(name, count, scale))?);
    }
    let mut rule = Rule::of(name);
    let length = count / ty.block_len() * ty.block_bytes();
    let mut bytes: Vec<u8> = (0..length).map(|_| (rule.next() >> 40) as u8).collect();
    // The largest code is 127, of IQ4_XS times 32; of MXFP4 it is 6, and the scale is a power of 2.
    let half = |scale: f32| blocks::quantize(TensorType::F16, &[scale * factor]);
    let scale = match ty {
        TensorType::Iq4Nl => half(1e-3)?,
        TensorType::Iq4Xs => half(6e-5)?,
        _ => vec![(122.0 + factor.log2().ceil()) as u8],
    };
    for block in bytes.chunks_exact_mut(ty.block_bytes()) {
        block[..scale.len()].copy_from_slice(&scale);
    }
    Ok(bytes)
}

/// A model in the making.
struct Making {
    writer: Writer<'static>,
    family: Family,
    change: Change,
}

impl Making {
    fn number(&mut self, key: &str, value: usize) -> Result<(), Failure> {
        self.key(key, u32::try_from(value)?)
    }

    fn key(&mut self, key: &str, value: impl Into<Value>) -> Result<(), Failure> {
        self.writer.metadata(key, value)?;
        Ok(())
    }

    /// A matrix, or one for each expert.
    fn matrix(&mut self, name: &str, dims: &[usize]) -> Result<(), Failure> {
        let factor = match name.contains("ffn_down") {
            true => self.change.factor,
            false => 1.0,
        };
        let bytes = matrix(name, self.family.weights, dims.iter().product(), factor)?;
        self.writer
            .tensor(format!("{name}.weight"), dims, self.family.weights, bytes)?;
        Ok(())
    }

    fn vector(&mut self, name: &str, dims: &[usize], values: &[f32]) -> Result<(), Failure> {
        self.writer.tensor(name, dims, TensorType::F32, bytes_of(values))?;
        Ok(())
    }

    /// Factors of a norm: 1 for some shapes.
    fn norm(&mut self, name: &str, length: usize) -> Result<(), Failure> {
        let spread = match self.family.shape {
            Shape::Plain => 0.0,
            _ => 0.3,
        };
        let factors: Vec<f32> = values(name, length, spread).iter().map(|value| 1.0 + value).collect();
        self.vector(&format!("{name}.weight"), &[length], &factors)?;
        match self.family.shape {
            Shape::LayerNorm => self.bias(name, &[length]),
            _ => Ok(()),
        }
    }

    fn bias(&mut self, name: &str, dims: &[usize]) -> Result<(), Failure> {
        let name = format!("{name}.bias");
        let values = values(&name, dims.iter().product(), 0.3);
        self.vector(&name, dims, &values)
    }

    /// The norm and the recurrent part of a layer. A head has a state of 128 columns.
    fn recurrent(&mut self, at: &str) -> Result<(), Failure> {
        let is_scan = self.family.shape == Shape::Scan;
        let (inner, heads, groups) = (STATE_HEADS * STATE, STATE_HEADS, STATE_GROUPS);
        let channels = inner + 2 * groups * STATE;
        self.norm(&format!("{at}.attn_norm"), WIDTH)?;
        let conv = format!("{at}.ssm_conv1d");
        let taps = values(&conv, channels * TAPS, 0.5);
        self.vector(&format!("{conv}.weight"), &[TAPS, channels], &taps)?;
        let name = format!("{at}.ssm_dt.bias");
        let steps = values(&name, heads, 0.3 * self.change.factor);
        self.vector(&name, &[heads], &steps)?;
        let name = format!("{at}.ssm_a");
        let rates: Vec<f32> = values(&name, heads, 0.5).iter().map(|value| value - 0.6).collect();
        if is_scan {
            self.matrix(&format!("{at}.ssm_in"), &[WIDTH, inner + channels + heads])?;
            self.bias(&conv, &[channels])?;
            self.vector(&name, &[1, heads], &rates)?;
            let name = format!("{at}.ssm_d");
            self.vector(&name, &[1, heads], &values(&name, heads, 1.0))?;
            let name = format!("{at}.ssm_norm.weight");
            let factors = values(&name, inner, 1.0);
            self.vector(&name, &[inner / groups, groups], &factors)?;
            return self.matrix(&format!("{at}.ssm_out"), &[inner, WIDTH]);
        }
        self.vector(&name, &[heads], &rates)?;
        self.matrix(&format!("{at}.attn_qkv"), &[WIDTH, channels])?;
        self.matrix(&format!("{at}.attn_gate"), &[WIDTH, inner])?;
        self.matrix(&format!("{at}.ssm_beta"), &[WIDTH, heads])?;
        self.matrix(&format!("{at}.ssm_alpha"), &[WIDTH, heads])?;
        self.norm(&format!("{at}.ssm_norm"), STATE)?;
        self.matrix(&format!("{at}.ssm_out"), &[inner, WIDTH])?;
        self.norm(&format!("{at}.post_attention_norm"), WIDTH)
    }

    /// The part of a layer before its network.
    fn attention(&mut self, at: &str, dim: usize) -> Result<(), Failure> {
        let shape = self.family.shape;
        let has_biases = matches!(shape, Shape::Sinks | Shape::LayerNorm);
        self.norm(&format!("{at}.attn_norm"), WIDTH)?;
        for (part, heads) in [("q", HEADS), ("k", KV_HEADS), ("v", KV_HEADS)] {
            let name = format!("{at}.attn_{part}");
            self.matrix(&name, &[WIDTH, heads * dim])?;
            if has_biases {
                self.bias(&name, &[heads * dim])?;
            }
        }
        if shape == Shape::Gelu {
            self.norm(&format!("{at}.attn_q_norm"), dim)?;
            self.norm(&format!("{at}.attn_k_norm"), dim)?;
        }
        if shape == Shape::Sinks {
            let name = format!("{at}.attn_sinks.weight");
            let sinks = values(&name, HEADS, 2.0 * self.change.factor);
            self.vector(&name, &[HEADS], &sinks)?;
        }
        let name = format!("{at}.attn_output");
        self.matrix(&name, &[HEADS * dim, WIDTH])?;
        if has_biases {
            self.bias(&name, &[WIDTH])?;
        }
        match shape {
            Shape::Gelu => {
                self.norm(&format!("{at}.post_attention_norm"), WIDTH)?;
                self.norm(&format!("{at}.ffn_norm"), WIDTH)
            }
            Shape::Sinks => self.norm(&format!("{at}.post_attention_norm"), WIDTH),
            _ => self.norm(&format!("{at}.ffn_norm"), WIDTH),
        }
    }

    fn network(&mut self, at: &str) -> Result<(), Failure> {
        let shape = self.family.shape;
        if matches!(shape, Shape::Experts | Shape::Sinks) {
            let router = format!("{at}.ffn_gate_inp.weight");
            let scores = values(&router, WIDTH * EXPERTS, 0.3);
            self.vector(&router, &[WIDTH, EXPERTS], &scores)?;
            if shape == Shape::Sinks {
                self.bias(&format!("{at}.ffn_gate_inp"), &[EXPERTS])?;
            }
            for part in ["gate", "up", "down"] {
                let name = format!("{at}.ffn_{part}_exps");
                self.matrix(&name, &[WIDTH, WIDTH, EXPERTS])?;
                if shape == Shape::Sinks {
                    self.bias(&name, &[WIDTH, EXPERTS])?;
                }
            }
            return Ok(());
        }
        let parts: &[&str] = match shape {
            Shape::LayerNorm => &["up", "down"],
            _ => &["gate", "up", "down"],
        };
        for part in parts {
            let name = format!("{at}.ffn_{part}");
            self.matrix(&name, &[WIDTH, WIDTH])?;
            if shape == Shape::LayerNorm {
                self.bias(&name, &[WIDTH])?;
            }
        }
        match shape {
            Shape::Gelu => self.norm(&format!("{at}.post_ffw_norm"), WIDTH),
            _ => Ok(()),
        }
    }
}

/// The model of a family.
pub(super) fn model(family: Family, change: Change) -> Result<Model, Failure> {
    let (architecture, layers) = match family.shape {
        Shape::Sinks => ("gpt-oss", 2),
        Shape::Gelu => ("gemma3", 1),
        Shape::LayerNorm => ("starcoder2", 1),
        Shape::DeltaNet => ("qwen35", 1),
        Shape::Scan => ("mamba2", 1),
        _ => ("llama", 1),
    };
    let dim = match family.shape {
        Shape::Heads(dim) => dim,
        _ => WIDTH / HEADS,
    };
    let vocab = family.vocab();
    let mut making = Making {
        writer: Writer::new(),
        family,
        change,
    };
    let named = |key: &str| format!("{architecture}.{key}");
    making.key("general.architecture", architecture)?;
    making.key("tokenizer.ggml.model", "no_vocab")?;
    for (key, value) in [
        ("block_count", layers),
        ("embedding_length", WIDTH),
        ("feed_forward_length", WIDTH),
        ("attention.head_count", HEADS),
        ("attention.head_count_kv", KV_HEADS),
        ("context_length", 64),
        ("vocab_size", vocab),
    ] {
        making.number(&named(key), value)?;
    }
    match family.shape {
        Shape::LayerNorm => making.key(&named("attention.layer_norm_epsilon"), 1e-5_f32)?,
        _ => making.key(&named("attention.layer_norm_rms_epsilon"), 1e-5_f32)?,
    }
    if matches!(family.shape, Shape::Heads(_) | Shape::Gelu | Shape::Sinks) {
        making.number(&named("attention.key_length"), dim)?;
        making.number(&named("attention.value_length"), dim)?;
    }
    if let Shape::Heads(dim) = family.shape {
        making.number(&named("rope.dimension_count"), dim)?;
    }
    if matches!(family.shape, Shape::Gelu | Shape::Sinks) {
        making.key(&named("attention.sliding_window"), change.window)?;
    }
    if matches!(family.shape, Shape::Experts | Shape::Sinks) {
        making.number(&named("expert_count"), EXPERTS)?;
        making.number(&named("expert_used_count"), 2)?;
    }
    if matches!(family.shape, Shape::DeltaNet | Shape::Scan) {
        for (key, value) in [
            ("ssm.conv_kernel", TAPS),
            ("ssm.state_size", STATE),
            ("ssm.group_count", STATE_GROUPS),
            ("ssm.time_step_rank", STATE_HEADS),
            ("ssm.inner_size", STATE_HEADS * STATE),
        ] {
            making.number(&named(key), value)?;
        }
    }
    if family.shape == Shape::Sinks {
        making.number(&named("expert_feed_forward_length"), WIDTH)?;
    }
    making.matrix("token_embd", &[WIDTH, vocab])?;
    // Gemma 3's is always that of the embedding.
    if family.shape != Shape::Gelu {
        making.matrix("output", &[WIDTH, vocab])?;
    }
    for layer in 0..layers {
        let at = format!("blk.{layer}");
        match family.shape {
            Shape::Scan => making.recurrent(&at)?,
            Shape::DeltaNet => {
                making.recurrent(&at)?;
                making.network(&at)?;
            }
            _ => {
                making.attention(&at, dim)?;
                making.network(&at)?;
            }
        }
    }
    making.norm("output_norm", WIDTH)?;
    Ok(Model::from_gguf(Gguf::from_bytes(making.writer.to_bytes()?)?)?)
}
