//! Kernels that access memory beside that of their card in every width.

use super::rig::{Arg, Machine};
use std::ffi::c_void;

/// Words that are copied.
pub(crate) const N: usize = 300;

/// Loads and stores of every width, near each other and scattered, whole waves and parts of one.
///
/// `write` and `read` are accesses of the host to that memory.
pub(crate) fn loads_and_stores(
    machine: &Machine,
    input: *mut c_void,
    output: *mut c_void,
    write: impl Fn(*mut c_void, &[u8]),
    read: impl Fn(*mut c_void, usize) -> Vec<u8>,
) {
    let words_at = |at, count: usize| -> Vec<u32> {
        let bytes = read(at, 4 * count);
        bytes
            .as_chunks::<4>()
            .0
            .iter()
            .map(|word| u32::from_le_bytes(*word))
            .collect()
    };
    let bytes_of = |words: &[u32]| -> Vec<u8> { words.iter().flat_map(|word| word.to_le_bytes()).collect() };
    let n = Arg::U32(N as u32);
    let words: Vec<u32> = (0..N as u32).map(|k| k.wrapping_mul(0x9E37_79B9)).collect();
    write(input, &bytes_of(&words));
    machine.run("copy_words", 2, 256, &[Arg::Ptr(input), Arg::Ptr(output), n]);
    assert_eq!(
        words_at(output, N),
        words.iter().map(|w| w.wrapping_add(1)).collect::<Vec<_>>()
    );
    machine.run("reverse_words", 2, 256, &[Arg::Ptr(input), Arg::Ptr(output), n]);
    assert_eq!(
        words_at(output, N),
        (0..N).map(|k| words[(N - 1 - k) * 7 % N]).collect::<Vec<_>>()
    );
    machine.run("copy_fours", 1, 64, &[Arg::Ptr(input), Arg::Ptr(output), Arg::U32(60)]);
    let turned: Vec<u32> = words[..240]
        .chunks(4)
        .flat_map(|four| four.iter().rev().copied())
        .collect();
    assert_eq!(words_at(output, 240), turned);
    let bytes: Vec<u8> = (0..N).map(|k| (k * 7) as u8).collect();
    write(input, &bytes);
    let odd = |ptr: *mut c_void| Arg::Ptr(ptr.wrapping_byte_add(1));
    machine.run("copy_bytes", 2, 256, &[odd(input), odd(output), Arg::U32(N as u32 - 1)]);
    let expected: Vec<u8> = bytes[1..].iter().map(|byte| byte ^ 0x55).collect();
    assert_eq!(read(output.wrapping_byte_add(1), N - 1), expected);
    write(input, &bytes_of(&words));
    machine.run("sum_uniform", 1, 32, &[Arg::Ptr(input), Arg::Ptr(output)]);
    let sum = words[..8].iter().fold(0u32, |sum, word| sum.wrapping_add(*word));
    assert_eq!(words_at(output, 32), [sum; 32]);
    write(output, &[0u64, 40, 5].map(u64::to_le_bytes).concat());
    let at = |words: usize| Arg::Ptr(output.wrapping_byte_add(8 * words));
    machine.run("count", 3, 100, &[at(0), at(1), at(2)]);
    assert_eq!(read(output, 24), [300u64, 940, 299].map(u64::to_le_bytes).concat());
}
