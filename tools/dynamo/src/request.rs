//! Requests: what Dynamo's frontend asks for, as a request of ours, or the name of what is not there.

use std::hash::{BuildHasher, Hasher, RandomState};

use dynamo_backend_common::{PreprocessedRequest, SamplingOptions, StopConditions};
use rocmforge_models::generate::{Prompt, Request};
use rocmforge_models::sampling::SamplerConfig;

/// Our request.
///
/// # Errors
/// The name of a field that changes the answer and is not supported, or one whose value makes no sense.
pub(crate) fn read(request: &PreprocessedRequest) -> Result<Request, String> {
    refuse(request)?;
    let StopConditions {
        max_tokens,
        stop,
        stop_token_ids,
        stop_token_ids_hidden,
        stop_token_ids_visible,
        ignore_eos,
        ..
    } = &request.stop_conditions;
    let ignore_end = ignore_eos.unwrap_or(false);
    let logprobs = request.output_options.logprobs.unwrap_or(0);
    let routing = request.routing.as_ref();
    let mut ours = Request {
        sampler: sampler(&request.sampling_options)?,
        stop: stop.clone().unwrap_or_default(),
        ignore_end,
        logprobs: usize::try_from(logprobs).map_err(|_| format!("logprobs: {logprobs} are too many"))?,
        cache_salt: routing
            .and_then(|routing| routing.cache_namespace.clone())
            .unwrap_or_default(),
        ..Request::new(Prompt::Ids(request.token_ids.to_vec()))
    };
    if let Some(tokens) = max_tokens {
        ours.max_tokens = usize::try_from(*tokens).unwrap_or(usize::MAX);
    }
    if !ignore_end {
        // The frontend names the model's own end tokens among the hidden ones, and the request's among the first.
        let all = [stop_token_ids, stop_token_ids_hidden, stop_token_ids_visible];
        ours.stop_tokens = all.into_iter().flatten().flatten().copied().collect();
    }
    Ok(ours)
}

/// Names the first field that asks for what is not there.
fn refuse(request: &PreprocessedRequest) -> Result<(), String> {
    let (stop, sampling, output) = (
        &request.stop_conditions,
        &request.sampling_options,
        &request.output_options,
    );
    let adapter = request.routing.as_ref().and_then(|routing| routing.lora_name.as_ref());
    let asked = [
        ("prompt_embeds", request.prompt_embeds.is_some()),
        (
            "multi_modal_data",
            request.multi_modal_data.as_ref().is_some_and(|data| !data.is_empty()),
        ),
        ("encoder_result", request.encoder_result.is_some()),
        ("prefill_result", request.prefill_result.is_some()),
        ("bootstrap_info", request.bootstrap_info.is_some()),
        ("lora_name", adapter.is_some()),
        ("min_tokens", stop.min_tokens.unwrap_or(0) > 0),
        ("max_thinking_tokens", stop.max_thinking_tokens.is_some()),
        ("guided_decoding", sampling.guided_decoding.is_some()),
        ("use_beam_search", sampling.use_beam_search.unwrap_or(false)),
        (
            "length_penalty",
            sampling.length_penalty.is_some_and(|penalty| penalty != 1.0),
        ),
        ("n", sampling.n.is_some_and(|n| n != 1)),
        ("best_of", sampling.best_of.is_some_and(|n| n != 1)),
        ("prompt_logprobs", output.prompt_logprobs.is_some()),
    ];
    match asked.into_iter().find(|(_, asked)| *asked) {
        Some((name, _)) => Err(format!("{name} is not supported: leave it out")),
        None => Ok(()),
    }
}

/// What is not given changes nothing: a temperature of 1, and no stage that shortens the list.
fn sampler(options: &SamplingOptions) -> Result<SamplerConfig, String> {
    let top_k = options.top_k.unwrap_or(-1);
    Ok(SamplerConfig {
        temperature: finite("temperature", options.temperature, 1.0)?,
        top_k: usize::try_from(top_k).unwrap_or(0),
        top_p: finite("top_p", options.top_p, 1.0)?,
        min_p: finite("min_p", options.min_p, 0.0)?,
        repeat_penalty: finite("repetition_penalty", options.repetition_penalty, 1.0)?,
        frequency_penalty: finite("frequency_penalty", options.frequency_penalty, 0.0)?,
        presence_penalty: finite("presence_penalty", options.presence_penalty, 0.0)?,
        repeat_last_n: usize::MAX,
        seed: options.seed.map_or_else(any_seed, i64::cast_unsigned),
        ..SamplerConfig::default()
    })
}

fn finite(name: &str, value: Option<f32>, or: f32) -> Result<f32, String> {
    match value.unwrap_or(or) {
        value if value.is_finite() => Ok(value),
        value => Err(format!("{name} is {value}: it must be finite")),
    }
}

/// Another seed each time: the standard library's hashers have random keys.
fn any_seed() -> u64 {
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use dynamo_backend_common::{GuidedDecodingOptions, OutputOptions};

    use super::*;

    fn asked() -> PreprocessedRequest {
        PreprocessedRequest::builder()
            .model("tiny".to_owned())
            .token_ids(Arc::new(vec![1, 2, 3]))
            .stop_conditions(StopConditions {
                max_tokens: Some(8),
                stop: Some(vec!["\n".to_owned()]),
                stop_token_ids: Some(vec![5]),
                stop_token_ids_hidden: Some(vec![7]),
                stop_token_ids_visible: Some(vec![9]),
                ..StopConditions::default()
            })
            .sampling_options(SamplingOptions {
                temperature: Some(0.5),
                top_k: Some(-1),
                seed: Some(-3),
                ..SamplingOptions::default()
            })
            .output_options(OutputOptions {
                logprobs: Some(2),
                ..OutputOptions::default()
            })
            .build()
            .unwrap()
    }

    #[test]
    fn every_supported_field_is_read() {
        let ours = read(&asked()).unwrap();
        assert_eq!(ours.prompt, Prompt::Ids(vec![1, 2, 3]));
        assert_eq!((ours.max_tokens, ours.logprobs), (8, 2));
        assert_eq!((ours.stop, ours.stop_tokens), (vec!["\n".to_owned()], vec![5, 7, 9]));
        assert_eq!((ours.sampler.temperature, ours.sampler.top_k), (0.5, 0));
        assert_eq!(ours.sampler.seed, (-3_i64).cast_unsigned());
    }

    #[test]
    fn a_text_that_ignores_its_end_has_no_stop_tokens() {
        let mut request = asked();
        request.stop_conditions.ignore_eos = Some(true);
        let ours = read(&request).unwrap();
        assert!(ours.ignore_end && ours.stop_tokens.is_empty());
    }

    #[test]
    fn what_is_not_there_is_named() {
        type Change = fn(&mut PreprocessedRequest);
        let changes: [(&str, Change); 6] = [
            ("min_tokens", |request| request.stop_conditions.min_tokens = Some(1)),
            ("n", |request| request.sampling_options.n = Some(2)),
            ("guided_decoding", |request| {
                request.sampling_options.guided_decoding = Some(GuidedDecodingOptions::default());
            }),
            ("prompt_logprobs", |request| {
                request.output_options.prompt_logprobs = Some(1)
            }),
            ("prompt_embeds", |request| request.prompt_embeds = Some(String::new())),
            ("temperature", |request| {
                request.sampling_options.temperature = Some(f32::NAN)
            }),
        ];
        for (name, change) in changes {
            let mut request = asked();
            change(&mut request);
            let refused = read(&request).unwrap_err();
            assert!(refused.starts_with(&format!("{name} is ")), "{refused}");
        }
    }
}
