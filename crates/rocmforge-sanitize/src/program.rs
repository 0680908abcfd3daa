//! Programs: a compiled HIP program is run on a simulated Radeon by `rocmforge-sanitize run`.

use crate::check_args::{CANNOT_RUN, CheckArgs, selection_option};
use crate::error::Error;
use crate::suppress::Suppressions;
use clap::Args;
use rocmforge_amdgcn::Tools;
use rocmforge_hip::{Abi, Installation, Record, Settings};
use rocmforge_memory::Bytes;
use rocmforge_sim::LaunchSelection;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use signal_hook::consts::{SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Bytes of the settings, at most: Linux starts no program with a variable of 128 KiB.
const MAX_SETTINGS: usize = 120 << 10;

/// Whether kernels may access the memory of other cards.
#[derive(clap::ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerAccess {
    /// They may, once the program has called `hipDeviceEnablePeerAccess`.
    On,
    /// `hipDeviceCanAccessPeer` answers 0, and `hipDeviceEnablePeerAccess` an error.
    Off,
}

/// Options of `rocmforge-sanitize run`.
#[derive(Args, Debug, Clone)]
pub struct RunArgs {
    /// The simulated card: gfx1100 or gfx1201. Given several times, there are several cards, in this order.
    #[arg(long, value_name = "PROCESSOR", default_value = "gfx1100")]
    pub card: Vec<String>,
    /// Whether kernels of one card may access the memory of another, once the program has enabled that.
    #[arg(long, value_name = "ON OR OFF", default_value = "off")]
    pub peer_access: PeerAccess,
    /// The video memory of each card: `8GiB`, `512MiB`, or a number of bytes.
    #[arg(long, value_name = "SIZE")]
    pub vram: Option<Bytes>,
    /// Whose behaviour is simulated: 5, 6 or 7. Without it that of the library that the program asks for.
    #[arg(long, value_name = "VERSION", value_parser = abi)]
    pub hip: Option<Abi>,
    /// Host threads that share the workgroups of a launch.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: u16,
    /// Runs queued work in another order: a seed of the order of streams, workgroups and waves. Without it work runs in the order in
    /// which it was queued.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// What is checked and reported. Launches count in the order of the calls of each process.
    #[command(flatten)]
    pub check: CheckArgs,
    /// Frames of the host's call stack in a finding; 0: none, which makes calls faster.
    #[arg(long, value_name = "N", default_value_t = 12)]
    pub num_callers: usize,
    /// Writes a time line of kernels, copies and fills, by the simulated clock, to a file that Chrome and Perfetto show.
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Writes what every process has left (JSON lines) to a folder, which must not exist yet.
    #[arg(long, value_name = "FOLDER")]
    pub save: Option<PathBuf>,
    /// The program and its arguments, behind `--`.
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    pub program: Vec<OsString>,
}

fn abi(text: &str) -> Result<Abi, String> {
    let number: u8 = text.parse().map_err(|_| "is a number: 5, 6 or 7".to_owned())?;
    Abi::try_from(number).map_err(|error| error.to_string())
}

/// Waits for the program and passes `terminations` on to it: this process still has to remove its folder.
fn wait(mut child: Child, mut terminations: Signals) -> std::io::Result<ExitStatus> {
    let pid = Pid::from_child(&child);
    let end = terminations.handle();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for _ in terminations.forever() {
                // It fails only for a program that has changed its user; that one runs on, and is waited for.
                let _ = kill_process(pid, Signal::TERM);
            }
        });
        // Its number is given to no other process before `Child::wait`, when nothing is passed on any more.
        while let Err(error) = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
            if error != rustix::io::Errno::INTR {
                break;
            }
        }
        end.close();
    });
    child.wait()
}

impl RunArgs {
    fn settings(&self, suppressions: &Suppressions, records: PathBuf) -> Result<Settings, Error> {
        let mut settings = Settings::default();
        settings.cards.clone_from(&self.card);
        settings.peer_access = self.peer_access == PeerAccess::On;
        settings.vram = self.vram.map(|vram| vram.0);
        settings.hip = self.hip;
        settings.threads = usize::from(self.threads);
        settings.seed = self.seed.unwrap_or(0);
        settings.random_order = self.seed.is_some();
        let check = &self.check;
        let tools = check.tools()?;
        if tools.is_some() {
            settings.tools.clone_from(&check.tools);
        }
        check.refuse_contradictions(tools.unwrap_or(Tools::all()))?;
        settings.selection = check.selection()?;
        settings.suppressions = suppressions.all.iter().map(|known| known.filter.clone()).collect();
        settings.padding = check.padding.map(|padding| padding.0);
        settings.print_limit = check.print_limit as u64;
        settings.leak_check = check.finds_leaks();
        settings.stack_frames = self.num_callers;
        // The program may change its folder.
        let absolute = |option, path: &Option<PathBuf>| {
            let path = path.as_deref().map(std::path::absolute).transpose();
            path.map_err(|error| Error::option(option, error.to_string()))
        };
        settings.log = absolute("--log-file", &check.log_file)?;
        settings.trace = absolute("--trace", &self.trace)?;
        settings.records = Some(records);
        // The settings are one variable of the program's environment, which has a limit on Linux.
        let bytes = settings.to_variable().len();
        if bytes > MAX_SETTINGS {
            let problem = format!(
                "has more than a program can be started with: {bytes} bytes of settings, at most {MAX_SETTINGS}"
            );
            let option = match suppressions.all.is_empty() {
                true => "--kernel-name",
                false => "--suppressions",
            };
            return Err(Error::option(option, problem));
        }
        // Before a process is started for it.
        let checked = settings.machine(self.hip.unwrap_or(Abi::Hip6));
        checked.map_err(|problem| Error::option("--card", problem.to_string()))?;
        Ok(settings)
    }

    /// Runs the program to its end. The exit status to end with; none if no program is named.
    pub(crate) fn run(&self, err: &mut dyn Write) -> Result<Option<u8>, Error> {
        let folder = tempfile::Builder::new().prefix("rocmforge-hip-").tempdir();
        let folder = folder.map_err(Error::write(&std::env::temp_dir()))?;
        let records = match &self.save {
            Some(save) => std::path::absolute(save).map_err(Error::write(save))?,
            None => folder.path().join("records"),
        };
        let suppressions = self.check.suppressions()?;
        let settings = self.settings(&suppressions, records.clone())?;
        let made = std::fs::create_dir(&records);
        made.map_err(Error::write(self.save.as_deref().unwrap_or(&records)))?;
        let library = Installation::find_library()?;
        let installation = Installation::write(folder.path(), &library)?;
        let [program, args @ ..] = &self.program[..] else {
            return Ok(None);
        };
        // Interrupts from the terminal are for the program: this process still has to read what it leaves. The handlers do not
        // outlive the program's start.
        for signal in [SIGINT, SIGQUIT] {
            signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))
                .map_err(|error| Error::write(std::path::Path::new("a signal handler"))(error))?;
        }
        // Heard from here on: between start and handler a signal would end this process alone.
        let terminations = Signals::new([SIGTERM]);
        let terminations =
            terminations.map_err(|error| Error::write(std::path::Path::new("a signal handler"))(error))?;
        let mut command = Command::new(program);
        let child = command.args(args).envs(installation.environment(&settings)).spawn();
        let status = child.and_then(|child| wait(child, terminations));
        let status = status.map_err(|source| Error::Program {
            program: program.into(),
            source,
        })?;
        let processes = Record::read_all(&records).map_err(Error::write(&records))?;
        let mut records = processes.iter().flatten();
        let found = records.any(|record| matches!(record, Record::Finding { .. }));
        say(&processes, &suppressions, err);
        let selection = self.check.selection()?;
        let unchecked = no_machine(&processes)
            .or_else(|| nothing_checked(&selection, &processes))
            .or_else(|| no_code(&processes));
        if let Some(reason) = &unchecked {
            note(err, &format!("nothing was checked: {reason}"));
        }
        let own = status.code().or_else(|| Some(128 + status.signal()?));
        let own = own.and_then(|code| u8::try_from(code).ok());
        Ok(Some(match self.check.error_exitcode {
            Some(code) if found => code,
            // A program that has failed says so itself.
            _ if unchecked.is_some() && (own == Some(0) || !selection.is_all()) => CANNOT_RUN,
            _ => own.unwrap_or(u8::MAX),
        }))
    }
}

/// Why no process has a machine, if that is so.
fn no_machine(processes: &[Vec<Record>]) -> Option<String> {
    let mut reason = None;
    for record in processes.iter().flatten() {
        match record {
            Record::NoMachine { reason: why, .. } => reason = Some(format!("no machine could be simulated: {why}")),
            _ => return None,
        }
    }
    reason
}

/// Why no kernel has run, if that is because the program has code for other cards only. A process without a summary may have run some.
fn no_code(processes: &[Vec<Record>]) -> Option<String> {
    let mut found = false;
    for records in processes {
        let end = records.iter().rev().find_map(|record| match record {
            Record::End {
                launches: 0,
                foreign_code,
                ..
            } => Some(foreign_code),
            _ => None,
        });
        found |= !end?.is_empty();
    }
    found.then(|| "the program has no code for the card, and has launched no kernel".to_owned())
}

/// Why no launch was checked, if launches are selected and that is so. A process without a summary may have had one that was.
fn nothing_checked(selection: &LaunchSelection, processes: &[Vec<Record>]) -> Option<String> {
    if selection.is_all() {
        return None;
    }
    let (mut fitting, mut kernels) = (0, BTreeSet::new());
    for records in processes {
        let end = records.iter().rev().find_map(|record| match record {
            Record::End {
                checked_launches: 0,
                fitting_launches,
                other_kernels,
                ..
            } => Some((fitting_launches, other_kernels)),
            _ => None,
        });
        let (more, others) = end?;
        fitting += more;
        kernels.extend(others.iter().map(String::as_str));
    }
    let option = selection_option(selection);
    let kernels: Vec<&str> = kernels.into_iter().collect();
    Some(match (fitting, &kernels[..]) {
        (0, []) => "the program has launched no kernel".to_owned(),
        (0, kernels) => format!(
            "{option} fits no launch; kernels that were launched: {}",
            kernels.join(", ")
        ),
        (n, _) => format!(
            "{option} leaves no launch to check: {n} fit, and {} of each process are passed over",
            selection.skip
        ),
    })
}

/// No one is left to tell if this fails.
fn note(err: &mut dyn Write, text: &str) {
    let _ = writeln!(err, "========= {text}");
}

/// What the processes could not say themselves.
fn say(processes: &[Vec<Record>], suppressions: &Suppressions, err: &mut dyn Write) {
    let mut note = |text: String| note(err, &text);
    if processes.is_empty() {
        note("the program has made no HIP call".to_owned());
    }
    for records in processes {
        let ended = records.iter().any(|record| matches!(record, Record::End { .. }));
        if let (false, Some(Record::Start { process, program, .. })) = (ended, records.first()) {
            let is_finding = |record: &&Record| matches!(record, Record::Finding { .. });
            let findings = records.iter().filter(is_finding).count();
            note(format!(
                "process {process} ({}) was ended before its summary, after {findings} findings; what was queued then has not run",
                program.display()
            ));
        }
    }
    let fits = |index| {
        let mut records = processes.iter().flatten();
        records.any(|record| matches!(record, Record::Suppressed { suppression, .. } if *suppression == index))
    };
    for (_, suppression) in suppressions.all.iter().enumerate().filter(|(index, _)| !fits(*index)) {
        note(format!("{}: this suppression fits nothing", suppression.place));
    }
}
