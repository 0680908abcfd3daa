//! The engine is judged by Dynamo's conformance kit, and its tokens by our engine alone.

use std::sync::Arc;

use dynamo_backend_common::testing::{mock_context, run_conformance};
use dynamo_backend_common::{
    FinishReason, GenerateContext, LLMEngine, LLMEngineOutput, OutputOptions, PreprocessedRequest, SamplingOptions,
    StopConditions,
};
use futures::StreamExt;
use rocmforge_dynamo::{ModelEngine, Options};
use rocmforge_ggml::CpuBackend;
use rocmforge_models::generate::{Generator, Prompt, Request};
use rocmforge_models::sampling::SamplerConfig;
use rocmforge_models::{Engine, EngineOptions, Model};

const MODEL: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../crates/rocmforge-models/tests/reference/tiny/llama.gguf"
);

fn engine(device: &str) -> ModelEngine {
    ModelEngine::new(Options {
        model: MODEL.into(),
        model_name: None,
        device: device.to_owned(),
        ctx: None,
        exact: true,
        parallel: 8,
    })
}

#[tokio::test]
async fn the_cpu_satisfies_the_contract() {
    run_conformance(|| engine("cpu")).await.unwrap();
}

#[tokio::test]
async fn a_simulated_card_satisfies_the_contract() {
    run_conformance(|| engine("sim")).await.unwrap();
}

#[tokio::test]
async fn a_model_that_is_not_there_is_an_error_of_the_start() {
    let mut options = Options {
        model: "/nowhere/model.gguf".into(),
        model_name: None,
        device: "cpu".to_owned(),
        ctx: None,
        exact: true,
        parallel: 1,
    };
    let error = ModelEngine::new(options.clone()).start(0).await.unwrap_err();
    assert!(error.to_string().contains("/nowhere/model.gguf"), "{error}");
    (options.model, options.device) = (MODEL.into(), "sim:nothing".to_owned());
    let error = ModelEngine::new(options).start(0).await.unwrap_err();
    assert!(error.to_string().contains("sim:nothing"), "{error}");
}

#[tokio::test]
async fn tokens_are_those_of_the_engine_alone() {
    const PROMPT: [u32; 3] = [1, 2, 3];
    const TOKENS: usize = 20;
    let model = Model::open(MODEL).unwrap();
    let alone = Engine::new(CpuBackend::new(), &model, EngineOptions::default()).unwrap();
    let mut alone = Generator::new(alone, model.tokenizer().unwrap());
    let request = Request {
        sampler: SamplerConfig::greedy(),
        max_tokens: TOKENS,
        ignore_end: true,
        ..Request::new(Prompt::Ids(PROMPT.to_vec()))
    };
    let expected = alone.run(request).unwrap();

    let engine = engine("cpu");
    let config = engine.start(0).await.unwrap();
    assert_eq!(config.served_model_name.as_deref(), Some("llama"));
    let context = config.llm.unwrap().context_length.unwrap();
    assert_eq!(context as usize, model.config().context);
    let asked = PreprocessedRequest::builder()
        .model(config.model)
        .token_ids(Arc::new(PROMPT.to_vec()))
        .stop_conditions(StopConditions {
            max_tokens: Some(TOKENS as u32),
            ignore_eos: Some(true),
            ..StopConditions::default()
        })
        .sampling_options(SamplingOptions {
            temperature: Some(0.0),
            ..SamplingOptions::default()
        })
        .output_options(OutputOptions {
            logprobs: Some(3),
            ..OutputOptions::default()
        })
        .build()
        .unwrap();
    let stream = engine
        .generate(asked, GenerateContext::new(mock_context(), None))
        .await
        .unwrap();
    let mut outputs: Vec<_> = stream.map(Result::unwrap).collect().await;
    let last = outputs.pop().unwrap();
    let ids: Vec<u32> = outputs.iter().flat_map(|output| output.token_ids.clone()).collect();
    assert_eq!(ids, expected.ids());
    for (output, token) in outputs.iter().zip(&expected.tokens) {
        assert_eq!(output.log_probs.as_deref(), Some(&[f64::from(token.logprob)][..]));
        let likely = &output.top_logprobs.as_ref().unwrap()[0];
        assert_eq!((likely.len(), likely[0].rank, likely[0].token_id), (3, 1, token.id));
    }
    assert_eq!(last.finish_reason, Some(FinishReason::Length));
    let usage = last.completion_usage.unwrap();
    assert_eq!((usage.prompt_tokens, usage.completion_tokens), (3, TOKENS as u32));
    engine.cleanup().await.unwrap();
}

#[tokio::test]
async fn a_stop_token_is_sent_where_it_is_to_be_seen() {
    let engine = engine("cpu");
    let config = engine.start(0).await.unwrap();
    let ask = |stop: StopConditions| {
        let asked = PreprocessedRequest::builder()
            .model(config.model.clone())
            .token_ids(Arc::new(vec![1, 2, 3]))
            .stop_conditions(StopConditions {
                max_tokens: Some(5),
                ..stop
            })
            .sampling_options(SamplingOptions {
                temperature: Some(0.0),
                ..SamplingOptions::default()
            })
            .output_options(OutputOptions::default())
            .build()
            .unwrap();
        engine.generate(asked, GenerateContext::new(mock_context(), None))
    };
    let ids = |outputs: Vec<LLMEngineOutput>| -> Vec<u32> {
        outputs.into_iter().flat_map(|output| output.token_ids).collect()
    };
    let all = ids(ask(StopConditions::default())
        .await
        .unwrap()
        .map(Result::unwrap)
        .collect()
        .await);
    let first = vec![all[0]];
    let hidden = StopConditions {
        stop_token_ids_hidden: Some(first.clone()),
        ..StopConditions::default()
    };
    let visible = StopConditions {
        stop_token_ids_visible: Some(first.clone()),
        ..StopConditions::default()
    };
    for (stop, expected) in [(hidden, Vec::new()), (visible, first)] {
        let outputs: Vec<_> = ask(stop).await.unwrap().map(Result::unwrap).collect().await;
        let last = outputs.last().unwrap();
        assert_eq!(last.finish_reason, Some(FinishReason::Stop));
        let counted = last.completion_usage.as_ref().unwrap().completion_tokens;
        assert_eq!((counted as usize, ids(outputs)), (expected.len(), expected));
    }
    engine.cleanup().await.unwrap();
}
