//! Time on the stream, between two events.

use crate::card::Card;
use rocmforge_runtime::HipEvent;
use std::time::Duration;

/// Bytes that the buffers of one measurement have together, at least: several times the largest cache of a card (the
/// 60 MB of an H200, the 256 MB of an MI300X), so that no pass finds in it what an earlier one left.
pub(crate) const ROTATED: u64 = 1 << 30;

/// Sets of buffers to go round in, if one has `bytes`.
pub(crate) fn sets(bytes: u64) -> usize {
    ROTATED.div_ceil(bytes.max(1)).clamp(1, 64) as usize
}

/// Two events.
pub(crate) struct Watch<'a> {
    card: &'a Card,
    start: HipEvent,
    end: HipEvent,
}

impl<'a> Watch<'a> {
    pub(crate) fn new(card: &'a Card) -> Self {
        let event = |label| card.backend().create_timing_event(label).expect("an event");
        Self {
            card,
            start: event("start"),
            end: event("end"),
        }
    }

    /// The device's time for what `work` enqueues on the card's stream.
    pub(crate) fn time(&self, work: impl FnOnce()) -> Duration {
        let stream = self.card.stream();
        stream.record(&self.start).expect("a live stream");
        work();
        stream.record(&self.end).expect("a live stream");
        self.end.synchronize().expect("the work ends");
        self.start.elapsed(&self.end).expect("both are recorded")
    }
}

/// The middle one.
pub(crate) fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    match samples.len() {
        0 => f64::NAN,
        n => (samples[(n - 1) / 2] + samples[n / 2]) / 2.0,
    }
}
