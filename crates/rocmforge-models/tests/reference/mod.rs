//! Fixtures of the f64 reference, and the comparison of an engine with them. README.md says how they were made.
#![allow(dead_code)] // each test program uses a part

pub(crate) mod archs;
mod candidates;
pub(crate) mod encoders;
pub(crate) mod load;
mod random_file;

use std::path::{Path, PathBuf};

pub(crate) use candidates::check_candidates;
pub(crate) use load::check_load;
pub(crate) use random_file::random_file;
use rocmforge_ggml::HostAccess;
use rocmforge_gguf::Gguf;
use rocmforge_models::{Chunk, Engine, EngineOptions, Limit, Model, Outputs};
use serde::Deserialize;

/// Two logits this close may change places in f32.
pub(crate) const TIE: f64 = 1e-3;
/// Largest difference of a logit between f32 and f64.
pub(crate) const LOGIT: f64 = 1e-3;

#[derive(Deserialize)]
pub(crate) struct Fixture {
    pub(crate) vocabulary: usize,
    every: usize,
    logits: String,
    pub(crate) prompts: Vec<Prompt>,
    pub(crate) scored: Scored,
    #[serde(skip)]
    rows: Vec<f32>,
}

#[derive(Deserialize)]
pub(crate) struct Prompt {
    pub(crate) name: String,
    pub(crate) ids: Vec<u32>,
    pub(crate) greedy: Vec<u32>,
    pub(crate) gaps: Vec<f64>,
    largest_ids: Vec<usize>,
}

/// A text whose next tokens are predicted at each position.
#[derive(Deserialize)]
pub(crate) struct Scored {
    pub(crate) ids: Vec<u32>,
    pub(crate) best: Vec<u32>,
    pub(crate) gaps: Vec<f64>,
    pub(crate) nll: Vec<f64>,
    pub(crate) perplexity: f64,
}

/// The folder with the fixtures: where the test runs, which is the crate's folder or one of a bundle, or else where it was built.
pub(crate) fn folder() -> PathBuf {
    let place = Path::new("tests/reference");
    match place.exists() {
        true => place.to_owned(),
        false => Path::new(env!("CARGO_MANIFEST_DIR")).join(place),
    }
}

impl Fixture {
    pub(crate) fn load(name: &str) -> Self {
        let text = std::fs::read(folder().join(format!("{name}.json"))).expect("a committed fixture");
        let mut fixture: Self = serde_json::from_slice(&text).expect("the fixture's format");
        let rows = std::fs::read(folder().join(&fixture.logits)).expect("a committed fixture");
        fixture.rows = bytemuck::pod_collect_to_vec(&rows);
        fixture
    }

    /// The reference's logits after prompt `index`, as pairs of id and value.
    fn logits(&self, index: usize) -> Vec<(usize, f64)> {
        let every = self.vocabulary.div_ceil(self.every);
        let start: usize = self.prompts[..index].iter().map(|p| every + p.largest_ids.len()).sum();
        let ids = (0..self.vocabulary)
            .step_by(self.every)
            .chain(self.prompts[index].largest_ids.iter().copied());
        ids.zip(&self.rows[start..])
            .map(|(id, &value)| (id, f64::from(value)))
            .collect()
    }
}

/// A file of a model that was fetched, if it is there.
pub(crate) fn model_file(file: &str) -> Option<PathBuf> {
    Some(rocmforge_testkit::test_model_path(file)).filter(|path| path.exists())
}

/// An engine whose cache is as exact as the activations.
pub(crate) fn engine<B: HostAccess>(backend: B, model: &Model, context: usize) -> Engine<B> {
    engine_for(backend, model, context, 1)
}

/// An engine whose steps have up to so many sequences.
pub(crate) fn engine_for<B: HostAccess>(backend: B, model: &Model, context: usize, max_sequences: usize) -> Engine<B> {
    let options = EngineOptions {
        max_context: Limit::Tokens(context),
        max_sequences,
        kv: rocmforge_models::KvType::F32,
        ..EngineOptions::default()
    };
    Engine::new(backend, model, options).expect("the model loads")
}

pub(crate) fn best(logits: &[f32]) -> u32 {
    let mut best = 0;
    for (id, &value) in logits.iter().enumerate() {
        if value > logits[best] {
            best = id;
        }
    }
    best as u32
}

/// Runs prompt `index`: the first logits, then `tokens` greedy ones. After a choice that the reference finds hard the reference's own
/// token goes on. Returns the largest difference of a logit.
pub(crate) fn check_prompt<B: HostAccess>(
    engine: &mut Engine<B>,
    fixture: &Fixture,
    index: usize,
    tokens: usize,
) -> f64 {
    let prompt = &fixture.prompts[index];
    let sequence = engine.add_sequence(&prompt.ids).expect("room");
    let mut logits = engine.prefill(sequence, &prompt.ids).expect("runs");
    let mut worst = 0.0f64;
    for (id, expected) in fixture.logits(index) {
        let difference = (f64::from(logits[id]) - expected).abs();
        worst = worst.max(difference);
        assert!(
            difference < LOGIT,
            "{}: logit {id} is {}, expected {expected}",
            prompt.name,
            logits[id]
        );
    }
    for (step, (&expected, &gap)) in prompt.greedy.iter().zip(&prompt.gaps).take(tokens).enumerate() {
        let found = best(&logits);
        assert!(
            found == expected || gap <= TIE,
            "{}: token {step} is {found}, the reference has {expected} with a gap of {gap}",
            prompt.name
        );
        if step + 1 < tokens {
            logits = engine.decode(sequence, expected).expect("runs");
        }
    }
    engine.remove(sequence).expect("there");
    worst
}

/// Logarithm of the probability of each next token, in f64.
pub(crate) fn log_probability(logits: &[f32], id: u32) -> f64 {
    let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = logits.iter().map(|&l| f64::from(l - max).exp()).sum();
    f64::from(logits[id as usize] - max) - sum.ln()
}

/// Scores the text in chunks of `chunk` and returns the perplexity.
pub(crate) fn check_scored<B: HostAccess>(engine: &mut Engine<B>, scored: &Scored, chunk: usize) -> f64 {
    let sequence = engine.add_sequence(&scored.ids[..1]).expect("room");
    let mut at = 0;
    let (mut sum, mut count) = (0.0, 0usize);
    for tokens in scored.ids.chunks(chunk) {
        let chunk = Chunk {
            sequence,
            tokens,
            outputs: Outputs::All,
        };
        let logits = engine.step(&[chunk]).expect("runs");
        for row in logits.rows() {
            let (best, gap) = (best(row), scored.gaps.get(at));
            if let (Some(&expected), Some(&gap)) = (scored.best.get(at), gap) {
                assert!(
                    best == expected || gap <= TIE,
                    "position {at}: {best}, the reference has {expected} by {gap}"
                );
            }
            if let (Some(&next), Some(&nll)) = (scored.ids.get(at + 1), scored.nll.get(at)) {
                let found = -log_probability(row, next);
                assert!((found - nll).abs() < LOGIT, "position {at}: {found}, expected {nll}");
                sum += found;
                count += 1;
            }
            at += 1;
        }
    }
    engine.remove(sequence).expect("there");
    assert!(
        count + 1 >= scored.nll.len(),
        "{count} of {} positions",
        scored.nll.len()
    );
    (sum / count as f64).exp()
}

/// A random model with the log-probabilities of the f64 forward.
#[derive(Deserialize)]
pub(crate) struct Tiny {
    pub(crate) file: String,
    /// The context for which it holds, where that matters.
    context: Option<usize>,
    /// Settings over those of the file, for which it holds.
    #[serde(default)]
    pub(crate) config: serde_json::Map<String, serde_json::Value>,
    pub(crate) ids: Vec<u32>,
    next: Vec<f64>,
    best: Vec<u32>,
    last: Vec<f64>,
}

impl Tiny {
    /// Every random model.
    pub(crate) fn all() -> Vec<Self> {
        let text = std::fs::read(folder().join("tiny.json")).expect("a committed fixture");
        serde_json::from_slice(&text).expect("the fixture's format")
    }

    /// Random models with settings that only a config.json has.
    pub(crate) fn with_settings() -> Vec<Self> {
        let text = std::fs::read(folder().join("settings.json")).expect("a committed fixture");
        serde_json::from_slice(&text).expect("the fixture's format")
    }

    pub(crate) fn gguf(&self) -> Gguf {
        Gguf::open(folder().join("tiny").join(&self.file)).expect("a committed model")
    }

    pub(crate) fn open(&self) -> Model {
        Model::from_gguf(self.gguf()).expect("a model")
    }

    /// Compares all log-probabilities with the reference's, the tokens given in chunks of `chunk`. Returns the largest difference.
    pub(crate) fn check<B: HostAccess>(&self, backend: B, chunk: usize) -> f64 {
        self.check_model(&self.open(), backend, chunk)
    }

    /// [`Self::check`] of the same model from elsewhere.
    pub(crate) fn check_model<B: HostAccess>(&self, model: &Model, backend: B, chunk: usize) -> f64 {
        let mut engine = engine(backend, model, self.context.unwrap_or(64));
        let sequence = engine.add_sequence(&self.ids[..1]).expect("room");
        let mut rows: Vec<Vec<f32>> = Vec::new();
        for tokens in self.ids.chunks(chunk) {
            let chunk = Chunk {
                sequence,
                tokens,
                outputs: Outputs::All,
            };
            rows.extend(engine.step(&[chunk]).expect("runs").rows().map(<[f32]>::to_vec));
        }
        let mut worst = 0.0f64;
        let mut near = |what: &str, at: usize, found: f64, expected: f64| {
            worst = worst.max((found - expected).abs());
            assert!(
                (found - expected).abs() < 1e-3,
                "{} {what} {at}: {found}, expected {expected}",
                self.file
            );
        };
        assert_eq!(rows.len(), self.ids.len());
        for (at, &expected) in self.next.iter().enumerate() {
            near("next", at, log_probability(&rows[at], self.ids[at + 1]), expected);
        }
        let last = rows.last().expect("a row");
        for (id, &expected) in self.last.iter().enumerate() {
            near("last", id, log_probability(last, id as u32), expected);
        }
        for (at, &expected) in self.best.iter().enumerate() {
            let found = best(&rows[at]);
            let gap = rows[at][found as usize] - rows[at][expected as usize];
            assert!(gap < 1e-3, "{} best at {at}: {found} for {expected}", self.file);
        }
        worst
    }
}

/// Largest difference of a logit between ways to compute the same.
pub(crate) const SAME: f32 = 1e-4;

fn largest_difference(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    let differences = a.iter().zip(b).map(|(a, b)| (a - b).abs());
    differences.fold(0.0, |worst, d| if d > worst || d.is_nan() { d } else { worst })
}

/// A prompt whole, in chunks of 7, and token by token: the last logits agree. Returns the largest difference.
pub(crate) fn check_chunks<B: HostAccess>(backend: impl Fn() -> B, model: &Model, prompt: &[u32]) -> f32 {
    let logits = |chunk| {
        let options = EngineOptions {
            max_context: Limit::Tokens(64),
            max_sequences: 1,
            kv: rocmforge_models::KvType::F32,
            chunk,
            ..EngineOptions::default()
        };
        let mut engine = Engine::new(backend(), model, options).expect("the model loads");
        let sequence = engine.add_sequence(prompt).expect("room");
        engine.prefill(sequence, prompt).expect("runs")
    };
    let whole = logits(prompt.len());
    let worst = [7, 1]
        .map(|chunk| largest_difference(&whole, &logits(chunk)))
        .into_iter()
        .fold(0.0, f32::max);
    assert!(worst < SAME, "{worst}");
    worst
}

/// `prompts` in one batch, then `steps` tokens each, beside each prompt in an engine of its own. Returns the largest difference.
pub(crate) fn check_batch<B: HostAccess>(
    backend: impl Fn() -> B,
    model: &Model,
    prompts: &[&[u32]],
    steps: usize,
) -> f32 {
    // More than there are: steps are padded.
    let mut together = engine_for(backend(), model, 512, prompts.len() + 2);
    let sequences: Vec<_> = prompts
        .iter()
        .map(|prompt| together.add_sequence(prompt).expect("room"))
        .collect();
    let mut alone = engine(backend(), model, 512);
    let mut inputs: Vec<Vec<u32>> = prompts.iter().map(|prompt| prompt.to_vec()).collect();
    let mut worst = 0.0f32;
    for _ in 0..=steps {
        let chunks: Vec<Chunk<'_>> = sequences
            .iter()
            .zip(&inputs)
            .map(|(&sequence, tokens)| Chunk {
                sequence,
                tokens,
                outputs: Outputs::Last,
            })
            .collect();
        let logits = together.step(&chunks).expect("runs");
        let rows: Vec<Vec<f32>> = logits.rows().map(<[f32]>::to_vec).collect();
        inputs = rows.iter().map(|row| vec![best(row)]).collect();
        for (row, &together_sequence) in rows.iter().zip(&sequences) {
            let tokens = together.cache().tokens(together_sequence).expect("there").to_vec();
            let sequence = alone.add_sequence(&[]).expect("room");
            let expected = alone.prefill(sequence, &tokens).expect("runs");
            alone.remove(sequence).expect("there");
            worst = worst.max(largest_difference(row, &expected));
            assert!(worst < SAME, "{worst}");
        }
    }
    worst
}
