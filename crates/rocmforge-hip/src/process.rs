//! Process state: the simulated machine of a program, made at its first HIP call, and what happens before and after each call.

use crate::absent;
use crate::call_stack::CallStacks;
use crate::findings::{Findings, Identity};
use crate::record::{Record, Records};
use crate::registry;
use crate::settings::{Abi, Settings};
use parking_lot::MutexGuard;
use rocmforge_hip_sys::{hipError_t, hipErrorNotInitialized, hipErrorUnknown};
use rocmforge_sim::{ForkLock, SimHost};
use std::cell::Cell;
use std::collections::HashMap;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

/// The machine and what is known of the program.
pub(crate) struct Process {
    pub(crate) sim: Arc<SimHost>,
    pub(crate) settings: Settings,
    pub(crate) abi: Abi,
    stacks: CallStacks,
    findings: Findings,
    records: Records,
}

/// None: the settings make no sense, or the host has no address space for the card.
static PROCESS: OnceLock<Option<Process>> = OnceLock::new();

/// The process, with its machine, which the first call makes.
pub(crate) fn process() -> Option<&'static Process> {
    PROCESS
        .get_or_init(|| Process::start().map_err(|error| complain(&*error)).ok())
        .as_ref()
}

/// The process, if it has a machine.
fn started() -> Option<&'static Process> {
    PROCESS.get()?.as_ref()
}

/// Says on standard error why nothing can run.
fn complain(error: &dyn std::error::Error) {
    crate::findings::say(None, &format!("rocmforge-hip: no machine is simulated: {error}\n"));
}

impl Process {
    fn start() -> Result<Self, Box<dyn std::error::Error>> {
        let settings = match std::env::var(Settings::VARIABLE) {
            Ok(value) => Settings::from_variable(&value)?,
            Err(_) => Settings::default(),
        };
        let abi = settings.hip.or_else(loaded_abi).unwrap_or(Abi::Hip6);
        let sim = SimHost::try_new(settings.machine(abi)?)?;
        sim.set_host_addresses(Arc::new(registry::Addresses));
        sim.set_after_unattended(|| {
            if let Some(process) = started() {
                process.after_call();
            }
        });
        let records = Records::open(settings.records.as_deref());
        records.add(&Record::start(&settings, abi));
        // SAFETY: the three functions take no argument and lock what they unlock.
        unsafe { libc::pthread_atfork(Some(before_fork), Some(in_parent), Some(in_child)) };
        Ok(Self {
            findings: Findings::new(settings.log.clone(), settings.print_limit),
            stacks: CallStacks::new(settings.stack_frames),
            sim,
            settings,
            abi,
            records,
        })
    }

    /// Makes a call of the machine that reports name, and keeps where in the program it was made.
    #[inline]
    pub(crate) fn with_stack<T>(&self, call: impl FnOnce() -> T) -> T {
        let stack = self.stacks.take();
        let answer = call();
        if let Some(stack) = stack {
            self.stacks.keep(self.sim.latest_call(), stack);
        }
        answer
    }

    /// Prints and records what the simulator has found since.
    pub(crate) fn after_call(&self) {
        let reported = self.sim.reported();
        if self.findings.is_behind(reported) {
            self.findings
                .add(self.sim.take_reports(), reported, &self.stacks, &self.records);
        }
    }

    /// The last words: what is still queued runs, then leaks, functions that are absent, and figures.
    fn end(&self) {
        registry::finish(self);
        if self.settings.leak_check {
            let leaks = self.sim.leaks();
            let leaks = leaks
                .into_iter()
                .filter(|leak| !registry::loaded_by(leak.call))
                .collect();
            self.findings
                .add(leaks, self.sim.reported(), &self.stacks, &self.records);
        }
        self.after_call();
        if let Some(path) = &self.settings.trace
            && let Err(error) = crate::trace::write(path, &self.sim.timeline())
        {
            crate::findings::say(None, &format!("rocmforge-hip: {}: {error}\n", path.display()));
        }
        let absent = absent::calls();
        let counters = self.sim.counters();
        let seed = self.settings.random_order.then_some(self.settings.seed);
        self.findings.end(&absent, counters, seed);
        self.records.add(&Record::end(self.findings.totals(), absent, counters));
    }
}

/// Makes a call on the machine. What it finds is printed before the program goes on.
pub(crate) fn call(body: impl FnOnce(&Process) -> hipError_t) -> hipError_t {
    let Some(process) = process() else {
        return hipErrorNotInitialized;
    };
    // A panic must not leave through a C function: that would end the program.
    let status = catch_unwind(AssertUnwindSafe(|| body(process))).unwrap_or(hipErrorUnknown);
    process.after_call();
    status
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

/// Locks that the forking thread holds: the machine's is taken last.
type ForkLocks = (MutexGuard<'static, HashMap<Identity, u64>>, ForkLock<'static>);

thread_local! {
    // Never dropped with the thread, which would need a destructor: what runs behind `fork` empties it.
    static FORK: Cell<Option<ManuallyDrop<ForkLocks>>> = const { Cell::new(None) };
}

extern "C" fn before_fork() {
    if let Some(process) = started() {
        let locks = (process.findings.lock(), process.sim.lock_for_fork());
        FORK.set(Some(ManuallyDrop::new(locks)));
    }
}

extern "C" fn in_parent() {
    drop(FORK.take().map(ManuallyDrop::into_inner));
}

extern "C" fn in_child() {
    if let Some((_findings, mut machine)) = FORK.take().map(ManuallyDrop::into_inner) {
        machine.in_child();
    }
}

/// Runs after the program's own static destructors, which may still call HIP: this library was loaded before the program ran, so that
/// the dynamic linker ends it after the program.
extern "C" fn at_exit() {
    if let Some(process) = started() {
        let _ = catch_unwind(AssertUnwindSafe(|| process.end()));
    }
}

#[used]
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = at_exit;
