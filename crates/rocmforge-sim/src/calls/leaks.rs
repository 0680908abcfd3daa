//! Leaks: memory and handles that a program still holds.

use crate::calls::sim::SimHost;
use crate::report::{Report, ReportKind};

impl SimHost {
    /// What the program has not given back: device and pinned memory, blocks of device `malloc`, registered memory, streams, events, modules and graphs,
    /// each with the call that made it. For the end of a test; nothing is remembered as reported.
    pub fn leaks(&self) -> Vec<Report> {
        self.with_host(|host| {
            let mut leaks = Vec::new();
            let leak = |api, call, what: &str| Report::of_call(ReportKind::Leak, api, call, what);
            for card in &host.cards {
                for allocation in card.vram.live() {
                    // Memory that a graph has reserved goes with the graph.
                    let reserved = host.graph_memory.get(&allocation.address);
                    // Of mapped memory it is the physical memory that leaks.
                    if reserved.is_some_and(|found| !found.used) || allocation.mapped {
                        continue;
                    }
                    let report = leak("hipMalloc", allocation.allocated_by, "never freed");
                    leaks.push(report.at(None, allocation.address, allocation.size, Some(allocation.info())));
                }
            }
            let hostcalls = host.cards.iter().filter_map(|card| card.hostcall.as_ref());
            for leaked in hostcalls.flat_map(|hostcall| hostcall.followed.leaked()) {
                let what = format!(
                    "{} blocks of device malloc, {} B in all, that no kernel has freed; the first:",
                    leaked.blocks, leaked.bytes
                );
                let report = leak("malloc", leaked.call, &what).in_kernel(&leaked.site.kernel);
                let report = report.at(None, leaked.first.address, leaked.first.size, Some(leaked.first));
                leaks.push(Report {
                    frames: leaked.site.frames.clone(),
                    ..report
                });
            }
            for range in host.pinned.all() {
                let (api, what) = match range.block {
                    Some(_) if range.managed => ("hipMallocManaged", "managed memory that was never freed"),
                    Some(_) => ("hipHostMalloc", "pinned memory that was never freed"),
                    None => ("hipHostRegister", "memory that was never unregistered"),
                };
                let report = leak(api, range.made_by, what);
                leaks.push(report.at(None, range.address as u64, range.size as u64, None));
            }
            let mut handles = |api, what: &str, calls: Vec<u64>| {
                leaks.extend(calls.into_iter().map(|call| leak(api, call, what)));
            };
            let physical = host.virtual_memory.physical.made_by();
            handles(
                "hipMemCreate",
                "physical memory that was never released, or never unmapped",
                physical,
            );
            handles(
                "hipStreamCreate",
                "a stream that was never destroyed",
                host.streams.made_by(),
            );
            handles(
                "hipEventCreate",
                "an event that was never destroyed",
                host.events.made_by(),
            );
            handles(
                "hipModuleLoadData",
                "a module that was never unloaded",
                host.modules.made_by(),
            );
            handles(
                "hipStreamEndCapture",
                "a graph that was never destroyed",
                host.graphs.made_by(),
            );
            let executable = "an executable graph that was never destroyed";
            handles("hipGraphInstantiate", executable, host.execs.made_by());
            leaks.sort_by_key(|report| report.call);
            leaks
        })
    }
}
