//! The command `bench`, with a random model: the table, the object, refusals.

use std::path::Path;
use std::process::{Command, Output};

fn bench(arguments: &[&str]) -> Output {
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../rocmforge-models/tests/reference/tiny/llama.gguf");
    let mut command = Command::new(env!("CARGO_BIN_EXE_rocmforge"));
    command.args(["bench", "-m"]).arg(model).args(arguments);
    command.output().expect("it starts")
}

fn stdout(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

const SMALL: [&str; 8] = ["-p", "20", "-n", "4", "-r", "2", "-d", "0,30"];

#[test]
fn the_table_is_that_of_llama_bench() {
    let text = stdout(&bench(&[&SMALL[..], &["--device", "cpu"]].concat()));
    let rows: Vec<Vec<&str>> = text
        .lines()
        .map(|line| line.split('|').map(str::trim).collect())
        .collect();
    assert_eq!(rows[0][1..7], ["model", "size", "params", "backend", "test", "t/s"]);
    assert!(
        text.lines()
            .nth(1)
            .is_some_and(|rule| rule.starts_with("| ---") && rule.ends_with("---: |")),
        "{text}"
    );
    let tests: Vec<&str> = rows[2..].iter().map(|row| row[5]).collect();
    assert_eq!(tests, ["pp20", "tg4", "pp20 @ d30", "tg4 @ d30"]);
    for row in &rows[2..] {
        let (mean, deviation) = row[6].split_once(" ± ").expect("a mean and its deviation");
        assert!(
            mean.parse::<f64>().is_ok_and(|rate| rate > 0.0) && deviation.parse::<f64>().is_ok(),
            "{row:?}"
        );
        assert_eq!(row[4], "cpu");
    }
    let widths: Vec<usize> = text.lines().map(|line| line.chars().count()).collect();
    assert!(widths.iter().all(|width| *width == widths[0]), "{text}");
}

#[test]
fn json_has_each_sample() {
    let text = stdout(&bench(
        &[&SMALL[..], &["--device", "sim", "--json", "--kv", "f32"]].concat(),
    ));
    let objects: serde_json::Value = serde_json::from_str(&text).expect("one array and nothing else");
    let objects = objects.as_array().expect("an array");
    let of = |key: &str| -> Vec<u64> { objects.iter().filter_map(|object| object[key].as_u64()).collect() };
    assert_eq!(
        (of("n_prompt"), of("n_gen"), of("n_depth")),
        (vec![20, 0, 20, 0], vec![0, 4, 0, 4], vec![0, 0, 30, 30])
    );
    for object in objects {
        let samples: Vec<f64> = serde_json::from_value(object["samples_ts"].clone()).expect("numbers");
        assert_eq!(samples.len(), 2);
        let mean = object["avg_ts"].as_f64().expect("a number");
        assert!((mean - samples.iter().sum::<f64>() / 2.0).abs() < 1e-9 * mean);
        assert_eq!(object["type_kv"], "F32");
        assert!(
            object["device"]
                .as_str()
                .is_some_and(|device| device.contains("gfx1100"))
        );
    }
}

#[test]
fn what_cannot_be_measured_is_refused() {
    for (arguments, advice) in [
        (&["-p", "0", "-n", "0"][..], "nothing to measure"),
        (&["-r", "0"], "repetitions"),
        (&["-p", "600"], "the model was made for 512"),
        (&["-d", "18446744073709551615"], "the model was made for 512"),
        (&["-p", "64", "--ctx", "32"], "32"),
    ] {
        let output = bench(&[arguments, &["--device", "cpu"]].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && output.stdout.is_empty(), "{arguments:?}");
        assert!(
            said.contains(advice) && !said.contains("panicked"),
            "{arguments:?}: {said}"
        );
    }
}
