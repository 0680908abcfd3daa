//! Serving: a load of requests through the generator, which is the scheduler of the server, and the figures of it.
//!
//! The loop is that of the server's thread: requests that have arrived are submitted, then one step is computed, in which every sequence past its
//! prompt has one token and prompts have the rest. There is no HTTP, and no text is made of prompts.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rocmforge::ggml::HostAccess;
use rocmforge::models::generate::{Event, FinishReason, Generator, Request, RequestId};
use rocmforge::models::sampling::SamplerConfig;
use rocmforge::models::tokenizer::{Tokenizer, TokenizerError, VocabModel, Vocabulary};
use rocmforge::models::{Engine, GraphCounts};

use super::Failure;
use super::load::{Load, Planned};

/// Times of one request, counted from the first arrival.
struct Track {
    planned: Planned,
    /// When each of its tokens was there.
    tokens: Vec<Duration>,
}

/// A request that did not get its answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServingError {
    #[error("request {request} ended after {tokens} of {wanted} tokens: {reason:?}")]
    Ended {
        request: usize,
        tokens: usize,
        wanted: usize,
        reason: FinishReason,
    },
    #[error("{open} requests are open, and a step has computed none of them")]
    NoProgress { open: usize },
}

/// Mean and percentiles of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Latency {
    pub(crate) mean: Duration,
    pub(crate) p50: Duration,
    pub(crate) p99: Duration,
}

/// What a load has come to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Figures {
    pub(crate) requests: usize,
    /// From the first arrival to the last token.
    pub(crate) time: Duration,
    /// Tokens of the prompts.
    pub(crate) tokens_in: usize,
    /// Tokens of the answers.
    pub(crate) tokens_out: usize,
    /// From a request's arrival to its first token.
    pub(crate) first: Option<Latency>,
    /// From each token of a request to its next; `None` if no answer has two.
    pub(crate) between: Option<Latency>,
    /// Most sequences of one step.
    pub(crate) largest: usize,
    pub(crate) steps: usize,
    /// Ops enqueued in all steps.
    pub(crate) launches: u64,
    /// Graphs of steps that were built or captured meanwhile.
    pub(crate) graphs: u64,
}

impl Latency {
    /// By the nearest rank; `None` of no times.
    fn of(mut times: Vec<Duration>) -> Option<Self> {
        times.sort_unstable();
        let rank = |percent: usize| times.get((times.len() * percent).div_ceil(100).max(1) - 1).copied();
        let (p50, p99) = (rank(50)?, rank(99)?);
        let sum: f64 = times.iter().map(Duration::as_secs_f64).sum();
        let mean = Duration::from_secs_f64(sum / times.len() as f64);
        Some(Self { mean, p50, p99 })
    }
}

/// A vocabulary for models without one: each token is its number, so that text is made of answers as in a server.
///
/// # Errors
/// The vocabulary is larger than one may be.
pub(crate) fn tokenizer(vocab: usize) -> Result<Tokenizer, TokenizerError> {
    // Of equal length, so that none is a part of another.
    let tokens = (0..vocab).map(|id| format!("{id:06x} ")).collect();
    let mut vocabulary = Vocabulary::new(VocabModel::Llama, tokens);
    vocabulary.add_bos = Some(false);
    Tokenizer::new(vocabulary)
}

/// Computes a load once that is not counted, all of it at once, then as often as `rounds` says; calls `done` with the figures of each.
///
/// # Errors
/// The engine failed, or a request did not get its answer.
pub(crate) fn run<B: HostAccess>(
    mut engine: Engine<B>,
    load: &Load,
    rounds: usize,
    launches: impl Fn(&B) -> u64,
    mut done: impl FnMut(usize, &Figures),
) -> Result<(), Failure> {
    let tokenizer = tokenizer(engine.config().vocab)?;
    engine.warm_up()?;
    let mut generator = Generator::new(engine, Arc::new(tokenizer));
    let planned = load.draw();
    let at_once: Vec<Planned> = planned
        .iter()
        .map(|planned| Planned {
            at: Duration::ZERO,
            ..*planned
        })
        .collect();
    serve(&mut generator, &at_once, 0, &launches)?;
    for round in 1..=rounds {
        // No round finds beginnings of another in the cache.
        let figures = serve(&mut generator, &planned, round as u64, &launches)?;
        done(round, &figures);
    }
    Ok(())
}

/// Answers the requests, each not before its arrival.
fn serve<B: HostAccess>(
    generator: &mut Generator<B>,
    planned: &[Planned],
    salt: u64,
    launches: &impl Fn(&B) -> u64,
) -> Result<Figures, Failure> {
    let vocab = generator.engine().config().vocab;
    let graphs = |counts: GraphCounts| counts.built + counts.captured;
    let before = (
        launches(generator.engine().backend()),
        graphs(generator.engine().graph_counts()),
    );
    let mut waiting = planned.iter();
    let mut tracks: Vec<Track> = Vec::with_capacity(planned.len());
    let mut numbers: HashMap<RequestId, usize> = HashMap::new();
    let (mut steps, mut largest, mut time) = (0, 0, Duration::ZERO);
    let start = Instant::now();
    loop {
        while let Some(&next) = waiting.as_slice().first().filter(|next| next.at <= start.elapsed()) {
            waiting.next();
            let id = generator.submit(Request {
                max_tokens: next.answer,
                ignore_end: true,
                sampler: SamplerConfig {
                    seed: next.seed,
                    ..SamplerConfig::default()
                },
                ..Request::new(next.ids(vocab, salt))
            })?;
            numbers.insert(id, tracks.len());
            tracks.push(Track {
                planned: next,
                tokens: Vec::with_capacity(next.answer),
            });
        }
        if numbers.is_empty() {
            let Some(next) = waiting.as_slice().first() else {
                break;
            };
            // Not longer than the longest time of a load.
            std::thread::sleep(next.at.saturating_sub(start.elapsed()));
            continue;
        }
        let events = generator.step()?;
        let now = start.elapsed();
        if events.is_empty() {
            return Err(ServingError::NoProgress { open: numbers.len() }.into());
        }
        let mut of_step = HashSet::new();
        for event in events {
            let Some(&number) = numbers.get(&event.request()) else {
                continue;
            };
            of_step.insert(number);
            let track = &mut tracks[number];
            match event {
                Event::Prompt { .. } => {}
                Event::Token { .. } => track.tokens.push(now),
                Event::Finished { request, reason, .. } => {
                    let (tokens, wanted) = (track.tokens.len(), track.planned.answer);
                    if reason != FinishReason::MaxTokens || tokens != wanted {
                        let request = number;
                        return Err(ServingError::Ended {
                            request,
                            tokens,
                            wanted,
                            reason,
                        }
                        .into());
                    }
                    numbers.remove(&request);
                }
            }
        }
        (steps, largest, time) = (steps + 1, of_step.len().max(largest), now);
    }
    let engine = generator.engine();
    Ok(Figures {
        steps,
        largest,
        launches: launches(engine.backend()) - before.0,
        graphs: graphs(engine.graph_counts()) - before.1,
        ..figures(&tracks, time)
    })
}

/// The figures that follow from the times of requests.
fn figures(tracks: &[Track], time: Duration) -> Figures {
    let first = |track: &Track| Some(track.tokens.first()?.saturating_sub(track.planned.at));
    let gaps = |track: &Track| -> Vec<Duration> { track.tokens.windows(2).map(|pair| pair[1] - pair[0]).collect() };
    Figures {
        requests: tracks.len(),
        time,
        tokens_in: tracks.iter().map(|track| track.planned.prompt).sum(),
        tokens_out: tracks.iter().map(|track| track.tokens.len()).sum(),
        first: Latency::of(tracks.iter().filter_map(first).collect()),
        between: Latency::of(tracks.iter().flat_map(gaps).collect()),
        largest: 0,
        steps: 0,
        launches: 0,
        graphs: 0,
    }
}

/// The head of the table.
pub(crate) const HEAD: &str = "\
| model | round | requests/s | tokens/s in | tokens/s out | first token, ms: mean, p50, p99 | between tokens, ms: mean, p50, p99 | largest batch | steps | launches a step | graphs made |
|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|";

/// The load, for people.
pub(crate) fn describe(load: &Load, sequences: usize, chunk: usize) -> String {
    let planned = load.draw();
    let arrivals = match load.rate {
        0.0 => "all at once".to_owned(),
        rate => {
            let last = planned.last().map_or(0.0, |last| last.at.as_secs_f64());
            format!("{rate} a second, the last after {last:.1} s")
        }
    };
    let sum = |of: fn(&Planned) -> usize| planned.iter().map(of).sum::<usize>();
    format!(
        "load: {} requests, {arrivals}; prompts of {} tokens ({} together), answers of {} ({}); seed {}; at most {sequences} sequences, steps of {chunk} tokens",
        load.requests,
        load.prompts,
        sum(|planned| planned.prompt),
        load.answers,
        sum(|planned| planned.answer),
        load.seed,
    )
}

impl Figures {
    /// A row of the table, without times if they are simulated.
    pub(crate) fn row(&self, model: &str, round: usize, is_simulated: bool) -> String {
        let seconds = Some(self.time.as_secs_f64()).filter(|&seconds| !is_simulated && seconds > 0.0);
        let rate = |count: usize, digits: usize| {
            seconds.map_or_else(String::new, |seconds| format!("{:.digits$}", count as f64 / seconds))
        };
        let times = |latency: Option<Latency>| {
            let shown = latency.filter(|_| !is_simulated).map(|Latency { mean, p50, p99 }| {
                [mean, p50, p99]
                    .map(|time| format!("{:.1}", time.as_secs_f64() * 1e3))
                    .join(", ")
            });
            shown.unwrap_or_default()
        };
        format!(
            "| {model} | {round} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            rate(self.requests, 2),
            rate(self.tokens_in, 0),
            rate(self.tokens_out, 0),
            times(self.first),
            times(self.between),
            self.largest,
            self.steps,
            self.launches / self.steps.max(1) as u64,
            self.graphs,
        )
    }
}

#[cfg(test)]
mod tests {
    use rocmforge::ggml::CpuBackend;
    use rocmforge::gguf::TensorType;
    use rocmforge::models::{EngineOptions, Limit, Model};

    use super::super::options::Lengths;
    use super::super::shapes::Shape;
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn percentiles_are_those_of_the_nearest_rank() {
        assert_eq!(Latency::of(Vec::new()), None);
        let one = Latency::of(vec![ms(7)]).unwrap();
        assert_eq!([one.mean, one.p50, one.p99], [ms(7); 3]);
        let all = Latency::of((1..=200).rev().map(ms).collect()).unwrap();
        assert_eq!([all.p50, all.p99], [ms(100), ms(198)]);
        assert!(all.mean.abs_diff(Duration::from_micros(100_500)) < Duration::from_nanos(10));
        let four = Latency::of([1, 2, 3, 40].map(ms).to_vec()).unwrap();
        assert_eq!([four.p50, four.p99], [ms(2), ms(40)]);
    }

    #[test]
    fn waiting_counts_from_the_arrival() {
        let track = |at: u64, prompt: usize, tokens: &[u64]| Track {
            planned: Planned {
                at: ms(at),
                prompt,
                answer: tokens.len(),
                seed: 0,
            },
            tokens: tokens.iter().copied().map(ms).collect(),
        };
        let figures = figures(&[track(0, 10, &[50, 60, 90]), track(40, 20, &[60])], ms(500));
        assert_eq!((figures.requests, figures.tokens_in, figures.tokens_out), (2, 30, 4));
        let first = figures.first.unwrap();
        assert_eq!([first.mean, first.p50, first.p99], [ms(35), ms(20), ms(50)]);
        let between = figures.between.unwrap();
        assert_eq!([between.mean, between.p50, between.p99], [ms(20), ms(10), ms(30)]);
        let whole = Figures {
            largest: 2,
            steps: 3,
            launches: 31,
            ..figures
        };
        assert_eq!(
            whole.row("tiny q8_0", 1, false),
            "| tiny q8_0 | 1 | 4.00 | 60 | 8 | 35.0, 20.0, 50.0 | 20.0, 10.0, 30.0 | 2 | 3 | 10 | 0 |"
        );
        assert_eq!(
            whole.row("tiny q8_0", 1, true),
            "| tiny q8_0 | 1 |  |  |  |  |  | 2 | 3 | 10 | 0 |"
        );
        let columns = |text: &str| text.matches('|').count();
        assert!(
            HEAD.lines()
                .all(|line| columns(line) == columns(&whole.row("", 1, true)))
        );
    }

    #[test]
    fn every_token_is_a_text_of_its_own() {
        let tokenizer = tokenizer(300).unwrap();
        assert_eq!(tokenizer.decode(&[1, 299]), "000001 00012b ");
        assert!((0..300).all(|id| !tokenizer.is_end_of_generation(id)));
    }

    #[test]
    fn a_load_is_answered_in_full_beside_a_bound_on_sequences() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tiny.gguf");
        Shape::of("tiny").unwrap().write(TensorType::Q8_0, 64, &file).unwrap();
        let options = EngineOptions {
            max_context: Limit::Tokens(64),
            max_sequences: 3,
            chunk: 8,
            ..EngineOptions::default()
        };
        let engine = Engine::new(CpuBackend::new(), &Model::open(&file).unwrap(), options).unwrap();
        let load = Load {
            requests: 7,
            rate: 400.0,
            prompts: Lengths { least: 1, most: 20 },
            answers: Lengths { least: 1, most: 6 },
            seed: 3,
        };
        let planned = load.draw();
        let mut rounds = Vec::new();
        run(
            engine,
            &load,
            2,
            |_| 0,
            |round, figures| rounds.push((round, figures.clone())),
        )
        .unwrap();
        assert_eq!(rounds.iter().map(|(round, _)| *round).collect::<Vec<_>>(), [1, 2]);
        for (_, figures) in rounds {
            assert_eq!(figures.requests, 7);
            let sum = |of: fn(&Planned) -> usize| planned.iter().map(of).sum::<usize>();
            assert_eq!(figures.tokens_in, sum(|planned| planned.prompt));
            assert_eq!(figures.tokens_out, sum(|planned| planned.answer));
            assert!((1..=3).contains(&figures.largest), "{figures:?}");
            assert!(figures.time >= planned[6].at && figures.first.unwrap().mean > Duration::ZERO);
            assert_eq!(figures.graphs, 0, "all were made before");
        }
        assert!(
            describe(&load, 3, 8)
                .starts_with("load: 7 requests, 400 a second, the last after 0.0 s; prompts of 1..20 tokens (")
        );
    }
}
