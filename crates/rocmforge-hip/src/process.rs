//! Life of the process: its machine is made at the first HIP call, kept through `fork`, and asked for leaks at the end.

use crate::absent;
use crate::call_stack::CallStacks;
use crate::findings::{Findings, Known};
use crate::record::{Record, Records};
use crate::registry;
use crate::settings::{Abi, Settings};
use crate::state::{PROCESS, Process, started};
use parking_lot::MutexGuard;
use rocmforge_hip_sys::{hipError_t, hipErrorInvalidValue, hipErrorNotInitialized, hipErrorNotSupported, hipSuccess};
use rocmforge_sim::{ForeignCode, ForkLock, LibraryCall, SimHost, enter_library};
use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// The process, with its machine, which the first call makes.
pub(crate) fn process() -> Option<&'static Process> {
    PROCESS
        .get_or_init(|| start().map_err(|error| complain(&*error)).ok())
        .as_ref()
}

/// Says on standard error why nothing can run.
fn complain(error: &dyn std::error::Error) {
    crate::findings::say(None, &format!("rocmforge-hip: no machine is simulated: {error}\n"));
}

/// Makes the machine.
fn start() -> Result<Process, Box<dyn std::error::Error>> {
    let settings = match std::env::var(Settings::VARIABLE) {
        Ok(value) => Settings::from_variable(&value)?,
        Err(_) => Settings::default(),
    };
    let abi = settings.hip.or_else(loaded_abi).unwrap_or(Abi::Hip6);
    let records = Records::open(settings.records.as_deref());
    let sim = SimHost::try_new(settings.machine(abi)?).inspect_err(|error| {
        records.add(&Record::NoMachine {
            process: std::process::id(),
            reason: error.to_string(),
        });
    })?;
    sim.set_host_addresses(Arc::new(registry::Addresses));
    sim.set_after_unattended(|| {
        if let Some(process) = started() {
            process.after_call();
        }
    });
    records.add(&Record::start(&settings, abi));
    // SAFETY: the three functions take no argument and lock what they unlock.
    unsafe { libc::pthread_atfork(Some(before_fork), Some(in_parent), Some(in_child)) };
    Ok(Process {
        findings: Findings::new(&settings),
        stacks: CallStacks::new(settings.stack_frames),
        sim,
        settings,
        abi,
        records,
    })
}

/// The last words: what is still queued runs, then leaks, functions that are absent, and figures.
fn end(process: &Process) {
    process.finish();
    if process.settings.leak_check {
        let leaks = process.sim.leaks();
        let leaks = leaks
            .into_iter()
            .filter(|leak| !registry::loaded_by(leak.call))
            .collect();
        process
            .findings
            .add(leaks, process.sim.reported(), &process.stacks, &process.records);
    }
    process.after_call();
    if let Some(path) = &process.settings.trace
        && let Err(error) = crate::trace::write(path, &process.sim.timeline())
    {
        crate::findings::say(None, &format!("rocmforge-hip: {}: {error}\n", path.display()));
    }
    let absent = absent::calls();
    let counters = process.sim.counters();
    let seed = process.settings.random_order.then_some(process.settings.seed);
    let selects = !process.settings.selection.is_all();
    let selector = selects.then(|| process.sim.launch_selector());
    let warnings = process.sim.warnings();
    let foreign_code: Vec<_> = process.sim.foreign_code().iter().map(said_of).collect();
    let wide = process.sim.wide_kernel().map(said_of_wide);
    let notes: Vec<_> = wide.into_iter().chain(foreign_code.iter().cloned()).collect();
    process
        .findings
        .end(&absent, counters, &warnings, &notes, selects, seed);
    process.records.add(&Record::end(
        process.findings.totals(),
        absent,
        counters,
        selector.as_ref(),
        foreign_code,
    ));
}

/// Code for other cards, and which option would run it.
fn said_of(code: &ForeignCode) -> String {
    match &code.would_run[..] {
        [] => format!("{code}; no simulated card runs it"),
        cards => format!("{code}; --card {} would run it", cards.join(" or --card ")),
    }
}

/// A kernel for waves of 64 lanes that has run, and what the program must know of it.
fn said_of_wide(kernel: String) -> String {
    format!(
        "warning: kernel {kernel} was compiled for waves of 64 lanes (-mwavefrontsize64), but warpSize of this card is 32: host code that \
         counts waves by warpSize counts twice as many as run"
    )
}

/// Counts a call that a signal handler has made in another call of its thread. Neither allocates nor locks.
pub(crate) fn refuse() -> hipError_t {
    // A machine that is still being made cannot report it.
    if let Some(process) = started() {
        process.sim.refuse(1);
    }
    hipErrorNotSupported
}

/// Makes a call on the machine, which the first call makes. What it finds is printed before the program goes on.
pub(crate) fn call(body: impl FnOnce(&Process) -> hipError_t) -> hipError_t {
    let Some(_inside) = enter_library() else {
        return refuse();
    };
    let Some(process) = process() else {
        return hipErrorNotInitialized;
    };
    process.call(body)
}

/// Makes a call whose status this library decides, not the simulator.
pub(crate) fn answered(api: &'static str, body: impl FnOnce(&Process) -> Result<(), hipError_t>) -> hipError_t {
    call(|process| {
        let status = body(process).err().unwrap_or(hipSuccess);
        process.sim.answered(api, status)
    })
}

/// Writes an answer through a pointer of the program.
///
/// # Errors
/// `hipErrorInvalidValue` if there is no place for the answer.
///
/// # Safety
/// `place` is null or valid for writing.
pub(crate) unsafe fn write<T>(place: *mut T, value: T) -> Result<(), hipError_t> {
    if place.is_null() {
        return Err(hipErrorInvalidValue);
    }
    // SAFETY: promised by the caller; not null.
    unsafe { place.write(value) };
    Ok(())
}

/// The interface of the stub library that the program has loaded, by its file name; of several the newest.
fn loaded_abi() -> Option<Abi> {
    unsafe extern "C" fn look(info: *mut libc::dl_phdr_info, _: libc::size_t, found: *mut libc::c_void) -> libc::c_int {
        // SAFETY: the dynamic linker passes a valid entry, whose name is null or a text.
        let name = unsafe { (*info).dlpi_name };
        if name.is_null() {
            return 0;
        }
        // SAFETY: as above.
        let name = unsafe { std::ffi::CStr::from_ptr(name) }.to_string_lossy();
        let file = name.rsplit('/').next().unwrap_or_default();
        let number = file
            .strip_prefix("libamdhip64.so.")
            .and_then(|rest| rest.split('.').next()?.parse::<u8>().ok());
        let abi = number.and_then(|number| Abi::try_from(number).ok());
        // SAFETY: `found` is the option below.
        let found = unsafe { &mut *found.cast::<Option<Abi>>() };
        *found = (*found).max(abi);
        0
    }
    let mut found: Option<Abi> = None;
    // SAFETY: `look` has the type asked for, and its argument lives until the call returns.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut found).cast()) };
    found
}

/// Locks that the forking thread holds, in the order in which they are given back: the machine's is taken last.
type ForkLocks = (MutexGuard<'static, Known>, ForkLock<'static>, LibraryCall);

thread_local! {
    // Never dropped with the thread, which would need a destructor: what runs behind `fork` empties it.
    static FORK: Cell<Option<ManuallyDrop<ForkLocks>>> = const { Cell::new(None) };
}

extern "C" fn before_fork() {
    // A signal handler that forks within a call of its thread goes on with that call in both processes.
    if let (Some(process), Some(inside)) = (started(), enter_library()) {
        let locks = (process.findings.lock(), process.sim.lock_for_fork(), inside);
        FORK.set(Some(ManuallyDrop::new(locks)));
    }
}

extern "C" fn in_parent() {
    drop(FORK.take().map(ManuallyDrop::into_inner));
}

extern "C" fn in_child() {
    if let Some(mut locks) = FORK.take().map(ManuallyDrop::into_inner) {
        locks.1.in_child();
    }
}

/// Runs after the program's own static destructors, which may still call HIP: this library was loaded before the program ran, so that
/// the dynamic linker ends it after the program.
extern "C" fn at_exit() {
    // None: a signal handler ends the process in the middle of a call, with what that call has locked.
    if let (Some(process), Some(_inside)) = (started(), enter_library()) {
        let _ = catch_unwind(AssertUnwindSafe(|| end(process)));
    }
}

#[used]
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = at_exit;
