//! Each stage of the sampler against its definition, written plainly in f64.

use std::collections::HashMap;

use rocmforge_models::sampling::{Candidates, Dry, SamplingError, stages};
use rocmforge_testkit::data::{Rng, rng};

/// A token and its logit, as the definitions see them: sorted by falling logit, then by id.
type Item = (u32, f64);

fn ranked(logits: &[f32]) -> Vec<Item> {
    let mut items: Vec<Item> = (0..).zip(logits).map(|(id, &logit)| (id, f64::from(logit))).collect();
    rank(&mut items);
    items
}

fn rank(items: &mut [Item]) {
    items.sort_by(|a, b| b.1.partial_cmp(&a.1).unwrap().then(a.0.cmp(&b.0)));
}

fn softmax(items: &[Item]) -> Vec<f64> {
    let max = items.iter().map(|item| item.1).fold(f64::NEG_INFINITY, f64::max);
    let exp: Vec<f64> = items.iter().map(|item| (item.1 - max).exp()).collect();
    let sum: f64 = exp.iter().sum();
    exp.iter().map(|x| x / sum).collect()
}

/// Logits of many kinds: few and many, flat and steep, some with ties, some with banned tokens.
fn random_logits(rng: &mut Rng) -> Vec<f32> {
    let n = [1, 2, 3, 17, 100, 257, 1500][rng.below(7)];
    let width = [0.01, 1.0, 10.0, 60.0][rng.below(4)];
    let (ties, banned) = (rng.below(3) == 0, rng.below(3) == 0);
    let mut logits = rng.vec_in(n, -width, width);
    for logit in &mut logits {
        if ties {
            *logit = (*logit * 4.0 / width).round() * width / 4.0;
        }
        if banned && rng.below(4) == 0 {
            *logit = f32::NEG_INFINITY;
        }
    }
    logits[n / 2] = logits[n / 2].max(0.25 * width);
    logits
}

/// What a stage leaves, in rank order.
fn left(mut candidates: Candidates) -> Vec<Item> {
    let ranked = candidates.ranked(usize::MAX);
    ranked
        .iter()
        .map(|candidate| (candidate.id, f64::from(candidate.logit)))
        .collect()
}

/// Runs a stage and its definition on random logits. Every other time the list is sorted before, or shortened as another stage would.
#[track_caller]
fn compare(
    seed: u64,
    rounds: usize,
    mut stage: impl FnMut(&mut Candidates, &mut Rng) -> f32,
    definition: impl Fn(&[Item], f32) -> Vec<Item>,
) {
    let mut rng = rng(seed);
    let mut shortened = 0;
    for round in 0..rounds {
        let logits = random_logits(&mut rng);
        let mut candidates = Candidates::from_logits(&logits).unwrap();
        let mut items = ranked(&logits);
        match rng.below(4) {
            0 => drop(candidates.ranked(usize::MAX).len()),
            1 => drop(candidates.ranked(5).len()),
            2 => {
                let k = 1 + rng.below(items.len());
                stages::top_k(&mut candidates, k);
                items.truncate(k);
            }
            _ => {}
        }
        let parameter = stage(&mut candidates, &mut rng);
        let mut expected = definition(&items, parameter);
        rank(&mut expected);
        shortened += usize::from(expected.len() < items.len());
        let got = left(candidates);
        let ids = |items: &[Item]| items.iter().map(|item| item.0).collect::<Vec<_>>();
        assert_eq!(ids(&got), ids(&expected), "round {round}, parameter {parameter}");
        for (got, expected) in got.iter().zip(&expected) {
            let close = got.1 == expected.1 || (got.1 - expected.1).abs() <= 1e-6 * expected.1.abs().max(1e-3);
            assert!(close, "round {round}, parameter {parameter}: {got:?} for {expected:?}");
        }
        assert!(!got.is_empty());
    }
    assert!(
        shortened > rounds / 8,
        "only {shortened} of {rounds} lists became shorter"
    );
}

#[test]
fn top_k_keeps_the_largest() {
    compare(
        1,
        400,
        |candidates, rng| {
            let k = [0, 1, 2, 5, 40, 100, 2000][rng.below(7)];
            stages::top_k(candidates, k);
            k as f32
        },
        |items, k| {
            items[..if k == 0.0 {
                items.len()
            } else {
                items.len().min(k as usize)
            }]
                .to_vec()
        },
    );
}

fn fraction(rng: &mut Rng) -> f32 {
    [0.0, 0.01, 0.5, 0.9, 0.95, 0.999_9, 1.0, rng.uniform(0.0, 1.0)][rng.below(8)]
}

#[test]
fn top_p_keeps_the_shortest_prefix_that_reaches_p() {
    compare(
        2,
        400,
        |candidates, rng| {
            let p = fraction(rng);
            stages::top_p(candidates, p);
            p
        },
        |items, p| {
            let mut sum = 0.0;
            let reached = softmax(items).iter().position(|x| {
                sum += x;
                sum >= f64::from(p)
            });
            let kept = if p == 1.0 { items.len() } else { reached.unwrap() + 1 };
            items[..kept].to_vec()
        },
    );
}

#[test]
fn min_p_compares_with_the_largest_probability() {
    compare(
        3,
        400,
        |candidates, rng| {
            // At 1 exactly, rounding of the definition would decide.
            let p = fraction(rng).min(0.999_9);
            stages::min_p(candidates, p);
            p
        },
        |items, p| {
            let probabilities = softmax(items);
            let kept = |&(_, x): &(&Item, f64)| x >= f64::from(p) * probabilities[0];
            items
                .iter()
                .zip(probabilities.iter().copied())
                .filter(kept)
                .map(|(item, _)| *item)
                .collect()
        },
    );
    let mut candidates = Candidates::from_logits(&[1.0, 3.0, 3.0, 2.999_999]).unwrap();
    stages::min_p(&mut candidates, 1.0);
    assert_eq!(left(candidates), [(1, 3.0), (2, 3.0)]);
}

#[test]
fn typical_keeps_what_is_closest_to_the_entropy() {
    compare(
        4,
        400,
        |candidates, rng| {
            let p = fraction(rng);
            stages::typical(candidates, p);
            p
        },
        |items, p| {
            let probabilities = softmax(items);
            let entropy: f64 = probabilities
                .iter()
                .map(|&x| if x > 0.0 { -x * x.ln() } else { 0.0 })
                .sum();
            let mut order: Vec<usize> = (0..items.len()).collect();
            // Stable: equal distances stay in rank order. Rounded, because equal logits must have equal distances here too.
            let distance = |i: usize| (-probabilities[i].ln() - entropy).abs();
            order.sort_by(|&a, &b| distance(a).partial_cmp(&distance(b)).unwrap());
            let (mut sum, mut kept) = (0.0, Vec::new());
            for i in order {
                kept.push(items[i]);
                sum += probabilities[i];
                if p < 1.0 && sum > f64::from(p) {
                    break;
                }
            }
            kept
        },
    );
}

#[test]
fn top_n_sigma_counts_in_standard_deviations() {
    compare(
        5,
        400,
        |candidates, rng| {
            let n = [-1.0, 0.0, 0.5, 1.0, 2.0][rng.below(5)];
            stages::top_n_sigma(candidates, n);
            n
        },
        |items, n| {
            let finite: Vec<f64> = items.iter().map(|item| item.1).filter(|x| x.is_finite()).collect();
            let mean = finite.iter().sum::<f64>() / finite.len() as f64;
            let deviation = (finite.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / finite.len() as f64).sqrt();
            let kept = |item: &&Item| n <= 0.0 || item.1 >= items[0].1 - f64::from(n) * deviation;
            items.iter().filter(kept).copied().collect()
        },
    );
}

#[test]
fn xtc_keeps_the_least_likely_of_the_top_choices() {
    let definition = |items: &[Item], threshold: f32| {
        let probabilities = softmax(items);
        let choices = probabilities.iter().filter(|&&x| x >= f64::from(threshold)).count();
        items[choices.saturating_sub(1)..].to_vec()
    };
    let stage = |candidates: &mut Candidates, rng: &mut Rng| {
        let threshold = [0.0, 0.001, 0.01, 0.1, 0.3][rng.below(5)];
        stages::xtc(candidates, 0.5, threshold, 0.499);
        threshold
    };
    compare(6, 400, stage, definition);
    let mut candidates = Candidates::from_logits(&[1.0, 1.0, 1.0]).unwrap();
    for (probability, uniform) in [(0.5, 0.5), (0.5, 0.9), (0.0, 0.0)] {
        stages::xtc(&mut candidates, probability, 0.1, uniform);
        assert_eq!(candidates.len(), 3);
    }
    stages::xtc(&mut candidates, 1.0, 0.1, 0.999);
    assert_eq!(left(candidates), [(2, 1.0)]);
}

#[test]
fn mirostat_drops_what_surprises_too_much() {
    compare(
        7,
        400,
        |candidates, rng| {
            let mu = [-1.0, 0.0, 0.5, 3.0, 5.0, 10.0, 1000.0][rng.below(7)];
            stages::mirostat(candidates, f64::from(mu));
            mu
        },
        |items, mu| {
            let probabilities = softmax(items);
            let kept = |&(i, x): &(usize, f64)| i == 0 || -x.log2() <= f64::from(mu);
            probabilities
                .into_iter()
                .enumerate()
                .filter(kept)
                .map(|(i, _)| items[i])
                .collect()
        },
    );
}

#[test]
fn temperature_divides_and_zero_takes_the_first() {
    compare(
        8,
        400,
        |candidates, rng| {
            let t = [-1.0, 0.0, 0.1, 0.8, 1.0, 2.5][rng.below(6)];
            stages::temperature(candidates, t);
            t
        },
        |items, t| match t {
            t if t <= 0.0 => items[..1].to_vec(),
            1.0 => items.to_vec(),
            t => items
                .iter()
                .map(|item| (item.0, (item.1 - items[0].1) / f64::from(t)))
                .collect(),
        },
    );
}

#[test]
fn penalties_follow_the_formula() {
    let mut rng = rng(9);
    for round in 0..300 {
        let logits = random_logits(&mut rng);
        let counts: HashMap<u32, u32> = (0..rng.below(20))
            .map(|_| (rng.below(logits.len() + 3) as u32, 1 + rng.below(4) as u32))
            .collect();
        let (repeat, frequency, presence) = [
            (1.0, 0.0, 0.0),
            (1.3, 0.0, 0.0),
            (0.5, 0.0, 0.0),
            (1.0, 0.7, 0.0),
            (1.0, 0.0, -0.4),
            (1.1, -0.2, 0.9),
        ][rng.below(6)];
        let mut expected: Vec<Item> = ranked(&logits);
        for item in &mut expected {
            if let Some(&count) = counts.get(&item.0) {
                let l = if item.1 > 0.0 {
                    item.1 / f64::from(repeat)
                } else {
                    item.1 * f64::from(repeat)
                };
                item.1 = l - f64::from(count) * f64::from(frequency) - f64::from(presence);
            }
        }
        let mut candidates = Candidates::from_logits(&logits).unwrap();
        // The list with its ids in order, and one in another order, take different ways.
        if rng.below(2) == 0 {
            candidates.ranked(usize::MAX);
        }
        stages::penalties(&mut candidates, &counts, repeat, frequency, presence);
        let mut got = left(candidates);
        got.sort_by_key(|item| item.0);
        expected.sort_by_key(|item| item.0);
        assert_eq!(got.len(), expected.len());
        for (got, expected) in got.iter().zip(&expected) {
            let close = got.1 == expected.1 || (got.1 - expected.1).abs() <= 1e-6 * expected.1.abs().max(1.0);
            assert!(got.0 == expected.0 && close, "round {round}: {got:?} for {expected:?}");
        }
    }
}

#[test]
fn extreme_changes_leave_logits_usable() {
    let logits = [f32::MAX, 1.0, f32::MIN, f32::NEG_INFINITY, -0.0, 0.0];
    let everything: HashMap<u32, u32> = (0..9).map(|id| (id, u32::MAX)).collect();
    for (repeat, frequency, presence) in [
        (1e-30, 0.0, 0.0),
        (1e30, 0.0, 0.0),
        (1.0, f32::MAX, 0.0),
        (1.0, 0.0, f32::MIN),
    ] {
        let mut candidates = Candidates::from_logits(&logits).unwrap();
        stages::penalties(&mut candidates, &everything, repeat, frequency, presence);
        stages::temperature(&mut candidates, 1e-30);
        for candidate in candidates.as_slice() {
            assert_eq!(candidate.logit.is_finite(), candidate.id != 3, "{candidate:?}");
        }
    }
    // Zeros of both signs are equal: the lower id ranks higher.
    let mut candidates = Candidates::from_logits(&logits[3..]).unwrap();
    assert_eq!(candidates.ranked(1)[0].id, 1);
}

#[test]
fn logit_bias_is_added_and_bans() {
    let mut candidates = Candidates::from_logits(&[1.0, 2.0, 3.0, f32::NEG_INFINITY]).unwrap();
    stages::logit_bias(
        &mut candidates,
        &[(1, 2.5), (2, f32::NEG_INFINITY), (3, 9.0), (1, -0.25), (77, 1.0)],
    );
    let banned = f64::NEG_INFINITY;
    assert_eq!(left(candidates), [(1, 4.25), (0, 1.0), (2, banned), (3, banned)]);
}

/// The longest repeat that each token would extend, position by position.
fn repeats(tokens: &[u32], breakers: &[u32]) -> HashMap<u32, usize> {
    let mut longest = HashMap::new();
    for at in 1..tokens.len() {
        let length = (1..=at)
            .take_while(|n| {
                let (earlier, last) = (tokens[at - n], tokens[tokens.len() - n]);
                earlier == last && !breakers.contains(&last)
            })
            .count();
        if length > 0 && !breakers.contains(&tokens[at]) {
            let entry = longest.entry(tokens[at]).or_insert(0);
            *entry = length.max(*entry);
        }
    }
    longest
}

#[test]
fn dry_penalises_what_extends_a_repeat() {
    let mut rng = rng(10);
    let mut penalised = 0;
    for round in 0..600 {
        let kinds = 1 + rng.below(5);
        let tokens: Vec<u32> = (0..rng.below(40)).map(|_| rng.below(kinds) as u32).collect();
        let dry = Dry {
            multiplier: 0.8,
            base: 1.75,
            allowed_length: rng.below(4),
            last_n: [usize::MAX, 10, 0][rng.below(3)],
            breakers: (0..rng.below(2)).map(|_| rng.below(5) as u32).collect(),
        };
        let logits = rng.vec(6);
        let mut candidates = Candidates::from_logits(&logits).unwrap();
        stages::dry(&mut candidates, &tokens, &dry);
        let window = &tokens[tokens.len().saturating_sub(dry.last_n)..];
        let longest = repeats(window, &dry.breakers);
        for candidate in candidates.as_slice() {
            let penalty = match longest.get(&candidate.id) {
                Some(&n) if n >= dry.allowed_length => 0.8_f32 as f64 * 1.75_f64.powi((n - dry.allowed_length) as i32),
                _ => 0.0,
            };
            penalised += usize::from(penalty > 0.0);
            let expected = f64::from(logits[candidate.id as usize]) - penalty;
            let close = (f64::from(candidate.logit) - expected).abs() <= 1e-6 * expected.abs().max(1.0);
            assert!(close, "round {round}: {candidate:?} for {expected}; {tokens:?} {dry:?}");
        }
    }
    assert!(penalised > 300, "{penalised}");
}

#[test]
fn a_repeat_of_any_length_leaves_a_finite_logit() {
    let mut candidates = Candidates::from_logits(&[1.0, 2.0]).unwrap();
    let dry = Dry {
        multiplier: 1.0,
        ..Dry::default()
    };
    stages::dry(&mut candidates, &[0; 5000], &dry);
    assert_eq!(left(candidates), [(1, 2.0), (0, f64::from(f32::MIN))]);
}

#[test]
fn permuted_ids_keep_the_same_set() {
    let mut rng = rng(11);
    type Named = (&'static str, fn(&mut Candidates));
    let stages: [Named; 7] = [
        ("top-k", |c| stages::top_k(c, 40)),
        ("top-p", |c| stages::top_p(c, 0.9)),
        ("min-p", |c| stages::min_p(c, 0.05)),
        ("typical", |c| stages::typical(c, 0.8)),
        ("top-n-sigma", |c| stages::top_n_sigma(c, 1.0)),
        ("xtc", |c| stages::xtc(c, 1.0, 0.01, 0.0)),
        ("mirostat", |c| stages::mirostat(c, 5.0)),
    ];
    for _ in 0..30 {
        let n = 700 + rng.below(700);
        let logits = rng.vec_in(n, -8.0, 8.0);
        let mut to: Vec<usize> = (0..n).collect();
        for i in (1..n).rev() {
            to.swap(i, rng.below(i + 1));
        }
        let mut permuted = vec![0.0; n];
        for (from, &to) in to.iter().enumerate() {
            permuted[to] = logits[from];
        }
        for (name, stage) in stages {
            let kept = |logits: &[f32]| {
                let mut candidates = Candidates::from_logits(logits).unwrap();
                stage(&mut candidates);
                let mut logits: Vec<f32> = candidates.as_slice().iter().map(|candidate| candidate.logit).collect();
                logits.sort_by(f32::total_cmp);
                logits
            };
            assert_eq!(kept(&logits), kept(&permuted), "{name}");
        }
    }
}

#[test]
fn ties_go_to_the_lowest_ids() {
    let mut candidates = Candidates::from_logits(&[2.0; 1000]).unwrap();
    stages::top_k(&mut candidates, 7);
    let ids: Vec<u32> = left(candidates).iter().map(|item| item.0).collect();
    assert_eq!(ids, [0, 1, 2, 3, 4, 5, 6]);
    let mut candidates = Candidates::from_logits(&[2.0; 1000]).unwrap();
    stages::top_p(&mut candidates, 0.0025);
    let ids: Vec<u32> = left(candidates).iter().map(|item| item.0).collect();
    assert_eq!(ids, [0, 1, 2]);
}

#[test]
fn broken_logits_are_no_candidates() {
    let error = |logits: &[f32]| Candidates::from_logits(logits).unwrap_err();
    assert_eq!(error(&[]), SamplingError::Vocabulary(0));
    assert_eq!(error(&[f32::NEG_INFINITY; 33]), SamplingError::NothingLeft(33));
    for n in [1, 16, 40] {
        for position in 0..n {
            let mut logits = vec![f32::NEG_INFINITY; n];
            logits[position..].fill(f32::NAN);
            match error(&logits) {
                SamplingError::Logit { position: p, value } => assert!(p == position && value.is_nan()),
                other => panic!("{other}"),
            }
            logits[position] = f32::INFINITY;
            let value = f32::INFINITY;
            assert_eq!(error(&logits), SamplingError::Logit { position, value });
        }
    }
}

#[test]
fn no_candidates_stay_no_candidates() {
    let mut none = Candidates::default();
    stages::top_k(&mut none, 1);
    stages::top_p(&mut none, 0.5);
    stages::min_p(&mut none, 0.5);
    stages::typical(&mut none, 0.5);
    stages::top_n_sigma(&mut none, 1.0);
    stages::xtc(&mut none, 1.0, 0.1, 0.0);
    stages::mirostat(&mut none, 1.0);
    stages::temperature(&mut none, 0.5);
    stages::temperature(&mut none, 0.0);
    stages::logit_bias(&mut none, &[(0, 1.0)]);
    stages::dry(
        &mut none,
        &[1, 1, 1],
        &Dry {
            multiplier: 1.0,
            ..Dry::default()
        },
    );
    assert!(none.is_empty() && none.max() == f32::NEG_INFINITY);
}
