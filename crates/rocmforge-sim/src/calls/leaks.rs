//! Leaks: memory and handles that a program still holds.

use crate::calls::sim::SimHost;
use crate::report::{Report, ReportKind};

impl SimHost {
    /// What the program has not given back: device and pinned memory, registered memory, streams, events, modules and graphs,
    /// each with the call that made it. For the end of a test; nothing is remembered as reported.
    pub fn leaks(&self) -> Vec<Report> {
        self.with_host(|host| {
            let mut leaks = Vec::new();
            let leak = |api, call, what: String| Report::of_call(ReportKind::Leak, api, call, what);
            for card in &host.cards {
                for allocation in card.vram.live() {
                    // Memory that a graph has reserved goes with the graph.
                    if host
                        .graph_memory
                        .get(&allocation.address)
                        .is_some_and(|found| !found.used)
                    {
                        continue;
                    }
                    // It is the physical memory that leaks.
                    if allocation.mapped {
                        continue;
                    }
                    let report = leak("hipMalloc", allocation.allocated_by, "never freed".to_owned());
                    leaks.push(report.at(None, allocation.address, allocation.size, Some(allocation.info())));
                }
            }
            for range in host.pinned.all() {
                let (api, what) = match range.block {
                    Some(_) if range.managed => ("hipMallocManaged", "managed memory that was never freed"),
                    Some(_) => ("hipHostMalloc", "pinned memory that was never freed"),
                    None => ("hipHostRegister", "memory that was never unregistered"),
                };
                let report = leak(api, range.made_by, what.to_owned());
                leaks.push(report.at(None, range.address as u64, range.size as u64, None));
            }
            let physical = host.virtual_memory.physical.made_by();
            let handles = [
                (
                    "hipMemCreate",
                    "physical memory that was never released, or never unmapped",
                    physical,
                ),
                (
                    "hipStreamCreate",
                    "a stream that was never destroyed",
                    host.streams.made_by(),
                ),
                (
                    "hipEventCreate",
                    "an event that was never destroyed",
                    host.events.made_by(),
                ),
                (
                    "hipModuleLoadData",
                    "a module that was never unloaded",
                    host.modules.made_by(),
                ),
                (
                    "hipStreamEndCapture",
                    "a graph that was never destroyed",
                    host.graphs.made_by(),
                ),
                (
                    "hipGraphInstantiate",
                    "an executable graph that was never destroyed",
                    host.execs.made_by(),
                ),
            ];
            for (api, what, calls) in handles {
                leaks.extend(calls.into_iter().map(|call| leak(api, call, what.to_owned())));
            }
            leaks.sort_by_key(|report| report.call);
            leaks
        })
    }
}
