//! The store under pulls that fail, meet each other, or name a model that is there.

use std::path::{Path, PathBuf};

use rocmforge::gguf::{Gguf, TensorInfo, Writer};

use super::hub::Answer;
use super::{FILE, LOCK, NAME, PART, User, sha256, tiny, tiny_path};

/// The path of a file of a folder, with these bytes.
fn file(folder: &Path, name: &str, bytes: &[u8]) -> String {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
    std::fs::write(&path, bytes).expect("written");
    path.to_str().expect("UTF-8").to_owned()
}

/// A GGUF file with the metadata of [`tiny`], some more, and these of its tensors.
fn gguf(model: &Gguf, more: &[(&str, u16)], tensors: &[TensorInfo]) -> Vec<u8> {
    let mut writer = Writer::new();
    for (key, value) in model.metadata().iter() {
        writer.metadata(key, value.clone()).expect("as it was");
    }
    for (key, value) in more {
        writer.metadata(*key, *value).expect("a new key");
    }
    for tensor in tensors {
        let data = model.data(tensor);
        writer
            .tensor(&tensor.name, &tensor.dims, tensor.ty, data)
            .expect("as it was");
    }
    writer.to_bytes().expect("written")
}

/// Another model than [`tiny`].
fn other() -> Vec<u8> {
    let model = Gguf::open(tiny_path()).expect("a model");
    gguf(&model, &[("general.test", 1)], model.tensors())
}

impl User {
    pub(super) fn in_store(&self, path: &str) -> PathBuf {
        self.models.path().join(path)
    }

    /// Names in the store's folder.
    pub(super) fn folders(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.models.path()).expect("there");
        let name = |entry: std::io::Result<std::fs::DirEntry>| entry.expect("read").file_name();
        let mut names: Vec<String> = entries.map(|entry| name(entry).into_string().expect("UTF-8")).collect();
        names.sort();
        names
    }
}

#[test]
fn a_model_stays_until_another_can_take_its_place() {
    let user = User::new();
    user.list_files(&[("tiny-Q8_0.gguf", &tiny())]);
    user.hub.set(FILE, Answer::File(tiny()));
    user.ok(&["pull", NAME]);
    let outside = tempfile::tempdir().expect("a folder");
    user.ok(&["pull", &file(outside.path(), "mine.gguf", &tiny())]);
    let stored = user.in_store("hf%3Aa%2Fb%3AQ8_0/tiny-Q8_0.gguf");
    // The file cannot be had, has another hash, or is no model.
    for answer in [
        Answer::Status(404),
        Answer::Status(503),
        Answer::File(vec![0; tiny().len()]),
    ] {
        user.hub.set(FILE, answer);
        user.fails(&["pull", "--force", NAME]);
        assert_eq!(std::fs::read(&stored).expect("it stays"), tiny());
    }
    user.list_files(&[("tiny-Q8_0.gguf", b"no model")]);
    user.hub.set(FILE, Answer::File(b"no model".to_vec()));
    let error = user.fails(&["pull", "--force", NAME]);
    assert!(error.contains("is not fetched"), "{error}");
    // Arguments that are refused.
    let error = user.fails(&["pull", "--force", "mine"]);
    assert!(error.contains("no model that is known"), "{error}");
    user.fails(&["pull", "--force", "--sha256", &"0".repeat(64), NAME]);
    user.fails(&["pull", "--force", "no/such.gguf"]);
    assert_eq!(user.listed(), [NAME, "mine"]);
    assert_eq!(std::fs::read(&stored).expect("it stays"), tiny());
    // Another takes its place, and nothing of the old one stays.
    user.list_files(&[("other-Q8_0.gguf", &other())]);
    user.hub.set("/a/b/resolve/main/other-Q8_0.gguf", Answer::File(other()));
    user.ok(&["pull", "--force", NAME]);
    assert!(!stored.exists());
    assert_eq!(
        std::fs::read(stored.with_file_name("other-Q8_0.gguf")).expect("there"),
        other()
    );
    assert_eq!(user.folders(), ["hf%3Aa%2Fb%3AQ8_0", "mine"]);
    let files = std::fs::read_dir(user.in_store("hf%3Aa%2Fb%3AQ8_0")).expect("there");
    assert_eq!(files.count(), 2, "the model and its manifest");
}

#[test]
fn a_path_does_not_replace_a_model_from_another_place() {
    let user = User::new();
    let outside = tempfile::tempdir().expect("a folder");
    let first = file(outside.path(), "a/model.gguf", &tiny());
    let second = file(outside.path(), "b/model.gguf", &other());
    user.ok(&["pull", &first]);
    let stored = || std::fs::read(user.in_store("model/model.gguf")).expect("there");
    let error = user.fails(&["pull", &second]);
    assert!(error.contains(&first) && error.contains("--force"), "{error}");
    assert_eq!(stored(), tiny());
    for again in [first.as_str(), "model"] {
        user.ok(&["pull", again]);
    }
    user.ok(&["pull", "--force", &second]);
    assert_eq!(stored(), other());
    // The name of a known model, too.
    user.ok(&["pull", &file(outside.path(), "smollm2.gguf", &tiny())]);
    let error = user.fails(&["pull", "smollm2"]);
    assert!(error.contains("smollm2.gguf") && error.contains("--force"), "{error}");
}

/// [`tiny`] in two parts.
pub(crate) fn split() -> [Vec<u8>; 2] {
    let model = Gguf::open(tiny_path()).expect("a model");
    let part = |number: u16, tensors: &[TensorInfo]| gguf(&model, &[("split.count", 2), ("split.no", number)], tensors);
    let (first, second) = model.tensors().split_at(3);
    [part(0, first), part(1, second)]
}

#[test]
fn all_parts_of_a_split_file_are_copied() {
    let user = User::new();
    let outside = tempfile::tempdir().expect("a folder");
    let [first, second] = split();
    let first = file(outside.path(), "m-00001-of-00002.gguf", &first);
    let second = file(outside.path(), "m-00002-of-00002.gguf", &second);
    user.ok(&["pull", &first]);
    for path in [&first, &second] {
        std::fs::remove_file(path).expect("removed");
    }
    let shown = user.ok(&["show", "m-00001-of-00002"]);
    assert!(shown.contains("architecture  llama"), "{shown}");
}

#[test]
fn a_file_with_the_name_of_the_manifest_is_not_taken() {
    let user = User::new();
    let hostile = br#"{"name":"other","source":"","open":"../x","files":[]}"#;
    let config =
        br#"{"model_type":"llama","vocab_size":64,"hidden_size":32,"intermediate_size":32,"num_hidden_layers":1,
        "num_attention_heads":2,"rms_norm_eps":1e-5,"max_position_embeddings":64}"#;
    let weights = [
        &55u64.to_le_bytes()[..],
        br#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}} "#,
        &[0; 4],
    ]
    .concat();
    let files: [(&str, &[u8]); 3] = [
        ("config.json", config),
        ("model.safetensors", &weights),
        ("rocmforge.json", hostile),
    ];
    user.list_files(&files);
    for (name, bytes) in files {
        user.hub
            .set(&format!("/a/b/resolve/main/{name}"), Answer::File(bytes.to_vec()));
    }
    user.ok(&["pull", "hf:a/b"]);
    assert!(user.hub.ranges("/a/b/resolve/main/rocmforge.json").is_empty());
    let outside = tempfile::tempdir().expect("a folder");
    for (name, bytes) in files {
        file(outside.path(), &format!("mine/{name}"), bytes);
    }
    user.ok(&["pull", outside.path().join("mine").to_str().expect("UTF-8")]);
    assert_eq!(user.listed(), ["hf:a/b", "mine"]);
    // A manifest that cannot be read is a line of the list; the model can be removed and pulled again.
    for bytes in [&hostile[..], b"{"] {
        std::fs::write(user.in_store("mine/rocmforge.json"), bytes).expect("written");
        assert_eq!(user.listed(), ["hf:a/b", "mine"]);
        assert!(user.ok(&["list"]).contains("cannot be used: "));
    }
    user.ok(&["rm", "mine"]);
    std::fs::write(user.in_store("hf%3Aa%2Fb/rocmforge.json"), b"{").expect("written");
    user.ok(&["pull", "--force", "hf:a/b"]);
    std::fs::write(user.in_store("hf%3Aa%2Fb/rocmforge.json"), b"{").expect("written");
    // By the name that the list has.
    user.ok(&["rm", &user.listed()[0]]);
    assert!(user.folders().is_empty());
}

#[test]
fn the_store_is_no_model() {
    let user = User::new();
    user.ok(&["pull", tiny_path().to_str().expect("UTF-8")]);
    let outside = tempfile::tempdir().expect("a folder");
    let error = user.fails(&["pull", &file(outside.path(), ".gguf", &tiny())]);
    assert!(error.contains("is empty"), "{error}");
    std::fs::write(user.in_store("rocmforge.json"), b"{}").expect("written");
    for name in ["", ".", "..", "/", "llama/..", "../models"] {
        user.fails(&["rm", name]);
    }
    // A folder of the user's is no model, and no model takes its place.
    file(user.models.path(), "notes/text", b"mine");
    user.fails(&["rm", "notes"]);
    let error = user.fails(&["pull", &file(outside.path(), "notes.gguf", &tiny())]);
    assert!(error.contains("is in the way"), "{error}");
    assert!(user.in_store("notes/text").exists());
    assert_eq!(user.listed(), ["llama"]);
}

#[test]
fn show_fetches_nothing() {
    let user = User::new();
    user.list_files(&[("tiny-Q8_0.gguf", &tiny())]);
    user.hub.set(FILE, Answer::File(tiny()));
    for name in [NAME, "smollm2"] {
        let error = user.fails(&["show", name]);
        assert!(error.contains("rocmforge pull"), "{error}");
    }
    assert!(user.hub.tokens().is_empty(), "nothing was asked");
}

/// Whatever the file's permissions are, and whatever a link points to.
#[test]
fn files_that_are_read_only_or_links_are_copied_by_their_names() {
    use std::os::unix::fs::PermissionsExt;
    let user = User::new();
    let outside = tempfile::tempdir().expect("a folder");
    let blob = file(outside.path(), "blobs/0123456789abcdef", &tiny());
    std::fs::set_permissions(&blob, std::fs::Permissions::from_mode(0o444)).expect("set");
    let link = outside.path().join("nice.gguf");
    std::os::unix::fs::symlink(&blob, &link).expect("made");
    user.ok(&["pull", link.to_str().expect("UTF-8")]);
    assert_eq!(user.listed(), ["nice"]);
    let mode = user
        .in_store("nice/nice.gguf")
        .metadata()
        .expect("there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o600, 0o600);
    user.ok(&["pull", "--force", link.to_str().expect("UTF-8")]);
}

#[test]
fn two_pulls_of_one_model_do_not_meet() {
    let user = User::new();
    user.list_files(&[("tiny-Q8_0.gguf", &tiny())]);
    user.hub.set(FILE, Answer::File(tiny()));
    let lock = std::fs::File::create(user.in_store(LOCK)).expect("made");
    lock.lock().expect("locked");
    std::fs::create_dir(user.in_store(PART)).expect("made");
    for command in ["pull", "rm"] {
        let error = user.fails(&[command, NAME]);
        assert!(error.contains("another process is fetching"), "{error}");
    }
    drop(lock);
    user.ok(&["pull", NAME]);
    assert_eq!(user.folders(), ["hf%3Aa%2Fb%3AQ8_0"]);
    // Many at once: each ends with the model, or says that another fetches it.
    let start = |_| {
        let mut command = user.command(&["pull", "--force", NAME]);
        command.stderr(std::process::Stdio::piped()).spawn().expect("started")
    };
    let children: Vec<_> = (0..8).map(start).collect();
    let mut pulled = 0;
    for child in children {
        let output = child.wait_with_output().expect("ends");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        pulled += usize::from(output.status.success());
        assert!(output.status.success() || said.contains("another process"), "{said}");
    }
    assert!(pulled > 0);
    assert_eq!(user.folders(), ["hf%3Aa%2Fb%3AQ8_0"]);
    let stored = std::fs::read(user.in_store("hf%3Aa%2Fb%3AQ8_0/tiny-Q8_0.gguf")).expect("there");
    assert_eq!(sha256(&stored), sha256(&tiny()));
}

#[test]
fn what_an_interrupted_pull_left_can_be_removed() {
    let user = User::new();
    user.list_files(&[("tiny-Q8_0.gguf", &tiny())]);
    user.hub.set(FILE, Answer::Status(503));
    user.fails(&["pull", NAME]);
    assert!(user.folders().is_empty(), "nothing was fetched");
    file(&user.in_store(PART), "tiny-Q8_0.gguf.part", &tiny()[..100]);
    user.fails(&["pull", NAME]);
    assert_eq!(user.folders(), [PART]);
    user.ok(&["rm", NAME]);
    assert!(user.folders().is_empty());
    let error = user.fails(&["rm", NAME]);
    assert!(error.contains("there is no model"), "{error}");
    // Where nothing was fetched nothing stays.
    user.hub
        .set("/api/models/a/b/tree/main?recursive=true", Answer::Status(404));
    user.fails(&["pull", NAME]);
    assert!(user.folders().is_empty());
}

#[test]
fn long_names_are_names() {
    let user = User::new();
    let path = format!("/tiny.gguf?signature={}", "%2F".repeat(200));
    user.hub.set(&path, Answer::File(tiny()));
    let url = format!("{}{path}", user.hub.url);
    user.ok(&["pull", &url]);
    user.ok(&["pull", &url]);
    assert_eq!(user.hub.ranges(&path).len(), 1);
    assert_eq!(user.listed(), [url.as_str()]);
    assert!(user.ok(&["show", &url]).contains("architecture  llama"));
    user.ok(&["rm", &url]);
    assert!(user.folders().is_empty());
}
