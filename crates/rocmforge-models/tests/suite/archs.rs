//! llama.cpp's own random models on the CPU against the logits that llama.cpp computes for them. Skipped, visibly, without the files:
//! `cargo xtask model archs`.

use std::path::Path;

use rocmforge_ggml::CpuBackend;
use rocmforge_models::{Engine, EngineOptions, Limit, Model, ModelError};

use crate::reference::archs::{ARCHS, Judged, TOKENS, judge, models_or_skip};

#[test]
fn every_architecture_equals_llama_cpp() {
    let folder = models_or_skip!();
    let cpu = || CpuBackend::with_threads(2);
    let mut wrong = Vec::new();
    for name in ARCHS {
        let judged = Judged::open(&folder, name);
        let alone = |chunk| judged.alone(cpu(), TOKENS, chunk);
        let errors = [
            ("at once", alone(TOKENS)),
            ("in chunks of 7", alone(7)),
            ("one at a time", alone(1)),
            ("two sequences", judged.beside(cpu(), TOKENS, [48, 33])),
        ];
        judge(name, &errors, &mut wrong);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Why a model is refused, and whether a weight was loaded before. `None`: it is not refused.
fn refusal(path: &Path) -> Option<(ModelError, bool)> {
    let model = match Model::open(path) {
        Ok(model) => model,
        Err(error) => return Some((error, false)),
    };
    let options = EngineOptions {
        max_context: Limit::Tokens(TOKENS),
        max_sequences: 1,
        ..EngineOptions::default()
    };
    let mut loaded = false;
    let engine = Engine::with_progress(CpuBackend::with_threads(1), &model, options, |_, _| loaded = true);
    Some((engine.err()?, loaded))
}

/// Whether an error says of what kind of model it is, or which of its settings or weights is not known: a name that is in the file.
fn says_why(error: &ModelError, architecture: &str) -> bool {
    match error {
        ModelError::UnknownArchitecture { found, .. } | ModelError::UnknownMixture { found, .. } => {
            found == architecture
        }
        ModelError::Feature { feature, key, .. } => !feature.is_empty() && !key.is_empty(),
        ModelError::UnknownKey { key, .. } | ModelError::UnsupportedKey { key, .. } => key.starts_with(architecture),
        _ => false,
    }
}

#[test]
fn every_other_model_is_refused_by_name_before_its_weights_are_loaded() {
    let folder = models_or_skip!();
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&folder).expect("readable") {
        let name = entry.expect("readable").file_name();
        names.extend(name.to_string_lossy().strip_suffix(".gguf").map(str::to_owned));
    }
    names.sort();
    for name in ARCHS {
        assert!(
            names.iter().any(|there| there == name),
            "{name} is not in {}",
            folder.display()
        );
    }
    let mut wrong = Vec::new();
    let mut refused = 0;
    for name in names.iter().filter(|name| !ARCHS.contains(&name.as_str())) {
        let architecture = name.rsplit_once('-').expect("ARCHITECTURE-dense or -moe").0;
        match refusal(&folder.join(format!("{name}.gguf"))) {
            None => wrong.push(format!("{name} runs: give it a row in ARCHS")),
            Some((error, true)) => wrong.push(format!("{name} is refused after weights were loaded: {error}")),
            Some((error, false)) if !says_why(&error, architecture) => wrong.push(format!("{name}: {error}")),
            Some((error, false)) => {
                refused += 1;
                println!("{name:24} {error}");
            }
        }
    }
    println!("{refused} of {} models are refused", names.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
