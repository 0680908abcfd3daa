//! Tokenizers of model files: ends of generation from each file, ids and keys that are not known, added tokens in normalized text.

use std::path::Path;

use crate::suite::gguf_keys::{changed, tiny};
use rocmforge_gguf::Value as Metadatum;
use rocmforge_models::tokenizer::{AddBos, Encode, SpecialTokens, Tokenizer, TokenizerError};
use serde_json::{Value, json};

/// A byte-level tokenizer of lower-case letters with added tokens: content, normalized, special.
fn tokenizer(normalizer: Value, added: &[(&str, bool, bool)]) -> Value {
    let mut vocab = serde_json::Map::new();
    let pieces = ["<", ">", "\u{c3}", "\u{a9}", "\u{120}"].map(str::to_owned);
    for letter in (b'a'..=b'z').map(|byte| (byte as char).to_string()).chain(pieces) {
        vocab.insert(letter, json!(vocab.len()));
    }
    let first = vocab.len();
    let added: Vec<Value> = (first..)
        .zip(added)
        .map(|(id, (content, normalized, special))| {
            json!({ "id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
                    "normalized": normalized, "special": special })
        })
        .collect();
    let byte_level = json!({ "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true });
    json!({
        "version": "1.0", "truncation": null, "padding": null, "post_processor": null, "normalizer": normalizer,
        "pre_tokenizer": byte_level, "decoder": byte_level, "added_tokens": added,
        "model": { "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null, "end_of_word_suffix": null,
                   "fuse_unk": false, "byte_fallback": false, "vocab": vocab, "merges": [] },
    })
}

fn open(directory: &Path, tokenizer: &Value) -> Result<Tokenizer, TokenizerError> {
    let path = directory.join("tokenizer.json");
    std::fs::write(&path, tokenizer.to_string()).expect("written");
    Tokenizer::from_file(&path)
}

fn parse() -> Encode {
    Encode {
        special: SpecialTokens::Parse,
        add_bos: AddBos::No,
    }
}

/// The ids are those of the Python library `tokenizers`: letters are 0 to 25, `<` 26, `>` 27, added tokens from 31 on.
#[test]
fn added_tokens_are_matched_in_normalized_text_where_the_file_says_so() {
    let directory = tempfile::tempdir().expect("a directory");
    let lower = json!({ "type": "Lowercase" });
    let added = [("<n>", true, false), ("<R>", false, false), ("<S>", true, true)];
    let file = tokenizer(lower.clone(), &added);
    let plain = open(directory.path(), &file).expect("a tokenizer");
    let ids = |text: &str| plain.encode(text, Encode::TEXT).expect("a text");
    assert_eq!(ids("<N>x"), [31, 23]);
    assert_eq!(ids("a<n>B<N>"), [0, 31, 1, 31]);
    // As it is, in no other case.
    assert_eq!(ids("<R><r>"), [32, 26, 17, 27]);
    // A control token is text unless it is to be parsed; the file's own spelling is normalized, too.
    assert_eq!(ids("<s>"), [26, 18, 27]);
    assert_eq!(
        plain.encode("x<S>\u{c9}<s>", parse()).expect("a text"),
        [23, 33, 28, 29, 33]
    );
    // What is matched as it is comes first: without it the longer token would be found.
    let added = [("ab", true, false), ("bc", false, false)];
    for normalizer in [Value::Null, lower] {
        let two = open(directory.path(), &tokenizer(normalizer, &added)).expect("a tokenizer");
        assert_eq!(two.encode("abc", Encode::TEXT).expect("a text"), [0, 32]);
    }
}

/// The rule of transformers: generation_config.json, else config.json.
#[test]
fn ends_come_from_config_json_where_no_other_file_names_them() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = tokenizer(Value::Null, &[("<stop>", false, true)]);
    let ends = |generation: Option<&str>, config: Option<&str>| -> Vec<u32> {
        for (name, text) in [("generation_config.json", generation), ("config.json", config)] {
            let path = directory.path().join(name);
            match text {
                Some(text) => std::fs::write(&path, text).expect("written"),
                None => std::fs::remove_file(&path).unwrap_or_default(),
            }
        }
        let tokenizer = open(directory.path(), &file).expect("a tokenizer");
        tokenizer.end_of_generation().iter().copied().collect()
    };
    assert!(ends(None, None).is_empty());
    assert_eq!(ends(None, Some(r#"{"model_type": "llama", "eos_token_id": 31}"#)), [31]);
    assert_eq!(ends(None, Some(r#"{"eos_token_id": [3, 31]}"#)), [3, 31]);
    assert_eq!(
        ends(Some(r#"{"temperature": 0.6}"#), Some(r#"{"eos_token_id": [3, 31]}"#)),
        [3, 31]
    );
    assert_eq!(
        ends(Some(r#"{"eos_token_id": 4}"#), Some(r#"{"eos_token_id": [3, 31]}"#)),
        [4]
    );
    assert!(ends(None, Some(r#"{"eos_token_id": null}"#)).is_empty());
    // Ids that no token has end nothing.
    assert_eq!(ends(None, Some(r#"{"eos_token_id": [-1, 3, 32, 5000000000]}"#)), [3]);
    assert!(ends(Some(r#"{"eos_token_id": 32}"#), None).is_empty());
}

/// Ids that no token has are left out, as llama.cpp does after a warning.
#[test]
fn special_ids_outside_the_vocabulary_are_left_out() {
    let gguf = tiny("llama.gguf").gguf();
    let tokenizer = |more: &[(&str, Metadatum)]| changed(&gguf, &[], more).expect("a model").tokenizer();
    let own = tokenizer(&[]).expect("a tokenizer");
    let without = tokenizer(&[
        ("tokenizer.ggml.eos_token_id", Metadatum::U32(320)),
        ("tokenizer.ggml.padding_token_id", Metadatum::U32(u32::MAX)),
    ]);
    let without = without.expect("a tokenizer");
    assert_eq!((own.eos(), without.eos()), (Some(318), None));
    assert_eq!((without.special().pad, without.bos()), (None, own.bos()));
    assert!(!without.is_end_of_generation(320));
}

#[test]
fn an_unknown_key_of_the_tokenizer_is_refused_by_name() {
    let gguf = tiny("llama.gguf").gguf();
    let tokenizer = |key: &str, value: Metadatum| changed(&gguf, &[], &[(key, value)]).expect("a model").tokenizer();
    for (key, value) in [
        ("tokenizer.ggml.remove_extra_whitespaces", Metadatum::Bool(true)),
        ("tokenizer.ggml.fim_pre_token_id", Metadatum::U32(3)),
        ("tokenizer.ggml.normalizer.lowercase", Metadatum::Bool(false)),
        ("tokenizer.chat_template.tool_use", Metadatum::from("{{ x }}")),
    ] {
        assert!(tokenizer(key, value).is_ok(), "{key}");
    }
    for key in ["tokenizer.ggml.normalizer.lowercase", "tokenizer.ggml.fold_case"] {
        let error = tokenizer(key, Metadatum::Bool(true)).expect_err(key);
        assert!(error.to_string().contains(key), "{error}");
    }
}
