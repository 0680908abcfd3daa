//! `tokenizer.json` files that are hostile, damaged or large: a typed error, or right ids.

use std::path::Path;
use std::process::Command;

use rocmforge_models::chat::ChatTemplate;
use rocmforge_models::tokenizer::{Encode, SpecialTokens, Tokenizer, TokenizerError};
use rocmforge_models::{FileError, Model, ModelError};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A file of three tokens and one merge.
fn file() -> Value {
    json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [],
        "normalizer": null, "pre_tokenizer": null, "post_processor": null, "decoder": null,
        "model": {
            "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null, "end_of_word_suffix": null,
            "fuse_unk": false, "byte_fallback": false, "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"],
        },
    })
}

/// A token that is matched as a whole, wherever it stands.
fn added(id: usize, content: &str, special: bool) -> Value {
    json!({"id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": special})
}

fn open_text(text: &str) -> Result<Tokenizer, TokenizerError> {
    let directory = tempfile::tempdir().expect("a folder");
    let path = directory.path().join("tokenizer.json");
    std::fs::write(&path, text).expect("written");
    Tokenizer::from_file(&path)
}

fn open(change: impl FnOnce(&mut Value)) -> Result<Tokenizer, TokenizerError> {
    let mut file = file();
    change(&mut file);
    open_text(&file.to_string())
}

fn refused(change: impl FnOnce(&mut Value)) -> TokenizerError {
    open(change).expect_err("refused")
}

fn ids(tokenizer: &Tokenizer, text: &str) -> Vec<u32> {
    tokenizer.encode(text, Encode::default()).expect("ids")
}

#[test]
fn merges_are_whole() {
    assert_eq!(ids(&open(|_| ()).expect("a tokenizer"), "abba"), [2, 1, 0]);
    // The same merge as a pair; a second time it has the later rank.
    let pairs = open(|f| f["model"]["merges"] = json!([["a", "b"], ["a", "b"]])).expect("a tokenizer");
    assert_eq!(ids(&pairs, "abba"), [2, 1, 0]);
    // Its result is not a token, and longer than all tokens.
    let error = refused(|f| f["model"]["merges"] = json!(["a b", "ab a"]));
    assert!(
        matches!(&error, TokenizerError::MergeUnknownToken { index: 1, token, .. } if token == "aba"),
        "{error}"
    );
    for merge in [json!("a"), json!("a b a"), json!(""), json!(["a", "c"])] {
        let error = refused(|f| f["model"]["merges"] = json!([merge]));
        assert!(
            matches!(
                error,
                TokenizerError::BadMerge { index: 0, .. } | TokenizerError::MergeUnknownToken { index: 0, .. }
            ),
            "{error}"
        );
    }
    for merges in [json!([["a"]]), json!([["a", "b", "a"]]), json!([1]), json!({"a": "b"})] {
        let error = refused(|f| f["model"]["merges"] = merges);
        assert!(
            matches!(error, TokenizerError::Section { section: "model", .. }),
            "{error}"
        );
    }
}

#[test]
fn a_prefix_is_that_of_each_right_side() {
    // Longer than the token, and ending inside of a character.
    for (prefix, vocab, merge) in [
        ("####", json!({"a": 0, "b": 1, "ab": 2}), "a b"),
        ("éé", json!({"a": 0, "é": 1, "aé": 2}), "a é"),
    ] {
        let error = refused(|f| {
            f["model"]["continuing_subword_prefix"] = json!(prefix);
            f["model"]["vocab"] = vocab;
            f["model"]["merges"] = json!([merge]);
        });
        assert!(
            matches!(&error, TokenizerError::MergeWithoutPrefix { index: 0, prefix: named, .. } if named == prefix),
            "{error}"
        );
    }
    let tokenizer = open(|f| {
        f["model"]["continuing_subword_prefix"] = json!("##");
        f["model"]["vocab"] = json!({"a": 0, "##b": 1, "ab": 2});
        f["model"]["merges"] = json!(["a ##b"]);
    });
    assert_eq!(ids(&tokenizer.expect("a tokenizer"), "ab"), [2]);
}

#[test]
fn growth_is_bounded() {
    let replace = |content: &str| json!({"type": "Replace", "pattern": {"String": "a"}, "content": content});
    let growth = |normalizer: Value| match open(|f| f["normalizer"] = normalizer) {
        Ok(_) => None,
        Err(TokenizerError::Growth { growth, limit: 1024 }) => Some(growth),
        Err(error) => panic!("{error}"),
    };
    assert_eq!(growth(replace(&"b".repeat(1024))), None);
    assert_eq!(growth(replace(&"b".repeat(1025))), Some(1025));
    let sequence = |n: usize| json!({"type": "Sequence", "normalizers": vec![replace("aa"); n]});
    assert_eq!(growth(sequence(10)), None);
    assert_eq!(growth(sequence(11)), Some(2048));
    assert_eq!(
        growth(json!({"type": "Sequence", "normalizers": [sequence(6), sequence(5)]})),
        Some(2048)
    );
    let anywhere = |content: &str| json!({"type": "Replace", "pattern": {"Regex": ""}, "content": content});
    assert_eq!(growth(anywhere(&"b".repeat(511))), None);
    assert_eq!(growth(anywhere(&"b".repeat(512))), Some(1025));
    assert_eq!(
        growth(json!({"type": "Prepend", "prepend": "b".repeat(1024)})),
        Some(1025)
    );
    let error = refused(|f| {
        f["pre_tokenizer"] = json!({"type": "Sequence", "pretokenizers":
            vec![json!({"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true}); 6]});
    });
    assert!(matches!(error, TokenizerError::Growth { growth: 4096, .. }), "{error}");
    // Texts that do not grow, that grow a little, and of which each byte becomes a thousand: a small one does no harm.
    let tokenizer = open(|f| f["normalizer"] = replace(&"b".repeat(1024))).expect("a tokenizer");
    assert_eq!(ids(&tokenizer, "a"), [1; 1024]);
    assert_eq!(ids(&tokenizer, &"a".repeat(1000)).len(), 1_024_000);
    assert!(ids(&tokenizer, &"c".repeat(100_000)).is_empty());
    let long = format!("{}a", "b".repeat(1000)).repeat(300);
    assert_eq!(ids(&tokenizer, &long).len(), 300 * 2024);
    for text in [
        "a".repeat(2000),
        "a".repeat(100_000),
        format!("{}{}", "c".repeat(50_000), "a".repeat(1300)),
    ] {
        let error = tokenizer
            .encode(&text, Encode::default())
            .expect_err("it grows too much");
        assert!(
            matches!(error, TokenizerError::TextGrows { bytes, limit } if bytes == text.len() && limit == 4 * bytes + (1 << 20)),
            "{error}"
        );
    }
}

/// Two megabytes that would take hundreds of megabytes as a tree, and a chain of tokens that would be copied at each place of a text.
#[test]
fn a_unigram_vocabulary_has_the_size_of_its_file() {
    let unigram = |tokens: Vec<String>| {
        let vocab: Vec<Value> = tokens.into_iter().map(|token| json!([token, -1.0])).collect();
        open(|f| f["model"] = json!({"type": "Unigram", "unk_id": 0, "vocab": vocab, "byte_fallback": false}))
    };
    let refused = |tokens| match unigram(tokens) {
        Err(TokenizerError::BadPart { section: "model", rule }) => rule,
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it is built"),
    };
    let long = |n: usize| format!("{n:04}{}", "x".repeat(1900));
    assert!(refused((0..1000).map(long).collect()).contains("16 bytes"));
    assert!(refused((1..2000).map(|n| "a".repeat(n)).collect()).contains("4,096 bytes"));
    // Runs, as vocabularies in use have them.
    let tokenizer = unigram((1..=16).map(|n| "a".repeat(n)).chain(["u".to_owned()]).collect()).expect("a tokenizer");
    assert_eq!(ids(&tokenizer, &"a".repeat(32)), [15, 15]);
}

/// Work of a model for each character of a text.
#[test]
fn words_and_their_marks_are_short() {
    let piece = |longest: u64, prefix: &str| {
        open(|f| {
            f["model"] = json!({"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": prefix,
                                "max_input_chars_per_word": longest, "vocab": {"[UNK]": 0, "a": 1, (format!("{prefix}a")): 2}});
        })
    };
    assert_eq!(ids(&piece(100, "##").expect("a tokenizer"), "aa"), [1, 2]);
    for (longest, prefix) in [
        (201, "##".to_owned()),
        (u64::MAX, "##".to_owned()),
        (100, "#".repeat(257)),
    ] {
        let error = piece(longest, &prefix).expect_err("refused");
        assert!(
            matches!(error, TokenizerError::BadPart { section: "model", .. }),
            "{error}"
        );
    }
    for key in ["continuing_subword_prefix", "end_of_word_suffix"] {
        let error = refused(|f| {
            f["model"][key] = json!("#".repeat(1_000_000));
            f["model"]["merges"] = json!([]);
        });
        assert!(
            matches!(error, TokenizerError::BadPart { section: "model", .. }),
            "{error}"
        );
    }
}

#[test]
fn a_post_processor_adds_few_tokens() {
    let template = |pieces: usize, ids: usize| {
        let special = json!({"SpecialToken": {"id": "x", "type_id": 0}});
        let mut single = vec![special; pieces];
        single.push(json!({"Sequence": {"id": "A", "type_id": 0}}));
        let pair = json!([{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}]);
        json!({"type": "TemplateProcessing", "single": single, "pair": pair,
               "special_tokens": {"x": {"id": "x", "ids": vec![1; ids], "tokens": vec!["b"; ids]}}})
    };
    let tokenizer = open(|f| f["post_processor"] = template(1, 2)).expect("a tokenizer");
    assert_eq!(ids(&tokenizer, "a"), [1, 1, 0]);
    let several = json!({"type": "Sequence", "processors": vec![template(10, 100); 5]});
    for processor in [template(5000, 1), template(1, 5000), template(100, 100), several] {
        let error = refused(|f| f["post_processor"] = processor);
        assert!(
            matches!(
                error,
                TokenizerError::BadPart {
                    section: "post_processor",
                    ..
                }
            ),
            "{error}"
        );
    }
}

#[test]
fn regular_expressions_have_no_references_and_small_counts() {
    let split =
        |regex: &str| json!({"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": false});
    let replace = |regex: &str| json!({"type": "Replace", "pattern": {"Regex": regex}, "content": "b"});
    for regex in [r"(?=(a+))\1b", r"[\p{L}\p{N}]{1,100000}", r"(?<=a{5000})b"] {
        for (section, part) in [("pre_tokenizer", split(regex)), ("normalizer", replace(regex))] {
            let error = refused(|f| f[section] = part);
            assert!(
                matches!(error, TokenizerError::BadPart { section: named, .. } if named == section),
                "{error}"
            );
        }
    }
    open(|f| f["pre_tokenizer"] = split(r"\p{N}{1,3}|\s+(?!\S)|(?<=a)b")).expect("a tokenizer");
}

/// A file's own text in a message is short and changes no terminal.
#[test]
fn messages_show_little_of_a_file() {
    let hostile = format!("\u{1b}[2J{}", "A".repeat(1_000_000));
    let errors = [
        refused(|f| f["normalizer"] = json!({"type": hostile})),
        refused(|f| f["model"]["merges"] = json!([format!("{hostile} b")])),
        refused(|f| f["model"]["merges"] = json!([hostile])),
        refused(|f| f["model"]["type"] = json!(hostile)),
    ];
    for error in errors.map(|error| error.to_string()) {
        assert!(
            error.len() < 1000 && !error.contains('\u{1b}'),
            "{} bytes: {error:.300}",
            error.len()
        );
    }
}

#[test]
fn parts_are_known_and_few() {
    for (section, part) in [
        ("normalizer", json!({"type": "Nonsense"})),
        ("normalizer", json!({"lowercase": true})),
        ("normalizer", json!("Lowercase")),
        ("pre_tokenizer", json!({"type": "Nonsense"})),
        ("pre_tokenizer", json!({"type": "FixedLength", "length": -1})),
    ] {
        let error = refused(|f| f[section] = part.clone());
        assert!(
            matches!(&error, TokenizerError::Section { section: named, .. } if *named == section),
            "{part}: {error}"
        );
    }
    let error = refused(|f| f["pre_tokenizer"] = json!({"type": "FixedLength", "length": 0}));
    assert!(
        matches!(
            error,
            TokenizerError::BadPart {
                section: "pre_tokenizer",
                ..
            }
        ),
        "{error}"
    );
    open(|f| f["pre_tokenizer"] = json!({"type": "FixedLength", "length": 1})).expect("a tokenizer");
    let split = json!({"type": "Split", "pattern": {"Regex": "\\p{L}{100}"}, "behavior": "Isolated", "invert": false});
    let error = refused(|f| f["pre_tokenizer"] = json!({"type": "Sequence", "pretokenizers": vec![split; 33]}));
    assert!(
        matches!(error, TokenizerError::TooManyParts { limit: 32, .. }),
        "{error}"
    );
    // Deeper than the reader of JSON goes.
    let mut deep = json!({"type": "Lowercase"});
    for _ in 0..200 {
        deep = json!({"type": "Sequence", "normalizers": [deep]});
    }
    refused(|f| f["normalizer"] = deep);
    let error = refused(|f| {
        f["decoder"] = json!({"type": "Replace", "pattern": {"String": "x".repeat(5 << 20)}, "content": ""})
    });
    assert!(
        matches!(error, TokenizerError::SectionTooLarge { section: "decoder", .. }),
        "{error}"
    );
}

#[test]
fn a_charsmap_is_walked_before_it_is_used() {
    // Empty, a length without a trie, a trie of one unit that leads far away, and a trie of zeros.
    for charsmap in [
        "",
        "AAAAAA==",
        "/////w==",
        "BAAAAP////8=",
        "////fwAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
        "not base64",
    ] {
        let error = refused(|f| f["normalizer"] = json!({"type": "Precompiled", "precompiled_charsmap": charsmap}));
        assert!(
            matches!(
                error,
                TokenizerError::BadPart {
                    section: "normalizer",
                    ..
                }
            ),
            "{charsmap}: {error}"
        );
    }
}

#[test]
fn tokens_have_a_limit() {
    let error = refused(|f| f["model"]["vocab"] = json!({"a": 4_294_967_295_u32, "b": 1, "ab": 2}));
    assert!(
        matches!(
            error,
            TokenizerError::TooManyTokens {
                count: 4_294_967_296,
                ..
            }
        ),
        "{error}"
    );
    // One id far away would cost more than the file.
    let error = refused(|f| f["model"]["vocab"] = json!({"a": 1_000_000, "b": 1, "ab": 2}));
    assert!(
        matches!(
            error,
            TokenizerError::TooManyTokens {
                count: 1_000_001,
                limit: 65_548
            }
        ),
        "{error}"
    );
    refused(|f| f["model"]["vocab"] = json!({"a": -1, "b": 1, "ab": 2}));
    let long = "x".repeat(2049);
    let error = refused(|f| f["model"]["vocab"][&long] = json!(3));
    assert!(
        matches!(error, TokenizerError::TokenTooLong { id: 3, bytes: 2049, .. }),
        "{error}"
    );
    let error = refused(|f| f["added_tokens"] = json!([added(3, &long[..257], false)]));
    assert!(
        matches!(
            error,
            TokenizerError::TokenTooLong {
                id: 3,
                bytes: 257,
                limit: 256
            }
        ),
        "{error}"
    );
    refused(|f| f["model"] = json!({"type": "Unigram", "unk_id": 7, "vocab": [["a", 0.0]], "byte_fallback": false}));
    refused(|f| f["model"]["dropout"] = json!(5.0));
}

#[test]
fn tokens_and_merges_are_counted_before_any_is_kept() {
    // The same token each time: a map of them would have one.
    let many = |entry: &str, count: usize| format!("{}{entry}", format!("{entry},").repeat(count - 1));
    let bpe = |vocab: &str, merges: &str| {
        format!("{{\"model\": {{\"type\": \"BPE\", \"vocab\": {{{vocab}}}, \"merges\": [{merges}]}}}}")
    };
    let unigram =
        |vocab: &str| format!("{{\"model\": {{\"type\": \"Unigram\", \"unk_id\": 0, \"vocab\": [{vocab}]}}}}");
    for text in [
        bpe(&many("\"a\":0", 2_000_000), ""),
        unigram(&many("[\"a\",0]", 2_000_000)),
    ] {
        let error = open_text(&text).expect_err("refused");
        assert!(
            matches!(error, TokenizerError::TooManyTokens { count: 2_000_000, .. }),
            "{error}"
        );
    }
    let error = open_text(&bpe(r#""a":0,"b":1,"ab":2"#, &many("\"a b\"", 2_100_000))).expect_err("refused");
    assert_eq!(
        error.to_string(),
        "merges of tokenizer.json has more than 2097152 parts"
    );
}

#[test]
fn added_tokens_are_many_and_keep_their_ids() {
    let tokenizer = open(|f| {
        // 100,000 tokens of 55 bytes, one that the model has under an id of its own, and one behind a gap.
        let mut tokens: Vec<Value> = (3..100_003)
            .map(|id| added(id, &format!("{}{id}", "x".repeat(50)), true))
            .collect();
        tokens.push(added(7, "b", true));
        tokens.push(added(200_000, "<end>", true));
        f["added_tokens"] = json!(tokens);
    })
    .expect("a tokenizer");
    assert_eq!(tokenizer.vocab_size(), 200_001);
    let parse = Encode {
        special: SpecialTokens::Parse,
        ..Encode::default()
    };
    let text = format!("a{}<end>b", "x".repeat(50) + "99");
    assert_eq!(tokenizer.encode(&text, parse).expect("ids"), [0, 99, 200_000, 1]);
    assert_eq!(tokenizer.token(1), Some("b"));
}

/// What a normalizer makes of added tokens has the limit of a text.
#[test]
fn added_tokens_that_are_normalized_have_a_limit() {
    let error = refused(|f| {
        f["normalizer"] = json!({"type": "Replace", "pattern": {"String": "a"}, "content": "b".repeat(1024)});
        let long = (0..100).map(|n| {
            let mut token = added(3 + n, &"a".repeat(150 + n), false);
            token["normalized"] = json!(true);
            token
        });
        f["added_tokens"] = long.collect();
    });
    assert!(
        matches!(error, TokenizerError::TextTooLong { limit: 16_777_216, .. }),
        "{error}"
    );
}

/// Tokens of all lengths that begin as the text does, and none of which stands there.
#[test]
fn added_tokens_that_almost_stand_there_cost_little() {
    let tokenizer = open(|f| {
        let almost = (0..250).map(|n| added(3 + n, &format!("{}b", "a".repeat(n + 1)), false));
        f["added_tokens"] = almost.collect();
    })
    .expect("a tokenizer");
    assert_eq!(ids(&tokenizer, &"a".repeat(100_000)), [0; 100_000]);
    // Each of these stands there, and is a control token, which text never becomes.
    let tokenizer = open(|f| f["added_tokens"] = (2..250).map(|n| added(1 + n, &"a".repeat(n), true)).collect());
    assert_eq!(
        ids(&tokenizer.expect("a tokenizer"), &"a".repeat(100_000)),
        [0; 100_000]
    );
}

/// Another long text, of which every byte is replaced: the time must not grow with its square.
#[test]
fn a_long_text_is_encoded() {
    let tokenizer = open(|f| {
        f["normalizer"] = json!({"type": "Replace", "pattern": {"String": "c"}, "content": "ab"});
        f["pre_tokenizer"] = json!({"type": "FixedLength", "length": 2});
    })
    .expect("a tokenizer");
    assert_eq!(ids(&tokenizer, &"c".repeat(50_000)), [2; 50_000]);
}

/// Puts something else than a regular file in the place of `name`.
fn put(directory: &Path, name: &str, special: &str) {
    let path = directory.join(name);
    if path.exists() {
        std::fs::remove_file(&path).expect("removed");
    }
    match special {
        "a pipe" => assert!(Command::new("mkfifo").arg(&path).status().expect("mkfifo").success()),
        "a device" => std::os::unix::fs::symlink("/dev/zero", &path).expect("a link"),
        _ => std::fs::create_dir(&path).expect("a folder"),
    }
}

/// A directory with all files of a model, which [`Model::open`] takes. Its list of tensors is empty.
pub(super) fn model() -> TempDir {
    let directory = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &[u8]| std::fs::write(directory.path().join(name), text).expect("written");
    write(
        "config.json",
        br#"{"model_type": "llama", "num_hidden_layers": 1, "hidden_size": 8, "intermediate_size": 8, "num_attention_heads": 1,
             "vocab_size": 4, "max_position_embeddings": 16, "rms_norm_eps": 1e-5}"#,
    );
    write("model.safetensors", b"\x02\0\0\0\0\0\0\0{}");
    write("tokenizer.json", file().to_string().as_bytes());
    directory
}

#[test]
fn only_regular_files_are_opened() {
    for special in ["a pipe", "a device", "a folder"] {
        for name in ["config.json", "model.safetensors", "model.safetensors.index.json"] {
            let directory = model();
            put(directory.path(), name, special);
            let error = Model::open(directory.path()).expect_err("refused");
            assert!(
                matches!(&error, ModelError::File(FileError::Read { path, .. }) if path.ends_with(name)),
                "{special}: {error}"
            );
        }
        for name in ["tokenizer.json", "tokenizer_config.json", "generation_config.json"] {
            let directory = model();
            put(directory.path(), name, special);
            let error = Tokenizer::from_file(&directory.path().join("tokenizer.json")).expect_err("refused");
            assert!(
                matches!(&error, TokenizerError::File(FileError::Read { path, .. }) if path.ends_with(name)),
                "{special}: {error}"
            );
        }
        for name in ["chat_template.jinja", "tokenizer_config.json"] {
            let directory = model();
            put(directory.path(), name, special);
            let error = ChatTemplate::from_directory(directory.path()).expect_err("refused");
            assert!(error.to_string().contains(name), "{special}: {error}");
        }
    }
}

#[test]
fn a_file_beyond_the_limit_is_not_read() {
    let directory = model();
    let path = directory.path().join("tokenizer.json");
    // Sparse: it has a length and no contents.
    std::fs::File::create(&path)
        .and_then(|file| file.set_len(3 << 30))
        .expect("a long file");
    let error = Tokenizer::from_file(&path).expect_err("refused");
    assert!(
        matches!(
            error,
            TokenizerError::File(FileError::TooLarge {
                size: 3_221_225_472,
                limit: 67_108_864,
                ..
            })
        ),
        "{error}"
    );
}
