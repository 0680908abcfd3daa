//! Reports name allocations as the ledger does.

use super::backend;
use rocmforge_memory::Elems;
use rocmforge_runtime::HipBuffer;
use rocmforge_sim::ReportKind;

#[test]
fn a_report_has_the_label_and_the_line_of_the_allocation() {
    let (sim, backend) = backend(0);
    let line = line!() + 2;
    // SAFETY: on the simulated card, where reading memory nobody wrote is a report.
    let buffer = unsafe { HipBuffer::<f32>::uninit(backend.stream(), Elems(4), "forgotten input") }.unwrap();
    let _ = buffer.to_vec(backend.stream());
    let reports = sim.take_reports();
    let report = reports.first().expect("a read of memory nobody wrote");
    assert_eq!(report.kind, ReportKind::Uninitialised);
    let allocation = report.allocation.as_ref().expect("the memory is known");
    assert_eq!(allocation.label.as_deref(), Some("forgotten input"));
    let site = allocation.site.as_deref().expect("the site is known");
    assert!(site.contains(&format!("sim/names.rs:{line}:")), "{site}");
    let page = report.to_string();
    assert!(page.contains("forgotten input") && page.contains(site), "{page}");
}
