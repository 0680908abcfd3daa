//! Launch geometry and arguments, checked before anything is enqueued.

use crate::buffer::HipBuffer;
use crate::device::DeviceLimits;
use crate::error::{HipResult, LaunchError};
use crate::graph::{Touched, Work};
use crate::hip;
use crate::launch_log::LaunchRecord;
use crate::module::HipKernel;
use crate::stream::HipStream;
use crate::tracker::Access;
use bytemuck::Pod;
use rocmforge_code_object::{ArgKind, ArgMeta, KernelMeta};
use smallvec::SmallVec;
use std::ffi::c_void;

/// How many blocks of how many threads, and how much LDS on top of what the kernel declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaunchConfig {
    /// Blocks along x, y, z.
    pub grid: [u32; 3],
    /// Threads of a block along x, y, z.
    pub block: [u32; 3],
    /// Bytes of LDS the launch adds.
    pub dynamic_lds: u32,
}

impl LaunchConfig {
    /// `blocks` blocks of `threads` threads in one dimension.
    pub fn linear(blocks: u32, threads: u32) -> Self {
        Self {
            grid: [blocks, 1, 1],
            block: [threads, 1, 1],
            dynamic_lds: 0,
        }
    }

    /// The same with `bytes` of dynamic LDS.
    pub fn with_dynamic_lds(self, bytes: u32) -> Self {
        Self {
            dynamic_lds: bytes,
            ..self
        }
    }
}

/// Checks a geometry against what a device takes. `lds` is static and dynamic LDS together, in bytes.
pub fn validate_launch_config(
    grid: [u32; 3],
    block: [u32; 3],
    lds: u32,
    limits: &DeviceLimits,
) -> Result<(), LaunchError> {
    if grid.contains(&0) || block.contains(&0) {
        return Err(LaunchError::ZeroDimension { grid, block });
    }
    for (what, dims, most) in [
        ("block", block, limits.max_block_dim),
        ("grid", grid, limits.max_grid_dim),
    ] {
        for axis in 0..3 {
            if dims[axis] > most[axis] {
                return Err(LaunchError::Dimension {
                    what,
                    axis,
                    value: dims[axis],
                    limit: most[axis],
                });
            }
        }
    }
    let threads = threads_of(block);
    if threads > u64::from(limits.max_threads_per_block) {
        let limit = limits.max_threads_per_block;
        return Err(LaunchError::Threads {
            block,
            threads,
            limit,
            limited_by: "the device",
        });
    }
    for axis in 0..3 {
        let threads = u64::from(grid[axis]) * u64::from(block[axis]);
        if threads > u64::from(u32::MAX) {
            return Err(LaunchError::TotalThreads { axis, threads });
        }
    }
    if lds > limits.lds_per_block {
        return Err(LaunchError::Lds {
            fixed: 0,
            dynamic: lds,
            limit: limits.lds_per_block,
        });
    }
    Ok(())
}

/// Saturates: three 32-bit dimensions can be more than 64 bits.
fn threads_of(block: [u32; 3]) -> u64 {
    block
        .iter()
        .fold(1u64, |product, &dim| product.saturating_mul(u64::from(dim)))
}

/// The quotient, rounded up.
///
/// # Panics
///
/// If `denominator` is 0, as division does.
pub const fn ceil_div_u64(numerator: u64, denominator: u64) -> u64 {
    assert!(denominator != 0, "division by zero");
    numerator.div_ceil(denominator)
}

/// Blocks of `tile` items that cover `items`, or `None` if a grid cannot have so many.
///
/// # Panics
///
/// If `tile` is 0, as division does.
pub const fn safe_grid_dim(items: u64, tile: u32) -> Option<u32> {
    assert!(tile != 0, "a tile of 0 items");
    let blocks = ceil_div_u64(items, tile as u64);
    // HIP counts the threads of an axis in 32 bits, and a block has at least one.
    if blocks > u32::MAX as u64 {
        None
    } else {
        Some(blocks as u32)
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

/// The arguments of one launch, in the kernel's order.
#[derive(Default)]
pub struct LaunchArgs<'a> {
    count: usize,
    /// For each argument a header and its bytes, both in whole words: one allocation for all, because a launch costs little
    /// more than a few of them.
    words: Vec<Word>,
    touches: Vec<(Touched<'a>, Access)>,
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
    fn check(&self, kernel: &KernelMeta) -> Result<(), LaunchError> {
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

fn check_geometry(kernel: &KernelMeta, config: &LaunchConfig, limits: &DeviceLimits) -> Result<(), LaunchError> {
    validate_launch_config(config.grid, config.block, 0, limits)?;
    let threads = threads_of(config.block);
    if threads > u64::from(kernel.max_workgroup_size) {
        return Err(LaunchError::Threads {
            block: config.block,
            threads,
            limit: kernel.max_workgroup_size,
            limited_by: "the kernel",
        });
    }
    if let Some(required) = kernel.required_workgroup_size
        && required != config.block
    {
        return Err(LaunchError::BlockSize {
            block: config.block,
            required,
        });
    }
    if u64::from(kernel.lds_size) + u64::from(config.dynamic_lds) > u64::from(limits.lds_per_block) {
        return Err(LaunchError::Lds {
            fixed: kernel.lds_size,
            dynamic: config.dynamic_lds,
            limit: limits.lds_per_block,
        });
    }
    Ok(())
}

impl HipStream {
    /// Enqueues a kernel, after everything its buffers have to wait for.
    ///
    /// Geometry and arguments are compared with the kernel's own metadata first; on an error nothing was enqueued.
    ///
    /// # Safety
    ///
    /// What the metadata does not say must hold: the kernel stays inside of the buffers for these values; buffers it
    /// writes are given with [`LaunchArgs::out`]; element types and the meaning of the values are the kernel's. The safe
    /// launchers of `rocmforge-kernels` check that for each kernel.
    pub unsafe fn launch(&self, kernel: &HipKernel, config: LaunchConfig, mut args: LaunchArgs<'_>) -> HipResult<()> {
        let core = self.core();
        core.driver.enter()?;
        self.same_backend(kernel.core(), || format!("kernel {:?}", kernel.name()))?;
        let meta = kernel.meta();
        check_geometry(meta, &config, &core.device.limits).map_err(|error| error.of(kernel.name()))?;
        args.check(meta).map_err(|error| error.of(kernel.name()))?;
        core.make_way()?;

        let base = args.words.as_mut_ptr();
        let mut params: SmallVec<[*mut c_void; 16]> = args.args().map(|(_, at)| base.wrapping_add(at).cast()).collect();
        let function = kernel.handle();
        let size = (config.grid, config.block, config.dynamic_lds);
        let launched = self.submit(Work::Kernel(kernel), &mut args.touches, |driver, stream| {
            // SAFETY: the function's module is kept by `kernel`, and after it by the launch that is noted below; each of
            // `params` points at as many bytes as the kernel declares (`check`); the rest is promised by our caller.
            unsafe { hip::module::launch(driver, function, size, stream, &mut params) }
        })?;
        core.launches.note(LaunchRecord {
            what: kernel.shared_name(),
            stream: self.id(),
            cursor: launched,
            grid: config.grid,
            block: config.block,
        });
        if let Some(cursor) = launched {
            kernel.note_launch(self.shared(), cursor);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: DeviceLimits = DeviceLimits {
        max_threads_per_block: 1024,
        max_block_dim: [1024, 1024, 1024],
        max_grid_dim: [u32::MAX >> 1, 65536, 65536],
        lds_per_block: 65536,
    };

    #[test]
    fn test_validate_launch_config_within_limits() {
        for (grid, block, lds) in [
            ([1, 1, 1], [1, 1, 1], 0),
            ([u32::MAX >> 11, 65536, 65536], [1024, 1, 1], 65536),
            ([7, 5, 3], [32, 32, 1], 1),
            ([1, 1, 1], [2, 2, 256], 0),
        ] {
            assert_eq!(validate_launch_config(grid, block, lds, &LIMITS), Ok(()));
        }
    }

    #[test]
    fn test_validate_launch_config_exceeds_thread_limit() {
        let error = validate_launch_config([1; 3], [1024, 2, 1], 0, &LIMITS).unwrap_err();
        assert!(
            matches!(
                error,
                LaunchError::Threads {
                    threads: 2048,
                    limit: 1024,
                    ..
                }
            ),
            "{error}"
        );
        let error = validate_launch_config([1; 3], [1025, 1, 1], 0, &LIMITS).unwrap_err();
        assert!(
            matches!(
                error,
                LaunchError::Dimension {
                    what: "block",
                    axis: 0,
                    value: 1025,
                    ..
                }
            ),
            "{error}"
        );
        let error = validate_launch_config([1, 65537, 1], [1; 3], 0, &LIMITS).unwrap_err();
        assert!(
            matches!(
                error,
                LaunchError::Dimension {
                    what: "grid",
                    axis: 1,
                    value: 65537,
                    ..
                }
            ),
            "{error}"
        );
    }

    #[test]
    fn products_that_wrap_in_32_bits_are_refused() {
        // 65536 * 65536 is 0 in 32 bits.
        let wide = DeviceLimits {
            max_block_dim: [u32::MAX; 3],
            ..LIMITS
        };
        let error = validate_launch_config([1; 3], [65536, 65536, 1], 0, &wide).unwrap_err();
        assert!(
            matches!(
                error,
                LaunchError::Threads {
                    threads: 0x1_0000_0000,
                    ..
                }
            ),
            "{error}"
        );
        // Even where 64 bits are not enough.
        let error = validate_launch_config([1; 3], [u32::MAX; 3], 0, &wide).unwrap_err();
        assert!(
            matches!(error, LaunchError::Threads { threads: u64::MAX, .. }),
            "{error}"
        );
        let error = validate_launch_config([u32::MAX >> 1, 1, 1], [1024, 1, 1], 0, &LIMITS).unwrap_err();
        assert!(matches!(error, LaunchError::TotalThreads { axis: 0, .. }), "{error}");
    }

    /// What HIP finds behind the pointer it is given for each argument.
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
    fn test_validate_launch_config_zero_grid_dim() {
        for axis in 0..3 {
            let mut dims = [1; 3];
            dims[axis] = 0;
            for (grid, block) in [(dims, [1; 3]), ([1; 3], dims)] {
                let error = validate_launch_config(grid, block, 0, &LIMITS).unwrap_err();
                assert_eq!(error, LaunchError::ZeroDimension { grid, block });
            }
        }
    }

    #[test]
    fn test_validate_launch_config_exceeds_shared_memory() {
        let error = validate_launch_config([1; 3], [32, 1, 1], 65537, &LIMITS).unwrap_err();
        assert_eq!(
            error,
            LaunchError::Lds {
                fixed: 0,
                dynamic: 65537,
                limit: 65536
            }
        );
    }

    #[test]
    fn test_ceil_div_u64() {
        for (numerator, denominator, quotient) in [
            (0, 1, 0),
            (1, 1, 1),
            (31, 32, 1),
            (32, 32, 1),
            (33, 32, 2),
            (u64::MAX, 2, 1 << 63),
            (u64::MAX, 1, u64::MAX),
        ] {
            assert_eq!(
                ceil_div_u64(numerator, denominator),
                quotient,
                "{numerator} / {denominator}"
            );
        }
    }

    #[test]
    #[should_panic(expected = "division by zero")]
    fn test_ceil_div_u64_panic_on_zero_denominator() {
        ceil_div_u64(1, std::hint::black_box(0));
    }

    #[test]
    fn test_safe_grid_dim() {
        assert_eq!(safe_grid_dim(0, 256), Some(0));
        assert_eq!(safe_grid_dim(1, 256), Some(1));
        assert_eq!(safe_grid_dim(257, 256), Some(2));
        assert_eq!(safe_grid_dim(u64::from(u32::MAX), 1), Some(u32::MAX));
        assert_eq!(safe_grid_dim(u64::from(u32::MAX) + 1, 1), None);
    }

    #[test]
    #[should_panic(expected = "a tile of 0 items")]
    fn test_safe_grid_dim_panic_on_zero_tile() {
        safe_grid_dim(1, std::hint::black_box(0));
    }
}
