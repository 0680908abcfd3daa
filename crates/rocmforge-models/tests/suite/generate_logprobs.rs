//! Log-probabilities that a generator reports: the model's, and those from which the sampler draws.

use rocmforge_models::generate::Request;
use rocmforge_models::sampling::{Sampler, SamplerConfig};

use super::generate::{engine, expected, generator, greedy, ids};
use crate::reference::{best, log_probability};

#[test]
fn log_probabilities_and_first_logits() {
    let prompt = ids(11, 9);
    let mut generator = generator(128, 4);
    let completion = generator
        .run(Request {
            logprobs: 320,
            first_logits: 10,
            ..greedy(prompt.clone(), 4)
        })
        .expect("runs");
    let mut engine = engine(128, 64);
    let sequence = engine.add_sequence(&prompt).expect("room");
    let mut logits = engine.prefill(sequence, &prompt).expect("runs");
    assert_eq!(completion.first_logits.len(), 10);
    for (rank, &(id, logit)) in completion.first_logits.iter().enumerate() {
        assert!((logits[id as usize] - logit).abs() < 1e-4);
        let larger = logits.iter().filter(|&&other| other > logits[id as usize]).count();
        assert_eq!(larger, rank);
    }
    for token in &completion.tokens {
        assert_eq!(token.id, best(&logits));
        assert_eq!(token.top.len(), 320);
        assert_eq!(token.top[0].0, token.id);
        let sum: f64 = token.top.iter().map(|(_, logprob)| f64::from(*logprob).exp()).sum();
        assert!((sum - 1.0).abs() < 1e-4, "{sum}");
        for &(id, logprob) in &token.top {
            let expected = log_probability(&logits, id);
            assert!((f64::from(logprob) - expected).abs() < 1e-3, "{logprob} {expected}");
        }
        assert!((f64::from(token.logprob) - log_probability(&logits, token.id)).abs() < 1e-3);
        logits = engine.decode(sequence, token.id).expect("runs");
    }
}

/// The probabilities from which a sampler draws are another thing than the model's.
#[test]
fn log_probabilities_after_the_sampler() {
    let prompt = ids(12, 9);
    let sampler = SamplerConfig {
        top_k: 7,
        top_p: 1.0,
        min_p: 0.0,
        temperature: 0.7,
        logit_bias: vec![(expected(&prompt, &SamplerConfig::greedy(), 1)[0], f32::NEG_INFINITY)],
        ..SamplerConfig::default()
    };
    let request = Request {
        sampler: sampler.clone(),
        logprobs: 5,
        sampler_logprobs: true,
        ..greedy(prompt.clone(), 4)
    };
    let completion = generator(128, 4).run(request).expect("runs");
    let mut engine = engine(128, 64);
    let sequence = engine.add_sequence(&prompt).expect("room");
    let mut logits = engine.prefill(sequence, &prompt).expect("runs");
    let mut alone = Sampler::new(sampler, 0).expect("parameters");
    prompt.iter().for_each(|&id| alone.accept(id));
    for token in &completion.tokens {
        let expected = alone.distribution(&logits).expect("finite");
        assert_eq!((expected.len(), token.top.len()), (7, 5));
        for ((id, logprob), (other, probability)) in token.top.iter().zip(&expected) {
            assert_eq!(id, other);
            assert!((f64::from(*logprob) - probability.ln()).abs() < 1e-3);
        }
        let drawn = expected
            .iter()
            .find(|(id, _)| *id == token.id)
            .expect("it could be drawn");
        assert!((f64::from(token.logprob) - drawn.1.ln()).abs() < 1e-3);
        alone.accept(token.id);
        logits = engine.decode(sequence, token.id).expect("runs");
    }
    // One token is left of a greedy choice.
    let request = Request {
        logprobs: 5,
        sampler_logprobs: true,
        ..greedy(prompt, 1)
    };
    let completion = generator(128, 4).run(request).expect("runs");
    let token = &completion.tokens[0];
    assert_eq!((token.logprob, &token.top[..]), (0.0, &[(token.id, 0.0)][..]));
}
