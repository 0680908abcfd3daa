//! Random models of every architecture on the CPU against the f64 forward.
#![allow(clippy::print_stdout)] // measured differences, shown when a test fails or with --nocapture
#![allow(dead_code)] // the real models' half of the module

mod reference;

use reference::Tiny;
use rocmforge_ggml::CpuBackend;
use rocmforge_models::ModelError;

#[test]
fn every_architecture_equals_the_f64_forward() {
    let all = Tiny::all();
    assert!(all.len() >= 13, "{}", all.len());
    for tiny in all {
        // At once, in chunks, and token by token.
        let worst = [40, 7, 1].map(|chunk| tiny.check(CpuBackend::with_threads(2), chunk));
        println!("{:24} {}", tiny.file, worst.map(|d| format!("{d:.1e}")).join(" "));
    }
}

#[test]
fn a_context_beyond_the_model_is_refused() {
    let model = Tiny::all()[0].open();
    let options = rocmforge_models::EngineOptions {
        context: rocmforge_models::Context::Tokens(1 << 20),
        ..Default::default()
    };
    let error = rocmforge_models::Engine::new(CpuBackend::new(), &model, options).expect_err("too long");
    assert!(
        matches!(error, ModelError::ContextBeyondModel { asked: 1_048_576, .. }),
        "{error}"
    );
}
