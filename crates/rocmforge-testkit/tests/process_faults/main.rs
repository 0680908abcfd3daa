//! Faults of whole processes, planted for real: each child is this binary, started again, on a card that a HIP library
//! built from C pretends to be.
#![allow(clippy::print_stdout)] // the children say what they have seen

mod fake;

use fake::{CARD, Scene};
use rocmforge_gpu_test::lock::{self, CardLock, LockError};
use rocmforge_testkit::gpu;
use rustix::process::{Pid, Signal, kill_process_group};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::sync::mpsc;
use std::time::Duration;

/// What the children do; nothing in the ordinary run.
mod planted {
    use super::*;

    /// Whether this process was started to run this one.
    fn wanted(name: &str) -> bool {
        std::env::var(fake::PLANTED).is_ok_and(|planted| planted == name)
    }

    #[test]
    fn allocates() {
        if wanted("allocates") {
            let gpu = gpu();
            drop(gpu.backend().allocate_buffer_safe(4096).unwrap());
        }
    }

    #[test]
    fn names_its_card() {
        if wanted("names_its_card") {
            println!("opened {}", gpu().backend().device().pci);
        }
    }

    #[test]
    fn two_at_once() {
        if !wanted("two_at_once") {
            return;
        }
        let (opened, is_open) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        let first = std::thread::Builder::new().name("the first test".to_owned());
        let first = first.spawn(move || {
            let _gpu = gpu();
            opened.send(()).unwrap();
            let _ = released.recv();
        });
        is_open.recv().unwrap();
        let second = std::thread::spawn(|| drop(gpu())).join().unwrap_err();
        println!("second: {}", second.downcast::<String>().unwrap());
        release.send(()).unwrap();
        first.unwrap().join().unwrap();
        // One after the other is what is asked for, also after a test that panicked.
        let panics = std::thread::spawn(|| {
            let _gpu = gpu();
            panic!("a test fails");
        });
        assert!(panics.join().is_err());
        drop(gpu());
        println!("third: open");
    }

    #[test]
    fn leaks_and_panics() {
        if wanted("leaks_and_panics") {
            let gpu = gpu();
            std::mem::forget(gpu.backend().allocate_buffer_safe(12_345).unwrap());
            panic!("the assertion that failed first");
        }
    }

    #[test]
    fn uses_random_data() {
        if wanted("uses_random_data") {
            let mut random = rocmforge_testkit::data::rng(4711);
            assert!(random.next_u64() == 0, "a result is wrong");
        }
    }
}

#[test]
fn the_card_that_is_locked_is_the_one_that_is_opened() {
    let scene = Scene::new();
    let lock = scene.lock();
    let output = scene.run_under(&lock, "names_its_card", &[]);
    assert!(
        output.status.success() && output.text.contains(&format!("opened {CARD}")),
        "{}",
        output.text
    );
}

#[test]
fn fc37_a_second_test_on_the_card_in_one_process_is_refused_with_the_reason() {
    let scene = Scene::new();
    let lock = scene.lock();
    let output = scene.run_under(&lock, "two_at_once", &[]);
    assert!(output.status.success(), "{}", output.text);
    for said in [
        "second: a real card runs one test at a time, and `the first test` of this process has it",
        "cargo xtask test-gpu",
        "third: open",
    ] {
        assert!(output.text.contains(said), "{said:?} is not in {}", output.text);
    }
}

#[test]
fn fc40_a_real_card_without_the_supervisors_lock_is_refused_before_the_library_is_loaded() {
    let scene = Scene::new();
    // No lock at all; another card's lock; a lock that was given up.
    let other = CardLock::acquire(&scene.locks(), "0000:04:00.0", Duration::ZERO, |_| {}).unwrap();
    for lock in [None, Some(&other)] {
        let output = match lock {
            None => scene.output(&mut scene.command("allocates")),
            Some(lock) => scene.run_under(lock, "allocates", &[]),
        };
        assert_eq!(output.status.code(), Some(101), "{}", output.text);
        let advice = format!("may be used only under the supervisor: run `cargo gpu-test --device {CARD}`");
        assert!(output.text.contains(&advice), "{}", output.text);
        assert!(!scene.has("loaded"), "the library was loaded without the lock");
    }
    let lock = scene.lock();
    assert!(scene.run_under(&lock, "allocates", &[]).status.success());
    assert!(scene.has("loaded"));
}

#[test]
fn fc41_a_test_that_panics_is_checked_for_leaks_all_the_same() {
    let scene = Scene::new();
    let lock = scene.lock();
    let output = scene.run_under(&lock, "leaks_and_panics", &[]);
    assert_eq!(output.status.code(), Some(101), "{}", output.text);
    for said in [
        "the assertion that failed first",
        "also, when the lease ended",
        "12.0 KiB (12345 B)",
        "main.rs",
    ] {
        assert!(output.text.contains(said), "{said:?} is not in {}", output.text);
    }
}

#[test]
fn fc44_nothing_is_retried_and_a_failure_says_its_seed() {
    let profiles = include_str!("../../../../.config/nextest.toml");
    let retries: Vec<&str> = profiles.lines().filter(|line| line.starts_with("retries")).collect();
    assert!(
        !retries.is_empty() && retries.iter().all(|line| *line == "retries = 0"),
        "{retries:?}"
    );
    let scene = Scene::new();
    let output = scene.output(&mut scene.command("uses_random_data"));
    assert_eq!(output.status.code(), Some(101), "{}", output.text);
    assert!(output.text.contains("ROCMFORGE_SEED=4711"), "{}", output.text);
}

#[test]
fn fc47_a_call_that_never_returns_is_ended_from_outside_and_the_card_is_free_again() {
    for function in ["hipInit", "hipMalloc", "hipFree"] {
        let scene = Scene::new();
        let lock = scene.lock();
        let mut command = scene.command("allocates");
        command.env("FAKE_FAULT", format!("hang:{function}")).process_group(0);
        lock.pass_to(&mut command).unwrap();
        let mut child = scene.spawn(&mut command);
        fake::wait_until("the call hangs", || scene.has("entered"));
        // The supervisor dies first: the card stays locked as long as the process that uses it lives.
        drop((lock, command));
        assert!(child.try_wait().unwrap().is_none(), "it returned from {function}");
        let refused = CardLock::acquire(&scene.locks(), CARD, Duration::from_millis(100), |_| {});
        let Err(LockError::Held {
            holder: Some(holder), ..
        }) = refused
        else {
            panic!("{refused:?}")
        };
        assert_eq!(holder.pid, std::process::id(), "it was we who took it");
        kill_process_group(Pid::from_child(&child), Signal::TERM).unwrap();
        let status = child.wait().unwrap();
        assert_eq!(status.signal(), Some(15), "{function}: {status}");
        drop(CardLock::acquire(&scene.locks(), CARD, Duration::from_secs(60), |_| {}).unwrap());
    }
}

#[test]
fn fc55_a_missing_or_unfit_library_is_a_message_and_no_crash() {
    let scene = Scene::new();
    let lock = scene.lock();
    let folder = scene.directory();
    std::fs::write(folder.join("libtext.so"), "no library").unwrap();
    fake::build(&folder.join("libold.so"), &["hipModuleLaunchKernel", "hipMemcpyAsync"]);
    let libraries = [
        ("libnone.so", "libnone.so"),
        ("libtext.so", "libtext.so"),
        ("libold.so", "hipModuleLaunchKernel"),
    ];
    for (library, said) in libraries {
        let library = folder.join(library);
        let output = scene.run_under(
            &lock,
            "allocates",
            &[("ROCMFORGE_HIP_LIBRARY", library.to_str().unwrap())],
        );
        assert_eq!(output.status.code(), Some(101), "{}", output.text);
        assert!(
            output.text.contains("no usable HIP library") && output.text.contains(said),
            "{said:?} is not in {}",
            output.text
        );
    }
}

#[test]
fn fc56_a_crash_inside_a_call_ends_the_test_process_with_its_signal_and_nothing_else() {
    for (fault, signal, code) in [
        ("segv", Some(11), None),
        ("abort", Some(6), None),
        ("exit", None, Some(3)),
    ] {
        for function in ["hipInit", "hipMalloc"] {
            let scene = Scene::new();
            let lock = scene.lock();
            let output = scene.run_under(&lock, "allocates", &[("FAKE_FAULT", &format!("{fault}:{function}"))]);
            assert_eq!(
                (output.status.signal(), output.status.code()),
                (signal, code),
                "{fault} in {function}: {}",
                output.text
            );
            // The next test of the run goes on with the same lock.
            assert!(lock::is_held(&scene.locks(), CARD));
            assert!(scene.run_under(&lock, "allocates", &[]).status.success());
        }
    }
}
