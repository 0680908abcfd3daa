//! Programs beside ours on the card: how much of its memory they want, and when.

use crate::machine::trace::Rng;
use rocmforge_memory::Bytes;
use std::time::Duration;

/// Steps of a walk.
const WALK_STEP: Duration = Duration::from_millis(100);

/// A program beside ours, and how much of the card's memory it wants over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Client {
    pub(crate) name: &'static str,
    pub(crate) place: Place,
    pub(crate) behaviour: Behaviour,
}

/// What a client's memory is to the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Graphics that no frame needs now: evicted first.
    Background,
    /// Graphics that every frame needs.
    Foreground,
    /// Another ROCm process: the kernel driver for compute counts it.
    Rocm,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Behaviour {
    /// From each time on, that many bytes.
    Steps(Vec<(Duration, Bytes)>),
    /// A random walk between two bounds.
    Walk { low: Bytes, high: Bytes, span: Bytes },
}

const fn at(milliseconds: u64, mib: u64) -> (Duration, Bytes) {
    (Duration::from_millis(milliseconds), Bytes(mib << 20))
}

impl Client {
    /// A graphics program in the background that wants each number of bytes from its time on. The times rise.
    pub fn steps(name: &'static str, steps: Vec<(Duration, Bytes)>) -> Self {
        Self {
            name,
            place: Place::Background,
            behaviour: Behaviour::Steps(steps),
        }
    }

    /// A graphics program in the background whose wants walk at random between `low` and `high`: up to 6 GiB either way
    /// within three to ten seconds, evenly, then to somewhere else.
    pub fn walk(low: Bytes, high: Bytes) -> Self {
        Self {
            name: "walk",
            place: Place::Background,
            behaviour: Behaviour::Walk {
                low,
                high,
                span: Bytes(6 << 30),
            },
        }
    }

    /// A browser: 400 MiB, and a tab more every two seconds for half a minute.
    pub fn browser() -> Self {
        let tabs = (0..16).map(|tab| at(2000 * tab, 400 + 80 * tab));
        Self::steps("browser", tabs.collect())
    }

    /// A game that starts at a time: menus, then 6 GiB within five seconds.
    pub fn game(start: Duration) -> Self {
        let level = (0..=20).map(|part| {
            (
                start + Duration::from_millis(2000 + 250 * part),
                Bytes((300 + 290 * part) << 20),
            )
        });
        let steps = std::iter::once((start, Bytes(300 << 20))).chain(level);
        Self::steps("game", steps.collect()).in_foreground()
    }

    /// A video that plays from a time on: 250 MiB, needed for every frame.
    pub fn video(start: Duration) -> Self {
        Self::steps("video", vec![(start, Bytes(250 << 20))]).in_foreground()
    }

    /// Another ROCm process, whose memory HIP sees.
    pub fn rocm(steps: Vec<(Duration, Bytes)>) -> Self {
        Self {
            place: Place::Rocm,
            ..Self::steps("rocm", steps)
        }
    }

    /// The same program with a window on top: every frame needs its memory.
    pub fn in_foreground(self) -> Self {
        Self {
            place: Place::Foreground,
            ..self
        }
    }
}

/// A client at work.
pub(crate) struct Running {
    pub(crate) client: Client,
    /// Bytes it wants now.
    pub(crate) wants: u64,
    /// When that changes.
    pub(crate) next: Option<Duration>,
    step: usize,
    rng: Rng,
    /// What a walk adds in each step, and how many steps are left of it.
    ramp: (i64, u64),
}

impl Running {
    pub(crate) fn new(client: Client, seed: u64) -> Self {
        let (wants, next) = match &client.behaviour {
            Behaviour::Steps(steps) => (0, steps.first().map(|(time, _)| *time)),
            Behaviour::Walk { low, .. } => (low.0, Some(WALK_STEP)),
        };
        Self {
            client,
            wants,
            next,
            step: 0,
            rng: Rng::new(seed),
            ramp: (0, 0),
        }
    }

    /// Wants what it wants from `now` on.
    pub(crate) fn change(&mut self, now: Duration) {
        match &self.client.behaviour {
            Behaviour::Steps(steps) => {
                self.wants = steps.get(self.step).map_or(self.wants, |(_, bytes)| bytes.0);
                self.step += 1;
                self.next = steps.get(self.step).map(|(time, _)| (*time).max(now));
            }
            Behaviour::Walk { low, high, span } => {
                let (low, high, span) = (low.0, high.0.max(low.0), span.0);
                if self.ramp.1 == 0 {
                    let (least, most) = (
                        self.wants.saturating_sub(span).max(low),
                        self.wants.saturating_add(span).min(high),
                    );
                    let target = least + self.rng.below((most - least + 1) as usize) as u64;
                    let steps = 30 + self.rng.below(71) as u64;
                    self.ramp = ((target as i64 - self.wants as i64) / steps as i64, steps);
                }
                self.ramp.1 -= 1;
                self.wants = self.wants.saturating_add_signed(self.ramp.0).clamp(low, high);
                self.next = Some(now + WALK_STEP);
            }
        }
    }

    /// Its memory could not be kept anywhere: it is gone.
    pub(crate) fn kill(&mut self) {
        (self.wants, self.next) = (0, None);
    }
}
