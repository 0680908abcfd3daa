//! Launch arguments, compared with what the kernel declares.

use crate::buffer::HipBuffer;
use crate::error::LaunchError;
use crate::touched::Touched;
use bytemuck::Pod;
use rocmforge_code_object::{ArgKind, ArgMeta, KernelMeta};
use rocmforge_memory::Access;
use smallvec::SmallVec;
use std::ffi::c_void;

/// The arguments of one launch, in the kernel's order.
#[derive(Default)]
pub struct LaunchArgs<'a> {
    count: usize,
    /// For each argument a header and its bytes, both in whole words: one allocation for all, because a launch costs little
    /// more than a few of them.
    words: Vec<Word>,
    pub(super) touches: Vec<(Touched<'a>, Access)>,
}

impl<'a> LaunchArgs<'a> {
    /// None yet.
    pub fn new() -> Self {
        Self {
            count: 0,
            words: Vec::with_capacity(32),
            touches: Vec::with_capacity(8),
        }
    }

    /// A buffer the kernel reads.
    #[must_use]
    pub fn buffer<T: Pod>(self, buffer: &'a HipBuffer<T>) -> Self {
        self.pointer(buffer, Access::Read)
    }

    /// A buffer the kernel writes, and may read.
    #[must_use]
    pub fn out<T: Pod>(self, buffer: &'a HipBuffer<T>) -> Self {
        self.pointer(buffer, Access::Write)
    }

    /// A null pointer, for a buffer the kernel can do without.
    #[must_use]
    pub fn null(self) -> Self {
        self.push(Kind::Buffer, &0usize.to_ne_bytes())
    }

    /// A buffer the kernel reads, or a null pointer where there is none.
    #[must_use]
    pub fn buffer_or_null<T: Pod>(self, buffer: Option<&'a HipBuffer<T>>) -> Self {
        match buffer {
            Some(buffer) => self.buffer(buffer),
            None => self.null(),
        }
    }

    /// A buffer the kernel writes, and may read, or a null pointer where there is none.
    #[must_use]
    pub fn out_or_null<T: Pod>(self, buffer: Option<&'a HipBuffer<T>>) -> Self {
        match buffer {
            Some(buffer) => self.out(buffer),
            None => self.null(),
        }
    }

    /// A number or a struct, copied now.
    #[must_use]
    pub fn value<T: Pod>(self, value: T) -> Self {
        self.push(Kind::Value, bytemuck::bytes_of(&value))
    }

    /// Numbers of one type, each an argument of its own.
    #[must_use]
    pub fn values<T: Pod, const N: usize>(self, values: [T; N]) -> Self {
        values.into_iter().fold(self, |args, value| args.value(value))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn pointer<T: Pod>(mut self, buffer: &'a HipBuffer<T>, access: Access) -> Self {
        self.touches.push((buffer.root(), access));
        let address = buffer.as_device_ptr().addr();
        self.push(Kind::Buffer, &address.to_ne_bytes())
    }

    #[inline]
    fn push(mut self, kind: Kind, bytes: &[u8]) -> Self {
        // A value of more bytes than 32 bits count fits no kernel; the size check refuses it.
        let size = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let bytes = &bytes[..bytes.len().min(size as usize)];
        self.words.push(Arg { kind, size }.header());
        self.words.extend(bytes.chunks(WORD).map(Word::of));
        self.count += 1;
        self
    }

    /// Where the bytes of each argument are, while nothing is added.
    pub(super) fn addresses(&mut self) -> SmallVec<[*mut c_void; 16]> {
        let base = self.words.as_mut_ptr();
        self.args().map(|(_, at)| base.wrapping_add(at).cast()).collect()
    }

    /// Each argument, and the word where its bytes begin.
    fn args(&self) -> impl Iterator<Item = (Arg, usize)> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let arg = Arg::of(*self.words.get(at)?);
            let bytes = at + 1;
            at = bytes + arg.words();
            Some((arg, bytes))
        })
    }

    /// Compares count, kind and size of each argument with what the kernel declares.
    pub(super) fn check(&self, kernel: &KernelMeta) -> Result<(), LaunchError> {
        let mut declared = kernel.explicit_args();
        for (index, (arg, _)) in self.args().enumerate() {
            let Some(meta) = declared.next() else {
                return Err(self.count_error(kernel));
            };
            let name = || meta.name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
            let takes = match meta.kind {
                ArgKind::GlobalPointer => Some(Kind::Buffer),
                ArgKind::Value => Some(Kind::Value),
                _ => None,
            };
            if takes != Some(arg.kind) {
                return Err(LaunchError::ArgumentKind {
                    index,
                    name: name(),
                    given: arg.kind.name(),
                    expected: describe(meta),
                    signature: signature(kernel),
                });
            }
            if meta.size != arg.size {
                return Err(LaunchError::ArgumentSize {
                    index,
                    name: name(),
                    given: arg.size,
                    expected: meta.size,
                    signature: signature(kernel),
                });
            }
        }
        if declared.next().is_some() {
            Err(self.count_error(kernel))
        } else {
            Ok(())
        }
    }

    fn count_error(&self, kernel: &KernelMeta) -> LaunchError {
        LaunchError::ArgumentCount {
            given: self.count,
            expected: kernel.explicit_args().count(),
            signature: signature(kernel),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Buffer,
    Value,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Buffer => "a buffer",
            Self::Value => "a value",
        }
    }
}

/// Sixteen of an argument's bytes: the largest alignment HIP could assume of what it copies.
#[derive(Clone, Copy)]
#[repr(align(16))]
struct Word([u64; 2]);

const WORD: usize = size_of::<Word>();

impl Word {
    /// Up to 16 bytes, in memory order. Pointers and numbers, which nearly all arguments are, without a copy of unknown length.
    #[inline]
    fn of(bytes: &[u8]) -> Self {
        if let Ok(eight) = bytes.try_into() {
            return Self([u64::from_ne_bytes(eight), 0]);
        }
        let mut halves = [[0; 8]; 2];
        if let Ok(four) = <[u8; 4]>::try_from(bytes) {
            halves[0][..4].copy_from_slice(&four);
        } else {
            halves.as_flattened_mut()[..bytes.len()].copy_from_slice(bytes);
        }
        Self(halves.map(u64::from_ne_bytes))
    }
}

/// What stands before an argument's bytes.
#[derive(Clone, Copy)]
struct Arg {
    kind: Kind,
    size: u32,
}

impl Arg {
    fn header(self) -> Word {
        Word([u64::from(self.kind == Kind::Buffer), u64::from(self.size)])
    }

    fn of(Word([is_buffer, size]): Word) -> Self {
        Self {
            kind: if is_buffer == 1 { Kind::Buffer } else { Kind::Value },
            // It was one when `header` wrote it.
            size: size as u32,
        }
    }

    /// Words that its bytes take.
    fn words(self) -> usize {
        (self.size as usize).div_ceil(WORD)
    }
}

fn describe(arg: &ArgMeta) -> String {
    match &arg.kind {
        ArgKind::GlobalPointer => "a buffer".to_owned(),
        ArgKind::Value => format!("a value of {} bytes", arg.size),
        ArgKind::DynamicSharedPointer => "a pointer to dynamic LDS, which cannot be passed".to_owned(),
        other => format!("{other:?}, which cannot be passed"),
    }
}

fn signature(kernel: &KernelMeta) -> String {
    let args: Vec<String> = kernel
        .explicit_args()
        .map(|arg| match &arg.name {
            Some(name) => format!("{name}: {}", describe(arg)),
            None => describe(arg),
        })
        .collect();
    format!("{}({})", kernel.name, args.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_argument_lies_whole_and_aligned() {
        let long: [u64; 5] = [1, 2, 3, 4, u64::MAX];
        let odd: [u8; 3] = [7, 8, 9];
        let args = LaunchArgs::new()
            .value(0x0102_0304u32)
            .value(long)
            .null()
            .value(odd)
            .value(-2.5f32)
            .value(u128::MAX - 1)
            .value(0x5au8);
        assert_eq!(args.len(), 7);
        let expected: [(Kind, Vec<u8>); 7] = [
            (Kind::Value, bytemuck::bytes_of(&0x0102_0304u32).to_vec()),
            (Kind::Value, bytemuck::bytes_of(&long).to_vec()),
            (Kind::Buffer, vec![0; 8]),
            (Kind::Value, odd.to_vec()),
            (Kind::Value, bytemuck::bytes_of(&-2.5f32).to_vec()),
            (Kind::Value, bytemuck::bytes_of(&(u128::MAX - 1)).to_vec()),
            (Kind::Value, vec![0x5a]),
        ];
        for ((arg, at), (kind, bytes)) in args.args().zip(&expected) {
            assert!(arg.kind == *kind && arg.size as usize == bytes.len());
            let found = args.words[at..]
                .iter()
                .flat_map(|word| word.0)
                .flat_map(u64::to_ne_bytes);
            assert_eq!(found.take(bytes.len()).collect::<Vec<_>>(), *bytes);
            assert!(args.words[at..].as_ptr().addr().is_multiple_of(16));
        }
        assert_eq!(args.args().count(), expected.len());
    }

    #[test]
    fn values_are_an_argument_each() {
        let bytes = |args: &LaunchArgs<'_>| args.words.iter().flat_map(|word| word.0).collect::<Vec<_>>();
        let together = LaunchArgs::new().values([1u32, 2, 3]).values([0.5f32; 1]);
        let apart = LaunchArgs::new().value(1u32).value(2u32).value(3u32).value(0.5f32);
        assert_eq!((together.len(), bytes(&together)), (4, bytes(&apart)));
    }
}
