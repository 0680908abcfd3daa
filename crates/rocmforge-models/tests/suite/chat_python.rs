//! Chat templates beside Python's jinja2, set up as transformers sets it up: llama.cpp's 70 templates on 30 conversations, and small templates of
//! our own for each operator, filter, test and method. Skipped, visibly, without the templates and jinja2: `cargo xtask model templates`. What Python
//! gave for the small ones is recorded, so that they are always compared.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, UNIX_EPOCH};

use rocmforge_models::chat::{ChatError, ChatTemplate, Conversation, End, Message};
use serde_json::{Value, json};

/// The time that `strftime_now` gives: a day whose numbers have one digit, in the afternoon.
const TIME: u64 = 1_767_712_205;

/// Templates in the folder, and conversations.
const TEMPLATES: usize = 70;
const CONVERSATIONS: usize = 30;

/// The folder of templates and of the Python modules, if it is there and Python runs.
fn folder() -> Option<PathBuf> {
    let folder = rocmforge_testkit::test_model_path("chat-templates");
    let python = Command::new("python3")
        .arg("-c")
        .arg("import jinja2")
        .env("PYTHONPATH", &folder)
        .output();
    let runs = python.is_ok_and(|output| output.status.success());
    (runs && folder.join("templates").is_dir()).then_some(folder)
}

macro_rules! folder_or_skip {
    () => {
        match folder() {
            Some(folder) => folder,
            None => rocmforge_testkit::skip!("no templates or no Python: run `cargo xtask model templates`"),
        }
    };
}

fn reference(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/reference/chat")
        .join(name)
}

fn conversations() -> Vec<Value> {
    let text = std::fs::read_to_string(reference("conversations.json")).expect("a committed file");
    serde_json::from_str(&text).expect("JSON")
}

/// What Python gives for each template and conversation: a text, or `None` where it fails.
fn python(folder: &Path, templates: &[(String, String)], conversations: &[Value]) -> Vec<Option<String>> {
    let templates: Vec<Value> = templates
        .iter()
        .map(|(name, source)| json!({ "name": name, "source": source }))
        .collect();
    let job = json!({ "templates": templates, "conversations": conversations, "time": TIME });
    let mut child = Command::new("python3")
        .arg(reference("render.py"))
        .env("PYTHONPATH", folder)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("Python starts");
    let mut input = child.stdin.take().expect("a pipe");
    let text = job.to_string();
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()));
    let output = child.wait_with_output().expect("Python ends");
    writer.join().expect("no panic").expect("Python reads its input");
    assert!(output.status.success(), "render.py fails");
    let lines = String::from_utf8(output.stdout).expect("UTF-8");
    let line = |line: &str| {
        let line: Value = serde_json::from_str(line).expect("a line of JSON");
        assert!(line.get("text").is_some() != line.get("error").is_some(), "{line}");
        line.get("text").map(|text| text.as_str().expect("a text").to_owned())
    };
    lines.lines().map(line).collect()
}

/// What we give for a conversation in JSON.
fn ours(source: &str, conversation: &Value) -> Result<String, ChatError> {
    let template = ChatTemplate::new(source, Some("<s>"), Some("</s>"))?;
    let template = template.with_clock(|| UNIX_EPOCH + Duration::from_secs(TIME));
    let list = |key: &str| {
        conversation
            .get(key)
            .map(|list| list.as_array().expect("a list").as_slice())
    };
    let messages: Vec<Message> = list("messages")
        .expect("messages")
        .iter()
        .map(|message| Message::from_json(message).expect("a message"))
        .collect();
    let variables: Vec<(&str, Value)> = match conversation.get("variables") {
        Some(variables) => {
            let variables = variables.as_object().expect("an object").iter();
            variables.map(|(name, value)| (name.as_str(), value.clone())).collect()
        }
        None => Vec::new(),
    };
    template.render(&Conversation {
        messages: &messages,
        tools: list("tools"),
        documents: list("documents"),
        variables: &variables,
        end: match conversation["add_generation_prompt"].as_bool() {
            Some(true) => End::Answer,
            _ => End::Message,
        },
    })
}

/// Compares ours with what Python gives, and names the first differences.
fn compare(expected: &[Option<String>], templates: &[(String, String)], conversations: &[Value]) -> (usize, usize) {
    assert_eq!(expected.len(), templates.len() * conversations.len());
    let mut differences = Vec::new();
    let (mut texts, mut failures) = (0, 0);
    for (index, expected) in expected.iter().enumerate() {
        let (name, source) = &templates[index / conversations.len()];
        let conversation = &conversations[index % conversations.len()];
        let found = ours(source, conversation);
        let place = format!("{name}, {}", conversation["name"]);
        match (expected, found) {
            (Some(expected), Ok(found)) if *expected == found => texts += 1,
            (None, Err(_)) => failures += 1,
            (Some(expected), Ok(found)) => {
                let at = expected.bytes().zip(found.bytes()).take_while(|(a, b)| a == b).count();
                let part = |text: &str| {
                    String::from_utf8_lossy(&text.as_bytes()[at.saturating_sub(30)..text.len().min(at + 60)])
                        .into_owned()
                };
                differences.push(format!("{place}: Python {:?}, ours {:?}", part(expected), part(&found)));
            }
            (Some(_), Err(error)) => differences.push(format!("{place}: ours fails: {error}")),
            (None, Ok(found)) => differences.push(format!("{place}: Python fails, ours {:.60?}", found)),
        }
    }
    let count = differences.len();
    let shown = differences
        .iter()
        .take(40)
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join("\n");
    assert!(differences.is_empty(), "{count} differences\n{shown}");
    (texts, failures)
}

#[test]
fn llama_cpp_templates_print_what_python_prints() {
    let folder = folder_or_skip!();
    let mut templates = Vec::new();
    for entry in std::fs::read_dir(folder.join("templates")).expect("the folder of templates") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "jinja") {
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            templates.push((name, std::fs::read_to_string(&path).expect("a template")));
        }
    }
    templates.sort();
    let conversations = conversations();
    assert_eq!((templates.len(), conversations.len()), (TEMPLATES, CONVERSATIONS));
    let (texts, failures) = compare(&python(&folder, &templates, &conversations), &templates, &conversations);
    println!("{texts} equal texts, {failures} failures of both");
    // Some templates refuse some conversations, such as roles that do not alternate; most texts must be there.
    assert!(texts > 1_700, "{texts}");
}

/// Small templates, one for each line of `snippets.txt`.
fn snippets() -> Vec<(String, String)> {
    let text = std::fs::read_to_string(reference("snippets.txt")).expect("a committed file");
    let lines = text.lines().enumerate();
    let templates: Vec<(String, String)> = lines
        .filter(|(_, line)| !line.is_empty() && !line.starts_with("## "))
        .map(|(number, line)| (format!("snippets.txt:{}: {line}", number + 1), line.replace('⏎', "\n")))
        .collect();
    assert!(templates.len() > 290, "{}", templates.len());
    templates
}

/// What Python gave for the small templates when it was last asked.
fn recorded() -> Vec<Option<String>> {
    let text = std::fs::read_to_string(reference("snippets.json")).expect("a committed file");
    serde_json::from_str(&text).expect("JSON")
}

/// Needs no Python: the answers are recorded.
#[test]
fn small_templates_print_what_was_recorded() {
    let conversations = [conversations().pop().expect("one")];
    let (texts, failures) = compare(&recorded(), &snippets(), &conversations);
    println!("{texts} equal texts, {failures} failures of both");
}

#[test]
fn small_templates_print_what_python_prints() {
    let folder = folder_or_skip!();
    let (templates, conversations) = (snippets(), [conversations().pop().expect("one")]);
    let expected = python(&folder, &templates, &conversations);
    compare(&expected, &templates, &conversations);
    if std::env::var_os("ROCMFORGE_BLESS").is_some() {
        let lines: Vec<String> = expected.iter().map(|text| json!(text).to_string()).collect();
        let text = format!("[\n{}\n]\n", lines.join(",\n"));
        std::fs::write(reference("snippets.json"), text).expect("written");
    }
    assert_eq!(
        expected,
        recorded(),
        "Python gives other texts than those recorded: ROCMFORGE_BLESS=1 writes them"
    );
}
