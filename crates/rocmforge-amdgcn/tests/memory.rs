//! The state of bytes of global memory.

use rocmforge_amdgcn::{ByteState, DEVICE_BASE, GlobalMemory, MemFaultKind};

const A: u64 = DEVICE_BASE;
/// Bytes whose state is kept as one where it is one.
const CHUNK: usize = 4096;

#[test]
fn a_chunk_written_piece_by_piece_gets_its_one_state_back() {
    let mut m = GlobalMemory::new(1 << 20).expect("reserve");
    m.set_state(A, 2 * CHUNK as u64, ByteState::Uninit);
    let piece = [7; 512];
    // Out of order, and every piece of the first chunk but one: the chunk has to stay mixed.
    for n in [7u64, 0, 3, 1, 2, 6, 4] {
        m.write(A + n * 512, &piece).expect("inside");
        assert_eq!(m.state_at(A + 5 * 512), ByteState::Uninit);
    }
    m.write(A + 5 * 512, &piece).expect("inside");
    assert_eq!(m.state_at(A), ByteState::Init);
    assert_eq!(m.state_at(A + CHUNK as u64), ByteState::Uninit);
    // What happens to a part of it later still shows to the byte.
    m.set_state(A + 100, 4, ByteState::Freed);
    assert_eq!(m.state_at(A + 99), ByteState::Init);
    assert_eq!(m.state_at(A + 103), ByteState::Freed);
    assert_eq!(m.state_at(A + 104), ByteState::Init);
    let fault = m.write(A, &piece).expect_err("freed inside");
    assert_eq!((fault.kind, fault.bad), (MemFaultKind::UseAfterFree, A + 100));
}

#[test]
fn states_are_exact_to_the_byte_and_follow_writes() {
    let mut m = GlobalMemory::new(1 << 30).expect("reserve");
    m.set_state(A + 100, 10_000, ByteState::Uninit);
    assert_eq!(m.state_at(A + 99), ByteState::Unmapped);
    assert_eq!(m.state_at(A + 100), ByteState::Uninit);
    assert_eq!(m.state_at(A + 10_099), ByteState::Uninit);
    assert_eq!(m.state_at(A + 10_100), ByteState::Unmapped);
    m.write(A + 5000, &[7; 3]).expect("inside");
    assert_eq!(m.state_at(A + 5002), ByteState::Init);
    assert_eq!(m.state_at(A + 5003), ByteState::Uninit);
    let past = m.write(A + 10_099, &[1, 2]).expect_err("one past the end");
    assert_eq!((past.kind, past.bad), (MemFaultKind::OutOfBounds, A + 10_100));
    assert_eq!(
        m.state_at(A + 10_099),
        ByteState::Uninit,
        "a refused write changes nothing"
    );
    m.set_state(A + 100, 10_000, ByteState::Freed);
    assert_eq!(
        m.read(A + 5000, &mut [0; 3]).expect_err("freed").kind,
        MemFaultKind::UseAfterFree
    );
}

#[test]
fn large_ranges_touch_only_the_summary_and_forget_their_bytes_when_freed() {
    let mut m = GlobalMemory::new(20 << 30).expect("reserve");
    m.set_state(A, 20 << 30, ByteState::Uninit);
    assert_eq!(m.state_at(A + (20 << 30) - 1), ByteState::Uninit);
    m.fill(A + 5, 3 << 20, 9).expect("inside");
    m.copy_within(A + 7, A + 5, 1 << 20).expect("overlap");
    let mut two = [0; 2];
    m.read(A + 6, &mut two).expect("written");
    assert_eq!(two, [9, 9]);
    m.set_state(A, 20 << 30, ByteState::Freed);
    m.set_state(A, 20 << 30, ByteState::Uninit);
    assert_eq!(
        m.read(A + 6, &mut two).expect_err("fresh").kind,
        MemFaultKind::Uninitialised
    );
}

#[test]
fn addresses_outside_and_lengths_that_overflow_are_refused() {
    let mut m = GlobalMemory::new(4096).expect("reserve");
    m.set_state(0, u64::MAX, ByteState::Uninit);
    for address in [0, A - 1, A + 4096, u64::MAX, u64::MAX - 3] {
        assert!(m.write(address, &[0; 4]).is_err(), "{address:#x}");
        assert!(!m.peek(address, &mut [0; 4]), "{address:#x}");
    }
    assert!(m.write(A + 4093, &[0; 4]).is_err());
    assert!(m.fill(A, u64::MAX, 0).is_err());
    assert!(m.write(A + 4092, &[0; 4]).is_ok());
}

#[test]
fn sixteen_cards_of_20_gib_fit_in_one_process() {
    let cards: Vec<_> = (0..16).map(|_| GlobalMemory::new(20 << 30).expect("reserve")).collect();
    assert!(cards.iter().all(|card| card.size() == 20 << 30));
}
