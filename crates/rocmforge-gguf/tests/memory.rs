//! Memory that reading takes: by what is in the file, not by what its counts claim, and never for tensor data.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use common::Bytes;
use rocmforge_gguf::{Gguf, TensorType, Writer};

/// The system's allocator, which counts the bytes that each thread has asked for.
struct Counting;

thread_local! {
    static ASKED: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call goes to the system's allocator unchanged. The count is a thread-local number without a destructor
// and allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ASKED.set(ASKED.get() + layout.size());
        // SAFETY: the caller keeps the contract of `alloc`, which is that of the system's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: `pointer` came from `alloc` above, so from the system's allocator with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Bytes that `work` asks for.
fn asked<T>(work: impl FnOnce() -> T) -> (usize, T) {
    let before = ASKED.get();
    let result = work();
    (ASKED.get() - before, result)
}

const MIB: usize = 1 << 20;

#[test]
fn a_claimed_count_takes_no_memory() {
    // 64 MiB of zeros, claimed to be as many entries, tensors or strings as they could hold.
    let rest = 64 * MIB as u64;
    let array = Bytes::header(0, 1).text("k").u32(9);
    for (what, head) in [
        ("entries", Bytes::header(0, rest / 14)),
        ("tensors", Bytes::header(rest / 25, 0)),
        ("strings", array.u32(8).u64(rest / 8).u64(1 << 40)),
    ] {
        let mut bytes = head.0;
        bytes.resize(bytes.len() + rest as usize, 0);
        let (size, result) = asked(|| Gguf::from_bytes(bytes));
        assert!(result.is_err(), "{what}");
        assert!(size < 16 * MIB, "{what}: {size} bytes");
    }
}

#[test]
fn tensor_data_are_not_copied() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    let mut writer = Writer::new();
    writer
        .tensor("t", &[MIB, 16], TensorType::F32, vec![1; 64 * MIB])
        .unwrap();
    writer.write_file(&path).unwrap();
    let (size, model) = asked(|| {
        let model = Gguf::open(&path).unwrap();
        assert_eq!(model.data(&model.tensors()[0]).len(), 64 * MIB);
        model
    });
    assert!(size < MIB, "{size} bytes");
    assert!(model.data(&model.tensors()[0]).iter().all(|byte| *byte == 1));
}
