//! Log-likelihoods of continuations on the CPU, as lm-eval defines them: `loglikelihood MODEL < PAIRS`.
//!
//! Each line of the input is `{"context": TEXT, "continuation": TEXT}`, and each of the output `{"loglikelihood": NUMBER, "is_greedy": BOOL}`.
//! `tools/lm-eval` compares them with what lm-eval gets of a server.
#![allow(clippy::print_stdout)] // it is a program for people

use std::io::BufRead;

use rocmforge_ggml::CpuBackend;
use rocmforge_models::generate::{Generator, Prompt, Request};
use rocmforge_models::tokenizer::{AddBos, Encode, SpecialTokens};
use rocmforge_models::{Engine, EngineOptions, Model};
use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: loglikelihood MODEL < PAIRS")?;
    let model = Model::open(path)?;
    let engine = Engine::new(CpuBackend::new(), &model, EngineOptions::default())?;
    let mut generator = Generator::new(engine, model.tokenizer()?);
    let encode = Encode {
        add_bos: AddBos::No,
        special: SpecialTokens::Parse,
    };
    for line in std::io::stdin().lock().lines() {
        let pair: Value = serde_json::from_str(&line?)?;
        let text = |name: &str| pair[name].as_str().ok_or(format!("a pair has no text {name}"));
        let (context, continuation) = (text("context")?, text("continuation")?);
        let tokenizer = generator.tokenizer();
        let begin = tokenizer.encode(context, encode)?.len();
        let ids = tokenizer.encode(&format!("{context}{continuation}"), encode)?;
        if begin == 0 {
            return Err("a context must have a token".into());
        }
        let request = Request {
            max_tokens: 0,
            prompt_logprobs: Some(1),
            ..Request::new(Prompt::Ids(ids))
        };
        // The first token of a prompt has no score.
        let scores = generator.run(request)?.scores.split_off(begin - 1);
        let loglikelihood: f64 = scores.iter().map(|score| f64::from(score.logprob)).sum();
        let is_greedy = scores
            .iter()
            .all(|score| score.top.first().is_some_and(|(_, most)| score.logprob == *most));
        println!("{}", json!({"loglikelihood": loglikelihood, "is_greedy": is_greedy}));
    }
    Ok(())
}
