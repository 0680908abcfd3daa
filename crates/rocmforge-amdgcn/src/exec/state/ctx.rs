//! An instruction, what it runs over, and who watches: three types that name each other.
//!
//! The code of an instruction is a function of a wave and of what its launch shares, [`Ctx`]. That knows an [`Observer`], which is notified of
//! requests to memory and of what orders them, with the instruction that makes them.

use crate::attend::Attendant;
use crate::exec::lower::library::Heap;
use crate::exec::state::absence::Absence;
use crate::exec::state::fields::{Flow, Src};
use crate::exec::state::grid::Gws;
use crate::exec::state::races::Races;
use crate::exec::state::request::{Addresses, Data, Place, Request, Shape, Unwritten, addresses_of_row};
use crate::exec::state::variables::{VariableAccesses, Variables};
use crate::exec::state::wave::Wave;
use crate::fault::{Access, Fault, FaultKind, Side};
use crate::memory::{GlobalMemory, MemFaultKind};
use crate::tools::Tools;
use std::cell::RefCell;
use std::rc::Rc;

/// Code of one lowered instruction.
///
/// # Safety
/// Call it only on the host that chose it: it may use instructions found by run-time detection.
pub(crate) type Run = unsafe fn(&mut Wave, &mut Ctx<'_>, &Ins);

/// A lowered instruction.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Ins {
    pub(crate) run: Run,
    pub(crate) a: Src,
    pub(crate) b: Src,
    pub(crate) c: Src,
    pub(crate) flow: Flow,
    pub(crate) dst: u8,
    pub(crate) sdst: u8,
    pub(crate) clamp: bool,
    /// Shift of the half of `dst` that a 16-bit result goes to.
    pub(crate) half: u8,
    /// How many instructions from this one on the loop runs one after the other, before it has to look at `flow` again.
    pub(crate) straight: u16,
    pub(crate) imm: i32,
    /// Branches: index of the target.
    pub(crate) target: u32,
    /// Offset of the instruction in `.text`.
    pub(crate) at: u32,
}

/// How an instruction with the address of a variable runs: see [`crate::exec::memory::variable`].
pub(crate) struct Watched {
    /// Its own handler.
    pub(crate) run: Run,
    /// The addresses of its lanes; of a scalar load that of lane 0.
    pub(crate) addresses: fn(&Wave, &Ins, &mut Addresses),
}

/// What orders accesses besides barriers and atomics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fence {
    /// Waits until the wave's stores are done.
    Stores,
    /// Invalidates the cache of the workgroup.
    Workgroup,
    /// Invalidates the caches between the workgroup and the L2.
    Device,
}

/// Lanes of a wave that a shuffle has given the value of a lane that is off.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct FromInactive {
    /// In each half of a wave of 64 lanes, or the half that runs.
    pub(crate) lanes: [u32; 2],
    /// Whose value the first of them has.
    pub(crate) source: u32,
}

/// Who watches a launch.
pub(crate) trait Observer {
    /// A request to memory. Called only if [`Ctx::observed`], as is [`Self::fence`].
    fn request(&mut self, c: &mut Ctx<'_>, w: &Wave, i: &Ins, request: &Request<'_>);

    /// A wait or a cache invalidation of a wave.
    fn fence(&mut self, wave: u32, fence: Fence);

    /// A wave releases what it has done at a place that is not in memory.
    fn release_at(&mut self, wave: u32, number: u64);

    /// What has been released there up to now.
    fn released_at(&mut self, number: u64) -> (u32, u32);

    /// A wave sees what was released there.
    fn acquire_at(&mut self, wave: u32, number: u64, released: (u32, u32));

    /// Which of some bytes of memory that nobody has written hold a copy of other such bytes.
    fn copies(&self, w: &Wave, place: Place, lane: usize, address: u64, bytes: u64) -> u64;
}

/// Shared state while a launch runs.
pub(crate) struct Ctx<'a> {
    pub(crate) memory: &'a mut GlobalMemory,
    /// Who serves what the kernel asks of the host.
    pub(crate) attendant: Option<&'a mut (dyn Attendant + 'a)>,
    /// Start of the launch in nanoseconds, and the frequency of the shader clock in kHz.
    pub(crate) start_ns: u64,
    pub(crate) khz: u32,
    /// The most cycles since the start that a wave has seen on a clock.
    pub(crate) latest: u64,
    /// What a lane reads of host memory, whose bytes cannot be borrowed.
    pub(crate) elsewhere: [u8; 16],
    /// LDS of the running workgroup; its length is the exact size.
    pub(crate) lds: Vec<u8>,
    /// State of each byte, as [`crate::ByteState`]: 2 not written yet, 3 written.
    pub(crate) lds_state: Vec<u8>,
    /// The workgroup has written some of it.
    pub(crate) lds_written: bool,
    /// Private memory: `scratch_size` bytes for each lane of each wave.
    pub(crate) scratch: Vec<u8>,
    /// State of each of its bytes, as of LDS; empty unless [`Ctx::check_uninit`].
    pub(crate) scratch_state: Vec<u8>,
    /// The workgroup has written some of it.
    pub(crate) scratch_written: bool,
    pub(crate) scratch_size: usize,
    /// Vector registers that the kernel asked for.
    pub(crate) vgprs: u32,
    pub(crate) tools: Tools,
    /// Loads of bytes nobody has written are looked at: [`Tools::initcheck`] or [`Tools::init_registers`].
    pub(crate) check_uninit: bool,
    /// The register that the running load fills, where what it gives can be followed.
    pub(crate) loading: Option<u8>,
    /// Such loads of the running instruction.
    pub(crate) unwritten: Vec<Unwritten>,
    /// The lanes that the running shuffle has given the value of one that is off.
    pub(crate) inactive: FromInactive,
    /// The first of either came: from the next instruction on the values are followed.
    pub(crate) woken: bool,
    pub(crate) workgroup: [u32; 3],
    /// Who was not at barriers to which the running wave came, and how many those were.
    pub(crate) absent: Vec<Absence>,
    pub(crate) barriers: u32,
    /// Offset in `.text` of the instruction by which the running wave, since its last barrier, has last written to memory that others see;
    /// [`NOWHERE`](crate::exec::state::absence::NOWHERE) if it has not.
    pub(crate) last_write: u32,
    /// gfx1201: signals the barrier of the workgroup has got since it last let waves pass.
    pub(crate) signals: u32,
    /// Where waves of all workgroups meet.
    pub(crate) gws: Gws,
    pub(crate) faults: Vec<Fault>,
    /// What may be right, and checks that have ended early. What is no fault at the end is a warning of the outcome.
    pub(crate) warnings: Vec<Fault>,
    pub(crate) max_faults: usize,
    /// Races of loads of LDS.
    pub(crate) races: Races,
    /// Whether the line table has a line for the instruction at an ELF address.
    pub(crate) has_line: &'a dyn Fn(u64) -> bool,
    /// The functions of device `malloc`.
    pub(crate) heap: &'a Heap,
    /// ELF address of `.text`, for the addresses in faults.
    pub(crate) text: u64,
    /// The program's variables, instructions with the address of one, and what those have accessed.
    pub(crate) variables: &'a Variables,
    pub(crate) watched: &'a [Watched],
    pub(crate) variable_accesses: VariableAccesses,
    /// Somebody watches requests to memory.
    pub(crate) observed: bool,
    /// Values nobody has written are followed, in [`Self::observer`].
    pub(crate) follows: bool,
    /// A wave runs again what it has done: see [`crate::exec::waves::group`].
    pub(crate) replays: bool,
    pub(crate) observer: Rc<RefCell<dyn Observer>>,
    /// Set once enough faults were found.
    pub(crate) stop: bool,
}

impl Ctx<'_> {
    /// Tells whoever watches about a request that is about to run. Called only if [`Ctx::observed`].
    #[cold]
    #[inline(never)]
    pub(crate) fn observe(&mut self, w: &Wave, i: &Ins, request: &Request<'_>) {
        let observer = Rc::clone(&self.observer);
        observer.borrow_mut().request(self, w, i, request);
    }

    /// The same of a load or store by all lanes, of `size` bytes each, that lie one behind the other from `first` on.
    #[cold]
    #[inline(never)]
    pub(crate) fn observe_row(&mut self, w: &Wave, i: &Ins, place: Place, access: Access, first: u64, size: usize) {
        let request = Request {
            place,
            access,
            size: size as u32,
            exec: u32::MAX,
            at: &addresses_of_row(first, size),
            shape: Shape::Contiguous,
            data: if access == Access::Store {
                Data::Words(i.b.reg)
            } else {
                Data::Into(i.dst)
            },
        };
        self.observe(w, i, &request);
    }

    /// Lets the host serve what the kernel asks of it.
    #[inline(never)]
    pub(crate) fn attend(&mut self) {
        if let Some(attendant) = &mut self.attendant {
            attendant.attend(self.memory);
        }
    }

    /// Notes a fault of lane `lane` of `w`, which may be the upper lanes of a wave of 64, and gives it, unless nobody wants that kind, or
    /// the same kind at the same instruction is known: that one
    /// is counted only.
    #[cold]
    #[inline(never)]
    pub(crate) fn fault(
        &mut self,
        w: &Wave,
        i: &Ins,
        kind: FaultKind,
        access: Access,
        lane: u32,
        address: u64,
        size: u32,
    ) -> Option<&mut Fault> {
        if !self.tools.wants(kind) || self.count(i, kind, 1) {
            return None;
        }
        let fault = self.new_fault(w, i, kind, access, lane, address, size);
        self.note(fault)
    }

    /// Notes a fault of a kind that is not known at its instruction.
    pub(crate) fn note(&mut self, fault: Fault) -> Option<&mut Fault> {
        self.faults.push(fault);
        self.stop = self.faults.len() >= self.max_faults;
        self.faults.last_mut()
    }

    /// A fault, which is not noted yet.
    pub(crate) fn new_fault(
        &self,
        w: &Wave,
        i: &Ins,
        kind: FaultKind,
        access: Access,
        lane: u32,
        address: u64,
        size: u32,
    ) -> Fault {
        Fault {
            kind,
            access,
            address,
            size,
            pc: self.text + u64::from(i.at),
            frames: Vec::new(),
            workgroup: self.workgroup,
            wave: w.index,
            lane: w.first_lane + lane,
            count: 1,
            other: None,
            note: String::new(),
            calls: w.calls.clone(),
        }
    }

    /// Notes what may be right, as [`Self::fault`] notes a fault: a warning, unless it becomes a fault as well.
    #[cold]
    #[inline(never)]
    pub(crate) fn warning(
        &mut self,
        w: &Wave,
        i: &Ins,
        kind: FaultKind,
        access: Access,
        lane: u32,
        address: u64,
        size: u32,
    ) -> Option<&mut Fault> {
        let pc = self.text + u64::from(i.at);
        if !self.tools.wants(kind) || count_in(&mut self.warnings, kind, pc, 1) {
            return None;
        }
        let warning = self.new_fault(w, i, kind, access, lane, address, size);
        self.warnings.push(warning);
        self.warnings.last_mut()
    }

    /// Notes that a lane loads LDS that no wave has written, `size` bytes.
    pub(crate) fn warn(&mut self, w: &Wave, i: &Ins, load: &Unwritten, size: u32) {
        let (lane, kind) = (load.lane as u32, FaultKind::UninitialisedLds);
        self.warning(w, i, kind, load.access, lane, load.address, size);
    }

    /// Counts more lanes of a fault that is known at an instruction; false if it is not.
    pub(crate) fn count(&mut self, i: &Ins, kind: FaultKind, lanes: u64) -> bool {
        let pc = self.text + u64::from(i.at);
        count_in(&mut self.faults, kind, pc, lanes)
    }

    /// Notes that a lane loads bytes nobody has written, a bit for each in `bytes`; `None` where that is a fault at once, since
    /// what the instruction does with them cannot be followed. Otherwise which of them are to be poisoned: not those that hold a
    /// copy of other such bytes.
    #[cold]
    #[inline(never)]
    pub(crate) fn unwritten(
        &mut self,
        w: &Wave,
        place: Place,
        access: Access,
        lane: u32,
        address: u64,
        bytes: u64,
    ) -> Option<u64> {
        let register = self.loading?;
        self.unwritten.push(Unwritten {
            place,
            access,
            lane: lane as usize,
            first_lane: w.first_lane,
            address,
            bytes,
            register,
            race: None,
        });
        self.wake();
        let copies = self.observer.borrow().copies(w, place, lane as usize, address, bytes);
        Some(bytes & !copies)
    }

    /// Notes lanes that a shuffle gives the value of a lane that is off: `from` says whose each of the wave's lanes gets, `exec` which are
    /// active. A card gives 0, and HIP says that the value is undefined.
    #[cold]
    #[inline(never)]
    pub(crate) fn shuffled(&mut self, exec: u64, from: &[u32]) {
        if !self.tools.initcheck {
            return;
        }
        let count = from.len() as u32;
        let is_off = |lane: u32| exec >> (from[lane as usize] % count) & 1 == 0;
        let mut lanes = (0..count)
            .filter(|&lane| exec >> lane & 1 != 0 && is_off(lane))
            .peekable();
        let Some(&first) = lanes.peek() else {
            return;
        };
        let all = lanes.fold(0u64, |all, lane| all | 1 << lane);
        self.inactive = FromInactive {
            lanes: [all as u32, (all >> 32) as u32],
            source: from[first as usize] % count,
        };
        self.wake();
    }

    /// The values that the running instruction gives are followed from the next one on.
    fn wake(&mut self) {
        if !self.follows {
            self.woken = true;
            self.observed = true;
        }
    }

    /// Whether an instruction is of device `malloc` itself, which keeps its lists between the blocks.
    #[cold]
    #[inline(never)]
    pub(crate) fn in_allocator(&self, i: &Ins) -> bool {
        self.attendant.is_some() && self.memory.share.is_none() && self.heap.contains(self.text + u64::from(i.at))
    }

    /// Notes why an access to global memory was refused.
    #[cold]
    #[inline(never)]
    pub(crate) fn global_fault(&mut self, w: &Wave, i: &Ins, access: Access, lane: u32, address: u64, size: u32) {
        let initialised = access != Access::Store && self.check_uninit;
        let fault = self.memory.diagnose(address, size.into(), !initialised);
        let kind = match fault.kind {
            MemFaultKind::OutOfBounds => FaultKind::GlobalOutOfBounds,
            MemFaultKind::UseAfterFree => FaultKind::UseAfterFree,
            MemFaultKind::Uninitialised => FaultKind::UninitialisedGlobal,
        };
        self.fault(w, i, kind, access, lane, address, size);
    }
}

/// Counts more lanes of what is known of a kind at an ELF address; false if nothing is.
pub(crate) fn count_in(known: &mut [Fault], kind: FaultKind, pc: u64, lanes: u64) -> bool {
    let same = known.iter_mut().find(|fault| (fault.kind, fault.pc) == (kind, pc));
    same.map(|same| same.count += lanes).is_some()
}

/// What a wave of the fault's workgroup does at another instruction.
pub(crate) fn side(w: &Wave, pc: u64, fault: &Fault, access: Access, lane: u32) -> Option<Box<Side>> {
    Some(Box::new(Side {
        access,
        pc,
        frames: Vec::new(),
        workgroup: fault.workgroup,
        wave: w.index,
        lane: w.first_lane + lane,
        calls: w.calls.clone(),
    }))
}
