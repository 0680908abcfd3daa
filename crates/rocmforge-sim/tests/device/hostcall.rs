//! Calls of kernels to the host, spoken by hand as the device library speaks them.

use super::rig::{Arg, Machine, machines, machines_with};
use rocmforge_hip_sys::*;
use rocmforge_sim::{DeviceOutput, OutputStream, ReportKind};
use std::sync::{Arc, Mutex};

/// Keeps what kernels print.
#[derive(Clone, Default)]
pub(crate) struct Kept(Arc<Mutex<Vec<(OutputStream, String)>>>);

impl DeviceOutput for Kept {
    fn write(&mut self, stream: OutputStream, text: &[u8]) {
        let text = String::from_utf8_lossy(text).into_owned();
        self.0.lock().expect("nobody panics with it").push((stream, text));
    }
}

impl Kept {
    pub(crate) fn of(machine: &Machine) -> Self {
        let kept = Self::default();
        machine.sim.set_device_output(kept.clone());
        kept
    }

    pub(crate) fn take(&self) -> Vec<(OutputStream, String)> {
        std::mem::take(&mut self.0.lock().expect("nobody panics with it"))
    }
}

#[test]
fn printf_is_served_while_the_kernel_runs() {
    for machine in machines() {
        let kept = Kept::of(&machine);
        let answers = machine.zeros(8 * 5000);
        machine.run("say_group", 12, 64, &[Arg::Ptr(answers)]);
        let expected: Vec<_> = (0..12)
            .map(|group| (OutputStream::Out, format!("group {group}\n")))
            .collect();
        assert_eq!(kept.take(), expected);
        let lengths = machine.download::<u64>(answers, 12);
        assert_eq!(lengths, [[8; 10].as_slice(), &[9; 2]].concat(), "characters printed");
        // More calls than there are packets: they are used again.
        machine.run("say_group", 5000, 32, &[Arg::Ptr(answers)]);
        assert_eq!(kept.take().len(), 5000);
    }
}

#[test]
fn the_same_seed_prints_the_same() {
    let run = |seed| -> Vec<_> {
        let machines = machines_with(move |config| config.seed = seed);
        let text = machines.map(|machine| {
            let kept = Kept::of(&machine);
            machine.run("say_group", 20, 32, &[Arg::Ptr(machine.zeros(160))]);
            (kept.take(), machine.sim.trace_hash())
        });
        text.collect()
    };
    assert_eq!(run(3), run(3));
    assert_ne!(run(3)[0].0, run(0)[0].0, "another order of workgroups");
}

#[test]
fn memory_is_given_and_taken_back() {
    for machine in machines() {
        for bytes in [2 << 20, 5000] {
            let answers = machine.zeros(16);
            for _ in 0..300 {
                machine.run("borrow", 1, 32, &[Arg::Ptr(answers), Arg::U64(bytes)]);
                let found = machine.download::<u64>(answers, 2);
                assert_eq!(
                    found[0] % if bytes == 2 << 20 { 2 << 20 } else { 4096 },
                    0,
                    "{found:x?}"
                );
                assert_eq!(found[1], 15);
            }
        }
        let answers = machine.zeros(16);
        machine.run("borrow", 1, 32, &[Arg::Ptr(answers), Arg::U64(1 << 50)]);
        assert_eq!(machine.download::<u64>(answers, 1), [0], "no room");
    }
}

#[test]
fn a_trap_reports_the_message_before_it() {
    for machine in machines() {
        let kept = Kept::of(&machine);
        machine.run("complain", 1, 1, &[Arg::U32(1)]);
        assert_eq!(machine.launch("complain", 1, 1, &[Arg::U32(0)]), hipSuccess);
        assert_eq!(machine.wait(), hipErrorLaunchFailure);
        assert_eq!(kept.take(), [(OutputStream::Error, "n == 0\n".to_owned())]);
        let report = machine.only_report(ReportKind::KernelAbort);
        assert_eq!(report.message, "n == 0", "{report}");
    }
}

#[test]
fn an_unknown_service_is_reported() {
    for machine in machines() {
        let answers = machine.zeros(8);
        assert_eq!(machine.launch("ask_nonsense", 1, 32, &[Arg::Ptr(answers)]), hipSuccess);
        assert_eq!(machine.wait(), hipSuccess);
        let report = machine.only_report(ReportKind::Unmodelled);
        assert!(report.message.contains("service 77"), "{report}");
        assert_eq!(machine.download::<u64>(answers, 1), [0]);
    }
}
