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

/// A command of the bench for the small shape on a simulated card.
fn tiny(options: &[&str]) -> Command {
    let mut command = program("llm_bench");
    command.args([
        "--device", "sim", "--shapes", "tiny", "--types", "q8_0", "--rounds", "1",
    ]);
    command.args(["--chunk", "12"]).args(options);
    command
}

#[test]
fn the_bench_answers_a_load_of_requests() {
    let load = [
        "--serve",
        "4",
        "--prompts",
        "3..9",
        "--answers",
        "1..3",
        "--sequences",
        "2",
    ];
    let text = stdout(&tiny(&load).output().expect("it starts"));
    assert!(
        text.contains("load: 4 requests, all at once; prompts of 3..9 tokens ("),
        "{text}"
    );
    assert!(
        text.contains("seed 1; at most 2 sequences, steps of 12 tokens"),
        "{text}"
    );
    // Simulated time is not speed.
    assert!(text.contains("| tiny q8_0 | 1 |  |  |  |  |  | 2 |"), "{text}");
    for (options, error) in [
        (
            ["--serve", "4", "--sequences", "13"],
            "--sequences is 13; from 1 to 12 fit into a step",
        ),
        (
            ["--serve", "4", "--prompts", "9..3"],
            "the shortest length, 9 tokens, is above the longest, 3",
        ),
        (
            ["--serve", "4000000", "--arrivals", "2"],
            "--serve is 4000000 requests; from 1 to 100000 can be drawn",
        ),
    ] {
        let output = tiny(&options).output().expect("it starts");
        assert!(
            !output.status.success() && stderr(&output).contains(error),
            "{}",
            stderr(&output)
        );
    }
}

/// A program that stands for llama-batched-bench: it prints what the script says.
#[cfg(unix)]
fn batched_bench(folder: &std::path::Path, script: &str) -> String {
    let path = folder.join("llama-batched-bench");
    // Another process writes it: a program that a thread beside this one starts would inherit the open file, and a file that is open for writing is not run.
    let mut writer = Command::new("sh");
    writer.args(["-c", "printf '#!/bin/sh\\n%s\\n' \"$1\" > \"$0\" && chmod 755 \"$0\""]);
    assert!(writer.arg(&path).arg(script).status().expect("it starts").success());
    path.to_str().expect("UTF-8").to_owned()
}

#[cfg(unix)]
#[test]
fn batches_stand_beside_those_of_llama_cpp() {
    let folder = tempfile::tempdir().expect("a folder");
    // The speed is made of the numbers of sequences and of tokens before.
    let line = r#"{\"n_kv_max\": 1024, \"flash_attn\": 1, \"pp\": $6, \"tg\": $8, \"pl\": $batch, \"t_tg\": 0.1, \"speed_tg\": ${batch}0$6.25, \"speed\": 1.0}"#;
    let rows = format!("for batch in 3 1; do echo \"{line}\"; done; echo \"$@\" >> \"$0.calls\"");
    let works = ["--prompt", "0", "--tokens", "2", "--depths", "0,5", "--batches", "1,3"];
    let run = |script: &str| {
        let program = batched_bench(folder.path(), script);
        let mut command = tiny(&works);
        command
            .args(["--llama-batched-bench", &program])
            .output()
            .expect("it starts")
    };
    let table = stdout(&run(&rows));
    for row in [
        "tiny q8_0 | decode |  |  |  | 101 |",
        "tiny q8_0 | decode, 3 sequences |  |  |  | 301 |",
        "tiny q8_0 | decode at 5 |  |  |  | 105 |",
        "tiny q8_0 | decode at 5, 3 sequences |  |  |  | 305 |",
    ] {
        assert!(table.contains(row), "{table}");
    }
    let calls = std::fs::read_to_string(folder.path().join("llama-batched-bench.calls")).expect("it was called");
    let calls: Vec<&str> = calls
        .lines()
        .filter_map(|call| call.split_once(".gguf "))
        .map(|(_, call)| call)
        .collect();
    let rest = "-ngl 99 -fa on -ctk f16 -ctv f16 --output-format jsonl";
    assert_eq!(
        calls,
        [
            format!("-npl 1,3 -npp 1 -ntg 2 -c 768 {rest}"),
            format!("-npl 1,3 -npp 5 -ntg 2 -c 768 {rest}"),
        ]
    );
    for (script, error) in [
        (
            "echo no memory >&2; exit 3",
            "ended with exit status: 3; the last lines of its stderr:\nno memory",
        ),
        ("echo '|  PP |'", "it printed no line of JSON; its stderr is empty"),
        (
            "echo '{\"pp\": 1'; echo cut >&2",
            "is not a row: EOF while parsing an object",
        ),
    ] {
        let output = run(script);
        assert!(
            !output.status.success() && stderr(&output).contains(error),
            "{}",
            stderr(&output)
        );
    }
    let output = tiny(&works)
        .args(["--llama-batched-bench", "./no/such/program"])
        .output();
    assert!(stderr(&output.expect("it starts")).contains("./no/such/program cannot be started: "));
}
