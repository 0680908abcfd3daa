//! Encoders: a GGUF against the directory that it is made from, texts in any number on one embedder, pooling by its definition.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rocmforge_ggml::{CpuBackend, GgmlBackend, HipGgmlBackend, HostAccess, TensorId};
use rocmforge_gguf::{Gguf, TensorType, Value as Meta, Writer};
use rocmforge_models::arch::{ARCHITECTURES, Architecture};
use rocmforge_models::bert::{Batch, Bert, Embedded, Embedder, EmbedderOptions, Pooling, PoolingMode, TextIds};
use rocmforge_models::{Model, ModelError};
use rocmforge_testkit::data::rng;
use rocmforge_testkit::gpu;
use safetensors::{Dtype, SafeTensors};
use serde_json::{Value, json};

use super::directory::{Tensors, write};
use super::gguf_keys::tiny;
use super::serve::{Planted, planted};

const WIDTH: usize = 8;
const INNER: usize = 12;
const WORDS: [&str; 14] = [
    "[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "b", "c", "un", "known", "##known", "##a", "##b", "x", "##s",
];
const CONTEXT: usize = 40;

/// Parts of names in a checkpoint and in GGUF, in the order in which they are replaced.
pub(super) const NAMES: [(&str, &str); 13] = [
    ("embeddings.word_embeddings", "token_embd"),
    ("embeddings.position_embeddings", "position_embd"),
    ("embeddings.token_type_embeddings", "token_types"),
    ("embeddings.LayerNorm", "token_embd_norm"),
    ("encoder.layer", "blk"),
    ("attention.self.query", "attn_q"),
    ("attention.self.key", "attn_k"),
    ("attention.self.value", "attn_v"),
    ("attention.output.dense", "attn_output"),
    ("attention.output.LayerNorm", "attn_output_norm"),
    ("intermediate.dense", "ffn_up"),
    ("output.dense", "ffn_down"),
    ("output.LayerNorm", "layer_output_norm"),
];

/// A random encoder of two layers as a directory.
pub(super) fn random(directory: &Path) {
    let mut rng = rng(42);
    let mut tensors = Tensors::new();
    let mut add = |name: String, shape: &[usize], about: f32| {
        let count: usize = shape.iter().product();
        let values = (0..count).map(|_| about + rng.uniform(-0.7, 0.7));
        let bytes: Vec<u8> = values.flat_map(f32::to_le_bytes).collect();
        tensors.insert(name, (Dtype::F32, shape.to_vec(), bytes));
    };
    for (name, rows) in [("word", WORDS.len()), ("position", CONTEXT), ("token_type", 2)] {
        add(format!("embeddings.{name}_embeddings.weight"), &[rows, WIDTH], 0.0);
    }
    let norm = |name: &str, add: &mut dyn FnMut(String, &[usize], f32)| {
        add(format!("{name}.LayerNorm.weight"), &[WIDTH], 1.0);
        add(format!("{name}.LayerNorm.bias"), &[WIDTH], 0.0);
    };
    norm("embeddings", &mut add);
    for layer in 0..2 {
        let at = format!("encoder.layer.{layer}");
        for (part, rows, cols) in [
            ("attention.self.query", WIDTH, WIDTH),
            ("attention.self.key", WIDTH, WIDTH),
            ("attention.self.value", WIDTH, WIDTH),
            ("attention.output.dense", WIDTH, WIDTH),
            ("intermediate.dense", INNER, WIDTH),
            ("output.dense", WIDTH, INNER),
        ] {
            add(format!("{at}.{part}.weight"), &[rows, cols], 0.0);
            add(format!("{at}.{part}.bias"), &[rows], 0.0);
        }
        norm(&format!("{at}.attention.output"), &mut add);
        norm(&format!("{at}.output"), &mut add);
    }
    let config = json!({
        "model_type": "bert", "hidden_size": WIDTH, "num_hidden_layers": 2, "num_attention_heads": 2,
        "intermediate_size": INNER, "vocab_size": WORDS.len(), "max_position_embeddings": CONTEXT,
    });
    write(directory, &config, &tensors);
    let ids: BTreeMap<&str, usize> = WORDS.iter().enumerate().map(|(id, &word)| (word, id)).collect();
    let added = WORDS[..4].iter().enumerate().map(|(id, word)| {
        json!({ "id": id, "content": word, "special": true, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false })
    });
    let tokenizer = json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": added.collect::<Vec<_>>(),
        "normalizer": { "type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true },
        "pre_tokenizer": { "type": "BertPreTokenizer" },
        "post_processor": { "type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2] },
        "decoder": { "type": "WordPiece", "prefix": "##", "cleanup": true },
        "model": { "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": ids },
    });
    std::fs::write(directory.join("tokenizer.json"), tokenizer.to_string()).expect("written");
}

fn read_json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).expect("there")).expect("JSON")
}

/// The directory as a GGUF, as llama.cpp's converter writes it, with further metadata.
fn to_gguf(directory: &Path, more: &[(&str, Meta)]) -> Gguf {
    let config = read_json(&directory.join("config.json"));
    let number = |key: &str| config[key].as_u64().expect("a number") as u32;
    let tokenizer = read_json(&directory.join("tokenizer.json"));
    let mut words: Vec<(u32, &str)> = (tokenizer["model"]["vocab"].as_object().expect("a vocabulary").iter())
        .map(|(word, id)| (id.as_u64().expect("an id") as u32, word.as_str()))
        .collect();
    words.sort_unstable();
    let is_mark = |word: &str| word.starts_with('[') && word.ends_with(']') && word.len() > 2;
    let tokens: Vec<String> = (words.iter())
        .map(|&(_, word)| match word.strip_prefix("##") {
            Some(end) => end.to_owned(),
            None if is_mark(word) => word.to_owned(),
            None => format!("\u{2581}{word}"),
        })
        .collect();
    let types: Vec<i32> = words
        .iter()
        .map(|(_, word)| if is_mark(word) { 3 } else { 1 })
        .collect();
    let id = |mark: &str| Meta::U32(words.iter().find(|(_, word)| *word == mark).expect("a mark").0);
    let eps = config["layer_norm_eps"].as_f64().unwrap_or(1e-12) as f32;
    let mut metadata = vec![
        ("general.architecture", Meta::from("bert")),
        ("bert.block_count", Meta::U32(number("num_hidden_layers"))),
        ("bert.context_length", Meta::U32(number("max_position_embeddings"))),
        ("bert.embedding_length", Meta::U32(number("hidden_size"))),
        ("bert.feed_forward_length", Meta::U32(number("intermediate_size"))),
        ("bert.attention.head_count", Meta::U32(number("num_attention_heads"))),
        ("bert.attention.layer_norm_epsilon", Meta::F32(eps)),
        ("bert.attention.causal", Meta::Bool(false)),
        ("bert.pooling_type", Meta::U32(1)),
        ("tokenizer.ggml.model", Meta::from("bert")),
        ("tokenizer.ggml.pre", Meta::from("jina-v2-en")),
        ("tokenizer.ggml.token_type_count", Meta::U32(2)),
        ("tokenizer.ggml.tokens", Meta::from(tokens)),
        ("tokenizer.ggml.token_type", Meta::from(types)),
        ("tokenizer.ggml.unknown_token_id", id("[UNK]")),
        ("tokenizer.ggml.seperator_token_id", id("[SEP]")),
        ("tokenizer.ggml.padding_token_id", id("[PAD]")),
        ("tokenizer.ggml.cls_token_id", id("[CLS]")),
        ("tokenizer.ggml.bos_token_id", id("[CLS]")),
        ("tokenizer.ggml.eos_token_id", id("[SEP]")),
    ];
    metadata.retain(|(key, _)| more.iter().all(|(other, _)| other != key));
    let mut writer = Writer::new();
    for (key, value) in metadata.into_iter().chain(more.iter().cloned()) {
        writer.metadata(key, value).expect("a new key");
    }
    let bytes = std::fs::read(directory.join("model.safetensors")).expect("there");
    let file = SafeTensors::deserialize(&bytes).expect("whole");
    for (name, tensor) in file.tensors() {
        if name.starts_with("pooler.") || name.ends_with(".position_ids") {
            continue;
        }
        assert_eq!(tensor.dtype(), Dtype::F32);
        let renamed = NAMES.iter().fold(name, |name, (from, to)| name.replace(from, to));
        let dims: Vec<usize> = tensor.shape().iter().rev().copied().collect();
        (writer.tensor(&renamed, &dims, TensorType::F32, tensor.data())).expect("its bytes fit");
    }
    Gguf::from_bytes(writer.to_bytes().expect("memory")).expect("what was written")
}

/// The random encoder, and MiniLM where it is.
fn directories() -> Vec<(tempfile::TempDir, Option<PathBuf>)> {
    let made = tempfile::tempdir().expect("a directory");
    random(made.path());
    let minilm = Bert::minilm_directory(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    let there = minilm.exists().then_some(minilm);
    if there.is_none() {
        println!("no MiniLM: run `cargo xtask model minilm`");
    }
    let mut all = vec![(made, None)];
    all.extend(there.map(|path| (tempfile::tempdir().expect("a directory"), Some(path))));
    all
}

const TEXTS: [&str; 7] = [
    "a b c",
    "Unknown a, B",
    "",
    "A sentence about rivers and the towns beside them.",
    "caf\u{e9} \u{4e2d}\u{6587} x!",
    "c",
    "a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a",
];

fn embedder<B: HostAccess>(model: Bert, backend: B, step_tokens: usize) -> Embedder<B> {
    let options = EmbedderOptions {
        step_tokens,
        ..EmbedderOptions::default()
    };
    Embedder::new(model, backend, options).expect("it loads")
}

/// Texts on the CPU, with the hidden states.
fn with_states(model: &Bert, rows: &[TextIds]) -> Embedded {
    let options = EmbedderOptions {
        hidden: true,
        ..EmbedderOptions::default()
    };
    let mut embedder = Embedder::new(model.clone(), cpu(), options).expect("it loads");
    embedder.embed_ids(rows).expect("runs")
}

fn cpu() -> CpuBackend {
    CpuBackend::with_threads(2)
}

fn worst(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    let differences = a.iter().zip(b).map(|(a, b)| (a - b).abs());
    differences.fold(0.0, |worst, d| if d > worst || d.is_nan() { d } else { worst })
}

#[test]
fn a_gguf_gives_the_embeddings_of_the_directory_that_it_is_made_from() {
    for (made, real) in directories() {
        let path = real.as_deref().unwrap_or(made.path());
        let of_directory = Bert::open(path).expect("opens");
        let gguf = Bert::from_gguf(to_gguf(path, &[]), None).expect("opens");
        assert_eq!(
            (gguf.config().texts, gguf.pooling()),
            (of_directory.config().texts, of_directory.pooling())
        );
        // The directory of MiniLM cuts texts at 256 tokens; none here is so long.
        let [expected, found] = [of_directory, gguf].map(|model| {
            let mut embedder = embedder(model, cpu(), 64);
            embedder.embed(&TEXTS).expect("runs")
        });
        assert!(expected.embeddings.data.iter().all(|value| value.is_finite()));
        assert_eq!(found, expected, "{}", path.display());
    }
}

#[test]
fn texts_of_any_number_and_length_give_what_each_gives_alone() {
    let directory = tempfile::tempdir().expect("a directory");
    random(directory.path());
    let mut rng = rng(7);
    let words = ["a", "b", "c", "unknown", "xs", "other"];
    let mut text = |length| -> String { (0..length).map(|_| words[rng.below(6)]).collect::<Vec<_>>().join(" ") };
    let texts: Vec<String> = (0..37).map(|number| text(number % 19)).collect();
    let model = Bert::open(directory.path()).expect("opens");
    let alone: Vec<f32> = (texts.iter())
        .flat_map(|text| {
            let text = model.encoder().text(text, true).expect("tokens");
            with_states(&model, &[text]).embeddings.data
        })
        .collect();
    let lengths: Vec<usize> = model.tokenize(&texts).expect("tokens").lengths().to_vec();
    for step_tokens in [0, 64, 2048] {
        let model = Bert::open(directory.path()).expect("opens");
        let mut owned = embedder(model, cpu(), step_tokens);
        // A thread may own it.
        let texts = texts.clone();
        let [first, second] = std::thread::spawn(move || {
            let first = owned.embed(&texts).expect("runs");
            let graphs = owned.graphs();
            let second = owned.embed(&texts).expect("runs");
            assert_eq!(owned.graphs(), graphs, "graphs are reused");
            [first, second]
        })
        .join()
        .expect("no panic");
        assert_eq!(first, second);
        assert_eq!((&first.tokens, first.embeddings.len()), (&lengths, 37));
        let worst = worst(&first.embeddings.data, &alone);
        println!("{step_tokens:5} tokens a step: {worst:.1e}");
        assert!(worst <= 1e-6, "{step_tokens}: {worst:e}");
    }
    let lease = gpu();
    let card = HipGgmlBackend::new(lease.backend()).expect("kernels");
    let found = embedder(model, card, 64).embed(&texts[..9]).expect("runs");
    let worst = worst(&found.embeddings.data, &alone[..9 * WIDTH]);
    assert!(worst <= 1e-5, "on the card: {worst:e}");
    let none: [&str; 0] = [];
    let model = Bert::open(directory.path()).expect("opens");
    let error = embedder(model, cpu(), 64).embed(&none).expect_err("no texts");
    assert!(matches!(error, ModelError::NoTexts), "{error}");
}

#[test]
fn a_graph_that_cannot_be_compiled_leaves_nothing_in_the_backend() {
    let directory = tempfile::tempdir().expect("a directory");
    random(directory.path());
    let model = Bert::open(directory.path()).expect("opens");
    let mut backend = planted(&[]);
    backend.hook.refused = 3;
    let mut embedder = embedder(model, backend, 64);
    let held = |embedder: &Embedder<Planted>| {
        let ids = (0..10_000).map(TensorId);
        ids.filter(|id| embedder.backend().tensor_desc(*id).is_some()).count()
    };
    let before = held(&embedder);
    for attempt in 0..3 {
        embedder.embed(&["a b c"]).expect_err("planted");
        assert_eq!(held(&embedder), before, "attempt {attempt}");
    }
    let found = embedder.embed(&["a b c"]).expect("runs").embeddings;
    let model = Bert::open(directory.path()).expect("opens");
    let expected = self::embedder(model, cpu(), 64).embed(&["a b c"]).expect("runs");
    assert_eq!(found, expected.embeddings);
}

/// By the definition, from the hidden states of the last layer.
#[test]
fn pooling_takes_the_mean_the_first_or_the_last_token() {
    let directory = tempfile::tempdir().expect("a directory");
    random(directory.path());
    let texts = ["a b c x", "b", "unknown c"];
    for (mode, normalize) in [
        (PoolingMode::Mean, false),
        (PoolingMode::Cls, false),
        (PoolingMode::Last, false),
        (PoolingMode::Last, true),
    ] {
        let pooling = Pooling { mode, normalize };
        let model = Bert::open_with(directory.path(), Some(pooling)).expect("opens");
        let rows = texts.map(|text| model.encoder().text(text, true).expect("tokens"));
        let hidden = with_states(&model, &rows).hidden;
        let found = embedder(model, cpu(), 64).embed(&texts).expect("runs").embeddings;
        for (text, (row, states)) in rows.iter().zip(&hidden).enumerate() {
            let (length, states) = (row.len(), states.last().expect("a layer"));
            let row = |token: usize| &states[token * WIDTH..][..WIDTH];
            let tokens = match mode {
                PoolingMode::Mean => 0..length,
                PoolingMode::Cls => 0..1,
                PoolingMode::Last => length - 1..length,
                PoolingMode::Rank => unreachable!("no embedding"),
            };
            let count = tokens.len() as f64;
            let sum = |at: usize| tokens.clone().map(|token| f64::from(row(token)[at])).sum::<f64>();
            let mut expected: Vec<f64> = (0..WIDTH).map(|at| sum(at) / count).collect();
            if normalize {
                let norm = expected.iter().map(|value| value * value).sum::<f64>().sqrt();
                expected.iter_mut().for_each(|value| *value /= norm);
            }
            let expected: Vec<f32> = expected.iter().map(|&value| value as f32).collect();
            assert!(
                worst(found.row(text), &expected) <= 1e-5,
                "{mode:?}, {normalize}, text {text}"
            );
        }
    }
}

/// Adds a pooler and a classifier of so many scores to the random encoder.
fn add_head(directory: &Path, scores: usize) {
    let path = directory.join("model.safetensors");
    let bytes = std::fs::read(&path).expect("there");
    let file = SafeTensors::deserialize(&bytes).expect("whole");
    let mut tensors: Tensors = (file.tensors().into_iter())
        .map(|(name, tensor)| (name, (tensor.dtype(), tensor.shape().to_vec(), tensor.data().to_vec())))
        .collect();
    let mut rng = rng(43);
    for (name, shape) in [
        ("pooler.dense.weight", vec![WIDTH, WIDTH]),
        ("pooler.dense.bias", vec![WIDTH]),
        ("classifier.weight", vec![scores, WIDTH]),
        ("classifier.bias", vec![scores]),
    ] {
        let count: usize = shape.iter().product();
        let bytes = (0..count).flat_map(|_| rng.uniform(-0.7, 0.7).to_le_bytes()).collect();
        let name = if name.starts_with("pooler") {
            format!("bert.{name}")
        } else {
            name.to_owned()
        };
        tensors.insert(name, (Dtype::F32, shape, bytes));
    }
    let mut config = read_json(&directory.join("config.json"));
    config["architectures"] = json!(["BertForSequenceClassification"]);
    config["id2label"] = json!({"0": "LABEL_0"});
    write(directory, &config, &tensors);
}

/// By the definition, from the hidden states of the last layer: `w2 tanh(w1 x + b1) + b2` of the first token.
#[test]
fn a_classifier_of_one_score_ranks_pairs_of_texts() {
    let directory = tempfile::tempdir().expect("a directory");
    random(directory.path());
    add_head(directory.path(), 1);
    let model = Bert::open(directory.path()).expect("opens");
    assert_eq!((model.pooling(), model.result_width()), (Pooling::RANK, 1));
    let encoder = model.encoder().clone();
    let pair = |first: &str, second: &str| {
        let [first, second] = [first, second].map(|text| encoder.plain(text).expect("tokens"));
        encoder.pair(&first, &second, false)
    };
    let pairs = [pair("a b", "c"), pair("a b", "x unknown a b c"), pair("", "")];
    assert_eq!(pairs[0].ids(), [2, 4, 5, 3, 6, 3]);
    let batch = Batch::from_texts(&pairs);
    assert_eq!(batch.types()[..6], [0, 0, 0, 0, 1, 1]);
    let run = with_states(&model, &pairs);
    let bytes = std::fs::read(directory.path().join("model.safetensors")).expect("there");
    let file = SafeTensors::deserialize(&bytes).expect("whole");
    let values = |name: &str| -> Vec<f64> {
        let data = file.tensor(name).expect(name).data().to_vec();
        let four = data
            .chunks_exact(4)
            .map(|four| f32::from_le_bytes(four.try_into().expect("four")));
        four.map(f64::from).collect()
    };
    let linear = |name: &str, x: &[f64]| -> Vec<f64> {
        let (weight, bias) = (values(&format!("{name}.weight")), values(&format!("{name}.bias")));
        let rows = weight.chunks_exact(x.len()).zip(bias);
        rows.map(|(row, bias)| row.iter().zip(x).map(|(w, x)| w * x).sum::<f64>() + bias)
            .collect()
    };
    let expected: Vec<f32> = (0..pairs.len())
        .map(|text| {
            let first = &run.hidden[text].last().expect("a layer")[..WIDTH];
            let first: Vec<f64> = first.iter().map(|&value| f64::from(value)).collect();
            let pooled: Vec<f64> = linear("bert.pooler.dense", &first).into_iter().map(f64::tanh).collect();
            linear("classifier", &pooled)[0] as f32
        })
        .collect();
    assert!(worst(&run.embeddings.data, &expected) <= 1e-5);
    // Types of tokens count: the same ids as one text give another score.
    let whole = encoder.whole(pairs[0].ids().to_vec()).expect("its ids");
    let mut on_cpu = embedder(model, cpu(), 64);
    let found = on_cpu.embed_ids(&pairs).expect("runs").embeddings;
    assert!(worst(&found.data, &expected) <= 1e-5);
    let other = on_cpu.embed_ids(&[whole]).expect("runs").embeddings;
    assert!(worst(&other.data, &expected[..1]) > 1e-4);
    let lease = gpu();
    let model = Bert::open(directory.path()).expect("opens");
    let card = HipGgmlBackend::new(lease.backend()).expect("kernels");
    let on_card = embedder(model, card, 64).embed_ids(&pairs).expect("runs").embeddings;
    assert!(worst(&on_card.data, &expected) <= 1e-5, "on the card");
    // Of a long pair the second text is cut, and never the first.
    let long: Vec<u32> = vec![4; 2 * CONTEXT];
    assert_eq!(encoder.pair(&[5], &long, true).len(), CONTEXT);
    assert_eq!(encoder.pair(&long, &[5], true).len(), long.len() + 4);
    let error = on_cpu
        .embed_ids(&[encoder.pair(&long, &[5], true)])
        .expect_err("too long");
    assert!(error.to_string().contains("84 tokens"), "{error}");

    // As an embedding model the head is left out.
    let pooling = Pooling {
        mode: PoolingMode::Mean,
        normalize: true,
    };
    let plain = Bert::open_with(directory.path(), Some(pooling)).expect("opens");
    assert_eq!(plain.result_width(), WIDTH);
    random(directory.path());
    add_head(directory.path(), 2);
    let error = Bert::open(directory.path()).expect_err("two scores");
    assert!(
        matches!(&error, ModelError::TensorShape { name, .. } if name == "classifier.weight"),
        "{error}"
    );
}

#[test]
fn an_encoder_is_an_architecture_that_a_decoder_refuses_by_name() {
    let row = Architecture::of_gguf("bert").expect("a row");
    assert!(row.is_encoder() && ARCHITECTURES.contains(row));
    assert!(!Architecture::of_gguf("llama").expect("a row").is_encoder());
    let directory = tempfile::tempdir().expect("a directory");
    random(directory.path());
    let gguf = to_gguf(directory.path(), &[]);
    for error in [
        Model::open(directory.path()).map(|_| ()),
        Model::from_gguf(gguf).map(|_| ()),
    ] {
        let error = error.expect_err("no decoder");
        assert!(
            matches!(error, ModelError::IsEncoder { architecture: "bert" }),
            "{error}"
        );
    }
    let error = Bert::from_gguf(tiny("llama.gguf").gguf(), None).expect_err("no encoder");
    assert!(
        matches!(error, ModelError::IsDecoder { architecture: "llama" }),
        "{error}"
    );
}

#[test]
fn keys_of_an_encoder_are_read_or_refused_by_name() {
    let directory = tempfile::tempdir().expect("a directory");
    random(directory.path());
    let open = |key, value| Bert::from_gguf(to_gguf(directory.path(), &[(key, value)]), None);
    for (number, mode) in [(1, PoolingMode::Mean), (2, PoolingMode::Cls), (3, PoolingMode::Last)] {
        let model = open("bert.pooling_type", Meta::U32(number)).expect("opens");
        assert_eq!(model.pooling(), Pooling { mode, normalize: true });
    }
    for (key, value) in [
        ("bert.pooling_type", Meta::U32(5)),
        ("bert.pooling_type", Meta::U32(0)),
        ("bert.attention.causal", Meta::Bool(true)),
        ("bert.attention.head_count", Meta::U32(3)),
        ("bert.attention.layer_norm_epsilon", Meta::F32(f32::NAN)),
        ("bert.attention.max_alibi_bias", Meta::F32(8.0)),
        ("bert.block_count", Meta::U32(0)),
        ("bert.context_length", Meta::U32(2)),
        ("bert.some_factor", Meta::F32(2.0)),
    ] {
        let error = open(key, value.clone()).expect_err(key).to_string();
        let name = key.trim_start_matches("bert.");
        assert!(error.contains(name), "{key} = {value}: {error}");
    }
    let error = open("bert.block_count", Meta::U32(1))
        .expect_err("a layer too many")
        .to_string();
    assert!(error.contains("blk.1."), "{error}");
    let error = open("tokenizer.ggml.token_type_count", Meta::U32(3)).expect_err("rows");
    assert!(
        matches!(&error, ModelError::TensorShape { name, .. } if name == "token_types.weight"),
        "{error}"
    );
}
