//! What the waves of a workgroup share: memory, LDS, private memory and the faults found so far.

use super::code::Ins;
use super::count::Count;
use super::init::Init;
use super::observe::Probe;
use super::race::Race;
use super::wave::Wave;
use crate::fault::{Access, Fault, FaultKind};
use crate::memory::{GlobalMemory, MemFaultKind};
use crate::tools::Tools;

/// Shared state while a launch runs.
pub(crate) struct Ctx<'a> {
    pub(crate) memory: &'a mut GlobalMemory,
    /// LDS of the running workgroup; its length is the exact size.
    pub(crate) lds: Vec<u8>,
    /// State of each byte, as [`crate::ByteState`]: 2 not written yet, 3 written.
    pub(crate) lds_state: Vec<u8>,
    /// Private memory: `scratch_size` bytes for each lane of each wave.
    pub(crate) scratch: Vec<u8>,
    pub(crate) scratch_size: usize,
    pub(crate) tools: Tools,
    /// [`Tools::initcheck`]
    pub(crate) check_uninit: bool,
    pub(crate) workgroup: [u32; 3],
    /// gfx1201: signals the barrier of the workgroup has got since it last let waves pass.
    pub(crate) signals: u32,
    pub(crate) faults: Vec<Fault>,
    pub(crate) max_faults: usize,
    /// ELF address of `.text`, for the addresses in faults.
    pub(crate) text: u64,
    /// Somebody watches requests to memory: see [`super::observe`].
    pub(crate) observed: bool,
    /// Looks for changes of memory.
    pub(crate) probe: Option<Probe>,
    /// Which registers are unknown, with [`Tools::init_registers`].
    pub(crate) init: Option<Box<Init>>,
    pub(crate) count: Option<Box<Count>>,
    pub(crate) race: Option<Box<Race>>,
    /// Set once enough faults were found.
    pub(crate) stop: bool,
}

impl Ctx<'_> {
    /// Notes a fault and gives it, unless nobody wants that kind, or the same kind at the same instruction is known: that one
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
        if !self.tools.wants(kind) {
            return None;
        }
        let pc = self.text + u64::from(i.at);
        if let Some(same) = self.faults.iter_mut().find(|f| f.kind == kind && f.pc == pc) {
            same.count += 1;
            return None;
        }
        self.faults.push(Fault {
            kind,
            access,
            address,
            size,
            pc,
            frames: Vec::new(),
            workgroup: self.workgroup,
            wave: w.index,
            lane,
            count: 1,
            other: None,
            note: String::new(),
        });
        self.stop = self.faults.len() >= self.max_faults;
        self.faults.last_mut()
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
