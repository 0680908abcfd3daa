//! llama.cpp's own random models by `run --logits`, against the logits that llama.cpp computes for them. Skipped, visibly, without the files:
//! `cargo xtask model archs`.

use std::path::{Path, PathBuf};
use std::process::Output;

use rocmforge::ggml::CpuBackend;
use rocmforge::models::{Engine, EngineOptions, KvType, Limit, Model, ModelError};
use rocmforge_testkit::skip;

use crate::{program, run, stderr, stdout};

/// Tokens of a sequence, and rows of a file of logits.
const TOKENS: usize = 128;

/// Tokens on a simulated card.
const FEW: usize = 24;

/// Models with a GELU, which llama.cpp takes from a table of f16.
const GELU: &[&str] = &["gemma2-dense", "gemma3-dense", "starcoder2-dense"];

/// A model of llama.cpp's test.
struct Arch {
    name: String,
    file: PathBuf,
    /// Where the program writes.
    logits: PathBuf,
}

impl Arch {
    /// Bytes of the weights, the cache and the intermediates, or why the library refuses the model.
    fn needed(&self) -> Result<usize, ModelError> {
        let model = Model::open(&self.file)?;
        let options = EngineOptions {
            max_context: Limit::Tokens(TOKENS),
            max_sequences: 1,
            kv: KvType::F32,
            ..EngineOptions::default()
        };
        let plan = *Engine::new(CpuBackend::with_threads(1), &model, options)?.memory();
        Ok(plan.weights + plan.cache + plan.scratch)
    }

    /// The program with the first `tokens` ids.
    fn run(&self, tokens: usize, options: &[&str]) -> Output {
        let ids = std::fs::read_to_string(self.file.with_extension("ids")).expect("ids");
        let ids: Vec<&str> = ids.trim().split(',').take(tokens).collect();
        let mut command = program("run");
        command.args([
            "--exact",
            "--kv",
            "f32",
            "--ctx",
            &TOKENS.to_string(),
            "--ids",
            &ids.join(","),
        ]);
        command.arg("--logits").arg(&self.logits).arg("--model").arg(&self.file);
        command.args(options);
        run(command, "")
    }

    /// What the program says, and the normalized mean squared error of what it writes: the sum of squared differences over that of llama.cpp's squares.
    fn judge(&self, tokens: usize, options: &[&str]) -> (String, f64) {
        let output = self.run(tokens, options);
        assert_eq!(stdout(&output), "", "{}", self.name);
        let expected = floats(&self.file.with_extension("logits"));
        let expected = &expected[..expected.len() / TOKENS * tokens];
        let found = floats(&self.logits);
        std::fs::remove_file(&self.logits).expect("it was written");
        assert_eq!(found.len(), expected.len(), "{}", self.name);
        let error: f64 = found.iter().zip(expected).map(|(a, b)| (a - b).powi(2)).sum();
        let squares: f64 = expected.iter().map(|a| a.powi(2)).sum();
        (stderr(&output), error / squares)
    }
}

fn floats(path: &Path) -> Vec<f64> {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let (values, rest) = bytes.as_chunks::<4>();
    assert!(rest.is_empty());
    values.iter().map(|&value| f32::from_le_bytes(value).into()).collect()
}

/// Parts of the model on the card, and all parts.
fn parts(said: &str) -> (usize, usize) {
    let line = said
        .lines()
        .find_map(|line| line.strip_prefix("on device"))
        .expect(said);
    let words: Vec<&str> = line.split_whitespace().collect();
    let number = |index: usize| words[index].parse().expect("a number");
    (number(0), number(2))
}

/// Every model that the library runs has llama.cpp's logits on the CPU, on each simulated card, and with half of the memory that it needs there. The program
/// refuses the others in the words of the library.
#[test]
fn every_random_model_of_llama_cpp_has_its_logits() {
    let folder = rocmforge_testkit::test_model_path("llama-archs");
    let Ok(entries) = std::fs::read_dir(&folder) else {
        skip!("no models of llama.cpp's test: run `cargo xtask model archs`");
    };
    let out = tempfile::tempdir().expect("a folder");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("readable").path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "gguf"));
    files.sort();
    let (mut computed, mut wrong) = (0, Vec::new());
    for file in files {
        let arch = Arch {
            name: file.file_stem().expect("a name").to_string_lossy().into_owned(),
            file,
            logits: out.path().join("logits"),
        };
        let needed = match arch.needed() {
            Ok(needed) => needed,
            Err(error) => {
                let output = arch.run(1, &["--device", "cpu"]);
                let said = stderr(&output);
                assert!(!output.status.success() && said.contains(&error.to_string()), "{said}");
                assert!(!arch.logits.exists(), "{}", arch.name);
                continue;
            }
        };
        computed += 1;
        let half = (needed / 2).to_string();
        let mut errors = vec![arch.judge(TOKENS, &["--device", "cpu"]).1];
        for device in ["sim", "sim:gfx1201"] {
            let (said, error) = arch.judge(FEW, &["--device", device]);
            let (on_device, all) = parts(&said);
            assert!(on_device == all && all > 0, "{}: {said}", arch.name);
            errors.push(error);
            let (said, error) = arch.judge(FEW, &["--device", device, "--vram", &half]);
            let (part, _) = parts(&said);
            assert!(part > 0 && part < all, "{}: {said}", arch.name);
            errors.push(error);
        }
        let figures: Vec<String> = errors.iter().map(|error| format!("{error:.1e}")).collect();
        let line = format!("{:24} {}", arch.name, figures.join(", "));
        println!("{line}");
        let most = if GELU.contains(&arch.name.as_str()) {
            1e-7
        } else {
            1e-11
        };
        if errors.iter().any(|error| error.is_nan() || *error > most) {
            wrong.push(line);
        }
    }
    println!("{computed} models are computed");
    assert!(wrong.is_empty() && computed > 0, "{}", wrong.join("\n"));
}
