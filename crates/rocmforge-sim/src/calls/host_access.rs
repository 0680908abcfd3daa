//! Accesses of the host to memory, as a test tells the race detector of them.

use crate::calls::sim::SimHost;
use crate::machine::thread::OsThread;
use crate::queues::op::Place;
use crate::races::shadow::How;
use crate::report::{Access, Report, ReportKind};
use rocmforge_amdgcn::Frame;
use std::panic::Location;

impl SimHost {
    /// Tells the race detector that the program reads `size` bytes of host memory here. Without such words it knows the
    /// host's accesses only from copies; a test that reads a buffer a copy fills says so and finds a missing wait under
    /// every schedule. Inside a host function of a stream it counts as that function's.
    #[track_caller]
    pub fn host_reads<T>(&self, start: *const T, size: usize) {
        self.host_access(start.cast(), size, Access::Read, "host read", Location::caller());
    }

    /// The same for a write. The memory itself is not touched.
    #[track_caller]
    pub fn host_writes<T>(&self, start: *const T, size: usize) {
        self.host_access(start.cast(), size, Access::Write, "host write", Location::caller());
    }

    /// Tells the race detector that everything any host thread did so far happens before what the calling one does from
    /// now on, as after joining threads. Only [`SimConfig::separate_threads`](crate::SimConfig::separate_threads) needs
    /// it.
    pub fn joins_threads(&self) {
        self.with_host_mut(|host| {
            let thread = host.host_thread(OsThread::current());
            host.races.order.gather(thread);
        });
    }

    fn host_access(&self, start: *const u8, size: usize, access: Access, api: &'static str, site: &Location<'_>) {
        let os_thread = OsThread::current();
        let frame = Frame {
            function: String::new(),
            file: site.file().to_owned(),
            line: site.line(),
            column: site.column(),
        };
        self.with_host_mut(|host| {
            let address = start.expose_provenance();
            let call = host.calls;
            let actor = match host.callbacks.actor_on(os_thread) {
                Some(actor) => actor.clone(),
                None => {
                    let thread = host.host_thread(os_thread);
                    host.races.order.step(thread);
                    host.host_actor(thread, api, call, Some(frame))
                }
            };
            if host.card_of(address as u64).is_some() {
                let message = "the host cannot touch device memory: on a real card this may crash".to_owned();
                let report = Report::of_call(ReportKind::OutOfBounds, api, call, message);
                host.report(report.at(Some(access), address as u64, size as u64, None));
                return;
            }
            let place = match host.pinned.find(address) {
                Some(range) => Place::Pinned { address, id: range.id },
                None => Place::Pageable { address },
            };
            if access == Access::Write {
                let start = address as u64;
                host.races.watches.taint(start, start.saturating_add(size as u64), None);
            }
            host.touch(place, size, How::Access(access), &actor);
        });
    }
}
