//! NVML readings: the budget's figures of a card from NVIDIA's management library, as `nvidia-smi` uses it.

use crate::LoadError;
use crate::library::functions;
use rocmforge_machine::sysfs::Sysfs;
use rocmforge_memory::{Bytes, Reading, Readings};
use std::ffi::{CString, c_char, c_int, c_uint, c_ulonglong, c_void};
use std::path::Path;

const LIBRARY: &str = "libnvidia-ml.so.1";
pub(crate) const SUCCESS: c_int = 0;
pub(crate) const INSUFFICIENT_SIZE: c_int = 7;
pub(crate) const DEPRECATED: c_int = 26;
/// More processes than ever hold a context on one card.
const MAX_PROCESSES: usize = 4096;
/// PCI's class of controllers without sockets for a display, as the file `class` of a device begins.
const WITHOUT_SOCKETS: &str = "0x0302";
/// `nvmlProcessInfo_t::usedGpuMemory` of a process whose figure the driver does not have.
const NOT_AVAILABLE: u64 = u64::MAX;

type Device = *mut c_void;

/// `nvmlMemory_t`.
#[repr(C)]
#[derive(Default)]
pub(crate) struct Memory {
    total: c_ulonglong,
    free: c_ulonglong,
    pub(crate) used: c_ulonglong,
}

/// `nvmlProcessInfo_t`, as version 3 of the call has it.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct Process {
    pid: c_uint,
    pub(crate) used: c_ulonglong,
    gpu_instance: c_uint,
    compute_instance: c_uint,
}

functions! {
    /// What of `libnvidia-ml` is used.
    pub(crate) struct Nvml -> c_int;
    fn init = "nvmlInit_v2"();
    fn device_at = "nvmlDeviceGetHandleByPciBusId_v2"(*const c_char, *mut Device);
    fn memory = "nvmlDeviceGetMemoryInfo"(Device, *mut Memory);
    fn processes = "nvmlDeviceGetComputeRunningProcesses_v3"(Device, *mut c_uint, *mut Process);
    fn display_active = "nvmlDeviceGetDisplayActive"(Device, *mut c_uint);
    fn display_mode = "nvmlDeviceGetDisplayMode"(Device, *mut c_uint);
}

/// Figures of the card at one PCI address, read from the driver each time.
///
/// `used` counts all processes, graphics included. Our own share is known where the driver counts processes by numbers that
/// mean the same here: not inside of a container, where the ledger stands in for it.
pub struct NvmlReadings {
    nvml: Nvml,
    device: Device,
    /// Our number, where it is the machine's.
    process: Option<u32>,
    /// Whether the card can have a display.
    sockets: bool,
}

// SAFETY: a device handle is a name of the library's, whose functions may be called from any thread.
unsafe impl Send for NvmlReadings {}
// SAFETY: as above; nothing here changes after it is made.
unsafe impl Sync for NvmlReadings {}

impl NvmlReadings {
    /// The card at `pci` (`0000:03:00.0`). `None`: the library does not know it; HIP's own figures are all there is then.
    ///
    /// # Errors
    /// [`LoadError`]: the library is not there, or too old.
    pub fn open(pci: &str) -> Result<Option<Self>, LoadError> {
        Self::open_from(LIBRARY, pci)
    }

    /// The same, through exactly this library.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_from(library: &str, pci: &str) -> Result<Option<Self>, LoadError> {
        let nvml = Nvml::load(library)?;
        let mut device = std::ptr::null_mut();
        let address = pci;
        let Ok(pci) = CString::new(address) else {
            return Ok(None);
        };
        // SAFETY: takes nothing, and may be called again.
        if unsafe { (nvml.init)() } != SUCCESS {
            return Ok(None);
        }
        // SAFETY: a C string and a live out-pointer.
        if unsafe { (nvml.device_at)(pci.as_ptr(), &mut device) } != SUCCESS {
            return Ok(None);
        }
        let process = Sysfs::host().has_the_machines_processes().then(std::process::id);
        let sockets = has_sockets(Path::new("/sys/bus/pci/devices"), address);
        Ok(Some(Self {
            nvml,
            device,
            process,
            sockets,
        }))
    }

    /// Bytes that the driver counts for this process.
    fn own(&self) -> Option<Bytes> {
        let pid = self.process?;
        let mut room = vec![Process::default(); 64];
        loop {
            let mut count = room.len() as c_uint;
            // SAFETY: `room` has `count` entries that may be written.
            match unsafe { (self.nvml.processes)(self.device, &mut count, room.as_mut_ptr()) } {
                SUCCESS => {
                    let listed = room.get(..count as usize)?;
                    // Who is not listed holds nothing yet. On a card in parts there is an entry for each part.
                    let mut used = 0u64;
                    for process in listed.iter().filter(|process| process.pid == pid) {
                        if process.used == NOT_AVAILABLE {
                            return None;
                        }
                        used = used.saturating_add(process.used);
                    }
                    return Some(Bytes(used));
                }
                INSUFFICIENT_SIZE if room.len() < MAX_PROCESSES => {
                    room.resize(room.len() * 4, Process::default());
                }
                _ => return None,
            }
        }
    }

    /// Whether a display is driven by the card, or connected to it; not by a card that has no sockets. Newer drivers do not tell the second any more; of another
    /// card that does not say, one is assumed: the headroom is then larger than needed, never smaller.
    fn displays(&self) -> u32 {
        if !self.sockets {
            return 0;
        }
        let ask = |function: unsafe extern "C" fn(Device, *mut c_uint) -> c_int| {
            let mut on = 0;
            // SAFETY: `on` is a live out-pointer for the call.
            match unsafe { function(self.device, &mut on) } {
                SUCCESS => Some(on != 0),
                DEPRECATED => None,
                _ => Some(true),
            }
        };
        match (ask(self.nvml.display_active), ask(self.nvml.display_mode)) {
            (None, None) => 1,
            (active, mode) => u32::from(active == Some(true) || mode == Some(true)),
        }
    }
}

/// Whether the card at an address can have a display, by its PCI class; yes, where that cannot be read.
fn has_sockets(devices: &Path, pci: &str) -> bool {
    let class = std::fs::read_to_string(devices.join(pci).join("class"));
    !class.is_ok_and(|class| class.starts_with(WITHOUT_SOCKETS))
}

impl Readings for NvmlReadings {
    fn read(&self) -> Reading {
        // Ours before the total: what we allocate in between then looks like others' memory, not like free memory.
        let own = self.own();
        let mut memory = Memory::default();
        // SAFETY: `memory` is a live out-pointer for the call.
        let known = unsafe { (self.nvml.memory)(self.device, &mut memory) } == SUCCESS;
        Reading {
            total: known.then_some(Bytes(memory.total)),
            used: known.then_some(Bytes(memory.used)),
            own,
            displays: self.displays(),
            ..Reading::default()
        }
    }
}

impl std::fmt::Debug for NvmlReadings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NvmlReadings").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
