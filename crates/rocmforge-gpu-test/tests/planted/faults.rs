//! Faulty tests, a hundred of them: each kind in several forms, drawn by a seed.

use rocmforge_gpu_test::CAREFUL_VARIABLE;
use rocmforge_machine::process::Process;
use rocmforge_testkit::compare::assert_same;
use rocmforge_testkit::data::{Rng, rng};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Set for the processes that are to misbehave; its value is the supervisor's deadline in seconds.
pub(crate) const PLANT: &str = "ROCMFORGE_PLANT";

/// Seconds that a process without a trace sleeps, beside the number of its supervisor, which makes it known again.
pub(crate) const UNTRACED: u64 = 1_000_000_000;

/// How the supervisor must say that a test ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    Passed,
    Failed,
    Crashed(&'static [i64]),
    TimedOut,
}

/// One kind of fault.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) expected: Expected,
    plant: fn(&mut Rng),
}

/// Every kind. A test's number modulo their count is its kind.
pub(crate) const KINDS: [Kind; 20] = [
    kind("sleeps", Expected::TimedOut, |_| forever()),
    kind("spins", Expected::TimedOut, |_| {
        loop {
            std::hint::spin_loop();
        }
    }),
    kind("waits_for_itself", Expected::TimedOut, |_| {
        let lock = std::sync::Mutex::new(());
        let _held = lock.lock();
        let _never = lock.lock();
    }),
    kind("stops", Expected::TimedOut, |_| signal_self("STOP")),
    kind("ignores_quit", Expected::TimedOut, |_| {
        shell("trap '' QUIT; while :; do sleep 0.1; done")
    }),
    kind("ignores_all_it_can", Expected::TimedOut, |_| {
        shell("trap '' HUP INT QUIT TERM USR1 USR2 PIPE; while :; do sleep 0.1; done");
    }),
    kind("floods_for_ever", Expected::TimedOut, |_| {
        loop {
            let _ = std::io::stdout().write_all(&[b'x'; 1 << 16]);
        }
    }),
    kind("waits_for_a_child_for_ever", Expected::TimedOut, |_| {
        let _ = Command::new("sleep").arg("100000").status();
    }),
    kind("aborts", Expected::Crashed(&[6]), |_| std::process::abort()),
    kind("segfaults", Expected::Crashed(&[11]), |_| {
        // SAFETY: none; nothing is mapped there, and that is the fault.
        unsafe { std::ptr::without_provenance::<u8>(8).read_volatile() };
    }),
    kind("kills_itself", Expected::Crashed(&[9, 15, 4, 8, 3]), |random| {
        signal_self(["KILL", "TERM", "ILL", "FPE", "QUIT"][random.below(5)]);
    }),
    kind("overflows_its_stack", Expected::Crashed(&[6, 11]), |_| {
        std::hint::black_box(deeper(1));
    }),
    kind("exits", Expected::Failed, |random| {
        std::process::exit(1 + random.below(200) as i32)
    }),
    kind("panics", Expected::Failed, |_| panic!("the planted panic")),
    kind("floods_and_fails", Expected::Failed, |_| {
        for _ in 0..200 {
            let _ = std::io::stdout().write_all(&[b'x'; 1 << 16]);
        }
        panic!("the planted panic");
    }),
    kind("leaves_a_child", Expected::Passed, |_| {
        leave(Command::new("sleep").arg("100000"));
    }),
    kind("leaves_a_daemon", Expected::Passed, |_| {
        leave(Command::new("setsid").args(["sh", "-c", "trap '' HUP TERM; sleep 100000; true"]));
    }),
    kind("leaves_a_daemon_without_a_trace", Expected::Passed, |_| {
        // The mark begins with the supervisor's number; its parent's may be one in a namespace.
        let mark = std::env::var("ROCMFORGE_TEST_MARK").expect("a mark");
        let supervisor = mark.split('.').next().and_then(|number| number.parse::<u64>().ok());
        let seconds = UNTRACED + supervisor.expect("a number");
        let script = format!("env -i sh -c 'sleep {seconds}; true' & exit");
        leave(Command::new("setsid").args(["sh", "-c", &script]));
    }),
    kind("leaves_many", Expected::Passed, |random| {
        for _ in 0..1 + random.below(12) {
            leave(Command::new("sh").args(["-c", "setsid sleep 100000 & sleep 100000 & wait"]));
        }
    }),
    kind("ends_and_holds_its_pipes", Expected::Failed, |_| {
        let mut child = Command::new("setsid");
        child.args(["sleep", "100000"]);
        let _ = child.spawn(); // with our output
        std::process::exit(3);
    }),
];

const fn kind(name: &'static str, expected: Expected, plant: fn(&mut Rng)) -> Kind {
    Kind { name, expected, plant }
}

fn forever() {
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}

fn deeper(n: u64) -> u64 {
    let frame = std::hint::black_box([n; 64]);
    if n == 0 { 0 } else { deeper(n + 1) + frame[7] }
}

fn signal_self(signal: &str) {
    let me = std::process::id().to_string();
    let _ = Command::new("kill").args([&format!("-{signal}"), &me]).status();
    forever();
}

/// Becomes a shell.
fn shell(script: &str) {
    let error = Command::new("sh").args(["-c", script]).exec();
    panic!("{error}");
}

/// Starts a process and lets it be.
#[allow(clippy::zombie_processes)] // that is the fault
fn leave(command: &mut Command) {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("started");
    // It takes a moment to get out of the group.
    std::thread::sleep(Duration::from_millis(100));
}

/// Whether this process is to misbehave.
pub(crate) fn is_planted() -> bool {
    std::env::var_os(PLANT).is_some()
}

fn plant(number: u64) {
    if is_planted() {
        (KINDS[number as usize % KINDS.len()].plant)(&mut rng(number).quiet());
    }
}

/// Set for healthy processes: the part of the deadline that they take.
pub(crate) const PART: &str = "ROCMFORGE_PLANT_PART";

/// Does what a slow and healthy test does: takes its time, by the clock on which it is judged, and ends.
#[test]
fn healthy() {
    let Ok(part) = std::env::var(PART) else { return };
    let part: f64 = part.parse().unwrap();
    let deadline: f64 = std::env::var(PLANT).unwrap().parse().unwrap();
    // Its start is the process's, which the kernel counts in hundredths of a second since boot.
    let started = Process::read(std::process::id()).unwrap().started as f64;
    let since_boot = std::fs::read_to_string("/proc/uptime").unwrap();
    let since_boot: f64 = since_boot.split(' ').next().unwrap().parse().unwrap();
    let lived = since_boot - started / 100.0;
    let rest = (deadline * part - lived).max(0.0);
    let until = Instant::now() + Duration::from_secs_f64(rest);
    std::thread::sleep(until.saturating_duration_since(Instant::now()));
}

fn folder(variable: &str) -> Option<std::path::PathBuf> {
    std::env::var_os(variable).filter(|_| is_planted()).map(Into::into)
}

/// Writes its device variables to a file.
#[test]
fn tells() {
    let Some(folder) = folder("ROCMFORGE_PLANT_RUN") else {
        return;
    };
    let care = if std::env::var_os(CAREFUL_VARIABLE).is_some() {
        "careful"
    } else {
        "free"
    };
    let device = std::env::var("ROCMFORGE_DEVICE").unwrap();
    std::fs::write(folder.join("environment"), format!("{device} {care}")).unwrap();
}

/// Compares a buffer, which is another one on the second simulated card.
#[test]
fn compares() {
    if is_planted() {
        let second = std::env::var("ROCMFORGE_DEVICE").is_ok_and(|device| device == "sim:gfx1201");
        let value = if second { 2 } else { 1 };
        assert_same(&[value, 3], &[value, 3], "two numbers");
    }
}

/// Makes the card look as if it had been reset.
#[test]
fn resets() {
    let Some(root) = folder("ROCMFORGE_PLANT_ROOT") else {
        return;
    };
    std::fs::create_dir_all(root.join("sys/class/devcoredump/devcd1")).unwrap();
}

/// Makes the driver look as if it held on to this process.
#[test]
fn sticks() {
    let Some(root) = folder("ROCMFORGE_PLANT_ROOT") else {
        return;
    };
    std::fs::create_dir_all(root.join(format!("sys/class/kfd/kfd/proc/{}", std::process::id()))).unwrap();
}

macro_rules! planted {
    ($($name:ident)*) => { $( #[test] fn $name() { plant(stringify!($name)[1..].parse().unwrap()); } )* };
}

/// Those that never end: kinds 0 to 7.
mod hangs {
    use super::plant;
    planted! {
        n000 n001 n002 n003 n004 n005 n006 n007 n020 n021 n022 n023 n024 n025 n026 n027 n040 n041 n042 n043
        n044 n045 n046 n047 n060 n061 n062 n063 n064 n065 n066 n067 n080 n081 n082 n083 n084 n085 n086 n087
    }
}

/// Those that end by themselves, and need no short deadline.
mod ends {
    use super::plant;
    planted! {
        n008 n009 n010 n011 n012 n013 n014 n015 n016 n017 n018 n019 n028 n029 n030 n031 n032 n033 n034 n035
        n036 n037 n038 n039 n048 n049 n050 n051 n052 n053 n054 n055 n056 n057 n058 n059 n068 n069 n070 n071
        n072 n073 n074 n075 n076 n077 n078 n079 n088 n089 n090 n091 n092 n093 n094 n095 n096 n097 n098 n099
    }
}
