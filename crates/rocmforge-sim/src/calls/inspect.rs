//! Inspection: what a test reads of a machine beside HIP.

use crate::calls::sim::SimHost;
use crate::counters::LaunchCounts;
use crate::desktop::status::DesktopStatus;
use crate::faults::plan::FiredFault;
use crate::machine::module::ForeignCode;
use crate::machine::thread::{self, OsThread};
use crate::machine::vram::AllocationStats;
use crate::queues::timeline::Span;
use crate::report::{AllocationInfo, Report};
use crate::selection::LaunchSelector;
use rocmforge_hip_sys::{hipError_t, hipErrorInvalidHandle, hipModule_t, hipStream_t};
use std::sync::atomic::Ordering;

/// What a host has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// HIP calls.
    pub calls: u64,
    /// Operations that ran on streams.
    pub operations: u64,
    /// Kernel launches that ran.
    pub launches: u64,
    /// Those of them that are checked, see [`SimConfig::selection`](crate::SimConfig::selection).
    pub checked_launches: u64,
    /// What was found in the others and not reported.
    pub unchecked_findings: u64,
    /// Wave instructions they executed.
    pub instructions: u64,
    /// Operations that ran while the program made no call, see [`SimConfig::unattended`](crate::SimConfig::unattended).
    pub unattended: u64,
    /// Threads of the program that made calls.
    pub threads: usize,
    /// Streams whose order with others is kept: those that have work or had it, until they are destroyed and the host knows all that they did.
    pub ordered_streams: usize,
}

impl SimHost {
    /// Everything found wrong so far. A correct program has none, whatever the schedule.
    pub fn reports(&self) -> Vec<Report> {
        self.lock().reports.clone()
    }

    /// The same, and forgets it.
    pub fn take_reports(&self) -> Vec<Report> {
        std::mem::take(&mut self.lock().reports)
    }

    /// Things that are legal and probably not meant, such as a wait for an event that was never recorded, or a load of LDS that no wave
    /// has written, if nothing has used its value.
    pub fn warnings(&self) -> Vec<Report> {
        self.lock().warnings.clone()
    }

    /// How many reports there have been, those that were taken included. Takes no lock: for looking after every call.
    pub fn reported(&self) -> u64 {
        self.reported.load(Ordering::Relaxed)
    }

    /// Number of the calling thread's latest HIP call, as reports name it ([`Report::call`]).
    pub fn latest_call(&self) -> u64 {
        thread::latest_call()
    }

    /// What has run so far and when, with [`SimConfig::timeline`](crate::SimConfig::timeline): the first million operations.
    pub fn timeline(&self) -> Vec<Span> {
        self.lock().timeline.clone()
    }

    /// The first kernel for waves of 64 lanes that has run. The cards have waves of 32 by default, and say so in `warpSize`.
    pub fn wide_kernel(&self) -> Option<String> {
        self.lock().wide_kernel.clone()
    }

    /// What was done so far.
    pub fn counters(&self) -> Counters {
        let host = self.lock();
        Counters {
            calls: host.calls,
            operations: host.operations,
            launches: host.launches,
            checked_launches: host.checked_launches,
            unchecked_findings: host.unchecked,
            instructions: host.instructions,
            unattended: host.unattended,
            threads: host.threads_that_called(),
            ordered_streams: host.races.order.streams(),
        }
    }

    /// The selection of launches, as far as it has come.
    pub fn launch_selector(&self) -> LaunchSelector {
        self.lock().selector.clone()
    }

    /// A hash over every call, every operation in the order it ran and every report. The same seed and the same calls
    /// give the same hash.
    pub fn trace_hash(&self) -> u64 {
        self.lock().trace.hash()
    }

    /// Names of a loaded module's kernels, in the order of its metadata.
    ///
    /// # Errors
    /// `hipErrorInvalidHandle`: the module is not loaded.
    pub fn kernel_names(&self, module: hipModule_t) -> Result<Vec<String>, hipError_t> {
        let state = self.lock();
        let module = state.modules.get(module.addr() as u64).ok_or(hipErrorInvalidHandle)?;
        Ok(module.kernels.iter().map(|kernel| kernel.name.clone()).collect())
    }

    /// Code that was loaded for a card that does not run it, each kind once.
    pub fn foreign_code(&self) -> Vec<ForeignCode> {
        self.lock().foreign_code.iter().cloned().collect()
    }

    /// Cards of this machine.
    pub fn card_count(&self) -> usize {
        self.lock().cards.len()
    }

    /// Figures of a card's memory. All 0 for a card that does not exist.
    pub fn allocation_stats(&self, card: usize) -> AllocationStats {
        self.lock()
            .cards
            .get(card)
            .map(|card| card.vram.stats())
            .unwrap_or_default()
    }

    /// The allocations that live on a card now, by address. None for a card that does not exist.
    pub fn live_allocations(&self, card: usize) -> Vec<AllocationInfo> {
        let host = self.lock();
        let card = host.cards.get(card);
        card.map_or(Vec::new(), |card| card.vram.live().map(|a| a.info()).collect())
    }

    /// Frees of device memory so far, on all cards.
    pub fn free_count(&self) -> u64 {
        self.lock().cards.iter().map(|card| card.vram.stats().frees).sum()
    }

    /// Kernel launches that ran so far.
    pub fn launches(&self) -> u64 {
        self.lock().launches
    }

    /// Operations of a stream that are not done, the running one included. The handle is taken as HIP takes it: null is the null
    /// stream of the calling thread's device. `None`: there is no such stream, as is the thread's own one before its first use.
    pub fn unfinished(&self, stream: hipStream_t) -> Option<u64> {
        let host = self.lock();
        let id = host.host_stream(host.known_thread(OsThread::current()), stream)?;
        let queue = host.queues.get(id)?;
        Some(queue.submitted - queue.completed)
    }

    /// Ranges of pinned host memory that live now.
    pub fn pinned_count(&self) -> usize {
        self.lock().pinned.len()
    }

    /// Whether `ptr` lies in host memory that HIP knows.
    pub fn is_pinned<T>(&self, ptr: *const T) -> bool {
        self.lock().pinned.find(ptr.addr()).is_some()
    }

    /// Bytes from `ptr` to the end of the allocation it lies in, of a card or of host memory that HIP knows; `None` if it lies in none.
    pub fn allocation_bytes<T>(&self, ptr: *const T) -> Option<usize> {
        let (host, address) = (self.lock(), ptr.addr());
        let end = match host.card_of(address as u64) {
            Some(card) => host.cards[card].vram.find(address as u64)?.end() as usize,
            None => host.pinned.find(address)?.end(),
        };
        Some(end - address)
    }

    /// Bytes from `ptr` to the end of the managed allocation it lies in; `None` if it lies in none.
    pub fn managed_bytes<T>(&self, ptr: *const T) -> Option<usize> {
        let host = self.lock();
        let range = host.pinned.find(ptr.addr()).filter(|range| range.managed)?;
        Some(range.end() - ptr.addr())
    }

    /// Counts of the launches that ran since the last call of this, in order; empty unless
    /// [`SimConfig::counters`](crate::SimConfig::counters) is set.
    pub fn take_launch_counts(&self) -> Vec<LaunchCounts> {
        self.with_host_mut(|host| std::mem::take(&mut host.counts))
    }

    /// Planned faults that happened so far, in this order.
    pub fn fired_faults(&self) -> Vec<FiredFault> {
        self.with_host(|host| host.faults.fired.clone())
    }

    /// How a card's desktop fares now. `None` for a card without [`CardConfig::desktop`](crate::CardConfig::desktop).
    pub fn desktop(&self, card: usize) -> Option<DesktopStatus> {
        self.with_host_mut(|host| {
            host.play_desktops();
            Some(host.cards.get(card)?.desktop.as_ref()?.status())
        })
    }
}
