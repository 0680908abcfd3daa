//! The command `tune`: what it prints, what it keeps, and files that it refuses.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

/// The program with an empty folder of its state.
struct Program(tempfile::TempDir);

impl Program {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rocmforge"));
        command.env("XDG_STATE_HOME", self.0.path()).args(arguments);
        command.output().expect("it starts")
    }

    fn tune(&self, arguments: &[&str]) -> Output {
        self.run(&[&["tune", "--device", "sim"][..], arguments].concat())
    }

    /// What holds now.
    fn shown(&self) -> Value {
        let output = self.tune(&["--show", "--json"]);
        assert!(output.status.success(), "{}", stderr(&output));
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// Writes a file of the card for which `tiles_from` was measured as 17, with the subject changed by `change`.
    fn keep(&self, change: impl FnOnce(&mut Value)) -> PathBuf {
        let shown = self.shown();
        let mut subject = shown["subject"].clone();
        change(&mut subject);
        let value = json!({ "parameter": "tiles_from", "value": 17, "micros": 8.0, "rule_micros": 9.5 });
        let path = PathBuf::from(shown["file"].as_str().expect("a path"));
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        let text = json!({ "format": 1, "subject": subject, "values": [value] }).to_string();
        std::fs::write(&path, text).expect("written");
        path
    }

    /// A model's answer to a prompt of 12 tokens, which are rows of one product.
    fn answer(&self) -> Output {
        let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../rocmforge-models/tests/reference/tiny/llama.gguf");
        let model = model.to_string_lossy().into_owned();
        let ids = "1,2,3,4,5,6,7,8,9,10,11,12";
        self.run(&[
            "run", "--device", "sim", "--temp", "0", "--tokens", "4", "--ids", ids, "--model", &model,
        ])
    }
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", stderr(output));
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn every_parameter_is_measured_and_the_times_of_a_simulated_card_are_not_kept() {
    let program = Program::new();
    let output = program.tune(&["--json"]);
    let measured: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    let parameters = measured["parameters"].as_array().expect("a list");
    let names: Vec<&str> = parameters.iter().filter_map(|one| one["parameter"].as_str()).collect();
    assert_eq!(
        names,
        [
            "product_threads",
            "attention_blocks",
            "tile_blocks",
            "tiles_from",
            "tiles_to"
        ]
    );
    for one in parameters {
        assert_eq!(one["by"], "measurement", "{one}");
        let (times, variants) = (one["times"].as_array(), one["variants"].as_array());
        assert_eq!(times.map(Vec::len), variants.map(Vec::len), "{one}");
        assert!(
            times.into_iter().flatten().all(|pair| pair[1].as_f64() > Some(0.0)),
            "{one}"
        );
        assert!(variants.is_some_and(|known| known.contains(&one["value"])), "{one}");
    }
    assert!(stderr(&output).contains("not kept"), "{}", stderr(&output));
    let shown = program.shown();
    assert!(
        shown["parameters"]
            .as_array()
            .is_some_and(|all| all.iter().all(|one| one["by"] == "rule"))
    );
}

#[test]
fn what_was_kept_holds_until_it_is_forgotten_and_answers_stay() {
    let program = Program::new();
    let by_rule = stdout(&program.answer());
    let path = program.keep(|_| ());
    let text = stdout(&program.tune(&["--show"]));
    let line = "products on the matrix unit: 17 rows and more, measured (8.0 us, 9.5 us with 9, the rule)";
    assert!(text.contains(line), "{text}");
    let output = program.answer();
    assert_eq!(stdout(&output), by_rule);
    assert!(!stderr(&output).contains("tune"), "{}", stderr(&output));
    assert!(stdout(&program.tune(&["--reset"])).contains(&path.display().to_string()));
    assert!(stdout(&program.tune(&["--reset"])).contains("nothing was kept"));
    assert!(stdout(&program.tune(&["--show"])).contains("9 rows and more, by rule"));
}

#[test]
fn a_foreign_or_damaged_file_is_refused_and_a_model_runs_by_rule() {
    let program = Program::new();
    let by_rule = stdout(&program.answer());
    let path = program.keep(|subject| subject["driver"] = json!(7));
    for why in ["is of another driver: 7, here it is", "is no tuning file"] {
        let shown = program.tune(&["--show"]);
        assert!(
            !shown.status.success() && stderr(&shown).contains(why),
            "{}",
            stderr(&shown)
        );
        let output = program.answer();
        assert_eq!(stdout(&output), by_rule);
        let said = stderr(&output);
        assert!(said.contains("built-in rules hold") && said.contains(why), "{said}");
        std::fs::write(&path, "{\"format\": 1").expect("written");
    }
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let program = Program::new();
    for (arguments, why) in [
        (&["tune", "--device", "cpu"][..], "tune measures a card"),
        (&["tune", "--device", "sim,sim"], "one card at a time"),
        (&["tune", "--device", "sim", "--seconds", "0"], "1..=3600"),
        (&["tune", "--device", "sim", "--show", "--reset"], "cannot be used with"),
        (&["tune", "--device", "sim", "--vram", "16KiB"], "budget"),
    ] {
        let output = program.run(arguments);
        assert!(!output.status.success(), "{arguments:?}");
        assert!(stderr(&output).contains(why), "{arguments:?}: {}", stderr(&output));
    }
}
