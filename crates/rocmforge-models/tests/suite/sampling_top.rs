//! Draws from a row's first candidates against draws from the whole row.

use std::collections::BTreeMap;

use rocmforge_models::sampling::{
    Dry, Mirostat, RowReason, Sampler, SamplerConfig, SamplingError, Stage, TopLogits, Xtc, top_logprobs,
};
use rocmforge_testkit::data::{Rng, rng};

/// The first candidates of a row from their definition, and the logarithm of the sum in f64.
struct Top {
    ids: Vec<u32>,
    logits: Vec<f32>,
    log_sum_exp: f64,
    vocabulary: usize,
}

impl Top {
    /// `error` is added to the logarithm of the sum: a device's has one.
    fn of(row: &[f32], k: usize, error: f64) -> Self {
        let value = |id: u32| row[id as usize];
        let mut ids: Vec<u32> = (0..row.len() as u32).collect();
        let key = |id: u32| {
            if value(id).is_nan() {
                f32::NEG_INFINITY
            } else {
                value(id)
            }
        };
        ids.sort_by(|&a, &b| {
            key(b)
                .partial_cmp(&key(a))
                .unwrap()
                .then(value(a).is_nan().cmp(&value(b).is_nan()))
                .then(a.cmp(&b))
        });
        ids.truncate(k);
        let max = f64::from(value(ids[0]));
        let sum: f64 = row.iter().map(|&logit| (f64::from(logit) - max).exp()).sum();
        Self {
            logits: ids.iter().map(|&id| value(id)).collect(),
            ids,
            log_sum_exp: max + sum.ln() + error,
            vocabulary: row.len(),
        }
    }

    fn view(&self) -> TopLogits<'_> {
        TopLogits {
            ids: &self.ids,
            logits: &self.logits,
            log_sum_exp: self.log_sum_exp,
            vocabulary: self.vocabulary,
        }
    }
}

fn one_in(random: &mut Rng, n: usize) -> bool {
    random.below(n) == 0
}

/// Logits of one of several kinds: spread, peaked, of few values, banned in part; rarely not finite.
fn row(random: &mut Rng, length: usize) -> Vec<f32> {
    let kind = random.below(5);
    let mut row: Vec<f32> = (0..length)
        .map(|_| match kind {
            0 => random.uniform(-3.0, 3.0),
            1 => random.uniform(-30.0, 12.0),
            2 => random.below(5) as f32 - 2.0,
            3 if random.below(2) == 0 => f32::NEG_INFINITY,
            _ => [0.0, -0.0, 1e-40, 7.5][random.below(4)] + random.below(3) as f32,
        })
        .collect();
    if one_in(random, 40) {
        row[random.below(length)] = [f32::NAN, f32::INFINITY][random.below(2)];
    }
    if one_in(random, 60) {
        row.fill(f32::NEG_INFINITY);
    }
    row
}

fn config(random: &mut Rng, vocabulary: usize) -> SamplerConfig {
    let mut pick = |values: &[f32]| values[random.below(values.len())];
    let mut config = SamplerConfig {
        temperature: pick(&[0.0, 0.3, 0.8, 1.0, 1.0, 2.5]),
        top_p: pick(&[1.0, 1.0, 0.95, 0.5, 0.0]),
        min_p: pick(&[0.0, 0.0, 0.05, 0.4, 1.0]),
        typical_p: pick(&[1.0, 1.0, 1.0, 1.0, 0.8]),
        top_n_sigma: pick(&[0.0, 0.0, 0.0, 0.0, 1.5]),
        repeat_penalty: pick(&[1.0, 1.0, 1.1, 1.5, 0.7]),
        frequency_penalty: pick(&[0.0, 0.0, 0.3, -0.4]),
        presence_penalty: pick(&[0.0, 0.0, 0.5, -0.6]),
        ..SamplerConfig::neutral()
    };
    config.repeat_last_n = [0, 4, 64, usize::MAX][random.below(4)];
    config.top_k = [0, 1, 5, 40, 40, vocabulary, 2 * vocabulary][random.below(7)];
    config.seed = random.next_u64();
    if one_in(random, 4) {
        let count = 1 + random.below(6);
        config.logit_bias = (0..count)
            .map(|_| {
                let bias = [f32::NEG_INFINITY, -100.0, 3.0, -0.5, 0.0, 60.0][random.below(6)];
                (random.below(vocabulary) as u32, bias)
            })
            .collect();
    }
    if one_in(random, 5) {
        config.dry = Dry {
            multiplier: 0.8,
            ..Dry::default()
        };
    }
    if one_in(random, 6) {
        config.xtc = Xtc {
            probability: 0.5,
            threshold: 0.1,
        };
    }
    config.mirostat = one_in(random, 25).then(Mirostat::default);
    config
}

/// The stages in the order of llama.cpp, of vLLM, or in any other.
fn stages(random: &mut Rng) -> Vec<Stage> {
    let mut stages = match random.below(3) {
        0 => Stage::TEMPERATURE_FIRST,
        _ => Stage::LLAMA_CPP,
    }
    .to_vec();
    if one_in(random, 4) {
        for at in (1..stages.len()).rev() {
            stages.swap(at, random.below(at + 1));
        }
        stages.truncate(1 + random.below(10));
    }
    stages
}

/// Draws some tokens in a row from both; says how many came from candidates, and why others did not.
fn compare(seed: u64, counts: &mut BTreeMap<Option<RowReason>, usize>) {
    let mut random = rng(seed).quiet();
    let vocabulary = 1 + random.below(400);
    let k = (1 + random.below(128)).min(vocabulary);
    let config = config(&mut random, vocabulary);
    let stages = stages(&mut random);
    let case = format!("seed {seed}: {k} of {vocabulary}, {config:?}, {stages:?}");
    let mut full = Sampler::with_stages(config, random.next_u64(), &stages).unwrap();
    for _ in 0..random.below(30) {
        full.accept(random.below(vocabulary.min(20)) as u32);
    }
    for _ in 0..6 {
        let row = row(&mut random, vocabulary);
        let top = Top::of(&row, k, f64::from(random.uniform(-1e-5, 1e-5)));
        let mut first = full.clone();
        let (drawn, expected) = (first.sample_top(&top.view()), full.sample(&row));
        let why = match &drawn {
            Err(SamplingError::RowNeeded(why)) => Some(*why),
            _ => None,
        };
        *counts.entry(why).or_default() += 1;
        match (&drawn, &expected) {
            (Err(SamplingError::RowNeeded(_)), _) => {}
            (Ok(drawn), Ok(expected)) => {
                assert_eq!(drawn.id, expected.id, "{case}\n{row:?}");
                assert!(
                    (drawn.logprob - expected.logprob).abs() < 2e-5,
                    "{case}: {drawn:?} {expected:?}"
                );
            }
            _ => assert_eq!(drawn, expected, "{case}\n{row:?}"),
        }
        for n in [0, 1, k / 2, k, k + 1] {
            match top.view().logprobs(n) {
                Ok(found) => {
                    let expected = top_logprobs(&row, n);
                    assert_eq!(found.len(), expected.len(), "{case}");
                    for (found, expected) in found.iter().zip(&expected) {
                        assert_eq!(found.0, expected.0, "{case}");
                        let near = (found.1 - expected.1).abs() < 2e-5 || found.1 == expected.1;
                        assert!(near, "{case}: {found:?} {expected:?}");
                    }
                }
                Err(RowReason::Alternatives) => assert!(n > k && k < vocabulary, "{case}"),
                Err(why) => assert_eq!((why, expected.is_err()), (RowReason::NotFinite, true), "{case}"),
            }
        }
        full.accept(expected.map_or(0, |expected| expected.id));
    }
}

#[test]
fn draws_from_candidates_are_those_from_the_whole_row() {
    let first = std::env::var("ROCMFORGE_SEED").map_or(1, |seed| seed.parse().expect("a number"));
    let mut counts = BTreeMap::new();
    for seed in first..first + 5_000 {
        compare(seed, &mut counts);
    }
    println!("{counts:?}");
    let decided = counts.remove(&None).unwrap_or_default();
    let others: usize = counts.values().sum();
    assert!(2 * decided > others, "{decided} of {}", decided + others);
    for why in [RowReason::Draw, RowReason::Mirostat, RowReason::NotFinite]
        .into_iter()
        .chain(
            [
                Stage::TopK,
                Stage::TopP,
                Stage::MinP,
                Stage::Typical,
                Stage::TopNSigma,
                Stage::Xtc,
            ]
            .map(RowReason::Stage),
        )
    {
        assert!(counts.contains_key(&Some(why)), "{why}");
    }
}

/// Settings that many use need no row, whatever the logits are, as long as the candidates are more than what they keep and penalise.
#[test]
fn usual_settings_need_no_row() {
    let configs = [
        SamplerConfig::default(),
        SamplerConfig::greedy(),
        SamplerConfig {
            repeat_penalty: 1.1,
            frequency_penalty: 0.2,
            presence_penalty: 0.3,
            logit_bias: vec![(3, f32::NEG_INFINITY), (40, -5.0)],
            ..SamplerConfig::default()
        },
        SamplerConfig {
            dry: Dry {
                multiplier: 0.8,
                ..Dry::default()
            },
            ..SamplerConfig::default()
        },
    ];
    let mut random = rng(3);
    for config in configs {
        for stages in [Stage::LLAMA_CPP, Stage::TEMPERATURE_FIRST] {
            for seed in 0..50 {
                let row = random.vec_in(1000, -4.0, 4.0);
                let config = SamplerConfig { seed, ..config.clone() };
                let mut sampler = Sampler::with_stages(config, 0, &stages).unwrap();
                (0..64).for_each(|_| sampler.accept(random.below(1000) as u32));
                let expected = sampler.sample(&row).unwrap().id;
                assert_eq!(
                    sampler.sample_top(&Top::of(&row, 128, 0.0).view()).unwrap().id,
                    expected
                );
            }
        }
    }
}

/// A token beyond the candidates that a bias raises is not overlooked, and one that a penalty lowers out of them is not kept.
#[test]
fn tokens_that_cross_the_border_of_the_candidates() {
    let row: Vec<f32> = (0..100).map(|id| -(id as f32)).collect();
    let top = Top::of(&row, 10, 0.0);
    let draw = |config: SamplerConfig| {
        let mut sampler = Sampler::new(config, 0).unwrap();
        (0..5).for_each(|id| sampler.accept(id));
        (
            sampler.sample_top(&top.view()).map(|drawn| drawn.id),
            sampler.sample(&row).unwrap().id,
        )
    };
    let bias = |bias| SamplerConfig {
        logit_bias: vec![(50, bias)],
        ..SamplerConfig::greedy()
    };
    let needed = Err(SamplingError::RowNeeded(RowReason::Stage(Stage::Temperature)));
    assert_eq!(draw(bias(60.0)), (needed.clone(), 50));
    assert_eq!(draw(bias(5.0)), (Ok(0), 0));
    let lowered = |presence_penalty| SamplerConfig {
        presence_penalty,
        ..SamplerConfig::greedy()
    };
    assert_eq!(draw(lowered(20.0)), (Ok(5), 5));
    let all = SamplerConfig {
        logit_bias: (0..10).map(|id| (id, f32::NEG_INFINITY)).collect(),
        ..SamplerConfig::greedy()
    };
    assert_eq!(draw(all), (needed, 10));
}
