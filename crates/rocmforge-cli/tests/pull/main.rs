//! Pull, list, show, rm and run, through the program, with a hub of the test's own.

mod fit;
mod hub;
mod network;
mod store;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use hub::{Answer, Hub};

/// A random Llama of a few kilobytes.
fn tiny() -> Vec<u8> {
    std::fs::read(tiny_path()).expect("a committed model")
}

fn tiny_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../rocmforge-models/tests/reference/tiny/llama.gguf")
}

/// SHA-256 of the bytes, by another program than the one under test.
fn sha256(bytes: &[u8]) -> String {
    use std::io::Write;
    let mut child = Command::new("sha256sum")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("sha256sum");
    child.stdin.take().expect("piped").write_all(bytes).expect("read");
    let output = child.wait_with_output().expect("ends");
    String::from_utf8(output.stdout).expect("ASCII")[..64].to_owned()
}

struct User {
    hub: Hub,
    models: tempfile::TempDir,
}

impl User {
    fn new() -> Self {
        Self {
            hub: Hub::new(),
            models: tempfile::tempdir().expect("a folder"),
        }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rocmforge"));
        command
            .args(args)
            .env("ROCMFORGE_STORE", self.models.path())
            .env("HF_ENDPOINT", &self.hub.url)
            .env("PIP_INDEX_URL", format!("{}/simple", self.hub.url))
            .env_remove("HF_TOKEN");
        for proxy in ["http_proxy", "https_proxy", "all_proxy", "no_proxy"] {
            command.env_remove(proxy).env_remove(proxy.to_uppercase());
        }
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("started")
    }

    /// What a command that succeeds prints.
    #[track_caller]
    fn ok(&self, args: &[&str]) -> String {
        let output = self.run(args);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{args:?}: {said}");
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    /// What a command that fails says.
    #[track_caller]
    fn fails(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        String::from_utf8(output.stderr).expect("UTF-8")
    }

    /// Names of the models that are listed.
    fn listed(&self) -> Vec<String> {
        let list: serde_json::Value = serde_json::from_str(&self.ok(&["list", "--json"])).expect("JSON");
        let entries = list.as_array().expect("an array").iter();
        entries
            .map(|entry| entry["name"].as_str().expect("a name").to_owned())
            .collect()
    }

    /// Lists files of the repository `a/b`, each with the hash of what it should have.
    fn list_files(&self, files: &[(&str, &[u8])]) {
        let file = |(path, bytes): &(&str, &[u8])| serde_json::json!({ "type": "file", "path": path, "size": bytes.len(), "lfs": { "oid": sha256(bytes) } });
        let list: Vec<_> = files.iter().map(file).collect();
        let list = serde_json::to_vec(&list).expect("JSON");
        self.hub
            .set("/api/models/a/b/tree/main?recursive=true", Answer::File(list));
    }
}

const FILE: &str = "/a/b/resolve/main/tiny-Q8_0.gguf";
const NAME: &str = "hf:a/b:Q8_0";
/// Where this model is pulled into, and its lock.
const PART: &str = ".hf%3Aa%2Fb%3AQ8_0.part";
const LOCK: &str = ".hf%3Aa%2Fb%3AQ8_0.lock";

#[test]
fn a_model_of_the_hub_is_fetched_listed_run_and_removed() {
    let user = User::new();
    user.list_files(&[("tiny-Q8_0.gguf", &tiny()), ("tiny-F16.gguf", b"another")]);
    user.hub.set(FILE, Answer::Redirect("/elsewhere".to_owned()));
    user.hub.set("/elsewhere", Answer::File(tiny()));
    let run = [
        "run", "-m", NAME, "--ids", "1,2,3", "--tokens", "4", "--device", "cpu", "--temp", "0", "--json",
    ];
    // A name that says where it comes from needs no pull before.
    let found: serde_json::Value = serde_json::from_str(&user.ok(&run)).expect("JSON");
    assert_eq!(found["ids"].as_array().expect("an array").len(), 4);
    let path = tiny_path();
    let mut by_path = run;
    by_path[2] = path.to_str().expect("UTF-8");
    let expected: serde_json::Value = serde_json::from_str(&user.ok(&by_path)).expect("JSON");
    assert_eq!(found["ids"], expected["ids"]);
    assert_eq!(user.listed(), [NAME]);
    assert!(user.ok(&["show", NAME]).contains("architecture  llama"));
    user.ok(&["pull", NAME]);
    assert_eq!(user.hub.ranges("/elsewhere"), [None], "it is there");
    user.ok(&["rm", NAME]);
    assert!(user.listed().is_empty());
    assert_eq!(std::fs::read_dir(user.models.path()).expect("there").count(), 0);
}

#[test]
fn a_download_that_breaks_off_goes_on_where_it_stopped() {
    let user = User::new();
    let bytes = tiny();
    user.list_files(&[("tiny-Q8_0.gguf", &bytes)]);
    let piece = bytes.len() / 3 + 1;
    user.hub.set(FILE, Answer::Pieces(bytes.clone(), piece));
    user.ok(&["pull", NAME]);
    let piece = piece as u64;
    assert_eq!(user.hub.ranges(FILE), [None, Some(piece), Some(2 * piece)]);
    assert_eq!(user.listed(), [NAME]);
}

#[test]
fn a_server_that_has_no_ranges_is_asked_again_for_all() {
    let user = User::new();
    let bytes = tiny();
    user.list_files(&[("tiny-Q8_0.gguf", &bytes)]);
    user.hub.set(FILE, Answer::NoRanges(bytes.clone(), bytes.len() / 2));
    user.ok(&["pull", NAME]);
    assert_eq!(user.hub.ranges(FILE).len(), 3);
    assert_eq!(user.listed(), [NAME]);
}

#[test]
fn a_process_that_was_ended_leaves_what_the_next_goes_on_from() {
    let user = User::new();
    let bytes = tiny();
    user.list_files(&[("tiny-Q8_0.gguf", &bytes)]);
    user.hub.set(FILE, Answer::Pieces(bytes.clone(), 0));
    let error = user.fails(&["pull", NAME]);
    assert!(error.contains("broke off at 0 B"), "{error}");
    assert!(error.contains("begins this file again"), "{error}");
    assert!(user.listed().is_empty(), "a part is no model");
    // What an ended process leaves.
    let folder = user.models.path().join(PART);
    assert!(!folder.exists(), "a part without a byte does not stay");
    std::fs::create_dir(&folder).expect("made");
    std::fs::write(folder.join("tiny-Q8_0.gguf.part"), &bytes[..100]).expect("written");
    user.hub.set(FILE, Answer::Status(503));
    let error = user.fails(&["pull", NAME]);
    assert!(
        error.contains("503") && error.contains("the same command goes on"),
        "{error}"
    );
    user.hub.set(FILE, Answer::File(bytes));
    let before = user.hub.ranges(FILE).len();
    user.ok(&["pull", NAME]);
    assert_eq!(user.hub.ranges(FILE)[before..], [Some(100)]);
    assert_eq!(user.listed(), [NAME]);
}

#[test]
fn a_file_with_another_hash_is_refused_and_removed() {
    let user = User::new();
    let (bytes, mut wrong) = (tiny(), tiny());
    // Of the weights: the header is as it should be.
    wrong[bytes.len() - 1] ^= 1;
    user.list_files(&[("tiny-Q8_0.gguf", &bytes)]);
    user.hub.set(FILE, Answer::File(wrong.clone()));
    let error = user.fails(&["pull", NAME]);
    assert!(
        error.contains(&sha256(&bytes)) && error.contains(&sha256(&wrong)),
        "{error}"
    );
    assert!(user.listed().is_empty());
    user.hub.set(FILE, Answer::File(bytes.clone()));
    user.ok(&["pull", NAME]);
    assert_eq!(user.hub.ranges(FILE), [None, None], "nothing of the wrong one is left");
    user.hub.set(FILE, Answer::File([&bytes[..], b"\0"].concat()));
    let error = user.fails(&["pull", "--force", NAME]);
    assert!(error.contains("were expected"), "{error}");
    assert_eq!(user.listed(), [NAME], "the old one is there until the new one is");
    user.ok(&["run", "-m", NAME, "--ids", "1", "--tokens", "1", "--device", "cpu"]);
    user.hub.set(FILE, Answer::File(bytes));
    let before = user.hub.ranges(FILE).len();
    user.ok(&["pull", "--force", NAME]);
    assert!(user.hub.ranges(FILE).len() > before, "it is fetched again");
    assert_eq!(user.listed(), [NAME]);
    assert_eq!(std::fs::read_dir(user.models.path()).expect("there").count(), 1);
}

#[test]
fn what_is_not_there_or_not_for_everybody_is_said() {
    let user = User::new();
    let error = user.fails(&["pull", NAME]);
    assert!(error.contains("is not there") && error.contains("404"), "{error}");
    user.list_files(&[("tiny-Q8_0.gguf", &tiny())]);
    user.hub.set(FILE, Answer::Status(403));
    let error = user.fails(&["pull", NAME]);
    assert!(error.contains("HF_TOKEN"), "{error}");
    user.hub.set(FILE, Answer::Endless);
    let error = user.fails(&["pull", NAME]);
    assert!(error.contains("were expected"), "{error}");
    let url = format!("{}/big.gguf", user.hub.url);
    user.hub.set("/big.gguf", Answer::Endless);
    let error = user.fails(&["pull", &url]);
    assert!(error.contains("free, and"), "{error}");
    let left = std::fs::read_dir(user.models.path()).expect("there");
    assert_eq!(left.count(), 0, "nothing was fetched, and nothing stays");
    let error = user.fails(&["run", "-m", "no such model", "x"]);
    assert!(error.contains("rocmforge list") && error.contains("smollm2"), "{error}");
    assert!(user.listed().is_empty());
}

#[test]
fn a_busy_server_is_asked_again() {
    let user = User::new();
    user.list_files(&[("tiny-Q8_0.gguf", &tiny())]);
    user.hub.set(FILE, Answer::Busy(503, 2, tiny()));
    user.ok(&["pull", NAME]);
    assert_eq!(user.hub.ranges(FILE).len(), 3);
}

#[test]
fn the_token_goes_to_the_hub_alone() {
    let user = User::new();
    let other = Hub::new();
    user.list_files(&[("tiny-Q8_0.gguf", &tiny())]);
    user.hub.set(FILE, Answer::Redirect(format!("{}/elsewhere", other.url)));
    other.set("/elsewhere", Answer::File(tiny()));
    let output = user.command(&["pull", NAME]).env("HF_TOKEN", "secret").output();
    assert!(output.expect("started").status.success());
    let sent = Some("Bearer secret".to_owned());
    // The list, the header, the file; the last two from the other place too.
    assert_eq!(user.hub.tokens(), [sent.clone(), sent.clone(), sent]);
    assert_eq!(other.tokens(), [None, None]);
}

/// A download without a known hash must not be made of two versions of a file, whatever the server says of them.
#[test]
fn a_file_that_changes_while_it_is_fetched_is_fetched_again() {
    let (new, mut old) = (tiny(), tiny());
    old[..1000].fill(b'x');
    let longer = [old.clone(), vec![0; 100]].concat();
    for (first, has_versions) in [(&old, false), (&old, true), (&longer, false), (&longer, true)] {
        let user = User::new();
        let answer = Answer::Changes(first.clone(), new.clone(), 2000, has_versions);
        user.hub.set("/tiny.gguf", answer);
        let url = format!("{}/tiny.gguf", user.hub.url);
        user.ok(&["pull", &url]);
        let list: serde_json::Value = serde_json::from_str(&user.ok(&["list", "--json"])).expect("JSON");
        let pulled = std::fs::read(list[0]["path"].as_str().expect("a path")).expect("there");
        assert!(pulled == new, "{has_versions}");
    }
}

#[test]
fn a_server_that_stays_busy_is_named_with_its_status() {
    let user = User::new();
    user.list_files(&[("tiny-Q8_0.gguf", &tiny())]);
    for status in [503, 429] {
        user.hub.set(FILE, Answer::Status(status));
        let error = user.fails(&["pull", NAME]);
        assert!(
            error.contains(&status.to_string()) && error.contains("later"),
            "{error}"
        );
    }
    assert_eq!(user.hub.ranges(FILE).len(), 8);
}

/// A GGUF file of another architecture, with weights of some size.
fn of_another_architecture() -> Vec<u8> {
    let mut writer = rocmforge::gguf::Writer::new();
    writer.metadata("general.architecture", "rwkv9").expect("a key");
    let ty = rocmforge::gguf::TensorType::F32;
    writer
        .tensor("token_embd.weight", &[1 << 20], ty, vec![0; 4 << 20])
        .expect("a tensor");
    writer.to_bytes().expect("written")
}

#[test]
fn a_model_that_cannot_be_run_is_refused_by_its_header() {
    let user = User::new();
    let model = of_another_architecture();
    let path = "/a/b/resolve/main/BF16/x-BF16.gguf";
    user.list_files(&[("BF16/x-BF16.gguf", &model)]);
    user.hub.set(path, Answer::File(model.clone()));
    user.hub.set("/x.gguf", Answer::File(model));
    let url = format!("{}/x.gguf", user.hub.url);
    for (name, path) in [("hf:a/b", path), (url.as_str(), "/x.gguf")] {
        let error = user.fails(&["pull", name]);
        assert!(error.contains("rwkv9") && error.contains("is not fetched"), "{error}");
        assert!(user.hub.ranges(path).is_empty(), "{name}: only the header is read");
        assert_eq!(user.hub.headers(path), [Some(0)], "{name}");
    }
    // A folder of another architecture: its config.json says so, and the weights are not fetched.
    let config = br#"{"model_type": "rwkv9"}"#;
    user.list_files(&[("config.json", config), ("model.safetensors", b"weights")]);
    user.hub
        .set("/a/b/resolve/main/config.json", Answer::File(config.to_vec()));
    let error = user.fails(&["pull", "hf:a/b"]);
    assert!(error.contains("rwkv9"), "{error}");
    assert!(user.hub.ranges("/a/b/resolve/main/model.safetensors").is_empty());
    assert_eq!(std::fs::read_dir(user.models.path()).expect("there").count(), 0);
}

/// A server that says no length cannot fill the disk: the header says how much there is, or the hub does.
#[test]
fn a_file_without_a_length_has_a_bound() {
    let user = User::new();
    user.hub.set("/tiny.gguf", Answer::Unsized(tiny(), 0));
    user.hub.set("/long.gguf", Answer::Unsized(tiny(), 8 << 20));
    user.ok(&["pull", &format!("{}/tiny.gguf", user.hub.url)]);
    let error = user.fails(&["pull", &format!("{}/long.gguf", user.hub.url)]);
    assert!(error.contains("its header allows"), "{error}");
    user.list_files(&[("tiny-Q8_0.gguf", &tiny())]);
    user.hub.set(FILE, Answer::Unsized(tiny(), 8 << 20));
    let error = user.fails(&["pull", NAME]);
    assert!(error.contains("were expected"), "{error}");
    assert_eq!(user.listed().len(), 1);
}

/// The first part of a split model names the others.
#[test]
fn all_parts_of_a_split_url_are_fetched() {
    let user = User::new();
    let [first, second] = store::split();
    user.hub.set("/m-00001-of-00002.gguf?x=1", Answer::File(first));
    user.hub.set("/m-00002-of-00002.gguf?x=1", Answer::File(second));
    let url = |part: u32| format!("{}/m-{part:05}-of-00002.gguf?x=1", user.hub.url);
    let error = user.fails(&["pull", &url(2)]);
    assert!(error.contains("m-00001-of-00002.gguf"), "{error}");
    let error = user.fails(&["pull", &url(1), "--sha256", &"0".repeat(64)]);
    assert!(error.contains("leave it out"), "{error}");
    user.ok(&["pull", &url(1)]);
    assert!(user.ok(&["show", &url(1)]).contains("architecture  llama"));
}

#[test]
fn urls_and_paths_are_pulled_too() {
    let user = User::new();
    user.hub.set("/models/tiny.gguf?download=true", Answer::File(tiny()));
    let url = format!("{}/models/tiny.gguf?download=true", user.hub.url);
    let wrong = user.fails(&["pull", &url, "--sha256", &"0".repeat(64)]);
    assert!(wrong.contains("SHA-256"), "{wrong}");
    user.ok(&["pull", &url, "--sha256", &sha256(&tiny())]);
    user.ok(&["pull", tiny_path().to_str().expect("UTF-8")]);
    assert_eq!(user.listed(), [url.as_str(), "llama"]);
    let wrong = user.fails(&["pull", &url, "--sha256", &"0".repeat(64)]);
    assert!(wrong.contains("not 0000") && wrong.contains("--force"), "{wrong}");
    user.ok(&["pull", &url, "--sha256", &sha256(&tiny()).to_uppercase()]);
    for hash in ["", "0", &"g".repeat(64), &"0".repeat(65)] {
        let output = user.run(&["pull", &url, "--force", "--sha256", hash]);
        assert_eq!(output.status.code(), Some(2), "{hash}");
    }
    assert_eq!(user.hub.ranges("/models/tiny.gguf?download=true").len(), 2);
    let broken = user.models.path().join("broken.gguf");
    std::fs::write(&broken, b"GGUF").expect("written");
    user.fails(&["pull", broken.to_str().expect("UTF-8")]);
    assert_eq!(user.listed().len(), 2);
}

/// An encoder is for the server: it is pulled, listed and shown as other models are.
#[test]
fn an_encoder_is_pulled_too() {
    let user = User::new();
    let path = tiny_path().with_file_name("nomic-bert-moe.gguf");
    let bytes = std::fs::read(&path).expect("a committed model");
    user.list_files(&[("tiny-Q8_0.gguf", &bytes)]);
    user.hub.set(FILE, Answer::File(bytes));
    user.ok(&["pull", NAME]);
    let shown = user.ok(&["show", NAME, "--json"]);
    let shown: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
    assert_eq!(
        (&shown["architecture"], &shown["pooling"]),
        (&"nomic-bert-moe".into(), &"mean".into())
    );
    user.ok(&["pull", path.to_str().expect("UTF-8")]);
    assert_eq!(user.listed().len(), 2);
    let said = user.fails(&["run", "-m", NAME, "--device", "cpu", "a"]);
    assert!(said.contains("rocmforge serve -m 'hf:a/b:Q8_0'"), "{said}");
}

#[test]
fn a_text_to_continue_comes_from_stdin_or_a_file() {
    let user = User::new();
    let file = user.models.path().join("text");
    std::fs::write(&file, b"\xff").expect("written");
    let model = tiny_path();
    let run = ["run", "--device", "cpu", "-m", model.to_str().expect("UTF-8")];
    let error = user.fails(&[&run[..], &["--file", file.to_str().expect("UTF-8")]].concat());
    assert!(error.contains("not UTF-8"), "{error}");
    let error = user.fails(&[&run[..], &["--temp", "nan", "x"]].concat());
    assert!(error.contains("temperature"), "{error}");
}

#[test]
fn completions_and_the_manual_page_name_every_command() {
    let user = User::new();
    for text in [user.ok(&["completions", "bash"]), user.ok(&["man"])] {
        for command in ["run", "chat", "bench", "fit", "doctor", "pull", "list", "show", "rm"] {
            assert!(text.contains(command), "{command}");
        }
    }
}

/// A disk that is full is an error, and no panic.
#[test]
fn completions_that_cannot_be_written_are_an_error() {
    for command in [&["completions", "bash"][..], &["man"]] {
        let full = std::fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .expect("Linux");
        let output = User::new().command(command).stdout(full).output().expect("started");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("error:") && !said.contains("panicked"), "{said}");
    }
}
