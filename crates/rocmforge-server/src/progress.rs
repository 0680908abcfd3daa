//! Progress of prompts, as llama.cpp's server reports it in streams that ask for `return_progress`.

use std::time::Duration;

use rocmforge_models::generate::Stats;
use serde_json::{Value, json};

use crate::openai::timings;

/// How far a prompt is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    /// Tokens of the prompt.
    pub(crate) tokens: usize,
    /// Those of them that are in the model's cache now.
    pub(crate) done: usize,
    /// Those of them that an earlier request had left there.
    pub(crate) cached: usize,
    /// Time for the others.
    pub(crate) time: Duration,
}

impl Progress {
    fn add_to(self, mut chunk: Value) -> Value {
        chunk["prompt_progress"] = json!({
            "total": self.tokens,
            "cache": self.cached,
            "processed": self.done,
            "time_ms": self.time.as_secs_f64() * 1e3,
        });
        chunk["timings"] = timings(&Stats {
            prompt_tokens: self.done,
            cached_tokens: self.cached,
            prompt_time: self.time,
            ..Stats::default()
        });
        chunk
    }
}

/// Reports about the prompt of one answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reports {
    is_wanted: bool,
    has_begun: bool,
}

impl Reports {
    pub(crate) fn new(is_wanted: bool) -> Self {
        let has_begun = false;
        Self { is_wanted, has_begun }
    }

    /// Chunks that report this, if that is wanted, each made of an empty one. The first of all says what was in the cache before.
    pub(crate) fn take(&mut self, now: Progress, empty: impl Fn() -> Value) -> Vec<Value> {
        if !self.is_wanted {
            return Vec::new();
        }
        let before = Progress {
            done: now.cached,
            time: Duration::ZERO,
            ..now
        };
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        let reports = is_first.then_some(before).into_iter().chain([now]);
        reports.map(|progress| progress.add_to(empty())).collect()
    }
}
