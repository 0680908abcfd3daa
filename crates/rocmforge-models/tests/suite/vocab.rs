//! llama.cpp's own tokenizer vectors: texts and ids beside the vocabulary files `ggml-vocab-NAME.gguf`. Skipped, visibly,
//! without the files: `cargo xtask model vocab`.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rocmforge_gguf::{Gguf, Writer};
use rocmforge_models::tokenizer::{AddBos, Encode, SpecialTokens, Tokenizer, TokenizerError};

/// Each family with the number of its vectors.
const FAMILIES: &[(&str, usize)] = &[
    ("bert-bge", 46),
    ("command-r", 46),
    ("deepseek-coder", 46),
    ("deepseek-llm", 46),
    ("falcon", 46),
    ("gemma-4", 46),
    ("gpt-2", 46),
    ("llama-bpe", 46),
    ("llama-spm", 46),
    ("mpt", 46),
    ("phi-3", 46),
    ("qwen2", 46),
    ("qwen35", 50),
    ("refact", 46),
    ("starcoder", 46),
];

/// The folder of the files, if it is there.
fn folder() -> Option<PathBuf> {
    Some(rocmforge_testkit::test_model_path("llama-vocab")).filter(|folder| folder.is_dir())
}

macro_rules! folder_or_skip {
    () => {
        match folder() {
            Some(folder) => folder,
            None => rocmforge_testkit::skip!("no vocabularies: run `cargo xtask model vocab`"),
        }
    };
}

/// A family with its tokenizer and vectors.
struct Family {
    name: &'static str,
    count: usize,
    tokenizer: Tokenizer,
    loaded: Duration,
    vectors: Vec<(String, Vec<u32>)>,
}

/// All families, read once for all tests.
fn families(folder: &Path) -> &'static [Family] {
    static ALL: OnceLock<Vec<Family>> = OnceLock::new();
    ALL.get_or_init(|| {
        let read = |&(name, count): &(&'static str, usize)| {
            let file = Gguf::open(folder.join(format!("ggml-vocab-{name}.gguf"))).expect("the file opens");
            let started = Instant::now();
            let tokenizer = Tokenizer::from_gguf(file.metadata()).unwrap_or_else(|error| panic!("{name}: {error}"));
            Family {
                name,
                count,
                tokenizer,
                loaded: started.elapsed(),
                vectors: vectors(folder, name),
            }
        };
        FAMILIES.iter().map(read).collect()
    })
}

fn family(folder: &Path, name: &str) -> &'static Family {
    let found = families(folder).iter().find(|family| family.name == name);
    found.unwrap_or_else(|| panic!("no family {name}"))
}

/// Texts and ids of one family.
fn vectors(folder: &Path, family: &str) -> Vec<(String, Vec<u32>)> {
    let read = |extension: &str| {
        let path = folder.join(format!("ggml-vocab-{family}.gguf.{extension}"));
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    let (texts, ids) = (read("inp"), read("out"));
    let texts: Vec<&str> = texts.split("\n__ggml_vocab_test__\n").collect();
    let lines: Vec<&str> = ids.lines().collect();
    let parse = |line: &&str| line.split_whitespace().map(|id| id.parse().expect("an id")).collect();
    let ids: Vec<Vec<u32>> = lines.iter().map(parse).collect();
    // The last text has no separator after it and no ids.
    texts.iter().map(|text| (*text).to_owned()).zip(ids).collect()
}

#[test]
fn every_family_gives_the_ids_of_its_vectors() {
    let folder = folder_or_skip!();
    let mut wrong = Vec::new();
    for family in families(&folder) {
        let (name, count) = (family.name, family.count);
        assert_eq!(family.vectors.len(), count, "{name}");
        let mut equal = 0;
        for (text, expected) in &family.vectors {
            let found = family.tokenizer.encode(text, Encode::TEXT).expect("tokenized");
            if found == *expected {
                equal += 1;
            } else {
                wrong.push(format!(
                    "{name} {text:?}\n  found    {found:?}\n  expected {expected:?}"
                ));
            }
        }
        let tokens = family.tokenizer.vocab_size();
        println!(
            "{name:15} {equal}/{count}, {tokens} tokens built in {:.2} s",
            family.loaded.as_secs_f64()
        );
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn decoding_gives_the_text_back() {
    let folder = folder_or_skip!();
    // BERT's normalizer loses case and spaces.
    for family in families(&folder).iter().filter(|family| family.name != "bert-bge") {
        for (text, ids) in &family.vectors {
            assert_eq!(family.tokenizer.decode(ids), *text, "{}", family.name);
            let mut stream = family.tokenizer.stream();
            let mut streamed: String = ids.iter().map(|&id| stream.push(id)).collect();
            streamed.push_str(&stream.finish());
            assert_eq!(streamed, *text, "{}", family.name);
        }
    }
}

#[test]
fn text_never_becomes_a_control_token_unless_it_is_parsed() {
    let folder = folder_or_skip!();
    let parse = Encode {
        special: SpecialTokens::Parse,
        add_bos: AddBos::No,
    };
    for Family {
        name: family,
        tokenizer,
        ..
    } in families(&folder)
    {
        let mut control = 0;
        for id in (0..)
            .take(tokenizer.vocab_size())
            .filter(|&id| tokenizer.is_control(id))
        {
            control += 1;
            let name = tokenizer.token(id).expect("a token");
            let ids = tokenizer.encode(&format!("a{name}b"), Encode::TEXT).expect("tokenized");
            assert!(
                !ids.iter().any(|&id| tokenizer.is_control(id)),
                "{family} {name:?}: {ids:?}"
            );
            let ids = tokenizer.encode(&format!("a{name}b"), parse).expect("tokenized");
            assert!(ids.contains(&id), "{family} {name:?}: {ids:?}");
        }
        assert!(control > 0, "{family}");
    }
}

#[test]
fn each_family_has_an_end_and_adds_what_it_should() {
    let folder = folder_or_skip!();
    for (name, bos, ends) in [
        ("llama-spm", Some(1), vec!["</s>"]),
        ("phi-3", Some(1), vec!["<|end|>", "<|endoftext|>"]),
        ("llama-bpe", Some(128_000), vec!["<|eot_id|>", "<|end_of_text|>"]),
        ("qwen2", None, vec!["<|endoftext|>", "<|im_end|>"]),
        ("gpt-2", None, vec!["<|endoftext|>"]),
    ] {
        let tokenizer = &family(&folder, name).tokenizer;
        let ids = tokenizer.encode("a", Encode::default()).expect("tokenized");
        assert_eq!(
            ids.first().copied().filter(|id| Some(*id) == tokenizer.bos()),
            bos,
            "{name}"
        );
        assert_eq!(tokenizer.add_bos(), bos.is_some(), "{name}");
        for end in ends {
            let id = tokenizer.id_of(end).unwrap_or_else(|| panic!("{name} has no {end}"));
            assert!(tokenizer.is_end_of_generation(id), "{name} {end}");
        }
        assert!(!tokenizer.is_end_of_generation(ids[ids.len() - 1]), "{name}");
    }
}

#[test]
fn kinds_without_support_are_named() {
    for kind in ["rwkv", "plamo2", "hybriddna", "whitespace"] {
        let mut writer = Writer::new();
        writer.metadata("tokenizer.ggml.model", kind).expect("a new key");
        let file = Gguf::from_bytes(writer.to_bytes().expect("memory")).expect("what was written");
        match Tokenizer::from_gguf(file.metadata()) {
            Err(TokenizerError::UnsupportedModel { model, .. }) => assert_eq!(model, kind),
            other => panic!("{other:?}"),
        }
    }
}

/// The vocabulary of XLM-RoBERTa, for which llama.cpp has no vectors: its ids are recorded by `tests/reference/pre/unigram.py`.
#[test]
fn unigram_gives_the_ids_of_llama_cpp() {
    let folder = folder_or_skip!();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/pre/unigram.json");
    let recorded: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(path).expect("a committed file")).expect("JSON");
    let file = Gguf::open(folder.join("ggml-vocab-nomic-bert-moe.gguf")).expect("the file opens");
    let tokenizer = Tokenizer::from_gguf(file.metadata()).expect("a tokenizer");
    let mut wrong = Vec::new();
    let cases = recorded.as_array().expect("a list");
    for case in cases {
        let text = case["text"].as_str().expect("a text");
        let ids = case["ids"].as_array().expect("ids").iter();
        let expected: Vec<u32> = ids.map(|id| id.as_u64().expect("an id") as u32).collect();
        let found = tokenizer.encode(text, Encode::TEXT).expect("tokenized");
        if found != expected {
            wrong.push(format!("{text:?}\n  found    {found:?}\n  expected {expected:?}"));
        }
    }
    println!("{} of {} texts", cases.len() - wrong.len(), cases.len());
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(20)].join("\n")
    );
    // A frame, and text that names a control token.
    let ids = tokenizer.encode("Hello</s>", Encode::default()).expect("tokenized");
    assert_eq!((ids.first(), ids.last()), (Some(&0), Some(&2)));
    assert!(
        !ids[1..ids.len() - 1].iter().any(|&id| tokenizer.is_control(id)),
        "{ids:?}"
    );
    assert_eq!(tokenizer.decode(&ids), "Hello</s>");
}
