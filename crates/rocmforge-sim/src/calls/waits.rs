//! Waits of the host for operations.

use crate::calls::call::{Call, Hip};
use crate::queues::point::{Point, StreamId};
use crate::report::ReportKind;
use rocmforge_hip_sys::hipErrorLaunchTimeOut;
use std::time::Duration;

/// Milliseconds that a call waits for a value that another host thread may write.
const PATIENCE: u32 = 1000;

impl Call<'_> {
    /// Runs everything that must be done before `points` are, as a blocking wait does; and fails with the fault of a
    /// card if one occurs.
    pub(crate) fn force(&mut self, points: &[Point]) -> Hip {
        // Before they run: a destroyed stream goes with its last operation.
        let queues = points.iter().filter_map(|point| self.queues.get(point.stream));
        let cards: Vec<usize> = queues.map(|queue| queue.card).collect();
        self.finish(points)?;
        self.knows(points);
        cards.into_iter().try_for_each(|card| self.healthy(card))
    }

    /// The same without the program's knowing: nothing promises it that they are done.
    pub(crate) fn finish(&mut self, points: &[Point]) -> Hip {
        let mut patience = PATIENCE;
        loop {
            let past = self.queues.past(points);
            if past.is_empty() {
                break;
            }
            while !points.iter().all(|point| self.queues.is_done(*point)) && self.step(Some(&past)) {}
            if self.queues.past(points).is_empty() {
                break;
            }
            let runs = |id: &StreamId| self.queues.get(*id).is_some_and(|queue| queue.running);
            if past.keys().any(runs) {
                let sim = self.sim;
                self.host.wait(&sim.returned);
                continue;
            }
            if self.host.await_restore(&past) {
                continue;
            }
            let stalled = self.queues.any_stalled(past.keys());
            if stalled && patience > 0 {
                // Another host thread may be about to write the value, or to enqueue what does.
                patience -= 1;
                self.host.unlocked(|| std::thread::sleep(Duration::from_millis(1)));
                self.queues.look_again();
                continue;
            }
            let message = if stalled {
                "this call waits for a stream that waits for a value in memory, which nobody writes"
            } else if self.queues.any_held(past.keys()) {
                "this call waits for a stream that is stopped (`SimHost::hold_stream`)"
            } else {
                "this call waits for a kernel that does not end"
            };
            let message = message.to_owned();
            self.report(ReportKind::EndlessWait, message);
            return Err(hipErrorLaunchTimeOut);
        }
        Ok(())
    }

    /// Whether `points` are done. A program that only polls must get somewhere: the n-th poll in a row that finds
    /// nothing done lets 2^(n-2) operations run, and simulated time passes.
    pub(crate) fn poll(&mut self, points: &[Point]) -> bool {
        let past = self.queues.past(points);
        if past.is_empty() {
            self.host.poll_streak = 0;
            self.knows(points);
            return true;
        }
        let runs = match self.poll_streak {
            0 => 0,
            n => 1u64 << (n - 1).min(20),
        };
        self.host.poll_streak = self.poll_streak.saturating_add(1);
        for _ in 0..runs {
            if !self.step(Some(&past)) {
                break;
            }
        }
        false
    }
}
