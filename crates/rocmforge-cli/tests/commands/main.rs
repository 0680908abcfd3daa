//! The commands `run` and `chat`, with a random model made here: options, output, refusals.
#![allow(clippy::print_stdout)] // measured differences, shown when a test fails or with --nocapture

mod archs;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use rocmforge::ggml::{CpuBackend, KvType};
use rocmforge::gguf::{Gguf, Writer};
use rocmforge::models::generate::{Generator, Request};
use rocmforge::models::sampling::SamplerConfig;
use rocmforge::models::{Engine, EngineOptions, Model};
use rocmforge_testkit::skip;
use serde_json::{Value, json};

const TEMPLATE: &str = "{% for m in messages %}<bos>{{ m.role }}: {{ m.content }}<eos>\n{% endfor %}\
                        {% if add_generation_prompt %}<bos>assistant: {% endif %}";

/// A command of the program.
fn program(name: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rocmforge"));
    command.arg(name);
    command
}

/// Starts a program whose input and outputs are pipes.
fn start(mut command: Command) -> Child {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts")
}

/// What a program prints, with what it reads.
fn run(command: Command, input: &str) -> Output {
    let mut child = start(command);
    // A program that reads nothing may have ended already.
    let _ = child.stdin.take().expect("piped").write_all(input.as_bytes());
    child.wait_with_output().expect("it ends")
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", stderr(output));
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn tiny() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../rocmforge-models/tests/reference/tiny/llama.gguf")
}

fn generate(arguments: &[&str]) -> Output {
    let mut command = program("run");
    command
        .args(["--device", "cpu", "--exact", "--model"])
        .arg(tiny())
        .args(arguments);
    run(command, "")
}

/// The most likely tokens.
fn greedy(arguments: &[&str]) -> Output {
    generate(&[&["--temp", "0"][..], arguments].concat())
}

/// The random model with a chat template, in a file.
fn tiny_chat() -> tempfile::NamedTempFile {
    tiny_with_template(TEMPLATE)
}

fn tiny_with_template(template: &str) -> tempfile::NamedTempFile {
    let gguf = Gguf::open(tiny()).expect("a committed model");
    let mut writer = Writer::new();
    for (key, value) in gguf.metadata().iter() {
        writer.metadata(key, value.clone()).expect("as it was");
    }
    writer.metadata("tokenizer.chat_template", template).expect("a new key");
    for tensor in gguf.tensors() {
        writer
            .tensor(&tensor.name, &tensor.dims, tensor.ty, gguf.data(tensor))
            .expect("as it was");
    }
    let file = tempfile::Builder::new().suffix(".gguf").tempfile().expect("a file");
    writer.write_file(file.path()).expect("written");
    file
}

fn chat(model: &Path, arguments: &[&str], input: &str) -> Output {
    let mut command = program("chat");
    command.args(["--device", "cpu", "--model"]).arg(model).args(arguments);
    run(command, input)
}

/// What the library gives for a greedy request.
fn expected(prompt: &[u32], tokens: usize) -> (Vec<u32>, String) {
    let model = Model::open(tiny()).expect("a committed model");
    let engine = Engine::new(CpuBackend::new(), &model, EngineOptions::default()).expect("it loads");
    let mut generator = Generator::new(engine, model.tokenizer().expect("it has one"));
    let request = Request {
        sampler: SamplerConfig::greedy(),
        max_tokens: tokens,
        ..Request::new(prompt.to_vec())
    };
    let completion = generator.run(request).expect("runs");
    (completion.ids(), completion.text)
}

#[test]
fn json_is_one_object_with_ids_text_logits_and_rates() {
    let output = greedy(&["--prompt", "banana", "--tokens", "9", "--json"]);
    let object: Value = serde_json::from_str(&stdout(&output)).expect("one object and nothing else");
    let ids = |key: &str| -> Vec<u32> { serde_json::from_value(object[key].clone()).expect("ids") };
    let prompt = ids("prompt_ids");
    assert_eq!(prompt.len(), 3, "ba na na");
    let (expected_ids, text) = expected(&prompt, 9);
    assert_eq!(ids("ids"), expected_ids);
    assert_eq!(object["text"], text);
    let logits: Vec<(u32, f32)> = serde_json::from_value(object["first_logits_top10"].clone()).expect("pairs");
    assert_eq!(logits.len(), 10);
    assert_eq!(logits[0].0, expected_ids[0]);
    assert!(logits.windows(2).all(|pair| pair[0].1 >= pair[1].1), "{logits:?}");
    for key in ["prompt_tokens_per_second", "decode_tokens_per_second"] {
        assert!(
            object[key].as_f64().is_some_and(|rate| rate > 0.0),
            "{key}: {}",
            object[key]
        );
    }
    assert_eq!(object["finish_reason"], "max_tokens");
    assert_eq!(object["context"], 512);
    assert_eq!(object["peak_vram_bytes"], Value::Null);
}

#[test]
fn ids_and_text_give_the_same() {
    let by_text = stdout(&greedy(&["--prompt", "banana", "--tokens", "9"]));
    let output = greedy(&["--prompt", "banana", "--json"]);
    let object: Value = serde_json::from_str(&stdout(&output)).expect("an object");
    let ids: Vec<u32> = serde_json::from_value(object["prompt_ids"].clone()).expect("ids");
    let list = ids.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    let output = greedy(&[
        "--ids", &list, "--tokens", "9", "--ctx", "100", "--kv", "f16", "--chunk", "2",
    ]);
    assert_eq!(stdout(&output), by_text);
    assert_eq!(by_text, expected(&ids, 9).1 + "\n");
    let said = stderr(&output);
    for part in ["loading", "context 100 tokens", "computing the prompt", "tokens/s"] {
        assert!(said.contains(part), "{part:?} is missing: {said}");
    }
    assert!(stderr(&greedy(&["--ids", &list])).contains("512 tokens, all that the model was made for"));
}

/// One row for each id, the same whatever the chunks are, as the engine computes them; a file that is there stays until all rows are.
#[test]
fn logits_of_every_position_are_written_row_by_row() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("logits");
    let to = file.to_str().expect("UTF-8");
    let ids = [98, 97, 110, 97, 110];
    let exact = ["--kv", "f32"];
    let written = |more: &[&str]| -> Vec<f32> {
        let output = generate(&[&["--ids", "98,97,110,97,110", "--logits", to], &exact[..], more].concat());
        assert_eq!(stdout(&output), "");
        assert!(stderr(&output).contains("5 rows of 320 logits"), "{}", stderr(&output));
        let bytes = std::fs::read(&file).expect("written");
        bytes
            .as_chunks::<4>()
            .0
            .iter()
            .map(|&b| f32::from_le_bytes(b))
            .collect()
    };
    let (whole, apart) = (written(&[]), written(&["--chunk", "2"]));
    let model = Model::open(tiny()).expect("a committed model");
    let options = EngineOptions {
        kv: KvType::F32,
        ..EngineOptions::default()
    };
    let mut engine = Engine::new(CpuBackend::with_threads(1), &model, options).expect("it fits");
    let sequence = engine.add_sequence(&ids[..1]).expect("room");
    let expected: Vec<f32> = (ids.iter())
        .flat_map(|&id| engine.decode(sequence, id).expect("it runs"))
        .collect();
    for found in [&whole, &apart] {
        assert_eq!(found.len(), ids.len() * 320);
        let pairs = found.iter().zip(&expected);
        let worst = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(worst < 1e-4, "{worst}");
    }
    let before = std::fs::read(&file).expect("there");
    let output = generate(&["--ids", "98,320", "--logits", to]);
    assert!(!output.status.success() && stderr(&output).contains("320"));
    assert_eq!(std::fs::read(&file).expect("there"), before);
    assert_eq!(std::fs::read_dir(&folder).expect("there").count(), 1);
    let output = generate(&["--ids", "98", "--logits", "/no/such/folder/logits"]);
    assert!(
        stderr(&output).contains("/no/such/folder/logits"),
        "{}",
        stderr(&output)
    );
    for (arguments, said) in [
        (&["--logits", to][..], "--ids"),
        (&["--prompt", "a", "--logits", to], "--logits"),
    ] {
        let output = generate(arguments);
        assert!(
            !output.status.success() && stderr(&output).contains(said),
            "{}",
            stderr(&output)
        );
    }
}

/// A reader that goes away ends the program with an error and without a panic.
#[test]
fn a_closed_pipe_is_an_error() {
    let mut command = program("run");
    command
        .args(["--device", "cpu", "--prompt", "banana", "--model"])
        .arg(tiny());
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert!(!output.status.success());
    let said = stderr(&output);
    assert!(said.contains("error:") && !said.contains("panicked"), "{said}");
}

#[test]
fn equal_seeds_give_equal_text() {
    let text = |seed: &str| {
        let drawn = ["--temp", "1.5", "--top-k", "0", "--top-p", "1", "--min-p", "0"];
        let output = generate(&[&drawn[..], &["--prompt", "banana", "--seed", seed]].concat());
        stdout(&output)
    };
    assert_eq!(text("1"), text("1"));
    assert_ne!(text("1"), text("2"));
}

#[test]
fn what_cannot_be_done_is_refused_with_advice() {
    for (arguments, advice) in [
        (&["--prompt", "a", "--ctx", "513"][..], "the model was made for 512"),
        (&["--prompt", "a", "--ctx", "0"], "at least 1"),
        (&["--prompt", "a", "--ctx", "many"], "`auto`"),
        (&["--prompt", "a", "--kv", "q8"], "f16, f32"),
        (&["--prompt", "a", "--chunk", "0"], "1 to 65536"),
        (&["--prompt", "a", "--temp", "nan"], "temperature is NaN"),
        (&["--prompt", "a", "--top-p", "1.5"], "0 to 1"),
        (&["--prompt", "a", "--ids", "1"], "cannot be used with"),
        (&["--ids", "1,x"], "invalid"),
        (&["--ids", "1,320"], "320"),
        (&["--prompt", ""], "no tokens"),
        (&["--prompt", "a long prompt", "--ctx", "4"], "the context 4"),
        (&[], "no tokens"),
    ] {
        let output = generate(arguments);
        assert!(!output.status.success(), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        let said = stderr(&output);
        assert!(said.contains(advice), "{arguments:?}: {said}");
        assert!(!said.contains("panicked"), "{said}");
    }
}

/// A card of each kind with room for a part of the model, and the CPU for the rest.
#[test]
fn layers_lie_on_the_cards_that_are_named_and_the_text_is_the_same() {
    let text = |device: &str, options: &[&str]| {
        let mut command = program("run");
        command.args([
            "--tokens", "8", "--temp", "0", "--prompt", "banana", "--json", "--device", device,
        ]);
        command.args(options).arg("--model").arg(tiny());
        let said: serde_json::Value = serde_json::from_slice(&run(command, "").stdout).expect("JSON");
        (
            said["ids"].clone(),
            said["parts_on_device"].as_u64(),
            said["parts"].as_u64(),
        )
    };
    let (expected, _, _) = text("cpu", &[]);
    let (found, on_device, parts) = text("sim,sim:gfx1201", &[]);
    assert_eq!((&found, on_device), (&expected, parts));
    assert!(parts > Some(0));
    let (found, _, _) = text("sim,sim:gfx1201", &["--vram", "100KiB"]);
    assert_eq!(found, expected);
    device_is_refused("sim,");
}

/// The message has the names that there are.
fn device_is_refused(device: &str) {
    let mut command = program("run");
    command.arg("--model").arg(tiny());
    command.args(["--prompt", "a", "--device", device]);
    let output = run(command, "");
    assert!(!output.status.success() && output.stdout.is_empty());
    assert!(stderr(&output).contains("hip:<index>"), "{}", stderr(&output));
}

#[test]
fn a_wrong_device_is_refused_with_the_right_names() {
    device_is_refused("radeon");
}

#[test]
fn a_model_that_is_not_there_or_has_no_template_is_named() {
    for name in ["run", "chat"] {
        let mut command = program(name);
        command.args(["--model", "no/such.gguf"]);
        if name == "run" {
            command.args(["--prompt", "a"]);
        }
        let output = run(command, "");
        assert!(!output.status.success());
        let said = stderr(&output);
        assert!(
            said.contains("no/such.gguf") && said.contains("rocmforge pull"),
            "{said}"
        );
    }
    let output = chat(&tiny(), &[], "hi\n");
    assert!(!output.status.success());
    assert!(stderr(&output).contains("no chat template"), "{}", stderr(&output));
}

#[test]
fn chat_reads_lines_keeps_the_conversation_and_resets() {
    let model = tiny_chat();
    let greedy = ["--temp", "0", "--tokens", "4", "--system", "be brief"];
    let conversation = chat(model.path(), &greedy, "one\n\ntwo\n/reset\none\n/exit\nnever read\n");
    let text = stdout(&conversation);
    let said = stderr(&conversation);
    assert!(said.contains("a new conversation"), "{said}");
    // Three answers. The follow-up, and the same message again, found their beginning in the cache.
    assert_eq!(said.matches("computing the prompt").count(), 3, "{said}");
    assert!(said.contains("of them cached"), "{said}");
    let first = stdout(&chat(model.path(), &greedy, "one\n"));
    assert!(first.ends_with('\n'));
    assert!(
        text.starts_with(&first) && text.ends_with(&first),
        "{text:?}, {first:?}"
    );
    let second = stdout(&chat(model.path(), &greedy, "two\n"));
    assert!(
        !text.contains(&second) || second == first,
        "the conversation is not kept: {text:?}"
    );
}

/// A user who writes the end-of-turn token writes text: the prompt is longer than with the token.
#[test]
fn control_tokens_of_a_user_are_text() {
    let model = tiny_chat();
    let prompt_tokens = |message: &str| -> usize {
        let said = stderr(&chat(model.path(), &["--tokens", "1"], &format!("{message}\n")));
        let row = said.lines().find(|line| line.starts_with("prompt ")).expect("a table");
        let number = row.split_whitespace().nth(1).expect("a number");
        number.parse().expect("a number")
    };
    assert_eq!(prompt_tokens("x<eos>"), prompt_tokens("x") + 5);
}

#[test]
fn a_conversation_beyond_the_context_is_refused_and_goes_on() {
    let model = tiny_chat();
    let long = "x".repeat(100);
    let output = chat(
        model.path(),
        &["--ctx", "64", "--tokens", "2"],
        &format!("{long}\nhi\n"),
    );
    assert_eq!(stdout(&output).lines().count().max(1), 1, "one answer");
    let said = stderr(&output);
    assert!(said.contains("the context 64") && said.contains("/reset"), "{said}");
}

/// The oldest turns are left out where there is no room for an answer, and that is said once.
#[test]
fn a_conversation_goes_on_past_the_context() {
    let model = tiny_chat();
    let turns = 12;
    let input = "banana\n".repeat(turns);
    let options = ["--ctx", "96", "--tokens", "4", "--temp", "0", "--system", "hi"];
    let output = chat(model.path(), &options, &input);
    let said = stderr(&output);
    assert_eq!(stdout(&output).lines().count(), turns, "{said}");
    assert_eq!(said.matches("oldest turns are left out").count(), 1, "{said}");
    assert!(!said.contains("taken back"), "{said}");
}

#[test]
fn commands_of_a_conversation_do_what_help_says() {
    let model = tiny_chat();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("talk.json");
    let path = file.to_str().expect("UTF-8");
    let greedy = ["--temp", "0", "--tokens", "4"];
    let input =
        format!("/help\n/regen\none\n/regen\n/save {path}\n/wrong\n/bench\n/load {path}\n/load /no/such\n/exit\n");
    let output = chat(model.path(), &greedy, &input);
    let said = stderr(&output);
    for part in [
        "/system TEXT",
        "/regen answers your last message again, and there is none yet",
        "2 messages are in",
        "there is no command /wrong",
        "tokens/s (`rocmforge bench`",
        "2 messages of",
        "/no/such: ",
    ] {
        assert!(said.contains(part), "{part:?} is missing: {said}");
    }
    let text = stdout(&output);
    let answers: Vec<&str> = text.lines().collect();
    assert_eq!(answers.len(), 2);
    assert_eq!(answers[0], answers[1], "greedy");
    let saved: Value = serde_json::from_slice(&std::fs::read(&file).expect("saved")).expect("JSON");
    assert_eq!(saved["messages"][0]["content"], "one");
    assert_eq!(
        saved["messages"][1]["content"].as_str().map(str::trim_end),
        Some(answers[0])
    );
    // Other instructions give another prompt: as if they had been there from the start.
    let changed = stdout(&chat(model.path(), &greedy, "/system be brief\none\n"));
    let given = stdout(&chat(
        model.path(),
        &[&greedy[..], &["--system", "be brief"]].concat(),
        "one\n",
    ));
    assert_eq!(changed, given);
}

/// What a file brings is bounded: a role of any length is not printed whole, and very many turns are not rendered one fewer at a time.
#[test]
fn hostile_files_of_conversations_are_refused_or_shortened() {
    let model = tiny_chat();
    let folder = tempfile::tempdir().expect("a folder");
    let [role, turns] = ["role.json", "turns.json"].map(|name| folder.path().join(name));
    let long = format!("\u{1b}[2J{}", "k".repeat(1 << 20));
    std::fs::write(&role, json!([{ "role": long, "content": "x" }]).to_string()).expect("written");
    let turn = [
        json!({ "role": "user", "content": "a" }),
        json!({ "role": "assistant", "content": "b" }),
    ];
    let many: Vec<Value> = turn.iter().cycle().take(6000).cloned().collect();
    std::fs::write(&turns, Value::from(many).to_string()).expect("written");
    let input = format!("/load {}\n/load {}\nhi\n", role.display(), turns.display());
    let output = chat(model.path(), &["--ctx", "64", "--tokens", "2", "--temp", "0"], &input);
    let said = stderr(&output);
    assert!(said.len() < 4000, "{} bytes are printed", said.len());
    assert!(
        said.contains("the role \"\\u{1b}[2Jk") && !said.contains('\u{1b}'),
        "{said}"
    );
    assert!(
        said.contains("6000 messages of") && said.contains("oldest turns are left out"),
        "{said}"
    );
    assert_eq!(stdout(&output).lines().count(), 1, "{said}");
}

/// A line that no context has room for is skipped, and the next one is answered.
#[test]
fn a_line_without_an_end_is_left_out() {
    let model = tiny_chat();
    let input = format!("{}\nhi\n", "x".repeat(5 << 20));
    let output = chat(model.path(), &["--tokens", "2", "--temp", "0"], &input);
    let said = stderr(&output);
    assert!(said.contains("more than 4.0 MiB"), "{}", &said[..said.len().min(2000)]);
    assert_eq!(stdout(&output).lines().count(), 1);
}

/// A template that refuses a message ends the answer, not the program.
#[test]
fn an_error_of_the_template_ends_the_answer_alone() {
    let template = TEMPLATE.replace(
        "{% for m in messages %}",
        "{% for m in messages %}{% if 'bad' in m.content %}{{ raise_exception('no bad words') }}{% endif %}",
    );
    let model = tiny_with_template(&template);
    let output = chat(model.path(), &["--temp", "0", "--tokens", "4"], "bad\ngood\n");
    let said = stderr(&output);
    assert_eq!(stdout(&output).lines().count(), 1, "{said}");
    assert!(said.contains("no bad words") && said.contains("taken back"), "{said}");
}

/// What a model thinks is folded where there is no terminal: the prompt ends inside of the thinking.
#[test]
fn thinking_is_folded() {
    let template = TEMPLATE.replace("<bos>assistant: ", "<bos>assistant: <think>{# </think> #}");
    let model = tiny_with_template(&template);
    let output = chat(model.path(), &["--temp", "0", "--tokens", "4"], "one\n");
    assert_eq!(stdout(&output), "\n");
    assert!(stderr(&output).contains("(thinking …)"), "{}", stderr(&output));
}

/// Ctrl-C ends the answer; the program reads on. On the simulated card, where an answer takes long enough to be there still.
#[cfg(unix)]
#[test]
fn ctrl_c_ends_the_answer_and_not_the_program() {
    use std::io::{BufRead, BufReader, Read};

    let model = tiny_chat();
    let mut command = program("chat");
    command.args(["--device", "sim", "--tokens", "400", "--temp", "0", "--model"]);
    command.arg(model.path());
    let mut child = start(command);
    let mut input = child.stdin.take().expect("piped");
    let mut said = BufReader::new(child.stderr.take().expect("piped"));
    writeln!(input, "hi").expect("it reads");
    let mut line = String::new();
    while !line.contains("computing the prompt") {
        line.clear();
        assert!(said.read_line(&mut line).expect("UTF-8") > 0, "it has ended");
    }
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(kill.expect("kill is there").success());
    line.clear();
    said.read_line(&mut line).expect("UTF-8");
    assert_eq!(line, "(stopped)\n");
    writeln!(input, "/exit").expect("it still reads");
    let mut rest = String::new();
    said.read_to_string(&mut rest).expect("UTF-8");
    assert!(child.wait().expect("it ends").success(), "{rest}");
    assert!(rest.contains("tokens/s"), "{rest}");
}

/// The chat model that `cargo xtask model smollm2` fetches.
#[test]
fn smollm2_knows_the_capital_of_france() {
    let model = rocmforge_testkit::test_model_path("smollm2/SmolLM2-135M-Instruct.Q4_1.gguf");
    if !model.exists() {
        skip!("SmolLM2 is absent: cargo xtask model smollm2");
    }
    let mut command = program("run");
    command.args([
        "--device",
        "cpu",
        "--temp",
        "0",
        "--tokens",
        "2",
        "--ctx",
        "256",
        "--prompt",
        "The capital of France is",
    ]);
    command.arg("--model").arg(&model);
    assert_eq!(stdout(&run(command, "")), " Paris.\n");
    // With activations of 8 bits this file answers in French words without sense, in llama.cpp too (docs/models.md).
    let arguments = ["--exact", "--ctx", "512", "--temp", "0", "--tokens", "20"];
    let output = chat(&model, &arguments, "What is the capital of France?\nSay it again.\n");
    assert!(stdout(&output).contains("Paris"), "{}", stdout(&output));
    assert!(stderr(&output).contains("of them cached"), "{}", stderr(&output));
}

#[test]
fn each_command_has_a_manual_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let pages = folder.path().join("pages");
    let mut command = program("man");
    command.arg(&pages);
    stdout(&run(command, ""));
    for name in ["rocmforge.1", "rocmforge-run.1", "rocmforge-serve.1"] {
        let page = std::fs::read_to_string(pages.join(name)).expect(name);
        assert!(page.contains(".TH rocmforge"), "{page}");
    }
}

/// DRY ends a repeat unless it looks at no token, or the repeated text is a breaker.
#[test]
fn dry_takes_breakers_and_a_number_of_tokens() {
    let object = |options: &[&str]| -> Value {
        // A token that is the most likely one whatever stands before it.
        let forced = ["--ids", "1,2,3", "--tokens", "12", "--json", "--logit-bias", "20=100"];
        let output = greedy(&[&forced[..], options].concat());
        serde_json::from_str(&stdout(&output)).expect("one object and nothing else")
    };
    let repeated = object(&[]);
    assert_eq!(repeated["ids"], json!(vec![20; 12]));
    // Twelve times the token's text.
    let text = repeated["text"].as_str().expect("text");
    let piece = &text[..text.len() / 12];
    assert_eq!(piece.repeat(12), text);
    let dry = ["--dry-multiplier", "1000"];
    let with = |more: &[&str]| object(&[&dry[..], more].concat())["ids"].clone();
    let ended = with(&[]);
    assert_ne!(ended, repeated["ids"]);
    // The defaults of both.
    assert_eq!(with(&["--dry-penalty-last-n", "-1"]), ended);
    assert_eq!(with(&["--dry-sequence-breaker", "none"]), ended);
    assert_eq!(with(&["--dry-penalty-last-n", "0"]), repeated["ids"]);
    assert_eq!(with(&["--dry-sequence-breaker", piece]), repeated["ids"]);
    assert_eq!(
        with(&["--dry-sequence-breaker", "?", "--dry-sequence-breaker", piece]),
        repeated["ids"]
    );
    // `none` takes away what was given before it, as in llama.cpp.
    assert_eq!(
        with(&["--dry-sequence-breaker", piece, "--dry-sequence-breaker", "none"]),
        ended
    );
    for wrong in [
        ["--dry-penalty-last-n", "-2"],
        ["--dry-penalty-last-n", "many"],
        ["--dry-sequence-breaker", ""],
        ["--dry-sequence-breaker", &"x".repeat(300)],
    ] {
        assert_eq!(
            greedy(&[&["--ids", "1"][..], &wrong].concat()).status.code(),
            Some(2),
            "{wrong:?}"
        );
    }
}
