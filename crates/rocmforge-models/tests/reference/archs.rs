//! llama.cpp's own random models with the logits that it computes for them, f32 throughout: `cargo xtask model archs` makes both.

use std::path::{Path, PathBuf};

use rocmforge_ggml::HostAccess;
use rocmforge_models::{Chunk, Engine, Model, Outputs};

use super::engine_for;

/// The files of the models that are computed. Every other file of the folder is refused.
pub(crate) const ARCHS: &[&str] = &[
    "bailingmoe2-moe",
    "cohere2-dense",
    "deepseek2-moe",
    "ernie4_5-moe",
    "ernie4_5-moe-moe",
    "exaone4-dense",
    "falcon-h1-dense",
    "gemma2-dense",
    "gemma3-dense",
    "glm4-dense",
    "glm4moe-moe",
    "gpt-oss-moe",
    "granite-dense",
    "granite-moe",
    "granitehybrid-dense",
    "granitemoe-dense",
    "granitemoe-moe",
    "hunyuan-dense-dense",
    "hunyuan-moe-moe",
    "kimi-linear-moe",
    "lfm2-dense",
    "lfm2moe-moe",
    "llama-dense",
    "llama-moe",
    "llama4-moe",
    "mamba2-dense",
    "mimo2-moe",
    "minimax-m2-moe",
    "mistral3-dense",
    "mistral3-moe",
    "nemotron_h-dense",
    "nemotron_h_moe-dense",
    "olmo2-dense",
    "phi3-dense",
    "qwen2-dense",
    "qwen2moe-moe",
    "qwen3-dense",
    "qwen35-dense",
    "qwen35moe-moe",
    "qwen3moe-moe",
    "qwen3next-moe",
    "seed_oss-dense",
    "smollm3-dense",
    "stablelm-dense",
    "starcoder2-dense",
];

/// Tokens of a sequence, and rows of a file of logits.
pub(crate) const TOKENS: usize = 128;

/// The folder of the models, if it is there.
pub(crate) fn models() -> Option<PathBuf> {
    Some(rocmforge_testkit::test_model_path("llama-archs")).filter(|folder| folder.is_dir())
}

/// The folder of the models, or the end of the test as skipped.
macro_rules! models_or_skip {
    () => {
        match crate::reference::archs::models() {
            Some(folder) => folder,
            None => rocmforge_testkit::skip!("no models of llama.cpp's test: run `cargo xtask model archs`"),
        }
    };
}
pub(crate) use models_or_skip;

/// A model with two sequences of tokens, each with its logits.
pub(crate) struct Judged {
    pub(crate) model: Model,
    sequences: [Expected; 2],
}

struct Expected {
    ids: Vec<u32>,
    logits: Vec<f32>,
}

impl Expected {
    fn read(prefix: &Path) -> Self {
        let read = |extension: &str| {
            let path = format!("{}.{extension}", prefix.display());
            std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
        };
        let ids = String::from_utf8(read("ids")).expect("numbers");
        let ids: Vec<u32> = ids.split(',').map(|id| id.parse().expect("a number")).collect();
        let rows = read("logits");
        let values = rows
            .chunks_exact(4)
            .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]));
        let logits: Vec<f32> = values.collect();
        assert!(
            ids.len() == TOKENS && logits.len().is_multiple_of(TOKENS),
            "{}",
            prefix.display()
        );
        Self { ids, logits }
    }

    /// Normalized mean squared error of the logits of the first tokens: the sum of squared differences over that of llama.cpp's squares.
    fn nmse(&self, found: &[f32], tokens: usize) -> f64 {
        let expected = &self.logits[..self.logits.len() / TOKENS * tokens];
        assert_eq!(found.len(), expected.len(), "logits");
        let square = |x: f32| f64::from(x).powi(2);
        let difference = |(&a, &b): (&f32, &f32)| (f64::from(a) - f64::from(b)).powi(2);
        let error: f64 = found.iter().zip(expected).map(difference).sum();
        error / expected.iter().map(|&x| square(x)).sum::<f64>()
    }
}

impl Judged {
    pub(crate) fn open(folder: &Path, name: &str) -> Self {
        let model = Model::open(folder.join(format!("{name}.gguf")));
        let sequences = ["", ".beside"].map(|suffix| Expected::read(&folder.join(format!("{name}{suffix}"))));
        Self {
            model: model.unwrap_or_else(|error| panic!("{name}: {error}")),
            sequences,
        }
    }

    /// An engine for so many of the sequences.
    pub(crate) fn engine<B: HostAccess>(&self, backend: B, sequences: usize) -> Engine<B> {
        engine_for(backend, &self.model, TOKENS, sequences)
    }

    /// The first sequence alone, in chunks of `chunk`: the error of its first `tokens` rows.
    pub(crate) fn alone<B: HostAccess>(&self, backend: B, tokens: usize, chunk: usize) -> f64 {
        self.alone_in(&mut self.engine(backend, 1), tokens, chunk)
    }

    /// [`Self::alone`] in this engine.
    pub(crate) fn alone_in<B: HostAccess>(&self, engine: &mut Engine<B>, tokens: usize, chunk: usize) -> f64 {
        self.together(engine, tokens, &[chunk])[0]
    }

    /// Both sequences in the same steps, in chunks of different lengths: the larger of their errors.
    pub(crate) fn beside<B: HostAccess>(&self, backend: B, tokens: usize, chunks: [usize; 2]) -> f64 {
        let [first, second] = self.together(&mut self.engine(backend, 2), tokens, &chunks)[..] else {
            panic!("two sequences");
        };
        if first.is_nan() || first > second {
            first
        } else {
            second
        }
    }

    /// One sequence for each length of chunks. A step has a chunk of every sequence that has not ended.
    fn together<B: HostAccess>(&self, engine: &mut Engine<B>, tokens: usize, chunks: &[usize]) -> Vec<f64> {
        let expected = &self.sequences[..chunks.len()];
        let ids = expected
            .iter()
            .map(|sequence| engine.add_sequence(&sequence.ids[..1]).expect("room"));
        let sequences: Vec<_> = ids.collect();
        let mut parts: Vec<_> = expected
            .iter()
            .zip(chunks)
            .map(|(sequence, &chunk)| sequence.ids[..tokens].chunks(chunk))
            .collect();
        let mut found = vec![Vec::new(); chunks.len()];
        loop {
            let next: Vec<(usize, &[u32])> = parts
                .iter_mut()
                .enumerate()
                .filter_map(|(index, parts)| Some((index, parts.next()?)))
                .collect();
            if next.is_empty() {
                break;
            }
            let step: Vec<Chunk<'_>> = next
                .iter()
                .map(|&(index, tokens)| Chunk {
                    sequence: sequences[index],
                    tokens,
                    outputs: Outputs::All,
                })
                .collect();
            let logits = engine.step(&step).expect("runs");
            let mut rows = logits.rows();
            for (index, tokens) in next {
                for row in rows.by_ref().take(tokens.len()) {
                    found[index].extend_from_slice(row);
                }
            }
        }
        let errors = expected.iter().zip(&found);
        errors.map(|(sequence, found)| sequence.nmse(found, tokens)).collect()
    }
}

/// Models with a GELU, which llama.cpp takes from a table of f16.
const GELU: &[&str] = &["gemma2-dense", "gemma3-dense", "starcoder2-dense"];

/// The errors of one model, by how it was computed. Prints them; those that are too large, and what is no number, are appended to `wrong`. Attention
/// without rotary embedding is an error of 1e-8: the weights of these models are small.
pub(crate) fn judge(name: &str, errors: &[(&str, f64)], wrong: &mut Vec<String>) {
    let most = if GELU.contains(&name) { 1e-7 } else { 1e-11 };
    let text: Vec<String> = errors.iter().map(|(way, error)| format!("{way} {error:.1e}")).collect();
    println!("{name:24} {}", text.join(", "));
    let bad = errors.iter().filter(|(_, error)| error.is_nan() || *error > most);
    wrong.extend(bad.map(|(way, error)| format!("{name}, {way}: {error:.1e} is above {most:.0e}")));
}
