//! Planned faults, as calls, launches and figures of memory meet them.

use crate::faults::arguments::Arguments;
use crate::faults::plan::{Fault, FigureFault, FiredFault, LaunchFault, Occasion};
use crate::faults::state::Figures;
use crate::machine::host::Host;
use crate::queues::op::Ran;
use rocmforge_hip_sys::{hipError_t, hipErrorIllegalAddress, hipErrorLaunchFailure, hipSuccess};
use rocmforge_memory::{Bytes, Reading};

impl Host {
    /// What the plan has for a call that begins: what it answers instead of its own work, or nothing.
    ///
    /// # Safety
    /// Pointers among the arguments are null or valid, as the C functions ask.
    pub(crate) unsafe fn planned_fault(
        &mut self,
        api: &'static str,
        number: u64,
        arguments: Arguments<'_>,
    ) -> Option<hipError_t> {
        self.play_desktops();
        if let Some(lost) = self.faults.lost {
            return Some(lost);
        }
        if self.faults.is_empty() {
            return None;
        }
        match self.faults.due_at_call(api, arguments) {
            Some(Fault::Fails(status)) => {
                self.fire(number, api, number, Fault::Fails(status));
                return Some(status);
            }
            Some(Fault::DeviceLost(status)) => {
                self.fire(number, api, number, Fault::DeviceLost(status));
                self.lose_device(status);
                return Some(status);
            }
            Some(Fault::Gives(given)) => {
                // SAFETY: promised by the caller.
                if unsafe { arguments.give(api, given) } {
                    self.fire(number, api, number, Fault::Gives(given));
                    return Some(hipSuccess);
                }
            }
            Some(Fault::Late(status)) => self.faults.late.push_back((number, status)),
            Some(Fault::Launch(fault)) => {
                self.faults.doomed.insert(number, fault);
            }
            Some(Fault::Figures(_)) | None => {}
        }
        if let Some((cause, status)) = self.faults.late_at_call(api) {
            self.fire(number, api, cause, Fault::Late(status));
            return Some(status);
        }
        None
    }

    /// What the plan has for a launch that would run now; `call` enqueued it.
    pub(crate) fn planned_launch(&mut self, card: usize, grid: [u32; 3], call: u64) -> Option<Ran> {
        let fault = self.faults.doomed.remove(&call)?;
        self.fire(self.calls, "kernel", call, Fault::Launch(fault));
        match fault {
            LaunchFault::Hangs => {
                self.occupy(card, grid, self.now(), false);
                return Some(Ran::Hung);
            }
            LaunchFault::Takes(time) => {
                self.advance(time);
                return None;
            }
            LaunchFault::IllegalAddress => self.fault_card(card, hipErrorIllegalAddress),
            LaunchFault::Fails => self.fault_card(card, hipErrorLaunchFailure),
        }
        Some(Ran::Done)
    }

    /// Free and total bytes of a card as HIP reports them. `None` if it does not.
    pub(crate) fn reported_by_hip(&mut self, card: usize, free: u64, total: u64) -> Option<(u64, u64)> {
        if self.faults.lost.is_some() {
            return None;
        }
        let figures = self.reported(Occasion::MemoryInfo, card, Figures { total, part: free }, total)?;
        Some((figures.part, figures.total))
    }

    /// Figures of a card as the kernel driver reports them.
    pub(crate) fn reported_by_sysfs(&mut self, card: usize, reading: Reading) -> Reading {
        let (Some(total), Some(used), Some(own)) = (reading.total, reading.used, reading.own) else {
            return reading;
        };
        let figures = Figures {
            total: total.0,
            part: used.0,
        };
        match self.reported(Occasion::Sysfs, card, figures, own.0 / 2) {
            Some(figures) => Reading {
                total: Some(Bytes(figures.total)),
                used: Some(Bytes(figures.part)),
                ..reading
            },
            None => Reading {
                total: None,
                used: None,
                own: None,
                ..reading
            },
        }
    }

    fn reported(&mut self, occasion: Occasion, card: usize, figures: Figures, too_good: u64) -> Option<Figures> {
        let key = (card, occasion == Occasion::Sysfs);
        let first = *self.faults.first.entry(key).or_insert(figures);
        let Some(Fault::Figures(fault)) = self.faults.due(|other| other == occasion) else {
            return Some(figures);
        };
        let api = if key.1 { "sysfs" } else { "hipMemGetInfo" };
        self.fire(self.calls, api, self.calls, Fault::Figures(fault));
        match fault {
            FigureFault::Stale => Some(first),
            FigureFault::Zero => Some(Figures { total: 0, part: 0 }),
            FigureFault::AboveTotal => Some(Figures {
                part: figures.total + (1 << 30),
                ..figures
            }),
            FigureFault::BelowOwn => Some(Figures {
                part: too_good,
                ..figures
            }),
            FigureFault::Unreadable => None,
        }
    }

    fn fire(&mut self, call: u64, api: &'static str, cause: u64, fault: Fault) {
        self.trace.bytes(b"fault");
        self.trace.bytes(api.as_bytes());
        self.trace.number(cause);
        self.faults.note(FiredFault {
            call,
            api,
            cause,
            fault,
        });
    }
}
