//! Launch: one kernel run by the interpreter, its counts kept and its faults reported.

use crate::counters::LaunchCounts;
use crate::hostcall::{Hostcall, Server};
use crate::machine::host::Host;
use crate::queues::launch::{Given, KERNARG_BYTES, Launch};
use crate::queues::op::Ran;
use crate::races::shadow::Actor;
use crate::report::{Access, AllocationState, Report, ReportKind, Side};
use crate::site::grouped;
use rocmforge_amdgcn as amdgcn;
use rocmforge_amdgcn::{
    ByteState, Dispatch, ExecOptions, Fault, FaultKind, GlobalMemory, Status, execute, execute_attended, set_hidden,
};
use rocmforge_code_object::{ArgKind, HiddenArg};
use rocmforge_hip_sys::{hipError_t, hipErrorIllegalAddress, hipErrorLaunchFailure};
use std::sync::Arc;
use std::time::Duration;

/// Addresses below this are taken for a null pointer and an index.
const NEAR_NULL: u64 = 64 << 10;
/// Bytes of what a cooperative launch's workgroups meet at.
const GRID_SYNC: usize = 64;
/// What a launch costs in simulated time, besides its instructions.
const LAUNCH: Duration = Duration::from_micros(5);
/// Wave instructions per simulated nanosecond.
const INSTRUCTIONS_PER_NS: u64 = 64;

impl Host {
    pub(crate) fn run_kernel(&mut self, launch: &Launch, actor: &Arc<Actor>) -> Ran {
        let call = actor.call;
        let name = launch.module.kernels[launch.kernel].name.clone();
        let card = launch.module.card;
        // Findings of a launch that is not selected are no reason to stop it.
        let max_faults = if actor.checked {
            self.config.max_faults
        } else {
            usize::MAX
        };
        let start = self.now();
        if let Some(ran) = self.planned_launch(card, launch.grid, call) {
            return ran;
        }
        if self.modules.get(launch.handle).is_none() {
            let message = "the module was unloaded while the launch was still queued".to_owned();
            self.report(Report::of_call(ReportKind::UseAfterFree, "kernel", call, message).in_kernel(&name));
            return Ran::Done;
        }
        if self.given_away(launch, actor, &name) {
            return Ran::Done;
        }
        let Some(kernel) = launch.module.program.kernel(&name) else {
            return Ran::Done;
        };
        if self.wide_kernel.is_none() && launch.module.kernels[launch.kernel].wavefront_size == 64 {
            self.wide_kernel = Some(name.clone());
        }
        for given in &launch.given {
            self.cards[card].vram.renew(given.address, call);
        }
        let on_host = self.takes_host_memory(&launch.kernarg);
        let mut segment = launch.kernarg.clone();
        let attended = self.fill_hidden(launch, &mut segment);
        let peers = self.map_peers(card);
        let target = &mut self.cards[card];
        let (vram, kernarg) = (&mut target.vram, target.kernarg);
        // Bytes past the arguments do not exist for the kernel, except for the rest of the last 64: the compiler widens scalar
        // loads up to their own alignment (3 values at offset 16 are read as 4) and drops what it did not want.
        vram.memory.set_state(kernarg, KERNARG_BYTES, ByteState::Unmapped);
        segment.resize(segment.len().next_multiple_of(64), 0);
        vram.memory.set_state(kernarg, segment.len() as u64, ByteState::Uninit);
        if vram.memory.write(kernarg, &segment).is_err() {
            self.unmap_peers(card, peers);
            return Ran::Done;
        }
        let dispatch = Dispatch {
            program: &launch.module.program,
            kernel,
            grid: launch.grid,
            block: launch.block,
            dynamic_lds: launch.dynamic_lds,
            kernarg,
            options: ExecOptions {
                instruction_budget: self.config.instruction_budget,
                max_faults,
                wave_order_seed: self.config.seed,
                group_order_seed: self.config.seed,
                tools: self.config.tools,
                counters: self.config.counters,
                cooperative: launch.cooperative,
                start_ns: start.as_nanos() as u64,
                // Views that are put together again know no host memory; a kernel that finds its address elsewhere is run again.
                threads: if on_host { 1 } else { self.config.threads },
            },
        };
        let outcome = match target.hostcall.as_mut().filter(|_| attended) {
            Some(hostcall) => {
                let (memory, space) = vram.parts();
                let output = self.output.as_mut();
                let mut server = Server {
                    hostcall,
                    space,
                    output,
                    follows: self.config.tools.memcheck && launch.module.program.allocates(),
                    kernel: &name,
                    call,
                };
                execute_attended(&dispatch, memory, &mut server)
            }
            None => execute(&dispatch, &mut vram.memory),
        };
        let written = vram.memory.take_host_writes();
        self.unmap_peers(card, peers);
        for (start, end) in written {
            self.races.watches.taint(start, end, Some(actor.epoch));
        }
        self.launches += 1;
        self.checked_launches += u64::from(actor.checked);
        if self.config.counters {
            self.counts.push(LaunchCounts {
                kernel: name.clone(),
                call,
                grid: launch.grid,
                block: launch.block,
                occupancy: kernel.occupancy(
                    launch.module.program.arch().compute_unit(),
                    launch.block.iter().product(),
                    launch.dynamic_lds,
                ),
                counters: outcome.counters,
            });
        }
        self.instructions += outcome.instructions;
        self.trace.number(outcome.instructions);
        let took = (outcome.instructions / INSTRUCTIONS_PER_NS).max(outcome.clock_ns);
        self.advance(LAUNCH + Duration::from_nanos(took));
        self.races.ran_code_of(launch.handle, actor);
        self.touch_by_kernel(card, actor, &outcome.footprint, &launch.given);
        self.occupy(card, launch.grid, start, outcome.status != Status::BudgetExhausted);
        self.report_refused_services(&name, card, actor);
        // Whether the launch went on to its end after the last of so many faults nobody knows: it counts as stopped.
        let stopped = outcome.faults.len() >= max_faults.max(1)
            && (outcome.faults.iter())
                .all(|fault| !matches!(fault.kind, FaultKind::BadLaunch | FaultKind::NoHostMemory));
        let mut fatal = None;
        let (mut reports, mut spoiling) = (Vec::new(), Vec::new());
        for (index, fault) in outcome.faults.iter().enumerate() {
            let status = status_of(fault.kind);
            fatal = fatal.or(status);
            let report = self.report_of(fault, &name, card, actor);
            let by = match report.kind {
                ReportKind::UseAfterFree => self.races.freed_at(fault.address, u64::MAX).1,
                _ => None,
            };
            // Later launches would read results that are not there: what has taken them away is reported of every launch.
            if status.is_some() || matches!(report.kind, ReportKind::EndlessKernel | ReportKind::Unmodelled) {
                spoiling.push(report.kind);
            }
            reports.push(Report {
                other: report.other.or(by),
                stopped: stopped && index + 1 == outcome.faults.len(),
                ..report
            });
        }
        for report in grouped(reports) {
            self.report_of_launch(actor.checked || spoiling.contains(&report.kind), report);
        }
        if actor.checked {
            for warning in &outcome.warnings {
                self.warn_of_kernel(self.report_of(warning, &name, card, actor));
            }
        }
        if stopped {
            // What the launch has not written would be taken for its result.
            fatal = fatal.or(Some(hipErrorLaunchFailure));
        }
        if let Some(status) = fatal {
            self.fault_card(card, status);
        }
        if outcome.status == Status::BudgetExhausted {
            Ran::Hung
        } else {
            Ran::Done
        }
    }

    /// Maps the memory of the cards that a card may access into that of the card, for a launch; these cards are the answer.
    fn map_peers(&mut self, card: usize) -> Vec<usize> {
        let mut peers: Vec<usize> = self.cards[card].settings.peers.iter().copied().collect();
        peers.retain(|&peer| {
            let memory = &mut self.cards[peer].vram.memory;
            // One chunk of addresses: without so much as that the launch goes on without the peer.
            let Ok(none) = GlobalMemory::with_base(memory.base(), 0) else {
                return false;
            };
            let memory = std::mem::replace(memory, none);
            self.cards[card].vram.memory.map_peer(memory);
            true
        });
        peers
    }

    /// Gives the memory of these cards, which [`Self::map_peers`] has mapped, back to them.
    fn unmap_peers(&mut self, card: usize, peers: Vec<usize>) {
        let memories = self.cards[card].vram.memory.unmap_peers();
        for (peer, memory) in peers.into_iter().zip(memories) {
            self.cards[peer].vram.memory = memory;
        }
    }

    /// Fills in the hidden arguments that point to memory of the card. Whether the kernel may call the host.
    fn fill_hidden(&mut self, launch: &Launch, segment: &mut [u8]) -> bool {
        let meta = &launch.module.kernels[launch.kernel];
        let asks = |hidden| meta.args.iter().any(|arg| arg.kind == ArgKind::Hidden(hidden));
        let card = &mut self.cards[launch.module.card];
        if launch.cooperative && asks(HiddenArg::MultigridSyncArg) {
            if card.grid_sync == 0 {
                card.grid_sync = card.vram.allocate_system(GRID_SYNC as u64).unwrap_or(0);
            }
            let groups: u32 = launch.grid.iter().product();
            let mut sync = [0; GRID_SYNC];
            // One grid, which this is; counters that start at 0; the number of workgroups.
            sync[12..16].copy_from_slice(&1u32.to_le_bytes());
            sync[40..44].copy_from_slice(&groups.to_le_bytes());
            if card.vram.memory.write(card.grid_sync, &sync).is_ok() {
                set_hidden(meta, segment, HiddenArg::MultigridSyncArg, card.grid_sync);
            }
        }
        if !asks(HiddenArg::HostcallBuffer) && !asks(HiddenArg::HeapV1) {
            return false;
        }
        if card.hostcall.is_none() {
            card.hostcall = Hostcall::new(&mut card.vram).ok();
        }
        let Some(hostcall) = &mut card.hostcall else {
            return false;
        };
        hostcall.errors.clear();
        set_hidden(meta, segment, HiddenArg::HostcallBuffer, hostcall.buffer);
        set_hidden(meta, segment, HiddenArg::HeapV1, hostcall.heap);
        true
    }

    /// Reports what the launch has asked of the host and did not get.
    fn report_refused_services(&mut self, kernel: &str, card: usize, actor: &Actor) {
        let hostcall = self.cards[card].hostcall.as_mut();
        let refused = hostcall.map_or(Vec::new(), |hostcall| std::mem::take(&mut hostcall.refused));
        for what in refused {
            let message = format!("the kernel asks for {what}");
            let report = Report::of_call(ReportKind::Unmodelled, "kernel", actor.call, message).in_kernel(kernel);
            self.report(Report {
                stream: actor.stream,
                ..report
            });
        }
    }

    /// Whether some argument is the address of host memory.
    fn takes_host_memory(&self, kernarg: &[u8]) -> bool {
        let words = kernarg.as_chunks::<8>().0.iter();
        self.pinned.len() > 0
            && words
                .filter_map(|word| usize::try_from(u64::from_le_bytes(*word)).ok())
                .any(|address| self.pinned.find(address).is_some())
    }

    /// Whether memory that the launch was given when it was queued belongs to somebody else by now; that is reported, and
    /// the launch must not run: it would do its work on their memory. Where nobody else has it yet, the kernel's own
    /// access tells more.
    fn given_away(&mut self, launch: &Launch, actor: &Actor, name: &str) -> bool {
        let vram = &self.cards[launch.module.card].vram;
        let successor = |given: &&Given| {
            vram.find(given.address)
                .is_some_and(|successor| successor.id != given.id)
        };
        let Some(given) = launch.given.iter().find(successor).copied() else {
            return false;
        };
        let successor = vram.find(given.address).map(|successor| successor.info().to_string());
        let successor = successor.unwrap_or_default();
        let (when, (freed, by)) = match given.id {
            0 => (
                "had been freed when the launch was queued",
                self.races.freed_at(given.address, actor.call),
            ),
            id => ("was freed while the launch was still queued", self.races.freed(id)),
        };
        let message = format!(
            "argument {} points to memory that {when}; now another allocation is there: {successor}",
            given.argument
        );
        let report = Report {
            stream: actor.stream,
            other: by,
            ..Report::of_call(ReportKind::UseAfterFree, "kernel", actor.call, message).in_kernel(name)
        };
        if self.config.tools.memcheck {
            self.report(report.at(None, given.address, 0, freed));
        }
        true
    }

    /// Why a kernel of one card may not access the memory of another.
    fn no_access(&self, card: usize, owner: usize) -> String {
        let why = if self.may_access(card, owner) {
            "hipDeviceEnablePeerAccess has not enabled it"
        } else {
            "this machine has no peer access"
        };
        format!("the memory of device {owner}, which device {card} may not access: {why}")
    }

    fn report_of(&self, fault: &Fault, kernel: &str, card: usize, actor: &Actor) -> Report {
        let (call, stream) = (actor.call, actor.stream);
        let kind = match fault.kind {
            FaultKind::GlobalOutOfBounds => ReportKind::OutOfBounds,
            FaultKind::UseAfterFree => ReportKind::UseAfterFree,
            FaultKind::DoubleFree => ReportKind::DoubleFree,
            FaultKind::InvalidFree => ReportKind::InvalidFree,
            FaultKind::UninitialisedGlobal => ReportKind::Uninitialised,
            FaultKind::LdsOutOfBounds => ReportKind::LdsOutOfBounds,
            FaultKind::UninitialisedLds => ReportKind::UninitialisedLds,
            FaultKind::ScratchOutOfBounds => ReportKind::ScratchOutOfBounds,
            FaultKind::BarrierDivergence | FaultKind::WaveEnded => ReportKind::BarrierDivergence,
            FaultKind::LdsRace => ReportKind::LdsRace,
            FaultKind::GlobalRace => ReportKind::GlobalRace,
            FaultKind::UninitialisedRegister => ReportKind::UninitialisedRegister,
            FaultKind::UninitialisedPrivate => ReportKind::UninitialisedPrivate,
            FaultKind::InactiveLane => ReportKind::InactiveLane,
            FaultKind::RegisterOutOfRange => ReportKind::RegisterOutOfRange,
            FaultKind::MatrixHalves => ReportKind::MatrixHalves,
            FaultKind::Misaligned => ReportKind::Misaligned,
            FaultKind::BudgetExhausted | FaultKind::Spinning => ReportKind::EndlessKernel,
            FaultKind::BadLaunch => ReportKind::BadLaunch,
            FaultKind::NoHostMemory => ReportKind::NoHostMemory,
            FaultKind::BufferDescriptor => ReportKind::Unmodelled,
            _ => ReportKind::KernelAbort,
        };
        let global = matches!(
            kind,
            ReportKind::OutOfBounds
                | ReportKind::UseAfterFree
                | ReportKind::Uninitialised
                | ReportKind::GlobalRace
                | ReportKind::DoubleFree
        );
        let owner = self.card_of(fault.address);
        let on_card = owner.is_some();
        let hostcall = self.cards[card].hostcall.as_ref();
        let mut block = hostcall.and_then(|hostcall| hostcall.followed.block_at(fault.address));
        if let Some(block) = block.as_mut().filter(|_| kind == ReportKind::OutOfBounds) {
            // It may have been freed since.
            block.state = AllocationState::Live;
        }
        let allocation = match (global, owner) {
            (true, Some(owner)) => block.or_else(|| self.cards[owner].vram.blame(fault.address)),
            (true, None) => self.pinned.blame(fault.address),
            (false, _) => None,
        };
        let foreign = owner.filter(|owner| !self.cards[card].settings.peers.contains(owner));
        let foreign = foreign.unwrap_or(card);
        let mut message = match (kind, &allocation) {
            (ReportKind::OutOfBounds, _) if foreign != card => self.no_access(card, foreign),
            (ReportKind::OutOfBounds, Some(of)) if fault.address >= of.address + of.size => {
                format!(
                    "{} B past the end of the allocation",
                    fault.address - (of.address + of.size)
                )
            }
            (ReportKind::OutOfBounds, Some(of)) if fault.address + u64::from(fault.size) > of.address + of.size => {
                format!(
                    "the last {} B of it are past the end of the allocation",
                    fault.address + u64::from(fault.size) - (of.address + of.size)
                )
            }
            (ReportKind::OutOfBounds, None) if fault.address < NEAR_NULL => {
                format!("{:#x} B from a null pointer", fault.address)
            }
            (ReportKind::OutOfBounds, None) if !on_card => {
                "this is no device address; was a host pointer passed?".to_owned()
            }
            _ => String::new(),
        };
        if fault.kind == FaultKind::Trap
            && let Some(hostcall) = &self.cards[card].hostcall
        {
            String::from_utf8_lossy(&hostcall.errors)
                .trim_end()
                .clone_into(&mut message);
        }
        if !fault.note.is_empty() {
            message = if message.is_empty() {
                fault.note.clone()
            } else {
                format!("{message}; {}", fault.note)
            };
        }
        let report = Report::of_call(kind, "kernel", call, message).in_kernel(kernel);
        let other = fault.other.as_deref().map(|other| {
            Box::new(Side {
                api: "kernel",
                call,
                stream,
                kernel: Some(kernel.to_owned()),
                access: access_of(other.access),
                pc: Some(other.pc),
                frames: other.frames.clone(),
                workgroup: Some(other.workgroup),
                wave: other.wave,
                lane: other.lane,
            })
        });
        Report {
            stream,
            other,
            pc: Some(fault.pc),
            frames: fault.frames.clone(),
            workgroup: Some(fault.workgroup),
            wave: fault.wave,
            lane: fault.lane,
            count: fault.count,
            ..report.at(
                access_of(fault.access),
                fault.address,
                u64::from(fault.size),
                allocation,
            )
        }
    }
}

fn access_of(access: amdgcn::Access) -> Option<Access> {
    match access {
        amdgcn::Access::Load | amdgcn::Access::Scalar => Some(Access::Read),
        amdgcn::Access::Store => Some(Access::Write),
        amdgcn::Access::Atomic => Some(Access::Atomic),
        amdgcn::Access::None => None,
    }
}

/// What a fault does to the card. Reads of garbage, LDS mistakes and barriers that some pass by do nothing on a real one: that is why they
/// need a simulator; wild accesses and aborts stop it.
fn status_of(kind: FaultKind) -> Option<hipError_t> {
    match kind {
        FaultKind::GlobalOutOfBounds | FaultKind::UseAfterFree => Some(hipErrorIllegalAddress),
        FaultKind::PcOutOfCode | FaultKind::Trap | FaultKind::BadLaunch | FaultKind::NoHostMemory => {
            Some(hipErrorLaunchFailure)
        }
        _ => None,
    }
}
