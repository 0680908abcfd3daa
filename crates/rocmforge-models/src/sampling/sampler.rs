//! Sampler: draws tokens with a configuration and a seed.

use std::collections::HashSet;

use super::candidates::{Candidate, Rest, by_rank, weight};
use super::history::History;
use super::philox::uniforms;
use super::{Candidates, Row, RowReason, SamplerConfig, SamplingError, Stage, TopLogits, logprobs, stages};

/// A drawn token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampled {
    /// The token.
    pub id: u32,
    /// Natural logarithm of its probability under the model: the softmax over all logits as they were given, before any stage.
    pub logprob: f32,
}

/// The sampler of one sequence: its parameters, its stages and the tokens so far.
#[derive(Clone, Debug)]
pub struct Sampler {
    config: SamplerConfig,
    stages: Vec<Stage>,
    sequence: u64,
    history: History,
    /// DRY's.
    breakers: HashSet<u32>,
    /// Mirostat's bound, in bits.
    mu: f64,
    /// Mirostat's bound after the drawn token, if that one is accepted.
    next_mu: Option<(u32, f64)>,
    /// Kept for its memory.
    candidates: Candidates,
}

impl Sampler {
    /// A sampler with the stages in the order of llama.cpp. `sequence` numbers the sequences that share a seed.
    ///
    /// # Errors
    ///
    /// [`SamplingError::Parameter`] for a parameter out of its range.
    pub fn new(config: SamplerConfig, sequence: u64) -> Result<Self, SamplingError> {
        Self::with_stages(config, sequence, &Stage::LLAMA_CPP)
    }

    /// A sampler with stages in an order of the caller's. Those that are left out do not act, whatever their parameters.
    ///
    /// # Errors
    ///
    /// [`SamplingError::Parameter`] for a parameter out of its range, [`SamplingError::StageTwice`].
    pub fn with_stages(config: SamplerConfig, sequence: u64, stages: &[Stage]) -> Result<Self, SamplingError> {
        config.check()?;
        for (i, stage) in stages.iter().enumerate() {
            if stages[..i].contains(stage) {
                return Err(SamplingError::StageTwice(*stage));
            }
        }
        Ok(Self {
            stages: stages.to_vec(),
            sequence,
            history: History::new(config.repeat_last_n),
            breakers: stages::breakers(&config.dry),
            mu: config.mirostat.map_or(0.0, |mirostat| 2.0 * f64::from(mirostat.tau)),
            next_mu: None,
            candidates: Candidates::default(),
            config,
        })
    }

    /// Takes a token into the history: each token of the prompt and each that is generated, in order.
    pub fn accept(&mut self, token: u32) {
        self.history.push(token);
        if let Some((drawn, mu)) = self.next_mu.take()
            && drawn == token
        {
            self.mu = mu;
        }
    }

    /// Draws the token that follows those accepted. The same call again gives the same token, until one is accepted.
    ///
    /// # Errors
    ///
    /// Those of [`distribution`](Self::distribution).
    pub fn sample(&mut self, logits: &[f32]) -> Result<Sampled, SamplingError> {
        let max = self.apply_stages(logits)?;
        let id = self.draw(logits.len())?;
        let logprob = f64::from(logits[id as usize]) - logprobs::log_sum_exp(logits, max);
        let logprob = logprob as f32;
        Ok(Sampled { id, logprob })
    }

    /// [`Self::sample`] from the first candidates of a row. The token is the same; its log-probability has the error of the sum.
    ///
    /// # Errors
    ///
    /// [`SamplingError::RowNeeded`] if they do not decide what is drawn, and otherwise those of [`distribution`](Self::distribution).
    pub fn sample_top(&mut self, top: &TopLogits<'_>) -> Result<Sampled, SamplingError> {
        self.check_bias(top.vocabulary)?;
        if !top.is_sound() {
            return Err(RowReason::NotFinite.into());
        }
        if self.config.mirostat.is_some() {
            return Err(RowReason::Mirostat.into());
        }
        let [uniform, xtc] = self.uniforms();
        self.candidates.refill_top(top, top.log_sum_exp);
        for index in 0..self.stages.len() {
            let stage = self.stages[index];
            match self.candidates.rest() {
                None => apply(
                    stage,
                    &mut self.candidates,
                    &self.config,
                    &self.history,
                    &self.breakers,
                    xtc,
                ),
                Some(rest) if self.applies_to_first(stage, rest, xtc) => {}
                Some(_) => return Err(RowReason::Stage(stage).into()),
            }
        }
        let id = match self.candidates.rest() {
            None => self.draw(top.vocabulary)?,
            Some(_) => {
                let drawn = self.candidates.shortest_of_all(uniform).ok_or(RowReason::Draw)?;
                let drawn = self.candidates.ranked(drawn).last();
                drawn.ok_or(SamplingError::NothingLeft(top.vocabulary))?.id
            }
        };
        let position = top.ids.iter().position(|&other| other == id).unwrap_or_default();
        let logprob = (f64::from(top.logits[position]) - top.log_sum_exp) as f32;
        Ok(Sampled { id, logprob })
    }

    /// [`Self::sample`] or [`Self::sample_top`].
    ///
    /// # Errors
    ///
    /// As these.
    pub fn sample_row(&mut self, row: &Row<'_>) -> Result<Sampled, SamplingError> {
        match row {
            Row::Whole(logits) => self.sample(logits),
            Row::Top(top) => self.sample_top(top),
        }
    }

    /// Applies a stage to the first candidates of a row, if they decide what it does to the whole row.
    fn applies_to_first(&mut self, stage: Stage, rest: Rest, xtc: f64) -> bool {
        let (candidates, config) = (&mut self.candidates, &self.config);
        match stage {
            // They lower or raise single logits, and the rest knows how far.
            Stage::LogitBias | Stage::Penalties | Stage::Dry => {}
            Stage::Temperature if config.temperature <= 0.0 => return candidates.keep_certain(1),
            // All are measured from the largest.
            Stage::Temperature => {
                let largest = candidates.ranked(1).first();
                if !largest.is_some_and(|largest| by_rank(largest, &rest.ceiling).is_le()) {
                    return false;
                }
            }
            // At least so many are left, and no stage before has dropped one.
            Stage::TopK if config.top_k > 0 => return candidates.keep_certain(config.top_k),
            Stage::TopP if config.top_p < 1.0 => {
                let length = candidates.shortest_of_all(f64::from(config.top_p));
                return length.is_some_and(|length| candidates.keep_certain(length));
            }
            Stage::MinP if config.min_p > 0.0 => {
                if f64::from(rest.ceiling.logit) >= stages::min_p_bound(candidates, config.min_p) {
                    return false;
                }
                stages::min_p(candidates, config.min_p);
                candidates.complete_by_id();
                return true;
            }
            Stage::TopNSigma => return config.top_n_sigma <= 0.0,
            Stage::Typical => return config.typical_p >= 1.0,
            Stage::Xtc => return xtc >= f64::from(config.xtc.probability),
            Stage::TopK | Stage::TopP | Stage::MinP => return true,
        }
        apply(stage, candidates, config, &self.history, &self.breakers, xtc);
        true
    }

    /// Draws from the candidates that the stages have left of a vocabulary.
    fn draw(&mut self, vocabulary: usize) -> Result<u32, SamplingError> {
        let [uniform, _] = self.uniforms();
        let total = self.candidates.weight_sum();
        // The inverse of the distribution function over the candidates in rank order. The last candidate with a weight is drawn if
        // rounding leaves the sum of all short of `wanted`.
        let wanted = uniform * total;
        let drawn = self.candidates.shortest(|sum| sum > wanted);
        let best = self.candidates.max();
        let can_be_drawn = |candidate: &&Candidate| weight(candidate.logit, best) > 0.0;
        let Some(&drawn) = self.candidates.ranked(drawn).iter().rfind(can_be_drawn) else {
            return Err(SamplingError::NothingLeft(vocabulary));
        };
        if let Some(mirostat) = self.config.mirostat {
            let natural = f64::from(best) + total.ln() - f64::from(drawn.logit);
            let surprise = natural / std::f64::consts::LN_2;
            let mu = self.mu - f64::from(mirostat.eta) * (surprise - f64::from(mirostat.tau));
            self.next_mu = Some((drawn.id, mu));
        }
        Ok(drawn.id)
    }

    /// The tokens from which [`sample`](Self::sample) would draw, with their probabilities, the most likely first.
    ///
    /// # Errors
    ///
    /// [`SamplingError::Vocabulary`] for no logits, [`SamplingError::Logit`] for one that is NaN or +inf, [`SamplingError::NothingLeft`] if
    /// all tokens are banned, [`SamplingError::BiasOutOfRange`].
    pub fn distribution(&mut self, logits: &[f32]) -> Result<Vec<(u32, f64)>, SamplingError> {
        self.apply_stages(logits)?;
        Ok(self.candidates.probabilities())
    }

    /// The tokens from which the last one was drawn, with the natural logarithms of their probabilities after all stages, the most likely first.
    /// Tokens that could not be drawn are left out.
    ///
    /// # Errors
    ///
    /// The draw was from a row's first candidates, and tokens beyond them could have been drawn, too.
    pub fn drawn_from(&mut self) -> Result<Vec<(u32, f32)>, RowReason> {
        match self.candidates.rest() {
            Some(_) => Err(RowReason::Alternatives),
            None => {
                let all = self.candidates.probabilities().into_iter();
                let possible = all.filter(|(_, probability)| *probability > 0.0);
                Ok(possible
                    .map(|(id, probability)| (id, probability.ln() as f32))
                    .collect())
            }
        }
    }

    /// Fills `candidates`, of which at least one has a finite logit; returns the largest logit as given.
    fn apply_stages(&mut self, logits: &[f32]) -> Result<f32, SamplingError> {
        let max = logprobs::check(logits)?;
        let vocabulary = logits.len();
        self.check_bias(vocabulary)?;
        let [_, uniform] = self.uniforms();
        self.candidates.refill(logits);
        let mirostat = self.config.mirostat.is_some();
        for &stage in self.stages.iter().filter(|stage| !(mirostat && stage.shortens())) {
            apply(
                stage,
                &mut self.candidates,
                &self.config,
                &self.history,
                &self.breakers,
                uniform,
            );
        }
        if mirostat {
            stages::mirostat(&mut self.candidates, self.mu);
        }
        if self.candidates.max() == f32::NEG_INFINITY {
            return Err(SamplingError::NothingLeft(vocabulary));
        }
        Ok(max)
    }

    fn check_bias(&self, vocabulary: usize) -> Result<(), SamplingError> {
        match self.config.logit_bias.iter().find(|(id, _)| *id as usize >= vocabulary) {
            Some(&(id, _)) => Err(SamplingError::BiasOutOfRange { id, vocabulary }),
            None => Ok(()),
        }
    }

    fn uniforms(&self) -> [f64; 2] {
        uniforms(self.config.seed, self.sequence, self.history.tokens().len() as u64)
    }

    /// The parameters.
    pub fn config(&self) -> &SamplerConfig {
        &self.config
    }

    /// The tokens accepted so far.
    pub fn tokens(&self) -> &[u32] {
        self.history.tokens()
    }
}

/// Applies a stage. `uniform` is the random number that decides about XTC.
fn apply(
    stage: Stage,
    candidates: &mut Candidates,
    config: &SamplerConfig,
    history: &History,
    breakers: &HashSet<u32>,
    uniform: f64,
) {
    match stage {
        Stage::LogitBias => stages::logit_bias(candidates, &config.logit_bias),
        Stage::Penalties => stages::penalties(
            candidates,
            history.counts(),
            config.repeat_penalty,
            config.frequency_penalty,
            config.presence_penalty,
        ),
        Stage::Dry => stages::dry_with(candidates, history.tokens(), &config.dry, breakers),
        Stage::TopNSigma => stages::top_n_sigma(candidates, config.top_n_sigma),
        Stage::TopK => stages::top_k(candidates, config.top_k),
        Stage::Typical => stages::typical(candidates, config.typical_p),
        Stage::TopP => stages::top_p(candidates, config.top_p),
        Stage::MinP => stages::min_p(candidates, config.min_p),
        Stage::Xtc => stages::xtc(candidates, config.xtc.probability, config.xtc.threshold, uniform),
        Stage::Temperature => stages::temperature(candidates, config.temperature),
    }
}
