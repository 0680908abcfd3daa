//! Availability of an AMD GPU, asked without risking the process: the kernel first, the HIP library last, and that
//! with a time limit.

use crate::error::{HipError, Unavailable};
use crate::hip;
use rocmforge_hip_sys::{HipApi, HipLibrary, LoadOptions};
use rocmforge_machine::sysfs::Sysfs;
use std::sync::{Arc, OnceLock, mpsc};
use std::time::Duration;

/// Whether an AMD GPU can be used here.
#[derive(Debug, Clone)]
pub enum Availability {
    /// HIP shows this many devices.
    Available {
        /// Devices.
        devices: u32,
    },
    /// It cannot, for this reason.
    Unavailable(Arc<Unavailable>),
}

impl Availability {
    /// Whether it can.
    pub fn is_available(&self) -> bool {
        matches!(self, Self::Available { .. })
    }
}

impl std::fmt::Display for Availability {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Available { devices } => write!(f, "{devices} AMD GPU(s) can be used"),
            Self::Unavailable(why) => why.fmt(f),
        }
    }
}

/// How long the library may take to start. It takes milliseconds; seconds on a machine with many cards.
pub(crate) const PROBE_LIMIT: Duration = Duration::from_secs(10);

/// Asked once: a driver that appears or goes while the process runs is not noticed.
pub(crate) fn of_this_machine() -> &'static Availability {
    static ANSWER: OnceLock<Availability> = OnceLock::new();
    ANSWER.get_or_init(|| {
        // The kernel knows nothing of cards that a library simulates.
        let kernel = match named_library_simulates() {
            true => Ok(()),
            false => crate::readings::kernel_shows_a_gpu(&Sysfs::host()),
        };
        let load = || load().map(|library| -> Arc<dyn HipApi> { library });
        match kernel.and_then(|()| ask_library(load, PROBE_LIMIT)) {
            Ok(devices) => Availability::Available { devices },
            Err(why) => Availability::Unavailable(Arc::new(why)),
        }
    })
}

/// The variable by which a simulated library gets its settings from the program that has started this one.
const SIMULATION_VARIABLE: &str = "ROCMFORGE_HIP_SETTINGS";

/// Whether a library is named exactly (`ROCMFORGE_HIP_LIBRARY`), has settings of a simulation, and says that it simulates its cards. Without the
/// name and the settings nothing is loaded: a library of a real card is touched only by a process that may use the card.
pub(crate) fn named_library_simulates() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| {
        let options = LoadOptions::from_env();
        if options.exact.is_none() || std::env::var_os(SIMULATION_VARIABLE).is_none() {
            return false;
        }
        let simulates = move || HipLibrary::load_with(&options).is_ok_and(|library| library.simulates());
        within(PROBE_LIMIT, simulates).unwrap_or(false)
    })
}

/// Loads AMD's library. Calls no function of it.
pub(crate) fn load() -> Result<Arc<HipLibrary>, Unavailable> {
    let loaded = HipLibrary::load().map(Arc::new);
    loaded.map_err(|error| Unavailable::NoLibrary(error.to_string()))
}

/// Loads and starts the library on a thread of its own, which is left behind if it does not answer: nothing can end a
/// thread that hangs in a driver.
pub(crate) fn ask_library(
    load: impl FnOnce() -> Result<Arc<dyn HipApi>, Unavailable> + Send + 'static,
    limit: Duration,
) -> Result<u32, Unavailable> {
    within(limit, move || load().and_then(|api| count(&*api)))?
}

/// The stack of that thread, whatever `RUST_MIN_STACK` says.
const PROBE_STACK: usize = 2 << 20;

/// Does something on a thread of its own, and waits no longer than the limit.
fn within<T: Send + 'static>(limit: Duration, body: impl FnOnce() -> T + Send + 'static) -> Result<T, Unavailable> {
    let (answer, answered) = mpsc::channel();
    let thread = std::thread::Builder::new().name("hip-probe".to_owned());
    let asked = thread.stack_size(PROBE_STACK).spawn(move || {
        // Nobody listens any more after the limit.
        let _ = answer.send(body());
    });
    if let Err(error) = asked {
        return Err(Unavailable::NoLibrary(format!("no thread to load it on: {error}")));
    }
    answered.recv_timeout(limit).map_err(|error| match error {
        mpsc::RecvTimeoutError::Timeout => Unavailable::TimedOut(limit),
        mpsc::RecvTimeoutError::Disconnected => {
            Unavailable::NoLibrary("loading it panicked; see the message above".to_owned())
        }
    })
}

fn count(api: &dyn HipApi) -> Result<u32, Unavailable> {
    let hidden = "HIP shows none; ROCR_VISIBLE_DEVICES and HIP_VISIBLE_DEVICES may hide it";
    match hip::device::count(api) {
        Ok(count) if count > 0 => Ok(count.unsigned_abs()),
        Ok(_) | Err(HipError::DeviceNotFound { .. }) => Err(Unavailable::NoDevice(hidden.to_owned())),
        Err(HipError::Call { call, status }) => Err(Unavailable::InitFailed { call, status }),
        Err(error) => Err(Unavailable::NoLibrary(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_hangs_is_left_behind() {
        let (release, hang) = mpsc::channel::<()>();
        let load = move || {
            let _ = hang.recv();
            Err(Unavailable::NoLibrary("released".to_owned()))
        };
        let limit = Duration::from_millis(50);
        // It hangs until it is released: after this.
        assert_eq!(ask_library(load, limit), Err(Unavailable::TimedOut(limit)));
        drop(release);
    }

    #[test]
    fn a_library_that_cannot_be_loaded_is_named() {
        let load = || Err(Unavailable::NoLibrary("libamdhip64.so.7: not found".to_owned()));
        let error = ask_library(load, PROBE_LIMIT).unwrap_err();
        assert!(error.to_string().contains("libamdhip64.so.7"), "{error}");
    }

    #[test]
    fn a_panic_while_loading_is_an_answer() {
        let error = ask_library(|| panic!("on purpose"), PROBE_LIMIT).unwrap_err();
        assert!(matches!(error, Unavailable::NoLibrary(_)), "{error}");
    }
}
