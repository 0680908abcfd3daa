//! Tokens that end a generation, beside llama.cpp: vocabularies with each text that it knows, and the special ids of metadata.

use std::path::Path;

use rocmforge_gguf::{Gguf, Value as Metadatum, Writer};
use rocmforge_models::tokenizer::{TokenType, Tokenizer};
use serde_json::Value;

const CONTROL: u64 = 3;

/// Texts that only control tokens have for an end. llama.cpp makes any token of such a text one, and HTML's `</s>` with them.
const ONLY_CONTROL: &[&str] = &[
    "</s>",
    "<eos>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<fim-pad>",
    "<fim_pad>",
    "<PAD>",
    "[PAD]",
    "<fim-repo>",
    "<REPO>",
    "<reponame>",
];

fn strings(list: &Value) -> Vec<String> {
    let list = list.as_array().expect("a list").iter();
    list.map(|text| text.as_str().expect("a text").to_owned()).collect()
}

/// The tokenizer of a case of `ends.json`.
fn tokenizer(base: &[String], case: &Value) -> Tokenizer {
    let own = base.len() as u32 - 1;
    let mut tokens = base.to_vec();
    let mut types = vec![1_i32; base.len() - 1];
    types.push(3);
    for token in case["tokens"].as_array().expect("a list") {
        tokens.push(token[0].as_str().expect("a text").to_owned());
        types.push(token[1].as_i64().expect("a type") as i32);
    }
    let mut writer = Writer::new();
    let mut put = |key: &str, value: Metadatum| {
        writer
            .metadata(format!("tokenizer.ggml.{key}"), value)
            .expect("a new key");
    };
    put("model", "gpt2".into());
    put("pre", "gpt-2".into());
    put("tokens", tokens.into());
    put("token_type", types.into());
    put("merges", vec!["a b".to_owned()].into());
    put("bos_token_id", Metadatum::U32(own));
    put("eos_token_id", Metadatum::U32(own));
    for (key, id) in case["keys"].as_object().expect("an object") {
        put(
            &format!("{key}_token_id"),
            Metadatum::U32(id.as_u64().expect("an id") as u32),
        );
    }
    let file = Gguf::from_bytes(writer.to_bytes().expect("memory")).expect("what was written");
    Tokenizer::from_gguf(file.metadata()).expect("a tokenizer")
}

#[test]
fn ends_are_those_of_llama_cpp() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/pre/ends.json");
    let recorded: Value =
        serde_json::from_str(&std::fs::read_to_string(path).expect("a committed file")).expect("JSON");
    let base = strings(&recorded["base"]);
    let (mut compared, mut text) = (0, 0);
    for case in recorded["cases"].as_array().expect("a list") {
        let tokenizer = tokenizer(&base, case);
        let found: Vec<&str> = tokenizer
            .end_of_generation()
            .iter()
            .map(|&id| tokenizer.token(id).expect("a token"))
            .collect();
        let mut expected = strings(&case["ends"]);
        let kind = |token: &str| {
            let tokens = case["tokens"].as_array().expect("a list").iter();
            let of = tokens.rev().find(|entry| entry[0] == *token);
            of.and_then(|entry| entry[1].as_u64()).unwrap_or(CONTROL)
        };
        let ends = expected.len();
        expected.retain(|token| {
            let bar = matches!(
                token.as_str(),
                "<|fim_pad|>" | "<|fim_repo|>" | "<|repo_name|>" | "<|file_sep|>"
            );
            let is_text = match kind(token) {
                CONTROL => false,
                1 => bar || ONLY_CONTROL.contains(&token.as_str()),
                _ => ONLY_CONTROL.contains(&token.as_str()),
            };
            !is_text
        });
        text += ends - expected.len();
        assert_eq!(found, expected, "{case}");
        for id in tokenizer.end_of_generation() {
            let kind = tokenizer.token_type(*id);
            assert!(
                matches!(kind, Some(TokenType::Control | TokenType::UserDefined)),
                "{case}"
            );
        }
        compared += 1;
    }
    println!("{compared} vocabularies, {text} tokens stay text");
    assert_eq!((compared, text), (122, 30));
}
