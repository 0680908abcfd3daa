//! Kernels and the memory of another card.

use super::rig::{Arg, Machine, machines_with};
use super::widths::{N, loads_and_stores};
use rocmforge_hip_sys::*;
use rocmforge_sim::{ReportKind, SimConfig};
use std::ffi::c_void;

/// Two cards of each kind. Kernels run on the first one.
fn two_cards(peer_access: bool, threads: usize) -> impl Iterator<Item = Machine> {
    machines_with(move |config| {
        let card = config.cards[0].clone();
        *config = SimConfig {
            peer_access,
            threads,
            tools: config.tools,
            ..SimConfig::of_cards([card.clone(), card])
        };
    })
}

impl Machine {
    fn on(&self, card: i32) {
        assert_eq!(unsafe { self.sim.hipSetDevice(card) }, hipSuccess);
    }

    /// Memory of the second card that holds zeros.
    fn zeros_of_peer(&self, bytes: usize) -> *mut c_void {
        self.on(1);
        let memory = self.zeros(bytes);
        assert_eq!(self.wait(), hipSuccess);
        self.on(0);
        memory
    }

    fn enable(&self) {
        assert_eq!(unsafe { self.sim.hipDeviceEnablePeerAccess(1, 0) }, hipSuccess);
    }
}

#[test]
fn a_peers_memory_is_reached_by_every_access() {
    for threads in [1, 3] {
        for machine in two_cards(true, threads) {
            let (input, output) = (machine.zeros_of_peer(4 * N), machine.zeros_of_peer(4 * N));
            machine.enable();
            let write = |at, bytes: &[u8]| machine.upload(at, bytes);
            let read = |at, count| machine.download::<u8>(at, count);
            loads_and_stores(&machine, input, output, write, read);
            // Between the two cards, in both directions.
            let own = machine.zeros(4 * N);
            loads_and_stores(&machine, own, output, write, read);
            loads_and_stores(&machine, input, own, write, read);
        }
    }
}

#[test]
fn without_access_it_is_out_of_bounds_and_the_report_says_whose_it_is() {
    for (peer_access, why) in [
        (true, "hipDeviceEnablePeerAccess has not enabled it"),
        (false, "this machine has no peer access"),
    ] {
        for machine in two_cards(peer_access, 1) {
            let (own, foreign) = (machine.zeros(128), machine.zeros_of_peer(128));
            let args = [Arg::Ptr(foreign), Arg::Ptr(own), Arg::U32(32)];
            assert_eq!(machine.launch("copy_words", 1, 32, &args), hipSuccess);
            assert_eq!(machine.wait(), hipErrorIllegalAddress);
            let report = machine.only_report(ReportKind::OutOfBounds);
            let said = format!("the memory of device 1, which device 0 may not access: {why}");
            assert!(report.message.contains(&said), "{report}");
            assert_eq!(report.allocation.expect("the peer's").address, foreign.addr() as u64);
            // The peer goes on.
            machine.on(1);
            assert_eq!(machine.wait(), hipSuccess);
        }
    }
}

#[test]
fn a_peers_bounds_and_unwritten_bytes_are_checked() {
    for machine in two_cards(true, 1) {
        machine.enable();
        let (own, foreign) = (machine.zeros(4 * 64), machine.zeros_of_peer(4 * 40));
        let args = [Arg::Ptr(foreign), Arg::Ptr(own), Arg::U32(64)];
        assert_eq!(machine.launch("copy_words", 1, 64, &args), hipSuccess);
        assert_eq!(machine.wait(), hipErrorIllegalAddress);
        let report = machine.only_report(ReportKind::OutOfBounds);
        assert!(
            report.message.contains("0 B past the end of the allocation"),
            "{report}"
        );
        assert_eq!((report.lane, report.count), (8, 24));
    }
    for machine in two_cards(true, 1) {
        machine.enable();
        machine.on(1);
        let mut foreign = std::ptr::null_mut();
        assert_eq!(unsafe { machine.sim.hipMalloc(&raw mut foreign, 128) }, hipSuccess);
        machine.on(0);
        let own = machine.zeros(128);
        let args = [Arg::Ptr(foreign), Arg::Ptr(own), Arg::U32(32)];
        assert_eq!(machine.launch("copy_words", 1, 32, &args), hipSuccess);
        assert_eq!(machine.wait(), hipSuccess);
        machine.only_report(ReportKind::Uninitialised);
        // What a kernel of the other card writes counts as written here.
        machine.run("copy_words", 1, 32, &[Arg::Ptr(own), Arg::Ptr(foreign), Arg::U32(32)]);
        machine.run("copy_words", 1, 32, &[Arg::Ptr(foreign), Arg::Ptr(own), Arg::U32(32)]);
        machine.on(1);
        assert_eq!(unsafe { machine.sim.hipFree(foreign) }, hipSuccess);
        machine.on(0);
        let args = [Arg::Ptr(foreign), Arg::Ptr(own), Arg::U32(32)];
        assert_eq!(machine.launch("copy_words", 1, 32, &args), hipSuccess);
        assert_eq!(machine.wait(), hipErrorIllegalAddress);
        machine.only_report(ReportKind::UseAfterFree);
    }
}

#[test]
fn access_is_asked_enabled_and_taken_back() {
    for machine in two_cards(true, 1) {
        let sim = &machine.sim;
        let mut can = 9;
        assert_eq!(unsafe { sim.hipDeviceCanAccessPeer(&raw mut can, 0, 1) }, hipSuccess);
        assert_eq!(can, 1);
        assert_eq!(unsafe { sim.hipDeviceCanAccessPeer(&raw mut can, 1, 1) }, hipSuccess);
        assert_eq!(can, 0, "a card is no peer of itself");
        let mut attribute = 9;
        let access = hipDevP2PAttrAccessSupported;
        let status = unsafe { sim.hipDeviceGetP2PAttribute(&raw mut attribute, access, 0, 1) };
        assert_eq!((status, attribute), (hipSuccess, 1));
        let enable = || unsafe { machine.sim.hipDeviceEnablePeerAccess(1, 0) };
        let disable = || unsafe { machine.sim.hipDeviceDisablePeerAccess(1) };
        assert_eq!(disable(), hipErrorPeerAccessNotEnabled);
        assert_eq!(enable(), hipSuccess);
        assert_eq!(enable(), hipErrorPeerAccessAlreadyEnabled);
        let (own, foreign) = (machine.zeros(128), machine.zeros_of_peer(128));
        let args = [Arg::Ptr(foreign), Arg::Ptr(own), Arg::U32(32)];
        // What is queued has the access that was there when it was queued.
        assert_eq!(machine.launch("copy_words", 1, 32, &args), hipSuccess);
        assert_eq!(disable(), hipSuccess);
        assert_eq!(machine.wait(), hipSuccess);
        machine.clean();
        assert_eq!(machine.launch("copy_words", 1, 32, &args), hipSuccess);
        assert_eq!(machine.wait(), hipErrorIllegalAddress);
        machine.only_report(ReportKind::OutOfBounds);
    }
}

#[test]
fn a_copy_between_cards_is_in_order_with_what_both_have_queued() {
    for machine in two_cards(false, 1) {
        let (own, foreign) = (machine.zeros(128), machine.zeros_of_peer(128));
        let source = machine.zeros(128);
        machine.upload(source, &[7_u32; 32]);
        // Queued on the first card, where it writes each word plus 1; the copy is made on the second.
        let args = [Arg::Ptr(source), Arg::Ptr(own), Arg::U32(32)];
        assert_eq!(machine.launch("copy_words", 1, 32, &args), hipSuccess);
        machine.on(1);
        let status = unsafe { machine.sim.hipMemcpyPeer(foreign, 1, own, 0, 128) };
        assert_eq!(status, hipSuccess);
        machine.on(0);
        machine.upload(own, &[9_u32; 32]);
        machine.on(1);
        assert_eq!(machine.download::<u32>(foreign, 32), [8; 32]);
        machine.clean();
    }
}
