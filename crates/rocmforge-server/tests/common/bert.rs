//! A small random encoder as a GGUF file, and what it must give: its forward pass in f64.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rocmforge_ggml::CpuBackend;
use rocmforge_gguf::{Gguf, TensorType, Value as Meta, Writer};
use rocmforge_models::bert::{Bert, Embedder, EmbedderOptions};
use rocmforge_models::serve::{EmbeddingOptions, EmbeddingServer};
use rocmforge_server::{Facts, LoadError, Loaded, ModelKind, Source};

pub(crate) const WIDTH: usize = 8;
pub(crate) const CONTEXT: usize = 24;
const HEADS: usize = 2;
const INNER: usize = 12;
const LAYERS: usize = 2;
const EPS: f64 = 1e-12;
const MARKS: usize = 4;
const CLS: u32 = 2;
const SEP: u32 = 3;
/// Marks, then words; a word that follows another without a space has no sign before it.
const WORDS: [&str; 12] = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "\u{2581}a",
    "\u{2581}b",
    "\u{2581}c",
    "\u{2581}river",
    "\u{2581}town",
    "s",
    "\u{2581}x",
    "\u{2581}y",
];

/// The id of a word.
pub(crate) fn id(word: &str) -> u32 {
    let found = WORDS
        .iter()
        .position(|known| known.trim_start_matches('\u{2581}') == word);
    found.expect("a word of the model") as u32
}

/// Ids of words with the marks around them.
pub(crate) fn framed(words: &str) -> Vec<u32> {
    let words = words.split_whitespace().map(id);
    [CLS].into_iter().chain(words).chain([SEP]).collect()
}

/// A random encoder.
pub(crate) struct Random {
    tensors: BTreeMap<String, (Vec<usize>, Vec<f32>)>,
    ranks: bool,
}

impl Random {
    /// One that gives embeddings, or scores if it `ranks`. The seed is fixed: its values stand for any.
    pub(crate) fn new(ranks: bool) -> Self {
        let mut state = 42_u64;
        let mut uniform = move || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            ((state >> 40) as f32 / (1 << 24) as f32 - 0.5) * 1.4
        };
        let mut tensors = BTreeMap::new();
        let mut add = |name: String, shape: &[usize], about: f32| {
            let count: usize = shape.iter().product();
            let values = (0..count).map(|_| about + uniform()).collect();
            tensors.insert(name, (shape.to_vec(), values));
        };
        for (name, rows) in [
            ("token_embd", WORDS.len()),
            ("position_embd", CONTEXT),
            ("token_types", 2),
        ] {
            add(format!("{name}.weight"), &[rows, WIDTH], 0.0);
        }
        let mut pair = |name: String, shape: &[usize], about: f32| {
            add(format!("{name}.weight"), shape, about);
            add(format!("{name}.bias"), &shape[..1], 0.0);
        };
        pair("token_embd_norm".to_owned(), &[WIDTH], 1.0);
        for layer in 0..LAYERS {
            for part in ["attn_q", "attn_k", "attn_v", "attn_output"] {
                pair(format!("blk.{layer}.{part}"), &[WIDTH, WIDTH], 0.0);
            }
            pair(format!("blk.{layer}.ffn_up"), &[INNER, WIDTH], 0.0);
            pair(format!("blk.{layer}.ffn_down"), &[WIDTH, INNER], 0.0);
            pair(format!("blk.{layer}.attn_output_norm"), &[WIDTH], 1.0);
            pair(format!("blk.{layer}.layer_output_norm"), &[WIDTH], 1.0);
        }
        if ranks {
            pair("cls".to_owned(), &[WIDTH, WIDTH], 0.0);
            pair("cls.output".to_owned(), &[1, WIDTH], 0.0);
        }
        Self { tensors, ranks }
    }

    /// The file.
    pub(crate) fn gguf(&self) -> Vec<u8> {
        let tokens: Vec<String> = WORDS.iter().map(|&word| word.to_owned()).collect();
        let types: Vec<i32> = (0..WORDS.len()).map(|at| if at < MARKS { 3 } else { 1 }).collect();
        let bytes = |values: &Vec<f32>| values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let bytes: Vec<Vec<u8>> = self.tensors.values().map(|(_, values)| bytes(values)).collect();
        let mut writer = Writer::new();
        for (key, value) in [
            ("general.architecture", Meta::from("bert")),
            ("bert.block_count", Meta::U32(LAYERS as u32)),
            ("bert.context_length", Meta::U32(CONTEXT as u32)),
            ("bert.embedding_length", Meta::U32(WIDTH as u32)),
            ("bert.feed_forward_length", Meta::U32(INNER as u32)),
            ("bert.attention.head_count", Meta::U32(HEADS as u32)),
            ("bert.attention.layer_norm_epsilon", Meta::F32(EPS as f32)),
            ("bert.attention.causal", Meta::Bool(false)),
            ("bert.pooling_type", Meta::U32(if self.ranks { 4 } else { 1 })),
            ("tokenizer.ggml.model", Meta::from("bert")),
            ("tokenizer.ggml.pre", Meta::from("jina-v2-en")),
            ("tokenizer.ggml.token_type_count", Meta::U32(2)),
            ("tokenizer.ggml.tokens", Meta::from(tokens)),
            ("tokenizer.ggml.token_type", Meta::from(types)),
            ("tokenizer.ggml.unknown_token_id", Meta::U32(1)),
            ("tokenizer.ggml.seperator_token_id", Meta::U32(SEP)),
            ("tokenizer.ggml.padding_token_id", Meta::U32(0)),
            ("tokenizer.ggml.cls_token_id", Meta::U32(CLS)),
            ("tokenizer.ggml.bos_token_id", Meta::U32(CLS)),
            ("tokenizer.ggml.eos_token_id", Meta::U32(SEP)),
        ] {
            writer.metadata(key, value).expect("a new key");
        }
        for ((name, (shape, _)), bytes) in self.tensors.iter().zip(&bytes) {
            let dims: Vec<usize> = shape.iter().rev().copied().collect();
            writer
                .tensor(name, &dims, TensorType::F32, bytes)
                .expect("its bytes fit");
        }
        writer.to_bytes().expect("memory")
    }

    /// The model.
    pub(crate) fn open(&self) -> Bert {
        Bert::from_gguf(Gguf::from_bytes(self.gguf()).expect("what was written"), None).expect("a model")
    }

    fn vector(&self, name: &str) -> Vec<f64> {
        self.tensors[name].1.iter().map(|&value| f64::from(value)).collect()
    }

    fn linear(&self, name: &str, x: &[f64]) -> Vec<f64> {
        let (weight, bias) = (
            self.vector(&format!("{name}.weight")),
            self.vector(&format!("{name}.bias")),
        );
        let rows = weight.chunks_exact(x.len()).zip(bias);
        rows.map(|(row, bias)| row.iter().zip(x).map(|(w, x)| w * x).sum::<f64>() + bias)
            .collect()
    }

    fn norm(&self, name: &str, x: &[f64]) -> Vec<f64> {
        let (weight, bias) = (
            self.vector(&format!("{name}.weight")),
            self.vector(&format!("{name}.bias")),
        );
        let mean = x.iter().sum::<f64>() / x.len() as f64;
        let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / x.len() as f64;
        let scale = (variance + EPS).sqrt().recip();
        (x.iter().zip(weight).zip(bias))
            .map(|((x, w), b)| (x - mean) * scale * w + b)
            .collect()
    }

    /// Hidden states of the last layer, of ids of which the first `first` are of type 0.
    fn hidden(&self, ids: &[u32], first: usize) -> Vec<Vec<f64>> {
        let row = |name: &str, at: usize| self.vector(&format!("{name}.weight"))[at * WIDTH..][..WIDTH].to_vec();
        let embed = |(at, &id): (usize, &u32)| {
            let parts = [
                row("token_embd", id as usize),
                row("position_embd", at),
                row("token_types", usize::from(at >= first)),
            ];
            let sum: Vec<f64> = (0..WIDTH).map(|i| parts.iter().map(|part| part[i]).sum()).collect();
            self.norm("token_embd_norm", &sum)
        };
        let mut states: Vec<Vec<f64>> = ids.iter().enumerate().map(embed).collect();
        for layer in 0..LAYERS {
            let name = |part: &str| format!("blk.{layer}.{part}");
            let [q, k, v] = ["attn_q", "attn_k", "attn_v"]
                .map(|part| states.iter().map(|x| self.linear(&name(part), x)).collect::<Vec<_>>());
            let size = WIDTH / HEADS;
            let attend = |token: usize| -> Vec<f64> {
                let head = |head: usize| {
                    let of = |x: &[f64]| x[head * size..][..size].to_vec();
                    let query = of(&q[token]);
                    let scores: Vec<f64> = (k.iter())
                        .map(|k| of(k).iter().zip(&query).map(|(a, b)| a * b).sum::<f64>() / (size as f64).sqrt())
                        .map(f64::exp)
                        .collect();
                    let sum: f64 = scores.iter().sum();
                    (0..size)
                        .map(|i| scores.iter().zip(&v).map(|(s, v)| s / sum * of(v)[i]).sum())
                        .collect::<Vec<f64>>()
                };
                (0..HEADS).flat_map(head).collect()
            };
            let next = (0..states.len()).map(|token| {
                let x = &states[token];
                let add = |a: &[f64], b: &[f64]| -> Vec<f64> { a.iter().zip(b).map(|(a, b)| a + b).collect() };
                let attended = self.linear(&name("attn_output"), &attend(token));
                let x = self.norm(&name("attn_output_norm"), &add(&attended, x));
                let inner: Vec<f64> = (self.linear(&name("ffn_up"), &x).into_iter())
                    .map(|x| 0.5 * x * (1.0 + erf(x / 2f64.sqrt())))
                    .collect();
                let fed = self.linear(&name("ffn_down"), &inner);
                self.norm(&name("layer_output_norm"), &add(&fed, &x))
            });
            states = next.collect();
        }
        states
    }

    /// The embedding of ids: the mean of the hidden states, of length 1.
    pub(crate) fn embedding(&self, ids: &[u32]) -> Vec<f64> {
        let hidden = self.hidden(ids, ids.len());
        let mean: Vec<f64> = (0..WIDTH)
            .map(|i| hidden.iter().map(|x| x[i]).sum::<f64>() / ids.len() as f64)
            .collect();
        let length = mean.iter().map(|x| x * x).sum::<f64>().sqrt();
        mean.iter().map(|x| x / length).collect()
    }

    /// The score of a pair of texts.
    pub(crate) fn score(&self, query: &str, document: &str) -> f64 {
        let first = framed(query);
        let ids = [&first[..], &framed(document)[1..]].concat();
        let pooled: Vec<f64> = (self.linear("cls", &self.hidden(&ids, first.len())[0]).into_iter())
            .map(f64::tanh)
            .collect();
        self.linear("cls.output", &pooled)[0]
    }
}

/// The series of the error function, for the small arguments that there are.
fn erf(x: f64) -> f64 {
    if x.abs() > 4.0 {
        return x.signum();
    }
    let (mut sum, mut term) = (0.0, x);
    for n in 0..200 {
        sum += term / f64::from(2 * n + 1);
        term *= -x * x / f64::from(n + 1);
    }
    2.0 / std::f64::consts::PI.sqrt() * sum
}

/// The random encoder on the CPU; it counts how often it is loaded.
#[derive(Clone, Default)]
pub(crate) struct Encoder {
    pub(crate) ranks: bool,
    /// Whether its kind is known before it is loaded.
    pub(crate) says_kind: bool,
    pub(crate) loads: Arc<AtomicUsize>,
    pub(crate) options: EmbeddingOptions,
}

impl Source for Encoder {
    fn kind(&self) -> Option<ModelKind> {
        let kind = if self.ranks {
            ModelKind::Ranking
        } else {
            ModelKind::Embedding
        };
        self.says_kind.then_some(kind)
    }

    fn load(&self) -> Result<Loaded, LoadError> {
        self.loads.fetch_add(1, Ordering::SeqCst);
        let model = Random::new(self.ranks).open();
        let server = EmbeddingServer::start(self.options, move || {
            Embedder::new(model, CpuBackend::with_threads(1), EmbedderOptions::default())
        })?;
        Ok(Loaded {
            facts: Facts {
                architecture: "bert".to_owned(),
                context: CONTEXT,
                width: WIDTH,
                ..Facts::default()
            },
            ..Loaded::new(server)
        })
    }
}
