//! Candidates: tokens with their logits, and their order.

use std::cmp::Ordering;
use std::collections::HashMap;

use super::logprobs::{check, log_sum_exp};
use super::{SamplingError, TopLogits};

/// How far the sum of a row's exponentials may be from the one that a sampler adds up, as a fraction of it. Sums in f32 on a device are ten times as
/// close.
const SUM_ERROR: f64 = 1e-4;

/// A token that may be drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// The token.
    pub id: u32,
    /// Its logit, as the stages so far have left it: never NaN, never +inf.
    pub logit: f32,
}

/// Falling logits; equal ones by rising id. Total, because no logit is NaN or -0.
pub(super) fn by_rank(a: &Candidate, b: &Candidate) -> Ordering {
    b.logit.total_cmp(&a.logit).then(a.id.cmp(&b.id))
}

/// What is known of the tokens that are not in a list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rest {
    /// They all rank after this one.
    pub(super) ceiling: Candidate,
    /// The logarithm of the sum of all exponentials, those in the list included; `None` once a stage has changed a logit.
    pub(super) log_sum_exp: Option<f64>,
}

impl Rest {
    /// A token that is not in the list may have this logit now, whatever its id. A banned one stays banned.
    fn rise(&mut self, logit: f32) {
        if self.ceiling.logit > f32::NEG_INFINITY {
            self.ceiling = Candidate {
                id: u32::MAX,
                logit: logit.next_up() + 0.0,
            };
        }
    }
}

/// The tokens that may still be drawn, which every stage changes or shortens.
///
/// The list is sorted only as far as a stage has needed it: the first `sorted` candidates are in rank order, and none after them
/// ranks higher.
#[derive(Clone, Debug, Default)]
pub struct Candidates {
    list: Vec<Candidate>,
    sorted: usize,
    /// Whether `list[i].id == i` for all of the vocabulary.
    by_id: bool,
    /// There are more tokens than those in the list: it is a row's first ones, see [`TopLogits`](super::TopLogits).
    rest: Option<Rest>,
}

impl Candidates {
    /// All tokens of a vocabulary.
    ///
    /// # Errors
    ///
    /// [`SamplingError::Vocabulary`], [`SamplingError::Logit`] for NaN and +inf, [`SamplingError::NothingLeft`] if all are -inf.
    pub fn from_logits(logits: &[f32]) -> Result<Self, SamplingError> {
        check(logits)?;
        let mut candidates = Self::default();
        candidates.refill(logits);
        Ok(candidates)
    }

    /// As `from_logits`, into the memory of this list, of logits that are checked.
    pub(super) fn refill(&mut self, logits: &[f32]) {
        self.list.clear();
        // Adding zero turns -0 into 0.
        let all = logits
            .iter()
            .zip(0..)
            .map(|(&logit, id)| Candidate { id, logit: logit + 0.0 });
        self.list.extend(all);
        self.sorted = 0;
        self.by_id = true;
        self.rest = None;
    }

    /// The first candidates of a row, into the memory of this list.
    pub(super) fn refill_top(&mut self, top: &TopLogits<'_>, log_sum_exp: f64) {
        self.list.clear();
        let all = top.ids.iter().zip(top.logits);
        self.list
            .extend(all.map(|(&id, &logit)| Candidate { id, logit: logit + 0.0 }));
        self.sorted = self.list.len();
        self.by_id = false;
        self.rest = self.list.last().map(|&ceiling| Rest {
            ceiling,
            log_sum_exp: Some(log_sum_exp),
        });
        if top.is_whole_row() {
            self.complete_by_id();
        }
    }

    /// What is known of the tokens that are not in the list; `None` if the list has every token.
    pub(super) fn rest(&self) -> Option<Rest> {
        self.rest
    }

    /// The tokens that are not in the list are out. The others are in the order that they have in a list of the whole row.
    pub(super) fn complete_by_id(&mut self) {
        self.rest = None;
        self.list.sort_unstable_by_key(|candidate| candidate.id);
        self.sorted = 0;
    }

    /// Keeps the `n` of highest rank, sorted, if they are known. Says whether they are.
    pub(super) fn keep_certain(&mut self, n: usize) -> bool {
        if let Some(Rest { ceiling, .. }) = self.rest {
            let all = self.ranked(usize::MAX);
            if all.partition_point(|candidate| by_rank(candidate, &ceiling).is_le()) < n {
                return false;
            }
            self.rest = None;
        }
        self.keep_first(n);
        true
    }

    /// [`Self::shortest`] for a share of the sum of all weights, that of the tokens which are not in the list included; `None` if what is
    /// known of that sum does not decide it.
    pub(super) fn shortest_of_all(&mut self, share: f64) -> Option<usize> {
        let max = self.max();
        let total = (self.rest?.log_sum_exp? - f64::from(max)).exp();
        let all = self.ranked(usize::MAX);
        let mut sum = 0.0;
        let reaches = |candidate: &Candidate| {
            sum += weight(candidate.logit, max);
            sum > share * total * (1.0 - SUM_ERROR)
        };
        let length = 1 + all.iter().position(reaches)?;
        (sum > share * total * (1.0 + SUM_ERROR)).then_some(length)
    }

    /// The candidates, in no particular order.
    pub fn as_slice(&self) -> &[Candidate] {
        &self.list
    }

    /// The first `n` candidates in rank order, or all.
    pub fn ranked(&mut self, n: usize) -> &[Candidate] {
        self.sort_first(n);
        &self.list[..n.min(self.list.len())]
    }

    /// Number of candidates.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The largest logit; -inf if there are no candidates.
    pub fn max(&self) -> f32 {
        let all = if self.sorted > 0 { &self.list[..1] } else { &self.list };
        all.iter()
            .fold(f32::NEG_INFINITY, |max, candidate| max.max(candidate.logit))
    }

    /// `exp(logit - max)` of each candidate, in the list's order, and their sum. A sum of 0 means that nothing can be drawn.
    pub(super) fn weights(&self) -> (Vec<f64>, f64) {
        let max = self.max();
        let weights: Vec<f64> = self.list.iter().map(|candidate| weight(candidate.logit, max)).collect();
        let sum = weights.iter().sum();
        (weights, sum)
    }

    /// Ids and probabilities in rank order.
    pub(super) fn probabilities(&mut self) -> Vec<(u32, f64)> {
        self.ranked(usize::MAX);
        let (weights, total) = self.weights();
        let ids = self.list.iter().map(|candidate| candidate.id);
        ids.zip(weights).map(|(id, weight)| (id, weight / total)).collect()
    }

    /// The sum of all weights.
    pub(super) fn weight_sum(&self) -> f64 {
        let max = self.max();
        self.list.iter().map(|candidate| weight(candidate.logit, max)).sum()
    }

    /// The length of the shortest list of highest rank whose weights sum up to `enough`, or of all.
    pub(super) fn shortest(&mut self, enough: impl Fn(f64) -> bool) -> usize {
        const FIRST: usize = 64;
        let max = self.max();
        let (mut sum, mut length) = (0.0, 0);
        while length < self.list.len() {
            // Most lists end early, so sort a few, then four times as many.
            let until = (4 * length).max(FIRST);
            for candidate in self.ranked(until).iter().skip(length) {
                length += 1;
                sum += weight(candidate.logit, max);
                if enough(sum) {
                    return length;
                }
            }
        }
        length
    }

    fn sort_first(&mut self, n: usize) {
        let n = n.min(self.list.len());
        if n <= self.sorted {
            return;
        }
        let rest = &mut self.list[self.sorted..];
        let wanted = n - self.sorted;
        if wanted < rest.len() {
            rest.select_nth_unstable_by(wanted, by_rank);
        }
        rest[..wanted].sort_unstable_by(by_rank);
        self.sorted = n;
        self.by_id = false;
    }

    /// Keeps the `n` of highest rank, sorted.
    pub(super) fn keep_first(&mut self, n: usize) {
        // One pass with a bound is several times faster than a selection, as long as few candidates pass the bound.
        if self.sorted == 0 && n > 0 && n < self.list.len() / 16 {
            self.list = self.best(n);
        }
        self.sort_first(n);
        self.list.truncate(n);
        self.sorted = self.list.len();
        self.by_id = false;
    }

    /// At least the `n` of highest rank, and not many more.
    fn best(&self, n: usize) -> Vec<Candidate> {
        let room = n * 4;
        let mut best = Vec::with_capacity(room);
        let mut bound = f32::NEG_INFINITY;
        for &candidate in &self.list {
            if candidate.logit >= bound {
                best.push(candidate);
                if best.len() == room {
                    let (_, last, _) = best.select_nth_unstable_by(n - 1, by_rank);
                    bound = last.logit;
                    best.truncate(n);
                }
            }
        }
        best
    }

    /// Keeps the candidates for which `keep` is true.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(&Candidate) -> bool) {
        let all_sorted = self.sorted == self.list.len();
        let len = self.list.len();
        self.list.retain(|candidate| keep(candidate));
        self.by_id &= self.list.len() == len;
        self.sorted = if all_sorted { self.list.len() } else { 0 };
    }

    /// Drops the `n` of highest rank.
    pub(super) fn drop_first(&mut self, n: usize) {
        self.sort_first(n);
        let n = n.min(self.list.len());
        self.list.drain(..n);
        self.sorted -= n;
        self.by_id = false;
    }

    /// Replaces the list.
    pub(super) fn replace(&mut self, list: Vec<Candidate>) {
        self.list = list;
        self.sorted = 0;
        self.by_id = false;
    }

    /// Changes the logits of the tokens that are keys of `changes`, by a function that does not fall with the logit.
    pub(super) fn change<T: Copy>(&mut self, changes: &HashMap<u32, T>, change: impl Fn(f64, T) -> f64) {
        if let Some(rest) = self.rest.as_mut().filter(|_| !changes.is_empty()) {
            rest.log_sum_exp = None;
            for (id, &by) in changes {
                let most = bounded(rest.ceiling.logit, |l| change(l, by));
                // Few changes raise a logit, so the list is searched for few.
                if most >= rest.ceiling.logit && !self.list.iter().any(|candidate| candidate.id == *id) {
                    rest.rise(most);
                }
            }
        }
        let apply = |candidate: &mut Candidate, by: T| candidate.logit = bounded(candidate.logit, |l| change(l, by));
        if self.by_id {
            for (&id, &by) in changes {
                // Tokens beyond the vocabulary have no logit to change.
                if let Some(candidate) = self.list.get_mut(id as usize) {
                    apply(candidate, by);
                }
            }
        } else {
            for candidate in &mut self.list {
                if let Some(&by) = changes.get(&candidate.id) {
                    apply(candidate, by);
                }
            }
        }
        self.sorted = 0;
    }

    /// Changes all logits by a function that does not change their order.
    pub(super) fn scale(&mut self, change: impl Fn(f64) -> f64) {
        if let Some(rest) = &mut self.rest {
            rest.log_sum_exp = None;
            rest.rise(bounded(rest.ceiling.logit, &change));
        }
        for candidate in &mut self.list {
            // Two logits may become equal, and their ids may be in the wrong order then.
            candidate.logit = bounded(candidate.logit, &change);
        }
        self.sorted = 0;
    }
}

/// The weight of a logit in a softmax; 0 for -inf, also if all are.
pub(super) fn weight(logit: f32, max: f32) -> f64 {
    if logit == f32::NEG_INFINITY {
        return 0.0;
    }
    (f64::from(logit) - f64::from(max)).exp()
}

/// The changed logit; a finite one stays finite and becomes no -0, a banned token (-inf) stays banned. A change to -inf bans.
fn bounded(logit: f32, change: impl Fn(f64) -> f64) -> f32 {
    let changed = change(f64::from(logit));
    if logit == f32::NEG_INFINITY || changed.is_nan() || changed == f64::NEG_INFINITY {
        return f32::NEG_INFINITY;
    }
    changed.clamp(f64::from(f32::MIN), f64::from(f32::MAX)) as f32 + 0.0
}

/// The `n` most likely tokens with the natural logarithms of their probabilities, the most likely first, equal ones by rising id.
///
/// The probabilities are those of the softmax over all logits as given. NaN counts as -inf. Empty if no logit is finite, or one is +inf.
///
/// ```
/// use rocmforge_models::sampling::top_logprobs;
/// let top = top_logprobs(&[0.0, 3.0_f32.ln(), 0.0], 2);
/// assert_eq!((top[0].0, top[1].0), (1, 0));
/// assert!((top[0].1 - 0.6_f32.ln()).abs() < 1e-6);
/// ```
pub fn top_logprobs(logits: &[f32], n: usize) -> Vec<(u32, f32)> {
    let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    if !max.is_finite() || u32::try_from(logits.len()).is_err() {
        return Vec::new();
    }
    let sum = log_sum_exp(logits, max);
    let mut candidates = Candidates::default();
    candidates.refill(logits);
    candidates.retain(|candidate| !candidate.logit.is_nan());
    candidates.keep_first(n);
    let logprob = |logit: f32| (f64::from(logit) - sum) as f32;
    candidates
        .as_slice()
        .iter()
        .map(|candidate| (candidate.id, logprob(candidate.logit)))
        .collect()
}
