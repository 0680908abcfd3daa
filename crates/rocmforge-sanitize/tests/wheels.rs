//! Programs of others from PyPI: wheels that were built for ROCm, installed by pip and run unmodified on a simulated card.
//!
//! What pip cannot install is skipped with what it says. `ROCMFORGE_NETWORK=0` skips all of it without asking pip. Installed wheels are kept
//! in cargo's folder for temporary files of tests.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};

/// Folder of the examples.
fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(name)
}

/// A Python with packages.
///
/// # Errors
/// Why there is none.
fn python(name: &str, packages: &[&str]) -> Result<PathBuf, String> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _installing = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let python = folder.join("bin/python");
    let complete = folder.join("complete");
    if complete.exists() {
        return Ok(python);
    }
    if std::env::var("ROCMFORGE_NETWORK").is_ok_and(|value| value == "0") {
        return Err("ROCMFORGE_NETWORK is 0".to_owned());
    }
    let last_line = |output: &Output| {
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        text.lines().last().unwrap_or("no message").to_owned()
    };
    let made = Command::new("python3")
        .args(["-m", "venv", "--clear"])
        .arg(&folder)
        .output()
        .map_err(|error| format!("python3: {error}"))?;
    if !made.status.success() {
        return Err(format!("python3 -m venv: {}", last_line(&made)));
    }
    let installed = Command::new(&python)
        .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
        .args([
            "--retries",
            "1",
            "--timeout",
            "20",
            "--only-binary",
            ":all:",
            "--no-deps",
        ])
        .args(packages)
        .output()
        .map_err(|error| format!("pip: {error}"))?;
    if !installed.status.success() {
        return Err(format!("pip: {}", last_line(&installed)));
    }
    std::fs::write(complete, "").map_err(|error| error.to_string())?;
    Ok(python)
}

/// Standard output and standard error of a script that ends well on a card.
fn run(card: &str, python: &Path, arguments: &[&str]) -> (String, String) {
    run_with(card, python, arguments, &[])
}

/// The same with variables of the environment.
fn run_with(card: &str, python: &Path, arguments: &[&str], variables: &[(&str, &Path)]) -> (String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rocmforge-sanitize"));
    command
        .args(["run", "--card", card, "--"])
        .arg(python)
        .args(arguments)
        .envs(variables.iter().copied());
    let ran = command.output().expect("the program under test is built");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, found) = (text(&ran.stdout), text(&ran.stderr));
    assert!(ran.status.success(), "{card}: {}\n{out}\n{found}", ran.status);
    (out, found)
}

/// The line that says how much was found and run.
fn summary(found: &str) -> &str {
    let line = found.lines().find(|line| line.contains(" findings ("));
    line.unwrap_or_else(|| panic!("no summary\n{found}"))
}

#[test]
fn quantisation_of_bitsandbytes_is_right_and_without_a_finding() {
    let python = match python("bitsandbytes", &["bitsandbytes==0.50.2", "numpy"]) {
        Ok(python) => python,
        Err(why) => rocmforge_testkit::skip!("bitsandbytes is not installed: {why}"),
    };
    let script = example("bitsandbytes/quantise.py");
    let script = script.to_str().expect("the path is UTF-8");
    // One build for each version of HIP.
    for (card, rocm) in [("gfx1100", "64"), ("gfx1201", "72")] {
        let (out, found) = run(card, &python, &[script, rocm]);
        assert!(out.ends_with("all right\n"), "{out}");
        let summary = summary(&found);
        assert!(summary.starts_with("========= 0 findings"), "{found}");
        assert!(summary.contains(" 6 launches"), "{found}");
    }
}

/// The model's softmax of 256 columns is the kernel of that release in which waves read LDS that another one may have written again.
#[test]
fn the_race_of_llama_cpp_is_found_in_a_tiny_model() {
    let python = match python("cyllama-rocm", &["cyllama-rocm==0.2.18"]) {
        Ok(python) => python,
        Err(why) => rocmforge_testkit::skip!("cyllama-rocm is not installed: {why}"),
    };
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../rocmforge-models/tests/reference");
    let reference = std::fs::read_to_string(models.join("tiny.json")).expect("the reference is in the repository");
    let reference: serde_json::Value = serde_json::from_str(&reference).expect("the reference is JSON");
    let model = &reference[0];
    let ids = model["ids"].as_array().expect("ids").iter().map(ToString::to_string);
    let ids: Vec<_> = ids.collect();
    let best = model["best"]
        .as_array()
        .and_then(|best| best.last())
        .expect("a best token");
    let path = models.join("tiny").join(model["file"].as_str().expect("a file"));
    let script = example("llama/logits.py");
    let path = [&script, &path].map(|path| path.to_str().expect("the path is UTF-8").to_owned());
    let on = |layers: &str| {
        let words = path.iter().map(String::as_str).chain([layers]);
        let words: Vec<_> = words.chain(ids.iter().map(String::as_str)).collect();
        run("gfx1100", &python, &words)
    };
    let (out, _) = on("0");
    assert!(out.contains(&format!("best {best}\n")), "{best} on the CPU: {out}");

    let (out, found) = on("99");
    assert!(out.contains("best "), "{out}");
    let summary = summary(&found);
    assert!(summary.starts_with("========= 1 findings"), "{found}");
    assert!(summary.contains(" 32 launches"), "{found}");
    assert!(found.contains("race in LDS"), "{found}");
    assert!(found.contains("in kernel _ZL12soft_max_f32"), "{found}");
}

/// The first token of the answer in the documentation, which is that of an f64 forward pass.
#[test]
fn llama_cpp_generates_a_token_without_a_finding() {
    let model = rocmforge_testkit::test_model_path("smollm2/SmolLM2-135M-Instruct.Q4_1.gguf");
    if !model.is_file() {
        rocmforge_testkit::skip!("no model: run `cargo xtask model smollm2`");
    }
    let python = match python("cyllama-rocm", &["cyllama-rocm==0.2.18"]) {
        Ok(python) => python,
        Err(why) => rocmforge_testkit::skip!("cyllama-rocm is not installed: {why}"),
    };
    let [script, model] = [example("llama/generate.py"), model].map(|path| path.to_string_lossy().into_owned());
    let (out, found) = run("gfx1100", &python, &[&script, &model, "1"]);
    assert!(out.contains("  7042 ' Paris'"), "{out}");
    let summary = summary(&found);
    assert!(summary.starts_with("========= 0 findings"), "{found}");
    assert!(summary.contains(" 725 launches"), "{found}");
}

/// Triton compiles its kernels itself, with a C compiler for their launches, and compares with numpy.
#[test]
fn every_kernel_of_triton_is_right_and_without_a_finding() {
    let python = match python("triton", &["triton==3.9.0", "numpy"]) {
        Ok(python) => python,
        Err(why) => rocmforge_testkit::skip!("triton is not installed: {why}"),
    };
    let script = example("triton/kernels.py");
    let script = script.to_str().expect("the path is UTF-8");
    for card in ["gfx1100", "gfx1201"] {
        let cache = tempfile::tempdir().expect("a folder");
        let (out, found) = run_with(card, &python, &[script], &[("TRITON_CACHE_DIR", cache.path())]);
        assert!(out.ends_with(&format!("{card}: 31 of 31 right\n")), "{out}\n{found}");
        // Processes that Triton starts have summaries of their own.
        let summaries: Vec<_> = found.lines().filter(|line| line.contains(" findings (")).collect();
        let none = summaries.iter().all(|line| line.starts_with("========= 0 findings"));
        assert!(none, "{found}");
        assert!(summaries.iter().any(|line| !line.contains(" 0 launches")), "{found}");
    }
}
