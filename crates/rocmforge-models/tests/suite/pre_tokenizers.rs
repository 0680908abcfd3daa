//! Pre-tokenizers by their names: ids of llama.cpp for each name that it knows, and names that nobody knows.

use std::path::Path;

use rocmforge_models::tokenizer::{Encode, TokenType, Tokenizer, TokenizerError, VocabModel, Vocabulary};
use serde_json::Value;

fn recorded() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/pre/ids.json");
    serde_json::from_str(&std::fs::read_to_string(path).expect("a committed file")).expect("JSON")
}

fn texts(list: &Value) -> Vec<String> {
    let list = list.as_array().expect("a list").iter();
    list.map(|text| text.as_str().expect("a text").to_owned()).collect()
}

/// The vocabulary of `ids.py` with this pre-tokenizer.
fn vocabulary(recorded: &Value, pre: &str) -> Vocabulary {
    let tokens = texts(&recorded["tokens"]);
    let last = tokens.len() - 1;
    let mut vocabulary = Vocabulary::new(VocabModel::Gpt2, tokens);
    vocabulary.types = vec![TokenType::Normal; last + 1];
    vocabulary.types[last] = TokenType::Control;
    vocabulary.merges = texts(&recorded["merges"]);
    vocabulary.special.bos = u32::try_from(last).ok();
    vocabulary.pre = Some(pre.to_owned());
    vocabulary
}

#[test]
fn each_name_gives_the_ids_of_llama_cpp() {
    let recorded = recorded();
    let all = texts(&recorded["texts"]);
    let (mut names, mut compared, mut wrong) = (0, 0, Vec::new());
    for group in recorded["groups"].as_array().expect("a list") {
        for name in texts(&group["names"]) {
            let tokenizer =
                Tokenizer::new(vocabulary(&recorded, &name)).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(Some(tokenizer.add_bos()), group["bos"].as_bool(), "{name}");
            names += 1;
            // Null: llama.cpp splits this text in another way than the model's own file.
            for (text, ids) in all.iter().zip(group["ids"].as_array().expect("a list")) {
                let Some(ids) = ids.as_array() else { continue };
                let expected: Vec<u64> = ids.iter().filter_map(Value::as_u64).collect();
                let found = tokenizer.encode(text, Encode::TEXT).expect("tokenized");
                compared += 1;
                if !found.iter().copied().map(u64::from).eq(expected.iter().copied()) {
                    wrong.push(format!(
                        "{name} {text:?}\n  found    {found:?}\n  expected {expected:?}"
                    ));
                }
            }
        }
    }
    println!("{names} names, {compared} texts");
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(20)].join("\n")
    );
    assert_eq!(names, 87);
}

#[test]
fn names_that_nobody_knows_are_refused_with_those_that_are_known() {
    let recorded = recorded();
    match Tokenizer::new(vocabulary(&recorded, "tekken-2")) {
        Err(TokenizerError::UnknownPreTokenizer { name, known }) => {
            assert_eq!(name, "tekken-2");
            assert!(known.contains("tekken, "), "{known}");
        }
        other => panic!("{other:?}"),
    }
}
