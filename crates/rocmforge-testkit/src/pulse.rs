//! A lease's pulse: what it holds and may hold, told to the supervisor while the test runs.
//!
//! It shows that the test's process lives, and becomes the timeline of the report. Without a supervisor there is none.

use rocmforge_memory::Card;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

/// Names the descriptor that a test process's leases beat on: the writing end of a pipe.
pub const HEARTBEAT_FD_VARIABLE: &str = "ROCMFORGE_HEARTBEAT_FD";
/// Time between two beats.
const BEAT: Duration = Duration::from_millis(100);

/// One beat: a line of JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// Milliseconds on the clock that all processes of a machine share (`CLOCK_MONOTONIC`).
    pub at: u64,
    /// Bytes of live allocations in the lease's ledger.
    pub held: u64,
    /// What the lease may hold in all, in bytes, as last decided.
    pub budget: u64,
    /// Whether the lease ends with this beat: none follows.
    pub ended: bool,
}

/// Now, in milliseconds of [`Sample::at`].
pub fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let (seconds, nanoseconds) = (now.tv_sec.cast_unsigned(), now.tv_nsec.cast_unsigned());
    seconds * 1000 + nanoseconds / 1_000_000
}

/// Beats until it is dropped.
pub(crate) struct Pulse {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Pulse {
    /// Starts to beat for a lease on `card`, if this process was told where to.
    pub(crate) fn start(card: &Arc<Card>) -> Option<Self> {
        let number = std::env::var(HEARTBEAT_FD_VARIABLE).ok()?;
        Self::on(open(&number)?, card.clone())
    }

    fn on(mut pipe: File, card: Arc<Card>) -> Option<Self> {
        let (stop, stopped) = mpsc::channel();
        let mut beat = move |ended| {
            let sample = Sample {
                at: now(),
                held: card.ledger().live_bytes().0,
                budget: card.last_budget().0,
                ended,
            };
            let mut line = serde_json::to_vec(&sample).expect("a sample is plain data");
            line.push(b'\n');
            // A line this short is written whole or not at all. One that is lost tells of a supervisor that does not
            // listen just now, or is no more.
            let _ = pipe.write(&line);
        };
        beat(false);
        let thread = std::thread::Builder::new().name("pulse".to_owned());
        let thread = thread.spawn(move || {
            while stopped.recv_timeout(BEAT) == Err(RecvTimeoutError::Timeout) {
                beat(false);
            }
            beat(true);
        });
        Some(Self {
            stop: Some(stop),
            thread: Some(thread.ok()?),
        })
    }
}

impl Drop for Pulse {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The pipe that is open as descriptor `number`, opened once more, so that a full pipe is never waited for.
fn open(number: &str) -> Option<File> {
    let number: u32 = number.parse().ok()?;
    let path = Path::new("/proc/self/fd").join(number.to_string());
    if !fs::metadata(&path).ok()?.file_type().is_fifo() {
        return None;
    }
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    OpenOptions::new().write(true).custom_flags(nonblocking).open(path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rocmforge_memory::{Bytes, Class, DeviceKey, FixedReadings, Policy, Reading};
    use std::io::{BufRead, BufReader};
    use std::os::fd::AsRawFd;

    fn card() -> Arc<Card> {
        let reading = Reading {
            total: Some(Bytes::gib(20)),
            used: Some(Bytes::gib(2)),
            ..Reading::default()
        };
        Card::new(
            DeviceKey::new("sim:0"),
            Policy::tests(),
            Box::new(FixedReadings(reading)),
        )
    }

    #[test]
    fn a_pulse_that_is_dropped_has_ended() {
        let card = card();
        let (_from, to) = std::io::pipe().unwrap();
        for _ in 0..20 {
            let pulse = Pulse::on(open(&to.as_raw_fd().to_string()).unwrap(), card.clone());
            assert!(Arc::strong_count(&card) > 1);
            drop(pulse);
            assert_eq!(Arc::strong_count(&card), 1, "its thread is gone");
        }
    }

    #[test]
    fn a_pulse_says_what_is_held_until_the_lease_ends() {
        let card = card();
        let (from, to) = std::io::pipe().unwrap();
        let start = now();
        let pulse = Pulse::on(open(&to.as_raw_fd().to_string()).unwrap(), card.clone()).unwrap();
        drop(to);
        let held = card.try_reserve(Bytes(4096), Class::Required, "x").unwrap().commit();
        let mut samples = BufReader::new(from)
            .lines()
            .map(|line| serde_json::from_str::<Sample>(&line.unwrap()).unwrap());
        assert_eq!(
            samples.next().map(|sample| (sample.held, sample.ended)),
            Some((0, false))
        );
        let seen = samples.find(|sample| sample.held == 4096).unwrap();
        assert_eq!(Bytes(seen.budget), Bytes::gib(2));
        assert!(seen.at >= start && !seen.ended);
        drop(pulse);
        let rest: Vec<Sample> = samples.collect();
        assert_eq!(rest.iter().filter(|sample| sample.ended).count(), 1);
        assert!(rest.last().unwrap().ended, "nothing follows the end");
        drop(held);
    }

    #[test]
    fn the_time_is_the_machines_in_milliseconds() {
        let machine = || {
            let now = clock_gettime(ClockId::Monotonic);
            now.tv_sec as f64 * 1e3 + now.tv_nsec as f64 / 1e6
        };
        let before = machine();
        // A millisecond is cut off.
        let (now, after) = (now() as f64, machine());
        assert!(before - 1.0 <= now && now <= after, "{before} {now} {after}");
    }

    #[test]
    fn only_a_pipe_is_written_to() {
        let file = tempfile::tempfile().unwrap();
        for number in ["", "x", "-1", "99999", &file.as_raw_fd().to_string()] {
            assert!(open(number).is_none(), "{number}");
        }
    }
}
