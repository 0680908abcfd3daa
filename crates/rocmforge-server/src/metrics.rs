//! Metrics: counters of a model's requests, and all figures as Prometheus reads them.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rocmforge_models::generate::{Event, Stats};
use rocmforge_models::serve::ServeError;

use crate::app::App;
use crate::registry::{Entry, Totals};

/// How requests end, and vLLM's word for those that did not fail.
const ENDS: [(&str, &str); 10] = [
    ("end_of_text", "stop"),
    ("stop_token", "stop"),
    ("stop_string", "stop"),
    ("max_tokens", "length"),
    ("context_full", "length"),
    ("embedded", "stop"),
    ("cancelled", "abort"),
    ("failed", ""),
    ("refused", ""),
    ("other", ""),
];

/// Upper bounds of a histogram's buckets, in seconds.
const BOUNDS: [f64; 16] = [
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 600.0,
];

/// Counts of times by their length.
#[derive(Debug, Default)]
pub(crate) struct Histogram(Mutex<Counts>);

#[derive(Clone, Debug, Default)]
struct Counts {
    buckets: [u64; BOUNDS.len()],
    count: u64,
    seconds: f64,
}

impl Histogram {
    pub(crate) fn add(&self, time: Duration) {
        let seconds = time.as_secs_f64();
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (bucket, bound) in counts.buckets.iter_mut().zip(BOUNDS) {
            *bucket += u64::from(seconds <= bound);
        }
        counts.count += 1;
        counts.seconds += seconds;
    }

    fn counts(&self) -> Counts {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Counters of a model.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    ends: [AtomicU64; ENDS.len()],
    prompt_tokens: AtomicU64,
    cached_tokens: AtomicU64,
    drawn_tokens: AtomicU64,
    prompt_time: Histogram,
    decode_time: Histogram,
    /// Tokens of the longest sequence.
    longest: AtomicU64,
    first_token: Histogram,
    next_token: Histogram,
    whole: Histogram,
    /// Of engines that have ended. An entry locks it after its engine.
    pub(crate) ended: Mutex<Totals>,
}

fn add(counter: &AtomicU64, tokens: usize) {
    counter.fetch_add(tokens as u64, Ordering::Relaxed);
}

impl Metrics {
    fn count_end(&self, end: &str) {
        let place = ENDS.iter().position(|(name, _)| *name == end);
        add(&self.ends[place.unwrap_or(ENDS.len() - 1)], 1);
    }

    /// A request was refused, or has failed.
    pub(crate) fn end_with(&self, error: &ServeError) {
        self.count_end(match error {
            ServeError::Refused(_) | ServeError::QueueFull { .. } | ServeError::Draining => "refused",
            _ => "failed",
        });
    }

    /// A request for embeddings or scores has ended, whose inputs had so many tokens.
    pub(crate) fn embedded(&self, end: &str, tokens: usize, time: Duration) {
        self.count_end(end);
        add(&self.prompt_tokens, tokens);
        if end == "embedded" {
            self.whole.add(time);
        }
    }

    /// A request has ended.
    fn end(&self, end: &str, stats: &Stats, time: Duration) {
        self.count_end(end);
        if !stats.prompt_time.is_zero() {
            self.prompt_time.add(stats.prompt_time);
            self.decode_time.add(stats.decode_time);
        }
        let length = stats.prompt_tokens + stats.drawn_tokens;
        self.longest.fetch_max(length as u64, Ordering::Relaxed);
        if !matches!(end, "cancelled" | "failed") {
            self.whole.add(time);
        }
    }
}

/// Counts a request's tokens while they come: those of one that is cancelled were computed, too.
pub(crate) struct RequestCounts {
    metrics: Arc<Metrics>,
    begun: Instant,
    last_token: Option<Instant>,
    /// Tokens of the prompt that were counted; `None` before the first.
    prompt: Option<usize>,
    drawn: usize,
}

impl RequestCounts {
    /// Of a request that asked for its model at this time.
    pub(crate) fn new(metrics: Arc<Metrics>, begun: Instant) -> Self {
        Self {
            metrics,
            begun,
            last_token: None,
            prompt: None,
            drawn: 0,
        }
    }

    /// Takes the next event.
    pub(crate) fn take(&mut self, event: &Result<Event, ServeError>) {
        let metrics = &self.metrics;
        match event {
            Ok(Event::Prompt { done, cached, .. }) => {
                // A prompt that lost its place in the cache is computed again, and counted once.
                let counted = self.prompt.unwrap_or(0);
                add(&metrics.prompt_tokens, done.saturating_sub(counted));
                if self.prompt.is_none() {
                    add(&metrics.cached_tokens, *cached);
                }
                self.prompt = Some(counted.max(*done));
            }
            Ok(Event::Token { .. }) => {
                let now = Instant::now();
                match self.last_token.replace(now) {
                    None => metrics.first_token.add(now - self.begun),
                    Some(last) => metrics.next_token.add(now - last),
                }
                self.drawn += 1;
                add(&metrics.drawn_tokens, 1);
            }
            Ok(Event::Finished { reason, stats, .. }) => {
                // A token that ends a text has no event.
                add(&metrics.drawn_tokens, stats.drawn_tokens.saturating_sub(self.drawn));
                metrics.end(reason.name(), stats, self.begun.elapsed());
            }
            Err(error) => metrics.end_with(error),
        }
    }
}

/// A text of metrics.
#[derive(Default)]
struct Text(String);

/// A label's value may hold anything.
fn quoted(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

impl Text {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &str, value: impl std::fmt::Display) {
        let _ = writeln!(self.0, "{name}{{{labels}}} {value}");
    }

    /// llama.cpp's names: sums of all models, without labels.
    fn llama_cpp(&mut self, now: &[Now], models: &[Arc<Entry>], totals: &[Totals]) {
        let sum = |count: fn(&Metrics) -> &AtomicU64| -> u64 {
            let counts = models.iter().map(|entry| count(&entry.metrics).load(Ordering::Relaxed));
            counts.sum()
        };
        let seconds = |times: fn(&Metrics) -> &Histogram| -> f64 {
            let times = models.iter().map(|entry| times(&entry.metrics).counts().seconds);
            times.sum()
        };
        let per = |count: u64, by: f64| if by > 0.0 { count as f64 / by } else { 0.0 };
        let cached = sum(|metrics| &metrics.cached_tokens);
        // Events between the two readings add to the second.
        let prompt = sum(|metrics| &metrics.prompt_tokens).saturating_sub(cached);
        let drawn = sum(|metrics| &metrics.drawn_tokens);
        let (prompt_time, decode_time) = (
            seconds(|metrics| &metrics.prompt_time),
            seconds(|metrics| &metrics.decode_time),
        );
        let longest = models.iter().map(|entry| entry.metrics.longest.load(Ordering::Relaxed));
        let steps: u64 = totals.iter().map(|totals| totals.steps).sum();
        let of_all = |count: fn(&Now) -> usize| now.iter().map(count).sum::<usize>() as f64;
        for (name, kind, help, value) in [
            (
                "prompt_tokens_total",
                "counter",
                "Computed tokens of prompts.",
                prompt as f64,
            ),
            (
                "prompt_tokens_cached_total",
                "counter",
                "Tokens of prompts that were in the cache.",
                cached as f64,
            ),
            (
                "prompt_seconds_total",
                "counter",
                "Time of steps with prompts.",
                prompt_time,
            ),
            (
                "tokens_predicted_total",
                "counter",
                "Tokens that were drawn.",
                drawn as f64,
            ),
            (
                "tokens_predicted_seconds_total",
                "counter",
                "Time of steps after prompts.",
                decode_time,
            ),
            ("n_decode_total", "counter", "Steps of the engine.", steps as f64),
            (
                "n_tokens_max",
                "counter",
                "Tokens of the longest sequence.",
                longest.max().unwrap_or(0) as f64,
            ),
            (
                "spec_decode_num_draft_tokens_total",
                "counter",
                "Always 0: nothing is drafted.",
                0.0,
            ),
            ("spec_decode_num_accepted_tokens_total", "counter", "Always 0.", 0.0),
            ("spec_decode_num_drafts_total", "counter", "Always 0.", 0.0),
            (
                "prompt_tokens_seconds",
                "gauge",
                "Computed tokens of prompts per second of their steps.",
                per(prompt, prompt_time),
            ),
            (
                "predicted_tokens_seconds",
                "gauge",
                "Drawn tokens per second of their steps.",
                per(drawn, decode_time),
            ),
            (
                "requests_processing",
                "gauge",
                "Requests with a place in the cache.",
                of_all(|now| now.running),
            ),
            (
                "requests_deferred",
                "gauge",
                "Requests without one.",
                of_all(|now| now.waiting),
            ),
            (
                "n_busy_slots_per_decode",
                "gauge",
                "Tokens drawn in a step.",
                per(drawn, steps as f64),
            ),
        ] {
            let name = format!("llamacpp:{name}");
            self.family(&name, kind, help);
            let _ = writeln!(self.0, "{name} {value}");
        }
    }

    fn histogram(&mut self, name: &str, labels: &str, histogram: &Histogram) {
        let Counts {
            buckets,
            count,
            seconds,
        } = histogram.counts();
        for (bound, bucket) in BOUNDS.iter().zip(buckets) {
            self.sample(&format!("{name}_bucket"), &format!("{labels},le=\"{bound}\""), bucket);
        }
        self.sample(&format!("{name}_bucket"), &format!("{labels},le=\"+Inf\""), count);
        self.sample(&format!("{name}_sum"), labels, seconds);
        self.sample(&format!("{name}_count"), labels, count);
    }
}

/// A model's figures at one moment.
struct Now {
    labels: String,
    running: usize,
    waiting: usize,
    used: f64,
    blocks: usize,
    block_size: usize,
    last_step: f64,
    /// All bytes, and those on cards.
    bytes: (u64, u64),
}

/// All figures. Names that begin with `vllm:` are those that routers read by default.
pub(crate) fn text(app: &App) -> String {
    let mut text = Text::default();
    let models: Vec<_> = app.registry().entries().collect();
    let label = |name: &str| format!("model_name=\"{}\"", quoted(name));
    let now = models.iter().filter_map(|entry| {
        entry.look(|loaded, figures| Now {
            labels: label(&entry.name),
            running: figures.running,
            waiting: figures.open.saturating_sub(figures.running),
            used: match figures.cache.blocks {
                0 => 0.0,
                blocks => (blocks - figures.cache.free.min(blocks)) as f64 / blocks as f64,
            },
            blocks: figures.cache.blocks,
            block_size: loaded.facts.cache_tokens.checked_div(figures.cache.blocks).unwrap_or(0),
            last_step: figures.last_step.map_or(-1.0, |age| age.as_secs_f64()),
            bytes: loaded.bytes(figures),
        })
    });
    let now: Vec<Now> = now.collect();
    let totals: Vec<Totals> = models.iter().map(|entry| entry.totals()).collect();
    type Gauge = (&'static str, &'static str, fn(&Now) -> f64);
    let gauges: [Gauge; 6] = [
        (
            "vllm:num_requests_running",
            "Requests with a place in the cache.",
            |now| now.running as f64,
        ),
        ("vllm:num_requests_waiting", "Requests without one.", |now| {
            now.waiting as f64
        }),
        (
            "vllm:kv_cache_usage_perc",
            "Part of the cache that is in use, 0 to 1.",
            |now| now.used,
        ),
        (
            "rocmforge_last_step_age_seconds",
            "Time since the last step of the engine ended; -1 before the first.",
            |now| now.last_step,
        ),
        ("rocmforge_model_bytes", "Bytes of weights and cache.", |now| {
            now.bytes.0 as f64
        }),
        (
            "rocmforge_model_card_bytes",
            "Those of them that lie on cards.",
            |now| now.bytes.1 as f64,
        ),
    ];
    for (name, help, value) in gauges {
        text.family(name, "gauge", help);
        now.iter()
            .for_each(|model| text.sample(name, &model.labels, value(model)));
    }
    type OfTotals = (&'static str, &'static str, fn(&Totals) -> u64);
    let of_totals: [OfTotals; 4] = [
        (
            "vllm:prefix_cache_queries_total",
            "Tokens of prompts that were looked up in the cache.",
            |totals| totals.prompts.tokens,
        ),
        ("vllm:prefix_cache_hits_total", "Those that were found.", |totals| {
            totals.prompts.cached
        }),
        (
            "rocmforge_spills_total",
            "Parts of the model that went to the host because a card had no room.",
            |totals| totals.spills,
        ),
        ("rocmforge_returns_total", "Those that came back.", |totals| {
            totals.returns
        }),
    ];
    for (name, help, count) in of_totals {
        text.family(name, "counter", help);
        for (entry, totals) in models.iter().zip(&totals) {
            text.sample(name, &label(&entry.name), count(totals));
        }
    }
    text.family("vllm:cache_config_info", "gauge", "Blocks of the cache.");
    for model in &now {
        let labels = format!(
            "{},block_size=\"{}\",num_gpu_blocks=\"{}\"",
            model.labels, model.block_size, model.blocks
        );
        text.sample("vllm:cache_config_info", &labels, 1);
    }
    type Counter = (&'static str, &'static str, fn(&Metrics) -> &AtomicU64);
    let counters: [Counter; 3] = [
        ("vllm:prompt_tokens_total", "Tokens of prompts.", |metrics| {
            &metrics.prompt_tokens
        }),
        ("vllm:generation_tokens_total", "Tokens that were drawn.", |metrics| {
            &metrics.drawn_tokens
        }),
        (
            "rocmforge_cached_prompt_tokens_total",
            "Tokens of prompts that an earlier request had left.",
            |metrics| &metrics.cached_tokens,
        ),
    ];
    for (name, help, counter) in counters {
        text.family(name, "counter", help);
        for entry in &models {
            text.sample(
                name,
                &label(&entry.name),
                counter(&entry.metrics).load(Ordering::Relaxed),
            );
        }
    }
    let ends = |entry: &Entry| entry.metrics.ends.each_ref().map(|count| count.load(Ordering::Relaxed));
    text.family(
        "rocmforge_requests_total",
        "counter",
        "Requests that have ended, by their end.",
    );
    for entry in &models {
        for ((end, _), count) in ENDS.iter().zip(ends(entry)) {
            let labels = format!("{},end=\"{end}\"", label(&entry.name));
            text.sample("rocmforge_requests_total", &labels, count);
        }
    }
    text.family(
        "vllm:request_success_total",
        "counter",
        "Requests that have ended without an error.",
    );
    for entry in &models {
        for reason in ["stop", "length", "abort"] {
            let of_reason = ENDS.iter().zip(ends(entry)).filter(|((_, word), _)| *word == reason);
            let count: u64 = of_reason.map(|(_, count)| count).sum();
            let labels = format!("{},finished_reason=\"{reason}\"", label(&entry.name));
            text.sample("vllm:request_success_total", &labels, count);
        }
    }
    type Times = (&'static str, &'static str, fn(&Metrics) -> &Histogram);
    let histograms: [Times; 4] = [
        (
            "vllm:time_to_first_token_seconds",
            "Time to the first token, from when the request asks for its model.",
            |metrics| &metrics.first_token,
        ),
        (
            "vllm:inter_token_latency_seconds",
            "Time from one token to the next.",
            |metrics| &metrics.next_token,
        ),
        (
            "vllm:request_prefill_time_seconds",
            "Time of steps with a request's prompt.",
            |metrics| &metrics.prompt_time,
        ),
        (
            "vllm:e2e_request_latency_seconds",
            "Time of whole requests, from when they ask for their model; without those that were refused, cancelled or failed.",
            |metrics| &metrics.whole,
        ),
    ];
    for (name, help, histogram) in histograms {
        text.family(name, "histogram", help);
        models
            .iter()
            .for_each(|entry| text.histogram(name, &label(&entry.name), histogram(&entry.metrics)));
    }
    text.llama_cpp(&now, &models, &totals);
    text.0
}
