//! Load: requests with their arrivals, lengths and tokens, all drawn from one seed.

use std::time::Duration;

use rocmforge::sim::Rng;

use super::options::{Args, Lengths};

/// Most requests of a load: its plan is in memory.
const MOST_REQUESTS: usize = 100_000;
/// Longest time from the first arrival to the last, which is waited for.
const LONGEST: Duration = Duration::from_secs(3600);

/// What requests are drawn from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Load {
    pub(crate) requests: usize,
    /// Requests a second; 0: all at once.
    pub(crate) rate: f64,
    pub(crate) prompts: Lengths,
    pub(crate) answers: Lengths,
    pub(crate) seed: u64,
}

/// A request that has not arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Planned {
    /// When it arrives, counted from the first.
    pub(crate) at: Duration,
    /// Tokens of its prompt.
    pub(crate) prompt: usize,
    /// Tokens of its answer.
    pub(crate) answer: usize,
    /// Seed of its prompt's tokens and of its sampler.
    pub(crate) seed: u64,
}

/// A load that cannot be drawn.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(crate) enum LoadError {
    #[error("--serve is {requests} requests; from 1 to {MOST_REQUESTS} can be drawn")]
    Requests { requests: usize },
    #[error("--arrivals is {rate} requests a second; it is a finite number of at least 0")]
    Rate { rate: f64 },
    #[error(
        "{requests} requests at {rate} a second arrive within about {:.0} s; at most {} s are waited for",
        *requests as f64 / rate,
        LONGEST.as_secs()
    )]
    TooLong { requests: usize, rate: f64 },
    #[error("--sequences is {sequences}; from 1 to {chunk} fit into a step (--chunk)")]
    Sequences { sequences: usize, chunk: usize },
}

/// A length of a range.
fn length(random: &mut Rng, lengths: Lengths) -> usize {
    lengths.least + random.below(lengths.most - lengths.least + 1)
}

/// Seconds to the next event of a Poisson process.
fn gap(random: &mut Rng, rate: f64) -> f64 {
    // Above 0, at most 1.
    let uniform = ((random.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
    -uniform.ln() / rate
}

impl Load {
    /// The load of the command line; `None` without `--serve`.
    ///
    /// # Errors
    /// [`LoadError`], with the figures.
    pub(crate) fn of(args: &Args) -> Result<Option<Self>, LoadError> {
        let Some(requests) = args.serve else {
            return Ok(None);
        };
        let (rate, sequences, chunk) = (args.arrivals, args.sequences, args.chunk);
        if !(1..=MOST_REQUESTS).contains(&requests) {
            return Err(LoadError::Requests { requests });
        }
        if !rate.is_finite() || rate < 0.0 {
            return Err(LoadError::Rate { rate });
        }
        if rate > 0.0 && requests as f64 / rate > LONGEST.as_secs_f64() {
            return Err(LoadError::TooLong { requests, rate });
        }
        if !(1..=chunk).contains(&sequences) {
            return Err(LoadError::Sequences { sequences, chunk });
        }
        Ok(Some(Self {
            requests,
            rate,
            prompts: args.prompts,
            answers: args.answers,
            seed: args.seed,
        }))
    }

    /// The requests, in the order of their arrivals. The first arrives at once; a rate changes no lengths.
    pub(crate) fn draw(&self) -> Vec<Planned> {
        let (mut random, mut at) = (Rng::new(self.seed), 0.0);
        let one = |_| {
            let planned = Planned {
                at: Duration::from_secs_f64(at),
                prompt: length(&mut random, self.prompts),
                answer: length(&mut random, self.answers),
                seed: random.next(),
            };
            let gap = gap(&mut random, self.rate.max(f64::MIN_POSITIVE));
            if self.rate > 0.0 {
                at += gap.min(LONGEST.as_secs_f64());
            }
            planned
        };
        (0..self.requests).map(one).collect()
    }
}

impl Planned {
    /// Tokens of the prompt. Another `salt` gives others, which share no beginning with these.
    pub(crate) fn ids(&self, vocab: usize, salt: u64) -> Vec<u32> {
        let mut random = Rng::new(self.seed ^ Rng::new(salt).next());
        (0..self.prompt).map(|_| random.below(vocab) as u32).collect()
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    const LOAD: Load = Load {
        requests: 2000,
        rate: 0.0,
        prompts: Lengths { least: 3, most: 10 },
        answers: Lengths { least: 5, most: 5 },
        seed: 7,
    };

    fn of(words: &[&str]) -> Result<Option<Load>, LoadError> {
        Load::of(&Args::parse_from(["llm_bench"].iter().chain(words)))
    }

    #[test]
    fn a_seed_gives_one_load() {
        let drawn = LOAD.draw();
        assert_eq!(drawn, LOAD.draw());
        assert_ne!(drawn, Load { seed: 8, ..LOAD }.draw());
        let later = Load { rate: 3.0, ..LOAD }.draw();
        let same = |a: &Planned, b: &Planned| (a.prompt, a.answer, a.seed) == (b.prompt, b.answer, b.seed);
        assert!(drawn.iter().zip(&later).all(|(a, b)| same(a, b)));
        let (first, again, others) = (drawn[0].ids(320, 1), drawn[0].ids(320, 1), drawn[0].ids(320, 2));
        assert!(first == again && first != others);
        assert!(first.len() == drawn[0].prompt && first.iter().all(|&id| id < 320));
    }

    #[test]
    fn lengths_are_uniform_over_the_whole_range() {
        let drawn = LOAD.draw();
        for length in 3..=10 {
            let count = drawn.iter().filter(|planned| planned.prompt == length).count();
            // 250 are expected, with a standard deviation of 15.
            assert!((175..=325).contains(&count), "{length}: {count}");
        }
        assert!(
            drawn
                .iter()
                .all(|planned| planned.answer == 5 && planned.at == Duration::ZERO)
        );
        let all = Lengths {
            least: 1,
            most: usize::MAX,
        };
        assert!(
            Load { prompts: all, ..LOAD }
                .draw()
                .iter()
                .all(|planned| planned.prompt > 0)
        );
    }

    #[test]
    fn arrivals_are_a_poisson_process() {
        let drawn = Load { rate: 4.0, ..LOAD }.draw();
        let gaps: Vec<f64> = drawn
            .windows(2)
            .map(|pair| (pair[1].at - pair[0].at).as_secs_f64())
            .collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        // An exponential distribution has its mean as standard deviation: that of the mean of 1999 gaps is 0.0056.
        assert!((mean - 0.25).abs() < 0.03, "{mean}");
        let longer = gaps.iter().filter(|&&gap| gap > 0.25).count() as f64 / gaps.len() as f64;
        assert!((longer - (-1.0_f64).exp()).abs() < 0.06, "{longer}");
        assert_eq!(drawn[0].at, Duration::ZERO);
    }

    #[test]
    fn a_load_that_is_none_is_refused_with_figures() {
        assert_eq!(of(&[]), Ok(None));
        let of_four = of(&["--serve", "4", "--arrivals", "0.5", "--sequences", "512"])
            .unwrap()
            .unwrap();
        assert_eq!((of_four.requests, of_four.rate, of_four.seed), (4, 0.5, 1));
        for (words, text) in [
            (
                &["--serve", "0"][..],
                "--serve is 0 requests; from 1 to 100000 can be drawn",
            ),
            (
                &["--serve", "200000"],
                "--serve is 200000 requests; from 1 to 100000 can be drawn",
            ),
            (
                &["--serve", "4", "--arrivals=-1"],
                "--arrivals is -1 requests a second; it is a finite number of at least 0",
            ),
            (
                &["--serve", "4", "--arrivals", "nan"],
                "--arrivals is NaN requests a second; it is a finite number of at least 0",
            ),
            (
                &["--serve", "100", "--arrivals", "0.01"],
                "100 requests at 0.01 a second arrive within about 10000 s; at most 3600 s are waited for",
            ),
            (
                &["--serve", "4", "--sequences", "0"],
                "--sequences is 0; from 1 to 512 fit into a step (--chunk)",
            ),
            (
                &["--serve", "4", "--sequences", "65", "--chunk", "64"],
                "--sequences is 65; from 1 to 64 fit into a step (--chunk)",
            ),
        ] {
            assert_eq!(of(words).unwrap_err().to_string(), text);
        }
    }
}
