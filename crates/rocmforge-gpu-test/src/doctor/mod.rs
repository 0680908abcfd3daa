//! Doctor: the machine's cards, drivers and permissions on one screen, with a remedy for each problem.
//!
//! Looks without HIP first. HIP itself is asked in a process of its own with a time limit: a library that crashes or
//! hangs must not take the doctor with it.

pub(crate) mod probe;
mod report;
#[cfg(test)]
mod tests;
mod tools;

use std::path::{Path, PathBuf};

use crate::lock;
use report::{Check, Lock, Report};
use rocmforge_machine::sysfs::Sysfs;

use crate::card::nvidia;
use crate::card::preflight::{Consent, Facts, NvidiaFacts};
use crate::card::probe::ask_for;
use crate::card::quarantine::{self, QuarantineFile};

/// What to look at.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Look at a copy of sys, proc, dev, etc, opt and state in this folder instead of the machine; HIP and compilers are left
    /// out
    #[arg(long, value_name = "DIR", default_value = "/")]
    root: PathBuf,
    /// Do not ask the HIP library, nor NVIDIA's driver
    #[arg(long)]
    no_hip: bool,
}

/// Looks, and prints the report, whose advice names the `command` that runs the tests (`cargo gpu-test`). What it finds is no failure
/// of the command.
///
/// # Errors
///
/// `--root` is no folder.
pub fn run(args: Args, command: &str) -> crate::Outcome {
    if !args.root.is_dir() {
        return Err(format!("{} is no folder to look at", args.root.display()).into());
    }
    say!("{}", gather(&args.root, args.no_hip, command).to_string().trim_end());
    Ok(())
}

fn gather(root: &Path, no_hip: bool, command: &str) -> Report {
    let sysfs = Sysfs::at(root);
    let host = sysfs.is_host();
    let machine = sysfs.machine();
    let directory = lock::default_directory();
    let nvidia = nvidia::cards(&sysfs, &machine);
    let addresses = machine.amd_cards().filter_map(|card| card.pci.clone());
    let addresses = addresses.chain(nvidia.iter().map(|card| card.pci.clone()));
    let locks: Vec<Lock> = addresses
        .filter(|_| host)
        .map(|card| Lock {
            holder: lock::is_held(&directory, &card).then(|| lock::holder(&directory, &card)),
            card,
        })
        .collect();
    // A card is used by one process tree at a time; that holds for questions too.
    let in_use = locks.iter().any(|lock| lock.holder.is_some());
    let hip = match (host, no_hip, in_use) {
        (false, ..) => probe::Probe::skipped("another root than / was given"),
        (_, true, _) => probe::Probe::skipped("--no-hip was given"),
        (.., true) => probe::Probe::skipped("a card is locked by a running test"),
        _ => probe::ask(),
    };
    let state = if host {
        quarantine::default_directory()
    } else {
        root.join("state/rocmforge")
    };
    let quarantine = |pci: &str| QuarantineFile::new(&state, pci, root).read();
    let amd = machine
        .amd_cards()
        .map(|card| {
            let pci = card.pci.clone().unwrap_or_default();
            let facts = Facts::look(&sysfs, &machine, card, quarantine(&pci));
            Check {
                device: format!("hip:{pci}"),
                findings: facts.findings(Consent::default()),
                card: pci,
            }
        })
        .collect::<Vec<_>>();
    let others = nvidia.iter().map(|card| {
        let facts = NvidiaFacts::look(&sysfs, &machine, card, quarantine(&card.pci));
        let facts = match host && !no_hip && !in_use && !facts.is_refused() {
            true => facts.with_answer(ask_for(&card.pci)),
            false => facts,
        };
        Check {
            device: format!("nvidia:{}", card.pci),
            findings: facts.findings(Consent::default()),
            card: card.pci.clone(),
        }
    });
    let checks = amd.into_iter().chain(others).collect();
    let tools = if host { tools::find() } else { Vec::new() };
    Report {
        command: command.to_owned(),
        checks,
        bare: sysfs.bare_amd_cards().into_iter().map(|card| card.pci).collect(),
        nvidia,
        machine,
        hip,
        locks,
        tools,
        rocm: tools::rocm_versions(root),
        tools_asked: host,
    }
}
