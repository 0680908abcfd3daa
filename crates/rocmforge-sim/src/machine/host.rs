//! The state behind a [`SimHost`](crate::SimHost): one machine, no globals.

use crate::config::SimConfig;
use crate::counters::LaunchCounts;
use crate::desktop::model::Desktop;
use crate::faults::state::Faults;
use crate::hostcall::{DeviceOutput, ProcessOutput};
use crate::machine::advice::Advice;
use crate::machine::array::Array;
use crate::machine::card::Card;
use crate::machine::handle::{Kind, Table};
use crate::machine::module::{ForeignCode, Function, Module};
use crate::machine::pinned::PinnedRanges;
use crate::machine::pools::Pools;
use crate::machine::settings::Settings;
use crate::machine::texture::Texture;
use crate::machine::thread::{HostThread, OsThread, ThreadState};
use crate::machine::trace::Trace;
use crate::machine::virtual_memory::VirtualMemory;
use crate::machine::vram::Vram;
use crate::queues::callbacks::Callbacks;
use crate::queues::capture::Captures;
use crate::queues::event::Event;
use crate::queues::graphs::{Exec, Graph, GraphBlock, Node, UserObject};
use crate::queues::launch::KERNARG_BYTES;
use crate::queues::point::StreamId;
use crate::queues::queue::Queues;
use crate::queues::schedule::Chooser;
use crate::queues::timeline::Span;
use crate::races::table::Races;
use crate::report::{Report, ReportKind};
use crate::selection::LaunchSelector;
use rocmforge_amdgcn::ReserveError;
use rocmforge_hip_sys::hipError_t;
use rocmforge_memory::Bytes;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// First device address of the first card. No user process has host memory there.
const FIRST_CARD: u64 = 0x0000_8000_0000_0000;
/// Distance between the cards' first addresses.
const CARD_STRIDE: u64 = 1 << 42;
/// Memory of a card, at most: with its red zones it must end before the next card's.
const MOST_VRAM: u64 = 1 << 40;

/// Why a machine cannot be simulated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SimError {
    /// No address space for a card's memory.
    #[error(transparent)]
    Reserve(#[from] ReserveError),
    /// A card that would reach into the addresses of the next one.
    #[error("a card with {asked} of memory; {} are the most", Bytes(MOST_VRAM))]
    TooMuchMemory {
        /// Its size.
        asked: Bytes,
    },
}

/// A machine: all that its calls change.
pub(crate) struct Host {
    pub(crate) config: SimConfig,
    pub(crate) cards: Vec<Card>,
    pub(crate) queues: Queues,
    pub(crate) streams: Table<StreamId>,
    pub(crate) events: Table<Event>,
    pub(crate) modules: Table<Arc<Module>>,
    pub(crate) functions: Table<Function>,
    /// Code that was refused since no card of its kind was the current one.
    pub(crate) foreign_code: BTreeSet<ForeignCode>,
    pub(crate) captures: Captures,
    pub(crate) graphs: Table<Graph>,
    pub(crate) execs: Table<Exec>,
    pub(crate) nodes: Table<Node>,
    pub(crate) objects: Table<UserObject>,
    /// Memory of graphs, by its address.
    pub(crate) graph_memory: BTreeMap<u64, GraphBlock>,
    pub(crate) pinned: PinnedRanges,
    pub(crate) pools: Pools,
    pub(crate) arrays: Table<Array>,
    /// Texture and surface objects, by their address.
    pub(crate) textures: BTreeMap<u64, Texture>,
    pub(crate) virtual_memory: VirtualMemory,
    /// What the program has said of its memory, by the number of the allocation or range.
    pub(crate) advice: BTreeMap<u64, Advice>,
    pub(crate) threads: HashMap<HostThread, ThreadState>,
    /// The number of each thread of the operating system that has called.
    os_threads: HashMap<OsThread, u32>,
    /// The host thread that one of the operating system plays.
    pub(crate) roles: HashMap<OsThread, u32>,
    pub(crate) chooser: Chooser,
    pub(crate) races: Races,
    pub(crate) callbacks: Callbacks,
    /// Whether a thread runs what the program does not wait for with a call.
    pub(crate) has_unattended_thread: bool,
    /// Operations that it has run.
    pub(crate) unattended: u64,
    pub(crate) trace: Trace,
    pub(crate) calls: u64,
    pub(crate) next_id: u64,
    /// Consecutive polls that found nothing done.
    pub(crate) poll_streak: u32,
    pub(crate) reports: Vec<Report>,
    /// Reports so far, those that were taken or not kept included.
    pub(crate) reported: Arc<AtomicU64>,
    /// Reports about launches that are not selected, which are kept nowhere.
    pub(crate) unchecked: u64,
    pub(crate) warnings: Vec<Report>,
    /// The first kernel for waves of 64 lanes that has run.
    pub(crate) wide_kernel: Option<String>,
    pub(crate) launches: u64,
    /// Those of them that are selected.
    pub(crate) checked_launches: u64,
    pub(crate) selector: LaunchSelector,
    /// Counts of launches, with `SimConfig::counters`.
    pub(crate) counts: Vec<LaunchCounts>,
    /// With `SimConfig::timeline`.
    pub(crate) timeline: Vec<Span>,
    pub(crate) operations: u64,
    pub(crate) instructions: u64,
    pub(crate) faults: Faults,
    /// Where kernels print.
    pub(crate) output: Box<dyn DeviceOutput>,
    clock: Arc<AtomicU64>,
}

/// Reports kept; a broken loop must not fill the memory.
const KEPT_REPORTS: usize = 1000;

impl Host {
    pub(crate) fn new(config: SimConfig, clock: Arc<AtomicU64>) -> Result<Self, SimError> {
        let mut queues = Queues::default();
        let mut cards = Vec::new();
        let mut pools = Pools::new();
        for (index, card) in config.cards.iter().enumerate() {
            let base = FIRST_CARD + index as u64 * CARD_STRIDE;
            let pool = card.pool();
            if pool.0 > MOST_VRAM {
                return Err(SimError::TooMuchMemory { asked: pool });
            }
            let mut vram = Vram::new(base, pool.0, &config)?;
            let kernarg = vram.allocate_system(KERNARG_BYTES).unwrap_or(base);
            let null = queues.create(index, true, 0, 0);
            if let Some(queue) = queues.get_mut(null) {
                queue.legacy = true;
            }
            let desktop = card.desktop.as_ref().map(|desktop| {
                if card.unified_memory {
                    Desktop::sharing(desktop, card.vram.0.saturating_add(config.host_memory.0))
                } else {
                    Desktop::new(desktop, vram.available(0))
                }
            });
            let own_pool = pools.create(index, 0, true);
            cards.push(Card {
                config: card.clone(),
                vram,
                null,
                fault: None,
                desktop,
                overhead: 0,
                kernarg,
                hostcall: None,
                grid_sync: 0,
                pool: own_pool,
                own_pool,
                graph_high: [0; 2],
                settings: Settings::default(),
            });
        }
        Ok(Self {
            cards,
            queues,
            streams: Table::new(Kind::Stream),
            events: Table::new(Kind::Event),
            modules: Table::new(Kind::Module),
            functions: Table::new(Kind::Function),
            foreign_code: BTreeSet::new(),
            captures: Captures::default(),
            graphs: Table::new(Kind::Graph),
            execs: Table::new(Kind::GraphExec),
            nodes: Table::new(Kind::GraphNode),
            objects: Table::new(Kind::UserObject),
            graph_memory: BTreeMap::new(),
            pinned: PinnedRanges::default(),
            pools,
            arrays: Table::new(Kind::Array),
            textures: BTreeMap::new(),
            virtual_memory: VirtualMemory::default(),
            advice: BTreeMap::new(),
            threads: HashMap::new(),
            os_threads: HashMap::new(),
            roles: HashMap::new(),
            chooser: Chooser::new(config.schedule, config.seed),
            callbacks: Callbacks::default(),
            has_unattended_thread: false,
            unattended: 0,
            races: Races::new(config.separate_threads),
            trace: Trace::new(),
            calls: 0,
            next_id: 0,
            poll_streak: 0,
            reports: Vec::new(),
            reported: Arc::default(),
            unchecked: 0,
            warnings: Vec::new(),
            wide_kernel: None,
            launches: 0,
            checked_launches: 0,
            selector: LaunchSelector::new(config.selection.clone()),
            counts: Vec::new(),
            timeline: Vec::new(),
            operations: 0,
            instructions: 0,
            faults: Faults::new(config.faults.clone()),
            output: Box::new(ProcessOutput),
            clock,
            config,
        })
    }

    pub(crate) fn now(&self) -> Duration {
        Duration::from_nanos(self.clock.load(Ordering::Relaxed))
    }

    pub(crate) fn advance(&self, by: Duration) {
        self.clock
            .fetch_add(u64::try_from(by.as_nanos()).unwrap_or(u64::MAX >> 8), Ordering::Relaxed);
    }

    /// Who a thread of the operating system is here.
    pub(crate) fn host_thread(&mut self, thread: OsThread) -> HostThread {
        if let Some(role) = self.roles.get(&thread) {
            return HostThread::Logical(*role);
        }
        let next = self.os_threads.len() as u32;
        HostThread::Os(*self.os_threads.entry(thread).or_insert(next))
    }

    /// The same of a thread that has called; looking makes no thread known.
    pub(crate) fn known_thread(&self, thread: OsThread) -> Option<HostThread> {
        let role = self.roles.get(&thread).map(|role| HostThread::Logical(*role));
        role.or_else(|| self.os_threads.get(&thread).map(|number| HostThread::Os(*number)))
    }

    /// Threads of the operating system that have called, without those that play a role.
    pub(crate) fn threads_that_called(&self) -> usize {
        self.os_threads.len()
    }

    pub(crate) fn new_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    pub(crate) fn report(&mut self, report: Report) {
        self.trace.number(report.kind as u64);
        self.reported.fetch_add(1, Ordering::Relaxed);
        if self.reports.len() < KEPT_REPORTS {
            self.reports.push(report);
        }
    }

    /// A report about a launch, which is counted only if that is not one of those that are checked.
    pub(crate) fn report_of_launch(&mut self, checked: bool, report: Report) {
        if checked {
            self.report(report);
        } else {
            self.trace.number(report.kind as u64);
            self.unchecked += 1;
        }
    }

    pub(crate) fn warn(&mut self, warning: Report) {
        if self.warnings.len() < KEPT_REPORTS {
            self.warnings.push(warning);
        }
    }

    /// A warning about an instruction of a kernel, once for each place in the source.
    pub(crate) fn warn_of_kernel(&mut self, warning: Report) {
        let place = |report: &Report| (report.kind, report.site());
        if !self.warnings.iter().any(|before| place(before) == place(&warning)) {
            let message = match (warning.kind, &warning.message[..]) {
                (ReportKind::BarrierDivergence, _) => {
                    "right if those that pass it by return after what they store, which the line table does not say"
                }
                (_, "") => "nothing has used the value",
                (_, other) => other,
            };
            let message = message.to_owned();
            self.warn(Report { message, ..warning });
        }
    }

    /// A warning about a copy that reads padding, once for each kind of padding.
    pub(crate) fn warn_of_copy(&mut self, warning: Report) {
        let same = |before: &Report| (before.kind, &before.message) == (warning.kind, &warning.message);
        if !self.warnings.iter().any(same) {
            self.warn(warning);
        }
    }

    /// The card a device address lies in, allocated or not.
    pub(crate) fn card_of(&self, address: u64) -> Option<usize> {
        let index = address.checked_sub(FIRST_CARD)? / CARD_STRIDE;
        (index < self.cards.len() as u64).then_some(index as usize)
    }

    /// A kernel fault: what is queued is lost, and every later call on the card answers `status`.
    pub(crate) fn fault_card(&mut self, card: usize, status: hipError_t) {
        self.cards[card].fault.get_or_insert(status);
        self.queues.abandon(card);
    }

    /// Ends the device for this process: what is queued is gone, and every call answers `status`.
    pub(crate) fn lose_device(&mut self, status: hipError_t) {
        self.faults.lost.get_or_insert(status);
        let now = self.now();
        for card in 0..self.cards.len() {
            self.fault_card(card, status);
            if let Some(desktop) = &mut self.cards[card].desktop {
                desktop.vacated(now);
            }
        }
    }
}
