//! Meter of one rendering: the work it did and the bytes it holds, charged before they are spent, and the characters that stand for others.

use std::cell::Cell;
use std::rc::Rc;

use super::error::{Cause, Error};

/// The most units of work of one rendering. A unit is a byte that is read or written, which takes about a nanosecond.
pub const MAX_WORK: u64 = 200_000_000;

/// The most bytes that the values of one rendering hold at a time, its text among them.
pub const MAX_BYTES: usize = 128 << 20;

/// Units of one step: a node of the template, an item of a list.
pub(super) const STEP: usize = 50;

/// What one rendering has used.
#[derive(Debug, Default)]
pub(super) struct Meter {
    work: Cell<u64>,
    held: Cell<usize>,
    peak: Cell<usize>,
    marks: Vec<char>,
}

impl Meter {
    /// A meter on which work was done before. `marks` are characters that stand for visible ones, so that they are never escaped.
    pub(super) fn new(work: u64, marks: &[char]) -> Rc<Self> {
        Rc::new(Self {
            work: Cell::new(work),
            marks: marks.to_vec(),
            ..Self::default()
        })
    }

    /// Whether a character stands for another.
    pub(super) fn is_mark(&self, character: char) -> bool {
        self.marks.contains(&character)
    }

    /// Charges work.
    pub(super) fn spend(&self, units: usize) -> Result<(), Error> {
        let work = self.work.get().saturating_add(units as u64);
        self.work.set(work);
        if work > MAX_WORK {
            return Err(Error::new(Cause::Work));
        }
        Ok(())
    }

    /// Charges bytes, for as long as the charge lives, and the work of writing them.
    pub(super) fn hold(self: &Rc<Self>, bytes: usize) -> Result<Charge, Error> {
        let mut charge = Charge {
            meter: Rc::clone(self),
            bytes: 0,
        };
        charge.add(bytes)?;
        Ok(charge)
    }

    /// What was used so far.
    pub(super) fn used(&self) -> Used {
        Used {
            work: self.work.get(),
            bytes: self.peak.get(),
        }
    }
}

/// What a rendering used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Used {
    /// Units of work.
    pub work: u64,
    /// The most bytes that were held at a time.
    pub bytes: usize,
}

/// Bytes charged to a meter; given back when it is dropped.
#[derive(Debug)]
pub(super) struct Charge {
    meter: Rc<Meter>,
    bytes: usize,
}

impl Charge {
    /// The meter.
    pub(super) fn meter(&self) -> &Rc<Meter> {
        &self.meter
    }

    /// Charges further bytes.
    pub(super) fn add(&mut self, bytes: usize) -> Result<(), Error> {
        let held = self.meter.held.get().saturating_add(bytes);
        if held > MAX_BYTES {
            return Err(Error::new(Cause::Memory { bytes: held }));
        }
        self.meter.spend(bytes)?;
        self.meter.held.set(held);
        self.meter.peak.set(self.meter.peak.get().max(held));
        self.bytes += bytes;
        Ok(())
    }

    /// Gives back all but `bytes`.
    pub(super) fn shrink_to(&mut self, bytes: usize) {
        let back = self.bytes.saturating_sub(bytes);
        self.meter.held.set(self.meter.held.get() - back);
        self.bytes -= back;
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}
