//! Parts of `tokenizer.json` as model families have them, beside the Python library `tokenizers`: ids, and texts of ids.

use std::path::Path;

use rocmforge_models::tokenizer::{Encode, Tokenizer};
use serde_json::Value;

fn recorded(file: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/reference/pre")
        .join(file);
    serde_json::from_str(&std::fs::read_to_string(path).expect("a committed file")).expect("JSON")
}

#[test]
fn ids_and_texts_are_those_of_the_python_library() {
    let shared = recorded("ids.json");
    let cases = recorded("directories.json");
    let tokens = shared["tokens"].as_array().expect("a list");
    let vocab: serde_json::Map<String, Value> = (0..)
        .zip(tokens)
        .map(|(id, token)| (token.as_str().expect("a token").to_owned(), Value::from(id)))
        .collect();
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("tokenizer.json");
    let (mut compared, mut wrong) = (0, Vec::new());
    for case in cases.as_array().expect("a list") {
        let name = case["name"].as_str().expect("a name");
        let mut file = case["file"].clone();
        if file["model"].get("vocab").is_none() {
            file["model"]["vocab"] = vocab.clone().into();
            file["model"]["merges"] = shared["merges"].clone();
        }
        std::fs::write(&path, file.to_string()).expect("written");
        let tokenizer = Tokenizer::from_file(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
        for (at, text) in shared["texts"].as_array().expect("a list").iter().enumerate() {
            let text = text.as_str().expect("a text");
            let ids = case["ids"][at].as_array().expect("ids").iter();
            let ids: Vec<u32> = ids.map(|id| id.as_u64().expect("an id") as u32).collect();
            let found = tokenizer.encode(text, Encode::TEXT).expect("tokenized");
            if found != ids {
                wrong.push(format!("{name} {text:?}\n  found    {found:?}\n  expected {ids:?}"));
            }
            let expected = case
                .get("texts")
                .map_or(text, |texts| texts[at].as_str().expect("a text"));
            let found = tokenizer.decode_with_control(&ids);
            if found != expected {
                wrong.push(format!(
                    "{name} {text:?} comes back as\n  found    {found:?}\n  expected {expected:?}"
                ));
            }
            compared += 1;
        }
    }
    println!("{compared} texts");
    let shown = wrong[..wrong.len().min(20)].join("\n");
    assert!(wrong.is_empty(), "{} wrong:\n{shown}", wrong.len());
}
