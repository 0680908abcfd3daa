//! Model of a program: its results when operations run one after the other, in plain vectors.

use super::program::{BUFFERS, GRAPHS, Name, PINNED, STREAMS};
use std::cell::RefCell;
use std::rc::Rc;

/// Memory that buffers share.
pub(crate) type Memory = Rc<RefCell<Vec<f32>>>;

/// A part of it.
#[derive(Clone)]
pub(crate) struct Slice {
    pub(crate) memory: Memory,
    pub(crate) at: usize,
    pub(crate) len: usize,
}

impl Slice {
    pub(crate) fn new(values: Vec<f32>) -> Self {
        let len = values.len();
        Self {
            memory: Rc::new(RefCell::new(values)),
            at: 0,
            len,
        }
    }

    pub(crate) fn values(&self) -> Vec<f32> {
        self.memory.borrow()[self.at..self.at + self.len].to_vec()
    }

    pub(crate) fn set(&self, values: &[f32]) {
        self.memory.borrow_mut()[self.at..self.at + self.len].copy_from_slice(values);
    }

    /// The first `len` elements.
    pub(crate) fn first(&self, len: usize) -> Self {
        Self { len, ..self.clone() }
    }

    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.memory, &other.memory) && self.at < other.at + other.len && other.at < self.at + self.len
    }

    pub(crate) fn coincides(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.memory, &other.memory) && self.at == other.at && self.len == other.len
    }
}

/// Something that runs on a device.
#[derive(Clone)]
pub(crate) enum Action {
    Fill(Slice, u8),
    /// To, from.
    Copy(Slice, Slice),
    /// x, y, factor.
    Scale(Slice, Slice, f32),
    /// a, b, y.
    Add(Slice, Slice, Slice),
    /// As a copy, but to and from pinned memory: another kind of node.
    PinnedCopy {
        to: Slice,
        from: Slice,
        up: bool,
    },
}

impl Action {
    pub(crate) fn run(&self) {
        match self {
            Self::Fill(to, byte) => to.set(&vec![f32::from_bits(u32::from_ne_bytes([*byte; 4])); to.len]),
            Self::Copy(to, from) | Self::PinnedCopy { to, from, .. } => to.set(&from.values()),
            Self::Scale(x, y, factor) => {
                let values: Vec<f32> = x.values().iter().map(|x| x * factor).collect();
                y.set(&values);
            }
            Self::Add(a, b, y) => {
                let values: Vec<f32> = a.values().iter().zip(b.values()).map(|(a, b)| a + b).collect();
                y.set(&values);
            }
        }
    }

    /// What an update compares: the kind of work.
    pub(crate) fn kind(&self) -> u8 {
        match self {
            Self::Fill(..) => 0,
            Self::Copy(..) => 1,
            Self::Scale(..) => 2,
            Self::Add(..) => 3,
            Self::PinnedCopy { up: true, .. } => 4,
            Self::PinnedCopy { up: false, .. } => 5,
        }
    }
}

/// A capture that goes on.
#[derive(Default)]
pub(crate) struct Capture {
    pub(crate) number: u64,
    pub(crate) actions: Vec<Action>,
    /// Whether each stream takes part.
    pub(crate) members: [bool; STREAMS],
    pub(crate) pinned: [Option<Slice>; PINNED],
}

/// What there is.
#[derive(Default)]
pub(crate) struct Model {
    pub(crate) buffers: [Option<Slice>; BUFFERS],
    pub(crate) graphs: [Option<Vec<Action>>; GRAPHS],
    pub(crate) pinned: [Option<Slice>; PINNED],
    pub(crate) capture: Option<Capture>,
    pub(crate) captures: u64,
}

impl Model {
    /// Whether a stream captures.
    pub(crate) fn captures(&self, stream: Name) -> bool {
        self.capture.as_ref().is_some_and(|capture| capture.members[stream])
    }

    /// Does an action, or captures it.
    pub(crate) fn act(&mut self, stream: Name, action: Action) {
        match &mut self.capture {
            Some(capture) if capture.members[stream] => capture.actions.push(action),
            _ => action.run(),
        }
    }
}
