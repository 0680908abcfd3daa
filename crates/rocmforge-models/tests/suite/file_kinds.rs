//! Files that hold no whole language model, and mixtures of experts that are not known: each is refused with what it is and what to do.

use rocmforge_gguf::{Gguf, TensorType, Value, Writer};
use rocmforge_models::bert::Bert;
use rocmforge_models::{FileKind, Model, ModelError};

use crate::reference::Tiny;

/// A GGUF of these keys, with one small tensor if it has weights.
fn gguf(keys: &[(&str, Value)], tensor: Option<&str>) -> Gguf {
    let mut writer = Writer::new();
    for (key, value) in keys {
        writer.metadata(*key, value.clone()).expect("a key");
    }
    if let Some(name) = tensor {
        let bytes = vec![0_u8; 16];
        writer.tensor(name, &[2, 2], TensorType::F32, bytes).expect("a tensor");
    }
    Gguf::from_bytes(writer.to_bytes().expect("memory")).expect("what was written")
}

fn text(text: &str) -> Value {
    Value::from(text)
}

#[test]
fn parts_of_models_are_refused_with_what_they_are() {
    let tokens = || Value::from(vec!["a".to_owned(), "b".to_owned()]);
    let llama = ("general.architecture", text("llama"));
    let adapter = |base: Option<&str>| FileKind::Adapter {
        base: base.map(str::to_owned),
    };
    for (keys, tensor, kind, said) in [
        (
            vec![
                llama.clone(),
                ("general.type", text("adapter")),
                ("adapter.type", text("lora")),
                ("general.base_model.0.name", text("Llama 3.2")),
            ],
            Some("blk.0.attn_q.weight.lora_a"),
            adapter(Some("Llama 3.2")),
            "a LoRA adapter: it changes the weights of Llama 3.2",
        ),
        (
            vec![llama.clone(), ("adapter.type", text("lora"))],
            Some("blk.0.attn_q.weight.lora_a"),
            adapter(None),
            "merge it",
        ),
        (
            vec![("general.architecture", text("clip")), ("general.type", text("mmproj"))],
            Some("v.patch_embd.weight"),
            FileKind::Projector,
            "open the other GGUF file",
        ),
        (
            vec![
                ("general.architecture", text("clip")),
                ("clip.has_vision_encoder", true.into()),
            ],
            Some("v.patch_embd.weight"),
            FileKind::Projector,
            "(mmproj)",
        ),
        (
            vec![llama.clone(), ("tokenizer.ggml.tokens", tokens())],
            None,
            FileKind::Vocabulary,
            "a vocabulary without weights",
        ),
        (
            vec![("general.type", text("vocab")), ("tokenizer.ggml.tokens", tokens())],
            None,
            FileKind::Vocabulary,
            "open a GGUF file of the whole model",
        ),
        (
            vec![("general.type", text("imatrix"))],
            Some("blk.0.attn_q.weight.in_sum2"),
            FileKind::ImportanceMatrix,
            "open the quantised model itself",
        ),
        (
            vec![("general.architecture", text("controlvector"))],
            Some("direction.1"),
            FileKind::ControlVector,
            "open that model without it",
        ),
    ] {
        for error in [
            Model::from_gguf(gguf(&keys, tensor)).expect_err("no model"),
            Bert::from_gguf(gguf(&keys, tensor), None).expect_err("no model"),
        ] {
            match &error {
                ModelError::NoLanguageModel { kind: found } => assert_eq!(*found, kind),
                _ => panic!("{kind:?}: {error}"),
            }
            let shown = error.to_string();
            assert!(shown.contains(said) && shown.len() < 300, "{shown}");
        }
    }
    // A model without a part of it is damaged, and not one of these.
    let error = Model::from_gguf(gguf(&[llama], None)).expect_err("no settings");
    assert!(!matches!(error, ModelError::NoLanguageModel { .. }), "{error}");
}

#[test]
fn what_a_file_says_of_itself_is_shown_on_one_short_line() {
    let name = "\u{1b}[31m\n".repeat(1000);
    let keys = [
        ("general.type", text("adapter")),
        ("general.base_model.0.name", text(&name)),
    ];
    let error = Model::from_gguf(gguf(&keys, None)).expect_err("an adapter").to_string();
    assert!(error.len() < 400 && !error.contains(['\u{1b}', '\n']), "{error}");
    // A key of another type is an error, and no panic.
    let keys = [("general.type", Value::U32(1))];
    assert!(Model::from_gguf(gguf(&keys, None)).is_err());
}

#[test]
fn a_directory_of_an_adapter_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("adapter_config.json"), "{}").expect("written");
    let error = Model::open(directory.path()).expect_err("an adapter").to_string();
    assert!(
        error.contains("a LoRA adapter") && error.contains("merge_and_unload"),
        "{error}"
    );
}

#[test]
fn models_are_of_no_other_kind() {
    for tiny in Tiny::all() {
        assert_eq!(FileKind::of(&tiny.gguf()).expect("texts"), None, "{}", tiny.file);
    }
}

#[test]
fn an_unknown_mixture_of_experts_is_named_with_those_that_are_known() {
    let keys = [
        ("general.architecture", text("dots1")),
        ("dots1.expert_count", Value::U32(64)),
    ];
    let error = Model::from_gguf(gguf(&keys, None)).expect_err("unknown");
    assert!(
        matches!(&error, ModelError::UnknownMixture { found, experts: 64, .. } if found == "dots1"),
        "{error}"
    );
    let shown = error.to_string();
    assert!(
        shown.contains("known mixtures of experts: llama, qwen2moe, qwen3moe"),
        "{shown}"
    );
    let dense = [
        ("general.architecture", text("dots1")),
        ("dots1.expert_count", Value::U32(0)),
    ];
    let error = Model::from_gguf(gguf(&dense, None)).expect_err("unknown");
    assert!(matches!(error, ModelError::UnknownArchitecture { .. }), "{error}");
}
