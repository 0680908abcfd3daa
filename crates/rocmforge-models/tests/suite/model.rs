//! Tokenizer and chat template of an opened model: from GGUF metadata, or from the files of a Hugging Face directory.

use std::path::{Path, PathBuf};

use rocmforge_gguf::{Gguf, Writer};
use rocmforge_models::chat::{ChatError, Conversation, Message, Role};
use rocmforge_models::tokenizer::{Encode, TokenizerError};
use rocmforge_models::{FileError, Model, ModelError};

const TEMPLATE: &str = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}";
const RENDERED: &str = "<|im_start|>user\nhi<|im_end|>\n";

fn tiny() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/tiny/llama.gguf")
}

/// The tiny model with further metadata.
fn gguf_with(template: &str) -> Vec<u8> {
    let gguf = Gguf::open(tiny()).expect("a committed model");
    let mut writer = Writer::new();
    for (key, value) in gguf.metadata().iter() {
        writer.metadata(key, value.clone()).expect("as it was");
    }
    writer.metadata("tokenizer.chat_template", template).expect("a new key");
    for tensor in gguf.tensors() {
        writer
            .tensor(&tensor.name, &tensor.dims, tensor.ty, gguf.data(tensor))
            .expect("as it was");
    }
    writer.to_bytes().expect("a file")
}

#[test]
fn a_gguf_file_gives_both() {
    let model = Model::open(tiny()).expect("a committed model");
    let tokenizer = model.tokenizer().expect("a tokenizer");
    assert_eq!(tokenizer.vocab_size(), model.config().vocab);
    let ids = tokenizer.encode("bananas", Encode::default()).expect("a text");
    assert_eq!(tokenizer.decode(&ids), "bananas");
    assert!(model.chat_template().expect("no error").is_none());

    let model = Model::from_gguf(Gguf::from_bytes(gguf_with(TEMPLATE)).expect("a file")).expect("a model");
    let template = model.chat_template().expect("a template").expect("there is one");
    let text = template.render(&Conversation::new(&[Message::new(Role::User, "hi")]));
    assert_eq!(text.expect("renders"), RENDERED);

    let model = Model::from_gguf(Gguf::from_bytes(gguf_with("{% for %}")).expect("a file")).expect("a model");
    let error = model.chat_template().expect_err("no template");
    assert!(matches!(error, ModelError::Chat(ChatError::Parse(_))), "{error}");
}

#[test]
fn a_hugging_face_directory_gives_both() {
    // Neither of the two is among the weights.
    let directory = super::hostile_tokenizers::model();
    std::fs::remove_file(directory.path().join("tokenizer.json")).expect("removed");
    let write = |name: &str, text: &[u8]| std::fs::write(directory.path().join(name), text).expect("written");
    let model = Model::open(directory.path()).expect("a model");
    let error = model.tokenizer().expect_err("no tokenizer.json");
    assert!(
        matches!(
            error,
            ModelError::Vocabulary(TokenizerError::File(FileError::Read { .. }))
        ),
        "{error}"
    );
    assert!(model.chat_template().expect("no error").is_none());

    write(
        "tokenizer.json",
        br#"{"version": "1.0", "truncation": null, "padding": null, "normalizer": null, "post_processor": null,
             "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
             "decoder": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
             "added_tokens": [{"id": 3, "content": "</s>", "single_word": false, "lstrip": false, "rstrip": false,
                               "normalized": false, "special": true}],
             "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
                       "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false,
                       "vocab": {"h": 0, "i": 1, "hi": 2}, "merges": ["h i"]}}"#,
    );
    let config = serde_json::json!({ "eos_token": "</s>", "chat_template": TEMPLATE });
    write("tokenizer_config.json", config.to_string().as_bytes());
    let tokenizer = model.tokenizer().expect("a tokenizer");
    assert_eq!(tokenizer.encode("hihi", Encode::default()).expect("a text"), [2, 2]);
    assert!(tokenizer.is_end_of_generation(3));
    let template = model.chat_template().expect("a template").expect("there is one");
    let text = template.render(&Conversation::new(&[Message::new(Role::User, "hi")]));
    assert_eq!(text.expect("renders"), RENDERED);

    write("tokenizer_config.json", b"{");
    let error = model.chat_template().expect_err("no JSON");
    assert!(
        matches!(error, ModelError::Chat(ChatError::File(FileError::Json { .. }))),
        "{error}"
    );
}
