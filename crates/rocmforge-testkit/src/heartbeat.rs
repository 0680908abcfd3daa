//! Heartbeat of a lease: a thread that sends the supervisor what the lease holds and may hold.

use rocmforge_gpu_test::heartbeat::{HEARTBEAT_FD_VARIABLE, Sample, now};
use rocmforge_memory::Card;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

/// Time between two beats.
const BEAT: Duration = Duration::from_millis(100);

/// Beats until it is dropped.
pub(crate) struct Heartbeat {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Heartbeat {
    /// Starts to beat for a lease on `card`, if the environment names the pipe.
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
        let thread = std::thread::Builder::new().name("heartbeat".to_owned());
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

impl Drop for Heartbeat {
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
    fn a_heartbeat_that_is_dropped_has_ended() {
        let card = card();
        let (_from, to) = std::io::pipe().unwrap();
        for _ in 0..20 {
            let heartbeat = Heartbeat::on(open(&to.as_raw_fd().to_string()).unwrap(), card.clone());
            assert!(Arc::strong_count(&card) > 1);
            drop(heartbeat);
            assert_eq!(Arc::strong_count(&card), 1, "its thread is gone");
        }
    }

    #[test]
    fn a_heartbeat_says_what_is_held_until_the_lease_ends() {
        let card = card();
        let (from, to) = std::io::pipe().unwrap();
        let start = now();
        let heartbeat = Heartbeat::on(open(&to.as_raw_fd().to_string()).unwrap(), card.clone()).unwrap();
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
        drop(heartbeat);
        let rest: Vec<Sample> = samples.collect();
        assert_eq!(rest.iter().filter(|sample| sample.ended).count(), 1);
        assert!(rest.last().unwrap().ended, "nothing follows the end");
        drop(held);
    }

    #[test]
    fn only_a_pipe_is_written_to() {
        let file = tempfile::tempfile().unwrap();
        for number in ["", "x", "-1", "99999", &file.as_raw_fd().to_string()] {
            assert!(open(number).is_none(), "{number}");
        }
    }
}
