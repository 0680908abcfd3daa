//! Random models of every architecture on the CPU against the f64 forward.

use crate::reference::Tiny;
use rocmforge_ggml::CpuBackend;
use rocmforge_gguf::{Gguf, TensorType, Value, Writer};
use rocmforge_models::{Engine, EngineOptions, Model, ModelError};

#[test]
fn every_architecture_equals_the_f64_forward() {
    let all = Tiny::all();
    assert!(all.len() >= 16, "{}", all.len());
    for tiny in all {
        // At once, in chunks, and token by token.
        let worst = [40, 7, 1].map(|chunk| tiny.check(CpuBackend::with_threads(2), chunk));
        println!("{:24} {}", tiny.file, worst.map(|d| format!("{d:.1e}")).join(" "));
    }
}

#[test]
fn a_context_beyond_the_model_is_refused() {
    let model = Tiny::all()[0].open();
    let options = EngineOptions {
        max_context: rocmforge_models::Limit::Tokens(1 << 20),
        ..Default::default()
    };
    let error = Engine::new(CpuBackend::new(), &model, options).expect_err("too long");
    assert!(
        matches!(error, ModelError::ContextBeyondModel { asked: 1_048_576, .. }),
        "{error}"
    );
}

/// The file without one tensor, or with one more.
fn changed(gguf: &Gguf, without: Option<&str>, more: Option<&str>) -> Model {
    let mut writer = Writer::new();
    for (key, value) in gguf.metadata().iter() {
        writer.metadata(key, value.clone()).expect("it was read");
    }
    for tensor in gguf
        .tensors()
        .iter()
        .filter(|tensor| Some(tensor.name.as_str()) != without)
    {
        let data = gguf.data(tensor);
        writer
            .tensor(tensor.name.as_str(), &tensor.dims, tensor.ty, data)
            .expect("it was read");
    }
    let zeros = [0; 128];
    if let Some(name) = more {
        writer.tensor(name, &[32], TensorType::F32, &zeros).expect("it fits");
    }
    let bytes = writer.to_bytes().expect("memory");
    Model::from_gguf(Gguf::from_bytes(bytes).expect("what was written")).expect("its settings are whole")
}

fn refusal(model: &Model) -> Option<ModelError> {
    let options = EngineOptions {
        max_context: rocmforge_models::Limit::Tokens(64),
        ..EngineOptions::default()
    };
    Engine::new(CpuBackend::with_threads(1), model, options).err()
}

/// Each tensor of each architecture counts: without it, or with one that the architecture does not know, nothing is computed.
/// The embedding's matrix serves for both; not every Llama scales its frequencies; a short context reads one list; a bias may be there, or a factor; nobody
/// uses layers that predict further tokens.
fn may_lack(file: &str, name: &str) -> bool {
    let of_file: &[&str] = match file {
        "glm4.gguf" => &["attn_q.bias", "attn_k.bias", "attn_v.bias"],
        "glm4moe.gguf" => &[
            "attn_q.bias",
            "attn_k.bias",
            "attn_v.bias",
            "attn_q_norm.weight",
            "attn_k_norm.weight",
        ],
        "ernie4_5-moe.gguf" => &["attn_output.bias", "exp_probs_b.bias"],
        "deepseek2.gguf" | "bailingmoe2.gguf" => &["exp_probs_b.bias"],
        "mamba2.gguf" | "granitehybrid.gguf" | "falcon-h1.gguf" | "nemotron_h.gguf" | "nemotron_h_moe.gguf" => {
            &["ssm_conv1d.bias", "ssm_norm.weight"]
        }
        "mimo2.gguf" => &["attn_sinks.weight", "exp_probs_b.bias"],
        // Values follow from the keys' product then.
        "gemma4.gguf" | "gemma4-beside.gguf" => &["attn_v.weight", "layer_output_scale.weight"],
        "stablelm-parallel.gguf" => &["attn_q_norm.weight", "attn_k_norm.weight"],
        _ => &[],
    };
    ["output.weight", "rope_freqs.weight", "rope_factors_long.weight"].contains(&name)
        || file.starts_with("llama") && name.ends_with(".bias")
        || name.ends_with("scale")
        || file == "glm4moe.gguf" && name.starts_with("blk.2.")
        || of_file.iter().any(|end| name.ends_with(end))
}

#[test]
fn a_tensor_too_few_or_too_many_is_refused_by_name() {
    for tiny in Tiny::all() {
        let model = tiny.open();
        let gguf = model.gguf().expect("it is one");
        assert!(refusal(&changed(gguf, None, None)).is_none(), "{}: as it is", tiny.file);
        for name in gguf.tensors().iter().map(|tensor| tensor.name.as_str()) {
            let found = refusal(&changed(gguf, Some(name), None));
            match &found {
                None => assert!(may_lack(&tiny.file, name), "{}: {name}", tiny.file),
                // Without the fused matrix three are looked for.
                Some(ModelError::MissingTensor { name: missing }) => {
                    let is_router = tiny.file == "mimo2.gguf" && name.ends_with("ffn_gate_inp.weight");
                    let apart = match model.config().recurrent {
                        None if is_router => name.replace("ffn_gate_inp", "ffn_up"),
                        // A delta net has no others; beta and alpha may be apart.
                        Some(_) => name.replace("ssm_ba", "ssm_beta"),
                        None => name.replace("attn_qkv", "attn_q").replace("gate_up_exps", "gate_exps"),
                    };
                    assert_eq!(*missing, apart, "{}", tiny.file);
                }
                // Both branches side by side, and a bias of the norm that is not there.
                Some(ModelError::UnusedTensor { name: unused, .. }) if tiny.file == "stablelm.gguf" => {
                    assert_eq!(*unused, name.replace(".weight", ".bias"), "{}", tiny.file);
                }
                // A layer without a router has no experts: they are not used, and the network in their place is missing.
                Some(ModelError::UnusedTensor { name: unused, .. }) if name.ends_with("ffn_gate_inp.weight") => {
                    let left = ["ffn_gate_inp.scale", "_exps", "post_ffw_norm_1", "ffw_norm_2"];
                    assert!(left.iter().any(|part| unused.contains(part)), "{}: {unused}", tiny.file);
                }
                Some(error) => panic!("{}: {name}: {error}", tiny.file),
            }
        }
        let unknown = "blk.0.attn_output.other";
        match refusal(&changed(gguf, None, Some(unknown))) {
            Some(ModelError::UnusedTensor { name, .. }) => assert_eq!(name, unknown),
            other => panic!("{}: {other:?}", tiny.file),
        }
    }
}

#[test]
fn an_unknown_architecture_is_refused_by_name() {
    let mut writer = Writer::new();
    let name = Value::from("mamba");
    writer.metadata("general.architecture", name).expect("a string");
    let gguf = Gguf::from_bytes(writer.to_bytes().expect("memory")).expect("what was written");
    let error = Model::from_gguf(gguf).expect_err("no such row");
    assert!(
        matches!(&error, ModelError::UnknownArchitecture { found, .. } if found == "mamba"),
        "{error}"
    );
    assert!(error.to_string().contains("llama"), "what is known is named: {error}");
}
