//! Host functions of streams: the thread they run on, and work that runs while the program makes no call.

use crate::support::*;
use hip::*;
use std::ffi::c_void;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

/// What a host function sees, and what it waits for.
#[derive(Default)]
struct Shared {
    thread: Mutex<Option<ThreadId>>,
    go_on: AtomicBool,
}

impl Shared {
    fn user(&self) -> *mut c_void {
        std::ptr::from_ref(self).cast_mut().cast()
    }

    fn called(&self) -> bool {
        self.thread.lock().unwrap().is_some()
    }
}

unsafe extern "C" fn wait(user: *mut c_void) {
    // SAFETY: the test passes a `Shared` that outlives the stream's work.
    let shared = unsafe { &*user.cast::<Shared>() };
    *shared.thread.lock().unwrap() = Some(std::thread::current().id());
    while !shared.go_on.load(Ordering::Acquire) {
        std::thread::yield_now();
    }
}

/// Waits up to a minute.
fn comes(condition: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(Instant::now() < until, "nothing came in a minute");
        std::thread::yield_now();
    }
}

#[test]
fn a_host_function_may_wait_for_the_thread_that_asks_for_its_stream() {
    let (sim, shared) = (machine(), Shared::default());
    let (one, other) = (stream(&sim), stream(&sim));
    answers!(hipSuccess, sim.hipLaunchHostFunc(one, Some(wait), shared.user()));
    // The second and later polls let work run.
    for _ in 0..3 {
        answers!(hipErrorNotReady, sim.hipStreamQuery(one));
    }
    comes(|| shared.called());
    assert_ne!(*shared.thread.lock().unwrap(), Some(std::thread::current().id()));
    let memory = malloc(&sim, N);
    answers!(hipSuccess, sim.hipMemsetAsync(memory, 1, N, other));
    answers!(hipSuccess, sim.hipStreamSynchronize(other));
    shared.go_on.store(true, Ordering::Release);
    answers!(hipSuccess, sim.hipStreamSynchronize(one));
    clean(&sim);
}

#[test]
fn work_up_to_a_host_function_runs_while_the_program_makes_no_call() {
    let shared = Shared::default();
    shared.go_on.store(true, Ordering::Release);
    let sim = machine_with(|config| config.unattended = Some(Duration::from_millis(50)));
    let (one, memory) = (stream(&sim), malloc(&sim, N));
    answers!(hipSuccess, sim.hipMemsetAsync(memory, 1, N, one));
    answers!(hipSuccess, sim.hipLaunchHostFunc(one, Some(wait), shared.user()));
    answers!(hipSuccess, sim.hipMemsetAsync(memory, 2, N, one));
    comes(|| shared.called());
    // What is behind the function waits longer, and comes too.
    comes(|| sim.counters().operations == 3);
    assert_eq!(sim.counters().unattended, 3);
    answers!(hipSuccess, sim.hipStreamSynchronize(one));
    assert_eq!(download(&sim, memory, N), vec![2; N]);
    clean(&sim);
}

#[test]
fn a_machine_that_is_not_asked_to_runs_nothing_between_calls() {
    let (sim, shared) = (machine(), Shared::default());
    shared.go_on.store(true, Ordering::Release);
    let one = stream(&sim);
    answers!(hipSuccess, sim.hipLaunchHostFunc(one, Some(wait), shared.user()));
    std::thread::sleep(Duration::from_millis(200));
    assert!(!shared.called());
    answers!(hipSuccess, sim.hipStreamSynchronize(one));
    assert!(shared.called());
    clean(&sim);
}
