//! `/completion`: texts that go on, in llama.cpp's own form.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use futures_util::Stream;
use futures_util::future::try_join_all;
use futures_util::stream::{SelectAll, StreamExt};
use rocmforge_models::generate::{Completion, Event, FinishReason, Prompt, Request, Stats, Token};
use rocmforge_models::serve::Handle;
use rocmforge_models::tokenizer::{AddBos, Encode, Piece, SpecialTokens, Tokenizer};
use serde_json::{Map, Value, json};
use utoipa::openapi::schema::{ObjectBuilder, Type};

use crate::app::{App, Asker};
use crate::description::field::{Body, Field, Form, Group};
use crate::description::schema;
use crate::error::{ApiError, Kind};
use crate::fields::Fields;
use crate::generation::{Generation, id};
use crate::openai::{COMMON, Common, logprobs, timings};
use crate::progress::{Progress, Reports};
use crate::stream;

const FIELDS: &[Field] = &[
    Field(
        "prompt",
        Form::Other(|| {
            let object = || schema::object([("prompt_string", schema::text())], [], true);
            let part = || schema::either([schema::text(), schema::count()]);
            let one = || schema::either([schema::text(), object(), schema::list(part())]);
            schema::either([one(), schema::filled(one())])
        }),
        "A text, a list of token ids and texts, {\"prompt_string\": text}, or a list of these.",
    ),
    Field(
        "t_max_predict_ms",
        Form::Other(|| {
            let most = ObjectBuilder::new().schema_type(Type::Integer).maximum(Some(0.0));
            schema::either([most.into(), schema::one(Type::Null)])
        }),
        "Not supported: 0 and negative are no limit.",
    ),
    Field(
        "n_probs",
        Form::Count(0),
        "So many most likely tokens are shown with each.",
    ),
    Field(
        "post_sampling_probs",
        Form::Bool,
        "Whether the tokens of n_probs have their probabilities after the sampler's stages, as prob.",
    ),
    Field(
        "cache_prompt",
        Form::Bool,
        "Whether the prompt may come of the cache [default: true].",
    ),
    Field("return_tokens", Form::Bool, "Whether the answer has its tokens."),
    Field(
        "response_fields",
        Form::Texts,
        "Fields of the answer that are wanted, such as a/b; without any the answer has all of its fields.",
    ),
];

pub(super) const BODY: Body = Body {
    groups: &[Group::Read(FIELDS), Group::All(&COMMON)],
    required: &["prompt"],
};

/// Which probabilities tokens have.
#[derive(Clone, Copy)]
enum Probabilities {
    OfModel,
    AfterSampling,
}

/// What a request wants beside its text.
struct Wants {
    settings: Value,
    probabilities: Option<Probabilities>,
    tokens: bool,
    /// Fields of the answer that the client wants. An empty list means all.
    fields: Vec<String>,
}

/// A prompt and an answer to it.
struct Answer {
    index: usize,
    prompt: String,
    generation: Generation,
}

/// The settings of a request, as llama.cpp names them.
pub(super) fn settings(request: &Request, tokenizer: &Tokenizer, is_stream: bool) -> Value {
    let Request {
        sampler,
        max_tokens,
        stop,
        ignore_end,
        logprobs,
        sampler_logprobs,
        ..
    } = request;
    let tokens = |number: usize| i64::try_from(number).unwrap_or(-1);
    let mut biases = sampler.logit_bias.clone();
    if *ignore_end {
        let ends = tokenizer.end_of_generation().iter();
        biases.extend(ends.map(|id| (*id, f32::NEG_INFINITY)));
    }
    // JSON has no infinity: null stands for it.
    let biases: Vec<Value> = (biases.iter())
        .map(|(token, bias)| json!({"token": token, "bias": bias.is_finite().then_some(*bias)}))
        .collect();
    let mirostat = sampler.mirostat.unwrap_or_default();
    json!({
        "seed": sampler.seed,
        "temperature": sampler.temperature,
        "top_k": sampler.top_k,
        "top_p": sampler.top_p,
        "min_p": sampler.min_p,
        "typical_p": sampler.typical_p,
        "top_n_sigma": sampler.top_n_sigma,
        "xtc_probability": sampler.xtc.probability,
        "xtc_threshold": sampler.xtc.threshold,
        "repeat_last_n": tokens(sampler.repeat_last_n),
        "repeat_penalty": sampler.repeat_penalty,
        "presence_penalty": sampler.presence_penalty,
        "frequency_penalty": sampler.frequency_penalty,
        "dry_multiplier": sampler.dry.multiplier,
        "dry_base": sampler.dry.base,
        "dry_allowed_length": sampler.dry.allowed_length,
        "dry_penalty_last_n": tokens(sampler.dry.last_n),
        "mirostat": if sampler.mirostat.is_some() { 2 } else { 0 },
        "mirostat_tau": mirostat.tau,
        "mirostat_eta": mirostat.eta,
        "adaptive_target": -1.0,
        "adaptive_decay": 0.0,
        "stop": stop,
        "max_tokens": tokens(*max_tokens),
        "n_predict": tokens(*max_tokens),
        "ignore_eos": ignore_end,
        "stream": is_stream,
        "logit_bias": biases,
        "n_probs": logprobs,
        "grammar": "",
        "samplers": ["penalties", "dry", "top_n_sigma", "top_k", "typ_p", "top_p", "min_p", "xtc", "temperature"],
        "post_sampling_probs": sampler_logprobs,
        "lora": [],
    })
}

fn wrong() -> ApiError {
    ApiError::field(
        "prompt",
        "it must be a text, a list of token ids and texts, {\"prompt_string\": text}, or a list of these",
    )
}

/// One prompt as token ids. As in llama.cpp, control tokens in texts are tokens: who sends a whole prompt writes its frame, too.
fn encode(handle: &Handle, prompt: &Value) -> Result<Vec<u32>, ApiError> {
    let tokenizer = handle.tokenizer();
    let text = |text: &str, is_first: bool| {
        handle.check_length(text.len())?;
        let encoded = match is_first {
            true => tokenizer.encode_pieces(&[Piece {
                text: text.to_owned(),
                trusted: true,
            }]),
            false => tokenizer.encode(
                text,
                Encode {
                    add_bos: AddBos::No,
                    special: SpecialTokens::Parse,
                },
            ),
        };
        encoded.map_err(|error| ApiError::field("prompt", error))
    };
    match prompt {
        Value::String(string) => text(string, true),
        Value::Object(object) if object.contains_key("multimodal_data") => Err(ApiError::not_supported(
            "prompt",
            "multimodal_data: the model takes text only",
        )),
        Value::Object(object) => match object.get("prompt_string") {
            Some(Value::String(string)) => text(string, true),
            _ => Err(wrong()),
        },
        Value::Array(parts) => {
            let mut ids = Vec::new();
            for (index, part) in parts.iter().enumerate() {
                match part {
                    Value::String(string) => ids.extend(text(string, index == 0)?),
                    _ => {
                        let id = part.as_u64().filter(|id| *id < tokenizer.vocab_size() as u64);
                        ids.push(id.ok_or_else(wrong)? as u32);
                    }
                }
            }
            Ok(ids)
        }
        _ => Err(wrong()),
    }
}

/// All prompts of a request. A list of numbers and texts that begins with a number is one; of texts each is one.
fn prompts(handle: &Handle, value: &Value, most: usize) -> Result<Vec<Vec<u32>>, ApiError> {
    match value {
        Value::Array(list) if list.is_empty() => Err(wrong()),
        Value::Array(list) if !list.iter().any(Value::is_number) => match list.len() > most {
            true => Err(ApiError::field("prompt", format!("there may be {most} prompts"))),
            false => list.iter().map(|prompt| encode(handle, prompt)).collect(),
        },
        one => Ok(vec![encode(handle, one)?]),
    }
}

pub(super) async fn complete(State(app): State<App>, asker: Asker, fields: Fields) -> Result<Response, ApiError> {
    let limits = app.options().limits;
    if fields.integer("t_max_predict_ms")?.is_some_and(|time| time > 0) {
        return Err(ApiError::not_supported(
            "t_max_predict_ms",
            "this server does not support it",
        ));
    }
    let value = fields.get("prompt").cloned().ok_or_else(wrong)?;
    let mut common = Common::read(&app, &fields).await?;
    common.request.logprobs = fields.count("n_probs", 0, limits.logprobs)?.unwrap_or(0);
    common.request.sampler_logprobs = fields.bool("post_sampling_probs")? && common.request.logprobs > 0;
    if fields.get("cache_prompt").is_some() && !fields.bool("cache_prompt")? {
        common.request.cache_salt = id("");
    }
    let tokenizer = Arc::clone(common.lease.handle().tokenizer());
    let handle = common.lease.handle().clone();
    let wants = Wants {
        settings: settings(&common.request, &tokenizer, common.is_stream),
        probabilities: match common.request.logprobs {
            0 => None,
            _ if common.request.sampler_logprobs => Some(Probabilities::AfterSampling),
            _ => Some(Probabilities::OfModel),
        },
        tokens: fields.bool("return_tokens")?,
        fields: fields.texts("response_fields")?,
    };
    let place = asker.place.clone();
    let encode = tokio::task::spawn_blocking(move || {
        let _place = place;
        let ids = prompts(&handle, &value, limits.choices)?;
        let tokenizer = handle.tokenizer();
        let texts: Vec<String> = ids.iter().map(|ids| tokenizer.decode_with_control(ids)).collect();
        Ok::<_, ApiError>((ids, texts))
    });
    let (ids, texts) = encode
        .await
        .map_err(|_| ApiError::new(Kind::Internal, "the prompt could not become tokens"))??;
    app.check_answers(&asker, ids.len(), common.choices)?;
    let requests = (ids.into_iter().zip(texts)).flat_map(|(ids, text)| {
        common
            .requests(&Prompt::Ids(ids))
            .map(move |request| (text.clone(), request))
            .collect::<Vec<_>>()
    });
    let (of_app, of_asker, lease) = (&app, &asker, &common.lease);
    let answers = requests.enumerate().map(|(index, (prompt, request))| async move {
        let generation = Generation::start(of_app, of_asker, lease, request).await?;
        Ok::<_, ApiError>(Answer {
            index,
            prompt,
            generation,
        })
    });
    let answers: Vec<Answer> = try_join_all(answers).await?;
    match common.is_stream {
        true => Ok(stream::values(chunks(common, wants, answers), false)),
        false => {
            let (wants, common) = (&wants, &common);
            let answers = answers.into_iter().map(|answer| async move {
                let completion = answer.generation.complete().await?;
                Ok::<_, ApiError>(wants.whole(common, answer.index, answer.prompt, completion))
            });
            let mut answers: Vec<Value> = try_join_all(answers).await?;
            Ok(match answers.len() {
                1 => Json(answers.remove(0)),
                _ => Json(answers.into()),
            }
            .into_response())
        }
    }
}

/// The end of a text, in llama.cpp's words.
fn end(reason: &FinishReason) -> (&'static str, &str) {
    match reason {
        FinishReason::EndOfText(_) | FinishReason::StopToken(_) => ("eos", ""),
        FinishReason::StopString(text) => ("word", text),
        FinishReason::MaxTokens | FinishReason::ContextFull => ("limit", ""),
        _ => ("none", ""),
    }
}

impl Wants {
    /// `completion_probabilities`: as `logprobs.content` of a chat, or with other names after the sampler's stages.
    fn probabilities(&self, common: &Common, tokens: &[Token]) -> Option<Value> {
        let tokenizer = common.lease.handle().tokenizer();
        Some(match self.probabilities? {
            Probabilities::OfModel => logprobs::of_chat(tokenizer, tokens)["content"].take(),
            Probabilities::AfterSampling => logprobs::after_sampling(tokenizer, tokens),
        })
    }

    /// The last value of an answer. `text` is what it says, `all` the whole text.
    fn last(
        &self,
        common: &Common,
        index: usize,
        prompt: String,
        all: &str,
        reason: &FinishReason,
        stats: &Stats,
    ) -> Value {
        let (stop_type, stopping_word) = end(reason);
        json!({
            "index": index,
            "content": "",
            "tokens": [],
            "id_slot": 0,
            "stop": true,
            "model": common.model,
            "tokens_predicted": stats.drawn_tokens,
            "tokens_evaluated": stats.prompt_tokens,
            "generation_settings": self.settings,
            "prompt": prompt,
            "has_new_line": all.contains('\n'),
            "truncated": *reason == FinishReason::ContextFull,
            "stop_type": stop_type,
            "stopping_word": stopping_word,
            "tokens_cached": stats.prompt_tokens + stats.decoded_tokens,
            "timings": timings(stats),
        })
    }

    /// An answer that is not streamed.
    fn whole(&self, common: &Common, index: usize, prompt: String, completion: Completion) -> Value {
        let mut answer = self.last(
            common,
            index,
            prompt,
            &completion.text,
            &completion.reason,
            &completion.stats,
        );
        if let Some(probabilities) = self.probabilities(common, &completion.tokens) {
            answer["completion_probabilities"] = probabilities;
        }
        if self.tokens {
            answer["tokens"] = completion.ids().into();
        }
        answer["content"] = completion.text.into();
        self.chosen(answer)
    }

    /// The fields that the request names, as `a` or `a/b`. A name that is not there is left out.
    fn chosen(&self, answer: Value) -> Value {
        if self.fields.is_empty() {
            return answer;
        }
        let chosen = self.fields.iter().filter_map(|name| {
            let value = name.split('/').try_fold(&answer, |value, name| value.get(name));
            Some((name.clone(), value?.clone()))
        });
        Value::Object(chosen.collect::<Map<_, _>>())
    }
}

fn chunks(common: Common, wants: Wants, answers: Vec<Answer>) -> impl Stream<Item = Result<Value, ApiError>> {
    /// What has come of an answer.
    #[derive(Default)]
    struct State {
        prompt: String,
        prompt_tokens: usize,
        reports: Reports,
        text: String,
        drawn: usize,
        /// Tokens whose text is not complete yet.
        waiting: Vec<Token>,
    }
    impl State {
        fn chunk(&self, index: usize, text: &str, tokens: &[Token]) -> Value {
            json!({
                "index": index,
                "content": text,
                "tokens": tokens.iter().map(|token| token.id).collect::<Vec<_>>(),
                "stop": false,
                "id_slot": 0,
                "tokens_predicted": self.drawn,
                "tokens_evaluated": self.prompt_tokens,
            })
        }
    }
    async_stream::stream! {
        let mut events = SelectAll::new();
        let mut states = Vec::new();
        for Answer { index, prompt, generation } in answers {
            states.push(State { prompt, reports: common.reports.clone(), ..State::default() });
            events.push(generation.into_stream().map(move |event| (index, event)).boxed());
        }
        while let Some((index, event)) = events.next().await {
            let state = &mut states[index];
            match event {
                Err(error) => {
                    yield Err(error);
                    return;
                }
                Ok(Event::Prompt { done, tokens, cached, time, .. }) => {
                    state.prompt_tokens = tokens;
                    let progress = Progress { tokens, done, cached, time };
                    let empty = state.chunk(index, "", &[]);
                    for chunk in state.reports.take(progress, || empty.clone()) {
                        yield Ok(chunk);
                    }
                }
                Ok(Event::Token { token, .. }) => {
                    state.drawn += 1;
                    let text = token.text.clone();
                    state.waiting.push(token);
                    if text.is_empty() && wants.probabilities.is_none() {
                        continue;
                    }
                    state.text.push_str(&text);
                    let tokens = std::mem::take(&mut state.waiting);
                    let mut chunk = state.chunk(index, &text, &tokens);
                    if let Some(probabilities) = wants.probabilities(&common, &tokens) {
                        chunk["completion_probabilities"] = probabilities;
                    }
                    yield Ok(chunk);
                }
                Ok(Event::Finished { reason, text, stats, .. }) => {
                    state.text.push_str(&text);
                    let prompt = std::mem::take(&mut state.prompt);
                    let mut chunk = wants.last(&common, index, prompt, &state.text, &reason, &stats);
                    chunk["content"] = text.into();
                    yield Ok(wants.chosen(chunk));
                }
            }
        }
    }
}
