//! Counting allocator of a test program: what each thread asks for, the most that all have in use, and calls.
//!
//! It counts where the program makes it its allocator:
//!
//! ```
//! use rocmforge_test_support::allocator::{self, Counting};
//!
//! #[global_allocator]
//! static ALLOCATOR: Counting = Counting;
//!
//! let (asked, text) = allocator::asked(|| "x".repeat(100));
//! assert!(asked >= text.len());
//! ```

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The system's allocator with counters.
pub struct Counting;

thread_local! {
    static ASKED: Cell<usize> = const { Cell::new(0) };
    static GIVEN_BACK: Cell<usize> = const { Cell::new(0) };
}

static USED: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
static CALLS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator unchanged. The counters are numbers without destructors and allocate nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ASKED.set(ASKED.get().saturating_add(layout.size()));
        CALLS.fetch_add(1, Ordering::Relaxed);
        let used = USED.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(used, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`, which is that of the system's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        GIVEN_BACK.set(GIVEN_BACK.get().saturating_add(layout.size()));
        USED.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: `pointer` came from `alloc` above, so from the system's allocator with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Bytes that `work` asks for on this thread, given back or not.
pub fn asked<T>(work: impl FnOnce() -> T) -> (usize, T) {
    let before = ASKED.get();
    let result = work();
    (ASKED.get() - before, result)
}

/// Bytes that `work` leaves in use on this thread: what it asks for, less what it gives back.
pub fn left(work: impl FnOnce()) -> isize {
    let in_use = || ASKED.get().wrapping_sub(GIVEN_BACK.get());
    let before = in_use();
    work();
    in_use().wrapping_sub(before).cast_signed()
}

/// The most bytes that all threads have in use during `work`, beside those in use before. For a program with one test: others move it.
pub fn peak<T>(work: impl FnOnce() -> T) -> (usize, T) {
    let before = USED.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let result = work();
    (PEAK.load(Ordering::Relaxed).saturating_sub(before), result)
}

/// Allocations of all threads so far.
pub fn calls() -> usize {
    CALLS.load(Ordering::Relaxed)
}
