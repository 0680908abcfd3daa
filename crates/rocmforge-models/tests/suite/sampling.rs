//! The sampler as a whole: random numbers, draws, order of the stages, log-probabilities, errors.

use rocmforge_models::sampling::{
    Dry, Mirostat, Sampled, Sampler, SamplerConfig, SamplingError, Stage, Xtc, philox4x32, top_logprobs,
};
use rocmforge_testkit::data::{Rng, rng};

fn sampler(config: SamplerConfig) -> Sampler {
    Sampler::new(config, 0).unwrap()
}

/// The known answers that the authors of Philox publish with Random123.
#[test]
fn philox_gives_the_published_numbers() {
    let cases = [
        ([0; 4], [0; 2], [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]),
        (
            [u32::MAX; 4],
            [u32::MAX; 2],
            [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd],
        ),
        (
            [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
            [0xa409_3822, 0x299f_31d0],
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1],
        ),
    ];
    for (counter, key, expected) in cases {
        assert_eq!(philox4x32(counter, key), expected);
    }
}

/// The uniform numbers as the documentation defines them: (draw, XTC).
fn uniforms(seed: u64, sequence: u64, position: u64) -> (f64, f64) {
    let words = |x: u64| [x as u32, (x >> 32) as u32];
    let ([p0, p1], [s0, s1]) = (words(position), words(sequence));
    let [a, b, c, d] = philox4x32([p0, p1, s0, s1], words(seed));
    let unit = |low: u32, high: u32| ((u64::from(high) << 32 | u64::from(low)) >> 11) as f64 * 2_f64.powi(-53);
    (unit(a, b), unit(c, d))
}

fn rank(items: &mut [(u32, f64)]) {
    items.sort_by(|a, b| b.1.partial_cmp(&a.1).unwrap().then(a.0.cmp(&b.0)));
}

/// Probabilities of llama.cpp's chain, from its definition: (token, probability), the most likely first.
fn reference(logits: &[f32], config: &SamplerConfig) -> Vec<(u32, f64)> {
    let softmax = |items: &[(u32, f64)]| {
        let sum: f64 = items.iter().map(|item| (item.1 - items[0].1).exp()).sum();
        items
            .iter()
            .map(|item| (item.1 - items[0].1).exp() / sum)
            .collect::<Vec<f64>>()
    };
    let mut items: Vec<(u32, f64)> = (0..).zip(logits).map(|(id, &logit)| (id, f64::from(logit))).collect();
    rank(&mut items);
    if config.top_k > 0 {
        items.truncate(config.top_k);
    }
    if config.top_p < 1.0 {
        let mut sum = 0.0;
        let reached = softmax(&items).iter().position(|p| {
            sum += p;
            sum >= f64::from(config.top_p)
        });
        items.truncate(reached.unwrap() + 1);
    }
    let probabilities = softmax(&items);
    let kept = probabilities
        .iter()
        .filter(|&&p| p >= f64::from(config.min_p) * probabilities[0])
        .count();
    items.truncate(kept);
    // Candidates hold f32, in which two logits may become equal.
    let max = items[0].1;
    for item in &mut items {
        item.1 = f64::from(((item.1 - max) / f64::from(config.temperature)) as f32);
    }
    rank(&mut items);
    let probabilities = softmax(&items);
    items.iter().zip(probabilities).map(|(item, p)| (item.0, p)).collect()
}

#[test]
fn a_draw_is_the_inverse_of_the_distribution_function() {
    let mut rng = rng(21);
    for (round, n) in [1, 2, 30, 333, 5000].into_iter().cycle().take(120).enumerate() {
        let config = SamplerConfig {
            top_k: [0, 40][round % 2],
            top_p: [1.0, 0.95][round / 2 % 2],
            min_p: [0.0, 0.05][round / 4 % 2],
            temperature: [0.8, 1.0, 1.7][round % 3],
            seed: rng.next_u64(),
            ..SamplerConfig::default()
        };
        let sequence = rng.next_u64();
        let mut sampler = Sampler::new(config.clone(), sequence).unwrap();
        for position in 0..4 {
            let logits = rng.vec_in(n, -4.0, 4.0);
            let expected = reference(&logits, &config);
            let distribution = sampler.distribution(&logits).unwrap();
            assert_eq!(distribution.len(), expected.len());
            for (got, expected) in distribution.iter().zip(&expected) {
                assert!(
                    got.0 == expected.0 && (got.1 - expected.1).abs() < 1e-6,
                    "{got:?} for {expected:?}"
                );
            }
            let (uniform, _) = uniforms(config.seed, sequence, position);
            // Within rounding of a border between two tokens, both will do.
            let at = |shift: f64| {
                let mut sum = 0.0;
                let reached = expected.iter().find(|(_, p)| {
                    sum += p;
                    sum > uniform + shift
                });
                reached.or(expected.last()).unwrap().0
            };
            let drawn = sampler.sample(&logits).unwrap().id;
            assert!(
                [at(0.0), at(1e-12), at(-1e-12)].contains(&drawn),
                "round {round}: {drawn} for {}",
                at(0.0)
            );
            sampler.accept(drawn);
        }
    }
}

/// Chi-square of draws against probabilities, over cells of at least 5 expected draws.
fn chi_square(counts: &[usize], probabilities: &[f64], draws: usize) -> (f64, usize) {
    let (mut sum, mut cells, mut rest) = (0.0, 0_usize, (0.0, 0.0));
    for (&count, p) in counts.iter().zip(probabilities) {
        let (count, expected) = (count as f64, p * draws as f64);
        if expected < 5.0 {
            rest = (rest.0 + count, rest.1 + expected);
        } else {
            sum += (count - expected).powi(2) / expected;
            cells += 1;
        }
    }
    if rest.1 >= 5.0 {
        sum += (rest.0 - rest.1).powi(2) / rest.1;
        cells += 1;
    }
    (sum, cells - 1)
}

#[test]
fn frequencies_match_probabilities() {
    let mut rng = rng(22);
    let logits = rng.vec_in(30, -3.0, 3.0);
    let neutral = SamplerConfig {
        seed: rng.next_u64(),
        ..SamplerConfig::neutral()
    };
    let default = SamplerConfig {
        seed: rng.next_u64(),
        temperature: 1.5,
        ..SamplerConfig::default()
    };
    for (config, draws) in [(neutral, 20_000), (default, 100_000)] {
        let expected = reference(&logits, &config);
        let mut sampler = sampler(config);
        let mut counts = [0; 30];
        for _ in 0..draws {
            let id = sampler.sample(&logits).unwrap().id;
            counts[id as usize] += 1;
            sampler.accept(id);
        }
        let (ids, probabilities): (Vec<u32>, Vec<f64>) = expected.into_iter().unzip();
        let drawn: Vec<usize> = ids.iter().map(|&id| counts[id as usize]).collect();
        assert_eq!(
            drawn.iter().sum::<usize>(),
            draws,
            "a token was drawn that is not in the distribution"
        );
        let (sum, degrees) = chi_square(&drawn, &probabilities, draws);
        // Mean `degrees`, standard deviation sqrt(2 degrees): five of them.
        let bound = degrees as f64 + 5.0 * (2.0 * degrees as f64).sqrt();
        assert!(
            degrees > 8 && sum < bound,
            "chi-square {sum} of {degrees} degrees, bound {bound}"
        );
    }
}

#[test]
fn xtc_acts_with_its_chance() {
    let config = SamplerConfig {
        xtc: Xtc {
            probability: 0.3,
            threshold: 0.1,
        },
        seed: 5,
        ..SamplerConfig::neutral()
    };
    let mut sampler = sampler(config);
    let logits = [3.0, 2.5, 2.0, 0.0];
    let mut acted = 0;
    for position in 0..10_000 {
        let first = sampler.distribution(&logits).unwrap()[0].0;
        assert_eq!(
            first,
            if uniforms(5, 0, position).1 < f64::from(0.3_f32) {
                2
            } else {
                0
            }
        );
        acted += usize::from(first == 2);
        sampler.accept(0);
    }
    // 3,000 expected, standard deviation 46.
    assert!((2770..3230).contains(&acted), "{acted}");
}

fn generate(sampler: &mut Sampler, logits: &mut Rng, tokens: usize) -> Vec<Sampled> {
    let step = |_| {
        let sampled = sampler.sample(&logits.vec_in(100, -2.0, 2.0)).unwrap();
        sampler.accept(sampled.id);
        sampled
    };
    (0..tokens).map(step).collect()
}

#[test]
fn draws_depend_on_seed_sequence_and_position_only() {
    let config = |seed| SamplerConfig {
        seed,
        frequency_penalty: 0.3,
        ..SamplerConfig::default()
    };
    let run = |seed, sequence| {
        let mut sampler = Sampler::new(config(seed), sequence).unwrap();
        sampler.accept(3);
        generate(&mut sampler, &mut rng(23), 64)
    };
    let alone = run(9, 4);
    assert_eq!(alone, run(9, 4));
    let others = [run(10, 4), run(9 + (1 << 40), 4), run(9, 5), run(9, 4 + (1 << 40))];
    for (i, other) in others.iter().enumerate() {
        assert!(alone != *other && !others[..i].contains(other), "{i}");
    }

    // Together with another sequence, and with every draw made three times and looked at.
    let mut batch = [Sampler::new(config(9), 4).unwrap(), Sampler::new(config(9), 5).unwrap()];
    let mut data = [rng(23), rng(23)];
    for sampler in &mut batch {
        sampler.accept(3);
    }
    for expected in alone.iter().zip(&others[2]).map(<[_; 2]>::from) {
        for ((sampler, data), expected) in batch.iter_mut().zip(&mut data).zip(expected) {
            let logits = data.vec_in(100, -2.0, 2.0);
            for _ in 0..3 {
                sampler.distribution(&logits).unwrap();
                assert_eq!(sampler.sample(&logits).unwrap(), *expected);
            }
            sampler.accept(expected.id);
        }
    }
    assert_eq!(batch[0].tokens().len(), 65);
}

#[test]
fn small_temperatures_are_greedy() {
    let mut rng = rng(24);
    for n in [1, 2, 50, 3000] {
        let logits = rng.vec_in(n, -10.0, 10.0);
        let best = (0..n).max_by(|&a, &b| logits[a].total_cmp(&logits[b])).unwrap() as u32;
        for temperature in [1e-5, 1e-20, f32::MIN_POSITIVE, 0.0, -1.0] {
            for config in [SamplerConfig::default(), SamplerConfig::neutral()] {
                let mut sampler = sampler(SamplerConfig { temperature, ..config });
                for _ in 0..5 {
                    assert_eq!(sampler.sample(&logits).unwrap().id, best, "temperature {temperature}");
                    sampler.accept(best);
                }
            }
        }
    }
    let mut greedy = sampler(SamplerConfig::greedy());
    assert_eq!(greedy.sample(&[1.0, 7.0, 7.0, 7.0]).unwrap().id, 1);
    assert_eq!(greedy.sample(&[-0.0, 0.0]).unwrap().id, 0);
    assert_eq!(greedy.sample(&[f32::NEG_INFINITY, -5.0]).unwrap().id, 1);
}

#[test]
fn a_banned_token_is_never_drawn() {
    let mut rng = rng(25);
    let mut logits = rng.vec(50);
    for id in (0..50).step_by(2) {
        logits[id] = f32::NEG_INFINITY;
    }
    let biases = (1..50).step_by(4).map(|id| (id, f32::NEG_INFINITY)).collect();
    let mut sampler = sampler(SamplerConfig {
        logit_bias: biases,
        ..SamplerConfig::neutral()
    });
    for _ in 0..2000 {
        let Sampled { id, logprob } = sampler.sample(&logits).unwrap();
        assert!(id % 4 == 3 && logprob.is_finite(), "{id}");
        sampler.accept(id);
    }
}

#[test]
fn the_order_of_the_stages_matters() {
    let logits: Vec<f32> = (0..20).map(|i| -0.5 * i as f32).collect();
    let config = SamplerConfig {
        temperature: 3.0,
        top_p: 0.8,
        top_k: 0,
        min_p: 0.0,
        ..SamplerConfig::default()
    };
    let count = |stages: &[Stage]| {
        let mut sampler = Sampler::with_stages(config.clone(), 0, stages).unwrap();
        sampler.distribution(&logits).unwrap().len()
    };
    // exp(-n / 2) <= 0.2 at n = 4; exp(-n / 6) <= about 0.2 at n = 9.
    assert_eq!((count(&Stage::LLAMA_CPP), count(&Stage::TEMPERATURE_FIRST)), (4, 9));
    assert_eq!((count(&[Stage::Temperature]), count(&[])), (20, 20));
    let mut none = Sampler::with_stages(config.clone(), 0, &[]).unwrap();
    let first = none.distribution(&logits).unwrap()[0].1;
    assert!((first - (1.0 - (-0.5_f64).exp())).abs() < 1e-4, "{first}");
    let twice = Sampler::with_stages(config, 0, &[Stage::TopK, Stage::MinP, Stage::TopK]);
    assert_eq!(twice.unwrap_err(), SamplingError::StageTwice(Stage::TopK));
    for stages in [Stage::LLAMA_CPP, Stage::TEMPERATURE_FIRST] {
        assert!(Sampler::with_stages(SamplerConfig::default(), 0, &stages).is_ok());
    }
}

#[test]
fn penalties_look_at_the_last_tokens_of_prompt_and_answer() {
    let config = SamplerConfig {
        repeat_penalty: 2.0,
        frequency_penalty: 0.25,
        presence_penalty: 0.5,
        repeat_last_n: 3,
        ..SamplerConfig::neutral()
    };
    let logits = [1.0, -1.0, 2.0, 0.0];
    let check = |sampler: &mut Sampler, expected: [f64; 4]| {
        let sum: f64 = expected.iter().map(|l| l.exp()).sum();
        for (id, p) in sampler.distribution(&logits).unwrap() {
            assert!((p - expected[id as usize].exp() / sum).abs() < 1e-6, "token {id}: {p}");
        }
    };
    let mut limited = sampler(config.clone());
    let mut whole = sampler(SamplerConfig {
        repeat_last_n: usize::MAX,
        ..config.clone()
    });
    let mut off = sampler(SamplerConfig {
        repeat_last_n: 0,
        ..config
    });
    for token in [0, 2, 1, 1, 700] {
        for sampler in [&mut limited, &mut whole, &mut off] {
            sampler.accept(token);
        }
    }
    check(&mut limited, [1.0, -2.0 - 2.0 * 0.25 - 0.5, 2.0, 0.0]);
    check(&mut whole, [0.5 - 0.75, -2.0 - 2.0 * 0.25 - 0.5, 1.0 - 0.75, 0.0]);
    check(&mut off, [1.0, -1.0, 2.0, 0.0]);
}

#[test]
fn dry_looks_at_the_whole_history() {
    let dry = Dry {
        multiplier: 1.0,
        base: 2.0,
        breakers: vec![9],
        ..Dry::default()
    };
    let mut sampler = sampler(SamplerConfig {
        dry,
        ..SamplerConfig::neutral()
    });
    // 1 2 3 has been followed by 4, the 9 cuts off what was before.
    for token in [8, 9, 1, 2, 3, 4, 9, 1, 2, 3] {
        sampler.accept(token);
    }
    let distribution = sampler.distribution(&[0.0; 10]).unwrap();
    assert_eq!(distribution.last().unwrap().0, 4);
    let ratio = distribution[0].1 / distribution.last().unwrap().1;
    assert!(
        (ratio - 2.0_f64.exp()).abs() < 1e-4,
        "3 tokens: 1.0 * 2^(3 - 2), so e^2; got {ratio}"
    );
}

#[test]
fn mirostat_follows_its_bound() {
    let mut rng = rng(26);
    let mirostat = Mirostat { tau: 2.0, eta: 0.3 };
    // The stages that shorten the list are off: top-k 1 would leave nothing to draw.
    let config = SamplerConfig {
        mirostat: Some(mirostat),
        top_k: 1,
        temperature: 1.0,
        seed: 3,
        ..SamplerConfig::default()
    };
    let mut sampler = sampler(config.clone());
    let mut mu = 2.0 * f64::from(mirostat.tau);
    let (mut surprises, mut cut) = (Vec::new(), 0);
    for _ in 0..600 {
        let logits = rng.vec_in(200, -3.0, 3.0);
        let all = reference(
            &logits,
            &SamplerConfig {
                mirostat: None,
                ..SamplerConfig::neutral()
            },
        );
        let mut kept: Vec<_> = all.iter().copied().filter(|(_, p)| -p.log2() <= mu).collect();
        if kept.is_empty() {
            kept.push(all[0]);
        }
        cut += usize::from(kept.len() < all.len());
        let sum: f64 = kept.iter().map(|(_, p)| p).sum();
        let distribution = sampler.distribution(&logits).unwrap();
        assert_eq!(distribution.len(), kept.len());
        for (got, expected) in distribution.iter().zip(&kept) {
            assert!(got.0 == expected.0 && (got.1 - expected.1 / sum).abs() < 1e-6);
        }
        let drawn = sampler.sample(&logits).unwrap().id;
        assert_eq!(
            sampler.sample(&logits).unwrap().id,
            drawn,
            "a repeated draw moves the bound"
        );
        sampler.accept(drawn);
        let surprise = -(kept.iter().find(|item| item.0 == drawn).unwrap().1 / sum).log2();
        surprises.push(surprise);
        mu -= f64::from(mirostat.eta) * (surprise - f64::from(mirostat.tau));
    }
    let mean = surprises[100..].iter().sum::<f64>() / 500.0;
    assert!(
        cut > 500 && (mean - 2.0).abs() < 0.1,
        "{cut} lists cut, mean surprise {mean}"
    );

    // A token that was not drawn leaves the bound.
    let before = sampler.distribution(&[0.0; 64]).unwrap().len();
    let drawn = sampler.sample(&[0.0; 64]).unwrap().id;
    sampler.accept(drawn + 1);
    assert_eq!(sampler.distribution(&[0.0; 64]).unwrap().len(), before);
}

#[test]
fn log_probabilities_are_those_of_the_raw_logits() {
    let mut rng = rng(27);
    for n in [1, 15, 16, 17, 257, 49_152] {
        for width in [0.1, 5.0, 80.0] {
            let mut logits = rng.vec_in(n, -width, width);
            if n > 15 {
                logits[3] = f32::NEG_INFINITY;
            }
            let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let sum: f64 = logits.iter().map(|&l| f64::from(l - max).exp()).sum();
            let logprob = |id: u32| f64::from(logits[id as usize]) - f64::from(max) - sum.ln();
            let close = |got: f32, id: u32| (f64::from(got) - logprob(id)).abs() < 2e-6 * logprob(id).abs().max(1.0);

            // Neither the temperature nor a penalty shows.
            let config = SamplerConfig {
                temperature: 5.0,
                presence_penalty: 2.0,
                ..SamplerConfig::default()
            };
            let mut sampler = sampler(config);
            sampler.accept(0);
            let sampled = sampler.sample(&logits).unwrap();
            assert!(
                close(sampled.logprob, sampled.id),
                "{sampled:?} for {}",
                logprob(sampled.id)
            );

            let mut ids: Vec<u32> = (0..n as u32).collect();
            ids.sort_by(|&a, &b| logits[b as usize].total_cmp(&logits[a as usize]).then(a.cmp(&b)));
            for top in [0, 1, 5, 20, n] {
                let got = top_logprobs(&logits, top);
                assert_eq!(got.iter().map(|item| item.0).collect::<Vec<_>>(), ids[..top.min(n)]);
                for &(id, got) in &got {
                    assert!(
                        close(got, id) || got == f32::NEG_INFINITY && id == 3,
                        "{id}: {got} for {}",
                        logprob(id)
                    );
                }
            }
        }
    }
    assert_eq!(
        top_logprobs(&[1.0, 3.0, 3.0], 2)
            .iter()
            .map(|item| item.0)
            .collect::<Vec<_>>(),
        [1, 2]
    );
    assert_eq!(top_logprobs(&[f32::NAN, 1.0, f32::NAN], 3), [(1, 0.0)]);
    for broken in [&[][..], &[f32::NAN], &[f32::NEG_INFINITY; 3], &[1.0, f32::INFINITY]] {
        assert_eq!(top_logprobs(broken, 3), []);
    }
}

#[test]
fn broken_logits_and_bans_of_all_tokens_are_errors() {
    let mut sampler = sampler(SamplerConfig::default());
    assert_eq!(sampler.sample(&[]), Err(SamplingError::Vocabulary(0)));
    assert_eq!(
        sampler.sample(&[f32::NEG_INFINITY; 3]),
        Err(SamplingError::NothingLeft(3))
    );
    match sampler.sample(&[0.0, f32::NEG_INFINITY, f32::NAN, f32::NAN]) {
        Err(SamplingError::Logit { position: 2, value }) if value.is_nan() => {}
        other => panic!("{other:?}"),
    }
    let error = sampler.sample(&[0.0, f32::INFINITY]).unwrap_err();
    assert_eq!(error.to_string(), "logit 1 is inf; logits are finite or -inf");
    // Still usable.
    assert_eq!(sampler.sample(&[0.0, 50.0]).unwrap().id, 1);

    let ban = |ids: &[u32]| ids.iter().map(|&id| (id, f32::NEG_INFINITY)).collect();
    for base in [
        SamplerConfig::default(),
        SamplerConfig::greedy(),
        SamplerConfig::neutral(),
    ] {
        let mut banned = Sampler::new(
            SamplerConfig {
                logit_bias: ban(&[0, 1]),
                ..base
            },
            0,
        )
        .unwrap();
        assert_eq!(banned.sample(&[1.0, 2.0]), Err(SamplingError::NothingLeft(2)));
        assert_eq!(banned.sample(&[1.0, 2.0, -9.0]).unwrap().id, 2);
        assert_eq!(
            banned.sample(&[1.0]),
            Err(SamplingError::BiasOutOfRange { id: 1, vocabulary: 1 })
        );
    }
}

#[test]
fn parameters_out_of_range_are_named() {
    let good = SamplerConfig::default;
    for config in [good(), SamplerConfig::greedy(), SamplerConfig::neutral()] {
        config.check().unwrap();
    }
    let nan = f32::NAN;
    let bad = [
        (
            "temperature",
            SamplerConfig {
                temperature: nan,
                ..good()
            },
        ),
        (
            "temperature",
            SamplerConfig {
                temperature: f32::INFINITY,
                ..good()
            },
        ),
        ("top_p", SamplerConfig { top_p: -0.1, ..good() }),
        ("top_p", SamplerConfig { top_p: 1.5, ..good() }),
        ("top_p", SamplerConfig { top_p: nan, ..good() }),
        ("min_p", SamplerConfig { min_p: 2.0, ..good() }),
        (
            "typical_p",
            SamplerConfig {
                typical_p: -1.0,
                ..good()
            },
        ),
        (
            "top_n_sigma",
            SamplerConfig {
                top_n_sigma: nan,
                ..good()
            },
        ),
        (
            "repeat_penalty",
            SamplerConfig {
                repeat_penalty: 0.0,
                ..good()
            },
        ),
        (
            "frequency_penalty",
            SamplerConfig {
                frequency_penalty: f32::NEG_INFINITY,
                ..good()
            },
        ),
        (
            "presence_penalty",
            SamplerConfig {
                presence_penalty: nan,
                ..good()
            },
        ),
        (
            "dry.multiplier",
            SamplerConfig {
                dry: Dry {
                    multiplier: -1.0,
                    ..Dry::default()
                },
                ..good()
            },
        ),
        (
            "dry.base",
            SamplerConfig {
                dry: Dry {
                    base: 0.5,
                    ..Dry::default()
                },
                ..good()
            },
        ),
        (
            "xtc.probability",
            SamplerConfig {
                xtc: Xtc {
                    probability: 1.1,
                    threshold: 0.1,
                },
                ..good()
            },
        ),
        (
            "xtc.threshold",
            SamplerConfig {
                xtc: Xtc {
                    probability: 0.1,
                    threshold: nan,
                },
                ..good()
            },
        ),
        (
            "mirostat.tau",
            SamplerConfig {
                mirostat: Some(Mirostat { tau: -1.0, eta: 0.1 }),
                ..good()
            },
        ),
        (
            "mirostat.eta",
            SamplerConfig {
                mirostat: Some(Mirostat { tau: 5.0, eta: nan }),
                ..good()
            },
        ),
        (
            "a logit bias",
            SamplerConfig {
                logit_bias: vec![(1, 2.0), (3, f32::INFINITY)],
                ..good()
            },
        ),
    ];
    for (expected, config) in bad {
        match Sampler::new(config, 0) {
            Err(SamplingError::Parameter { name, .. }) => assert_eq!(name, expected),
            other => panic!("{expected}: {other:?}"),
        }
    }
    let error = SamplerConfig { top_p: -0.5, ..good() }.check().unwrap_err();
    assert_eq!(error.to_string(), "top_p is -0.5; it must be 0 to 1");
}
