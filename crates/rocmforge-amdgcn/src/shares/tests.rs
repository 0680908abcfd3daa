//! Shares of a memory against a model: each is a copy of the memory from before the round.

use crate::byte_state::ByteState;
use crate::chunk::CHUNK;
use crate::memory::{DEVICE_BASE, GlobalMemory, Shares};
use rocmforge_test_support::Random;

/// Bytes of the memory: chunks that are used together with others, and to their ends.
const SIZE: usize = 6 * CHUNK;

/// All bytes, and their states.
#[derive(Clone, PartialEq)]
struct Model {
    bytes: Vec<u8>,
    states: Vec<ByteState>,
}

impl Model {
    fn of(memory: &GlobalMemory) -> Self {
        let mut bytes = vec![0; SIZE];
        assert!(memory.peek(DEVICE_BASE, &mut bytes));
        let states = (0..SIZE as u64).map(|n| memory.state_at(DEVICE_BASE + n)).collect();
        Self { bytes, states }
    }

    fn has(&self, off: usize, len: usize, mask: u8) -> bool {
        self.states[off..off + len]
            .iter()
            .all(|&state| state as u8 & mask == mask)
    }
}

/// A load as the interpreter does it; `None` where it would fault.
fn load(share: &mut GlobalMemory, off: usize, len: usize, check_uninit: bool) -> Option<Vec<u8>> {
    if share.bytes(off, len, check_uninit).is_none() {
        share.share_for(off, len, false);
    }
    if let Some(bytes) = share.bytes(off, len, check_uninit) {
        return Some(bytes.to_vec());
    }
    let mut out = vec![0; len];
    share
        .read_elsewhere(DEVICE_BASE + off as u64, &mut out, check_uninit)
        .then_some(out)
}

fn store(share: &mut GlobalMemory, off: usize, bytes: &[u8]) -> bool {
    if let Some(to) = share.bytes_mut(off, bytes.len()) {
        to.copy_from_slice(bytes);
        return true;
    }
    share.write_elsewhere(DEVICE_BASE + off as u64, bytes)
}

#[test]
fn shares_are_copies_whose_changes_are_put_together() {
    let (mut merged, mut refused) = (0, 0);
    for seed in 0..60 {
        let mut random = Random(seed);
        let mut draw = |below: usize| random.index(below);
        let mut memory = GlobalMemory::new(SIZE as u64).expect("reserved");
        for launch in 0..4 {
            for _ in 0..6 {
                let (at, len) = (draw(SIZE), draw(3 * CHUNK) as u64);
                let state = [ByteState::Uninit, ByteState::Init, ByteState::Freed, ByteState::Init][draw(4)];
                memory.set_state(DEVICE_BASE + at as u64, len, state);
            }
            let count = 2 + draw(3);
            // SAFETY: the memory is used only by `commit` until `give_back`, and here between two locks.
            let shares = unsafe { Shares::take(&mut memory, count) }.expect("room");
            for round in 0..1 + draw(3) {
                let before = Model::of(&memory);
                let mut models = vec![before.clone(); count];
                // Most rounds keep to parts of their own, and meet where those end.
                let mixed = draw(4) == 0;
                for step in 0..300 {
                    let n = draw(count);
                    let (share, model) = (&mut *shares.share(n), &mut models[n]);
                    let len = 1 + draw(16);
                    let part = SIZE / count;
                    let off = if mixed {
                        draw(SIZE - len)
                    } else {
                        n * part + draw(part - len)
                    };
                    let place = format!(
                        "seed {seed}, launch {launch}, round {round}, step {step}: share {n}, {len} B at {off}"
                    );
                    if draw(2) == 0 {
                        let check = draw(2) == 0;
                        let off = if draw(4) == 0 { draw(SIZE - len) } else { off };
                        let may = model.has(off, len, if check { 3 } else { 2 });
                        let expected = may.then(|| model.bytes[off..off + len].to_vec());
                        assert_eq!(load(share, off, len, check), expected, "load, {place}");
                    } else if model.has(off, len, 2) {
                        let bytes: Vec<u8> = (0..len).map(|_| draw(256) as u8).collect();
                        assert!(store(share, off, &bytes), "store, {place}");
                        model.bytes[off..off + len].copy_from_slice(&bytes);
                        model.states[off..off + len].fill(ByteState::Init);
                    }
                }
                let wanted = draw(5) != 0;
                let done = shares.commit(&mut memory, wanted).is_some();
                let mut expected = before.clone();
                let mut twice = false;
                for n in 0..SIZE {
                    let changed =
                        |model: &&Model| model.bytes[n] != before.bytes[n] || model.states[n] != before.states[n];
                    let mut by = models.iter().filter(changed);
                    if let Some(model) = by.next() {
                        (expected.bytes[n], expected.states[n]) = (model.bytes[n], model.states[n]);
                    }
                    twice |= by.next().is_some();
                }
                assert_eq!(done, wanted && !twice, "seed {seed}, launch {launch}, round {round}");
                let expected = if done { expected } else { before };
                assert!(
                    Model::of(&memory) == expected,
                    "seed {seed}, launch {launch}, round {round}: done is {done}"
                );
                *(if done { &mut merged } else { &mut refused }) += 1;
            }
            shares.give_back(&mut memory);
        }
    }
    assert!(merged > 50 && refused > 50, "{merged} rounds merged, {refused} refused");
}

#[test]
fn shares_that_met_in_a_chunk_claim_its_blocks() {
    let mut memory = GlobalMemory::new(SIZE as u64).expect("reserved");
    memory.set_state(DEVICE_BASE, SIZE as u64, ByteState::Uninit);
    for launch in 0..3 {
        // SAFETY: the memory is used only by `commit` until `give_back`, and here between two locks.
        let shares = unsafe { Shares::take(&mut memory, 2) }.expect("room");
        for n in 0..2 {
            // Of one chunk, and a block that both read.
            assert!(store(&mut shares.share(n), n * 256 + 4, &[launch + 1, 2, 3]));
            assert_eq!(load(&mut shares.share(n), 512, 4, false), Some(vec![0; 4]));
        }
        for n in 0..2 {
            let share = shares.share(n);
            let own = share.share.as_ref().map(|share| share.own.len());
            assert!(launch == 0 || own == Some(0), "launch {launch}, share {n}: {own:?}");
        }
        assert!(shares.commit(&mut memory, true).is_some());
        shares.give_back(&mut memory);
        for at in [4, 260] {
            let mut bytes = [0; 3];
            memory.read(DEVICE_BASE + at, &mut bytes).expect("written");
            assert_eq!(bytes, [launch + 1, 2, 3]);
            assert_eq!(memory.state_at(DEVICE_BASE + at + 3), ByteState::Uninit);
        }
    }
}
