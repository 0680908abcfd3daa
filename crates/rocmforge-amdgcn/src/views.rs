//! Copy-on-write views of a card's memory, for launches on several host threads.
//!
//! The data is mirrored in a file without a name, and each view is a private map of it: pages that a view has not written are shared.
//! Mirror and views stay between launches. Before a launch they take over what has changed since the last one; after it each view gives
//! its own pages back. So a launch costs time for the memory that is written, not for the memory that is allocated.

use crate::memory::{GlobalMemory, MIXED, Views};
use crate::written::{CHUNK_BITS, runs};
use memmap2::{MmapMut, MmapOptions};
use std::fs::File;
use std::ops::Range;

impl Views {
    /// `count` or more views with the content of `memory`, which [`Self::put_back`] takes back; `None` when the host has no room for
    /// them.
    pub(crate) fn take(memory: &mut GlobalMemory, count: usize) -> Option<Self> {
        let mut views = match memory.views.take() {
            Some(views) if views.process == std::process::id() => *views,
            _ => Self::new(memory)?,
        };
        views.refresh(memory)?;
        while views.views.len() < count {
            let view = memory.view(map_private(&views.mirror)?)?;
            views.views.push(view);
        }
        Some(views)
    }

    /// The views.
    pub(crate) fn all(&mut self) -> &mut [GlobalMemory] {
        &mut self.views
    }

    /// Keeps the views for the next launch, without what this one has written in them.
    pub(crate) fn put_back(mut self, memory: &mut GlobalMemory) {
        for view in &mut self.views {
            for run in view.written.runs() {
                // The next refresh puts their states right.
                memory.written.mark(run.start << CHUNK_BITS, run.end << CHUNK_BITS);
                if !discard(&mut view.data, run.start << CHUNK_BITS, run.len() << CHUNK_BITS) {
                    return;
                }
            }
            view.written.clear();
        }
        memory.views = Some(Box::new(self));
    }

    fn new(memory: &mut GlobalMemory) -> Option<Self> {
        let mirror = unnamed_file(memory.size() as usize)?;
        for chunk in (0..memory.written.end()).filter(|&chunk| memory.summary[chunk] != 0) {
            memory.written.mark(chunk << CHUNK_BITS, (chunk + 1) << CHUNK_BITS);
        }
        Some(Self {
            mirror,
            process: std::process::id(),
            views: Vec::new(),
        })
    }

    /// Takes over the chunks that the memory has noted.
    fn refresh(&mut self, memory: &mut GlobalMemory) -> Option<()> {
        for run in memory.written.runs() {
            let allocated = |chunk: &usize| memory.summary[*chunk] & 2 != 0;
            for part in runs(run.clone().filter(allocated)) {
                let bytes = part.start << CHUNK_BITS..part.end << CHUNK_BITS;
                write_at(&self.mirror, &memory.data[bytes.clone()], bytes.start)?;
            }
            for part in runs(run.clone().filter(|chunk| !allocated(chunk))) {
                empty(&self.mirror, part.start << CHUNK_BITS, part.len() << CHUNK_BITS);
            }
            for view in &mut self.views {
                view.copy_states(memory, run.clone());
            }
        }
        memory.written.clear();
        Some(())
    }
}

impl GlobalMemory {
    /// A view with this data and the states of this memory.
    fn view(&self, data: MmapMut) -> Option<Self> {
        let mut view = Self::over(data, self.base(), self.size() as usize).ok()?;
        let used = self.written.end();
        for chunk in (0..used).filter(|&chunk| self.summary[chunk] != 0) {
            view.copy_states(self, chunk..chunk + 1);
        }
        view.written.reach(used << CHUNK_BITS);
        Some(view)
    }

    fn copy_states(&mut self, from: &Self, chunks: Range<usize>) {
        self.written.reach(chunks.end << CHUNK_BITS);
        for chunk in chunks {
            self.summary[chunk] = from.summary[chunk];
            if from.summary[chunk] == MIXED {
                let bytes = chunk << CHUNK_BITS..(chunk + 1) << CHUNK_BITS;
                self.state[bytes.clone()].copy_from_slice(&from.state[bytes]);
            }
        }
    }

    /// Takes over what launches have written in views of this memory. False, and nothing is taken, when two of them changed
    /// the same byte.
    pub(crate) fn merge(&mut self, views: &[Self]) -> bool {
        let mut writers: Vec<(usize, usize)> = (views.iter().enumerate())
            .flat_map(|(n, view)| view.written.runs().into_iter().flatten().map(move |chunk| (chunk, n)))
            .collect();
        writers.sort_unstable();
        let same_chunk = |a: &(usize, usize), b: &(usize, usize)| a.0 == b.0;
        for several in writers.chunk_by(same_chunk).filter(|by| by.len() > 1) {
            let bytes = several[0].0 << CHUNK_BITS..(several[0].0 + 1) << CHUNK_BITS;
            let changes = |at: usize| several.iter().filter(|by| self.byte_differs(&views[by.1], at)).count();
            if bytes.into_iter().any(|at| changes(at) > 1) {
                return false;
            }
        }
        for by in writers.chunk_by(same_chunk) {
            match by {
                [(chunk, n)] => {
                    let bytes = chunk << CHUNK_BITS..(chunk + 1) << CHUNK_BITS;
                    self.data[bytes.clone()].copy_from_slice(&views[*n].data[bytes.clone()]);
                    self.copy_states(&views[*n], *chunk..chunk + 1);
                    self.written.mark(bytes.start, bytes.end);
                }
                several => self.merge_chunk(several[0].0, several.iter().map(|by| &views[by.1])),
            }
        }
        true
    }

    /// Takes over the bytes of a chunk that have changed in some of several views, in no two the same.
    fn merge_chunk<'a>(&mut self, chunk: usize, views: impl Iterator<Item = &'a Self>) {
        // All runs first: what one view brings must not look like a change by the next.
        let mut runs = Vec::new();
        for view in views {
            let (mut at, end) = (chunk << CHUNK_BITS, (chunk + 1) << CHUNK_BITS);
            while at < end {
                let run = (at..end).take_while(|&at| self.byte_differs(view, at)).count();
                if run > 0 {
                    runs.push((view, at..at + run));
                }
                at += run.max(1);
            }
        }
        for (view, run) in runs {
            self.data[run.clone()].copy_from_slice(&view.data[run.clone()]);
            self.set_state_at(run.start, run.end, 3);
        }
        if self.summary[chunk] == MIXED {
            self.mark_if_written(chunk);
        }
    }

    fn byte_differs(&self, view: &Self, at: usize) -> bool {
        let state = |memory: &Self| match memory.summary[at >> CHUNK_BITS] {
            MIXED => memory.state[at],
            uniform => uniform,
        };
        self.data[at] != view.data[at] || state(self) != state(view)
    }
}

#[cfg(target_os = "linux")]
fn unnamed_file(len: usize) -> Option<File> {
    let flags = rustix::fs::MemfdFlags::CLOEXEC;
    let file = File::from(rustix::fs::memfd_create("rocmforge", flags).ok()?);
    file.set_len(len as u64).ok()?;
    Some(file)
}

#[cfg(target_os = "linux")]
fn map_private(file: &File) -> Option<MmapMut> {
    // SAFETY: the file has no name, is written only by `refresh`, while no view is in use, and every map of it is private.
    unsafe { MmapOptions::new().no_reserve_swap().map_copy(file) }.ok()
}

#[cfg(target_os = "linux")]
fn write_at(file: &File, bytes: &[u8], at: usize) -> Option<()> {
    use std::os::unix::fs::FileExt;
    file.write_all_at(bytes, at as u64).ok()
}

/// Gives the memory of a part of a file back to the host, if it takes it.
#[cfg(target_os = "linux")]
fn empty(file: &File, start: usize, len: usize) {
    let flags = rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
    // Bytes that are not allocated are never read: they may stay.
    let _ = rustix::fs::fallocate(file, flags, start as u64, len as u64);
}

/// Gives the pages back that a view has written: it shows the file's again. False when the host refuses.
#[cfg(target_os = "linux")]
fn discard(data: &mut MmapMut, start: usize, len: usize) -> bool {
    // SAFETY: the range lies inside a private map of a file that `&mut` lends to nobody else; its bytes change to the file's.
    unsafe { data.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, start, len) }.is_ok()
}

#[cfg(not(target_os = "linux"))]
fn unnamed_file(_: usize) -> Option<File> {
    None
}

#[cfg(not(target_os = "linux"))]
fn map_private(_: &File) -> Option<MmapMut> {
    None
}

#[cfg(not(target_os = "linux"))]
fn write_at(_: &File, _: &[u8], _: usize) -> Option<()> {
    None
}

#[cfg(not(target_os = "linux"))]
fn empty(_: &File, _: usize, _: usize) {}

#[cfg(not(target_os = "linux"))]
fn discard(_: &mut MmapMut, _: usize, _: usize) -> bool {
    false
}
