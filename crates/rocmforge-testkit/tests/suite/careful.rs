//! Careful mode through real leases on simulated cards: each child is this binary, started again with the variable that the
//! supervisor sets, and asks for more than it may have.

use rocmforge_memory::{Bytes, Class, HEADLESS_HEADROOM, Policy};
use rocmforge_runtime::{Elems, HipBuffer, HipError};
use rocmforge_sim::{CardConfig, FaultPlan, LaunchFault, SimConfig, When};
use rocmforge_testkit::careful::{CAREFUL_BYTES, CAREFUL_DEADLINE, CAREFUL_VARIABLE};
use rocmforge_testkit::device::DEVICE_VARIABLE;
use rocmforge_testkit::{GpuLease, LeaseOptions, gpu_with};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Set for the child: the card's memory and what the desktop holds of it, in GiB.
const CARD: &str = "ROCMFORGE_CAREFUL_CARD";
/// What the child asks for, far beyond what a careful test may have.
const ASKED: Duration = Duration::from_secs(60);

fn lease(vram: Bytes, desktop_used: Bytes) -> GpuLease {
    let card = CardConfig {
        vram,
        desktop_used,
        ..CardConfig::default()
    };
    let mut options = LeaseOptions {
        policy: Policy::headless(),
        deadline: ASKED,
        ..LeaseOptions::default()
    };
    options.sim = SimConfig {
        cards: vec![card],
        ..options.sim
    };
    gpu_with(options)
}

/// Takes what it can get, then waits for a kernel that never ends.
#[test]
fn takes_all_it_can() {
    let Ok(card) = std::env::var(CARD) else { return };
    let gib: Vec<u64> = card.split(' ').map(|number| number.parse().unwrap()).collect();
    let gpu = lease(Bytes::gib(gib[0]), Bytes::gib(gib[1]));
    let left = Bytes(gpu.backend().safe_alloc_size().unwrap() as u64);
    let all = gpu.backend().card().try_reserve(left, Class::Required, "all").unwrap();
    let denied = gpu.backend().card().try_reserve(Bytes(1), Class::Required, "one more");
    assert!(denied.is_err(), "a byte beyond the budget");
    drop(all);
    let over = gpu.backend().allocate_buffer_safe(left.0 as usize + 1);
    assert!(matches!(over, Err(HipError::OutOfBudget(_))), "{:?}", over.err());
    println!("got {}", left.0);
    if left == Bytes(0) {
        return;
    }
    let stream = gpu.backend().stream();
    let x = HipBuffer::<f32>::zeroed(stream, Elems(8), "x").unwrap();
    let plan = FaultPlan::new().launch(When::Nth(1), LaunchFault::Hangs);
    gpu.sim().unwrap().set_fault_plan(plan);
    gpu.kernels().scale(stream, &x, &x, 2.0).unwrap();
    let error = gpu.backend().synchronize().unwrap_err();
    let HipError::Timeout { waited, .. } = error else {
        panic!("{error}")
    };
    println!("waited {}", waited.as_millis());
    drop(x);
    gpu.finish().unwrap_err();
}

/// The memory that a lease got of a card, and how long its wait took where it got any.
#[track_caller]
fn got(vram: u64, desktop_used: u64, careful: bool) -> (Bytes, Option<Duration>) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "careful::takes_all_it_can", "--nocapture"])
        .env(CARD, format!("{vram} {desktop_used}"))
        .env(DEVICE_VARIABLE, "sim")
        .env_remove(CAREFUL_VARIABLE)
        .stdin(Stdio::null());
    if careful {
        command.env(CAREFUL_VARIABLE, "1");
    }
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let figure = |name: &str| text.lines().find_map(|line| line.split_once(name)?.1.parse().ok());
    let bytes = figure("got ").expect("it says what it got");
    (Bytes(bytes), figure("waited ").map(Duration::from_millis))
}

#[test]
fn a_careful_lease_gets_little_memory_and_waits_shortly_whatever_it_asks_for() {
    // 2 GiB; a quarter of a small card; nothing where the desktop may need the rest.
    for (vram, desktop_used, expected) in [(20, 1, CAREFUL_BYTES), (4, 1, Bytes::gib(1)), (4, 3, Bytes(0))] {
        let (bytes, waited) = got(vram, desktop_used, true);
        assert_eq!(bytes, expected, "of {vram} GiB with {desktop_used} in use");
        let is_short = |waited| waited >= CAREFUL_DEADLINE && waited < 2 * CAREFUL_DEADLINE;
        assert_eq!(waited.map(is_short), (bytes > Bytes(0)).then_some(true), "{waited:?}");
    }
    // What the same lease asks for, and gets where nobody must be careful.
    for (vram, desktop_used) in [(20, 1), (4, 1), (4, 3)] {
        let (bytes, waited) = got(vram, desktop_used, false);
        let others_leave = Bytes::gib(vram - desktop_used).0;
        assert_eq!(bytes.0, others_leave - HEADLESS_HEADROOM.0);
        assert!(waited.is_some_and(|waited| waited >= ASKED), "{waited:?}");
    }
}
