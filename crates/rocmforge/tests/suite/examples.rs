//! The bench of models on a simulated card.

use std::process::{Command, Output};

/// A program. Plain `cargo test` builds the examples; before `cargo test --test suite` comes `cargo build --examples`.
fn program(name: &str) -> Command {
    let test = std::env::current_exe().expect("the test's path");
    let profile = test.ancestors().nth(2).expect("target/PROFILE/deps/TEST");
    let path = profile
        .join("examples")
        .join(name)
        .with_extension(std::env::consts::EXE_EXTENSION);
    assert!(
        path.exists(),
        "{} is not built: `cargo build --examples`",
        path.display()
    );
    Command::new(path)
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", stderr(output));
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn the_bench_of_models_runs_on_a_simulated_card() {
    let mut command = program("llm_bench");
    command.args(["--device", "sim", "--shapes", "tiny", "--types", "q4_0,q8_0"]);
    command.args([
        "--depths",
        "0,3",
        "--prompt",
        "20",
        "--tokens",
        "1",
        "--rounds",
        "1",
        "--chunk",
        "12",
        "--draws",
        "50",
        "--batches",
        "1,3",
    ]);
    let table = stdout(&command.output().expect("it starts"));
    for row in [
        "tiny q4_0 | decode |",
        "tiny q8_0 | decode at 3 |",
        "tiny q8_0 | decode at 3, 3 sequences |",
        "tiny q8_0 | decode, drawn from rows |",
        "tiny q8_0 | decode at 3, drawn from 50 candidates |",
        "tiny q8_0 | prompt of 20 |",
    ] {
        assert!(table.contains(row), "{table}");
    }
    let mut command = program("llm_bench");
    command.args(["--device", "sim", "--shapes", "llama-9b"]);
    assert!(stderr(&command.output().expect("it starts")).contains("no shape is called \"llama-9b\""));
}
