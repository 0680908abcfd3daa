//! A launch as its launcher states it: operands and numbers in the order of the kernel's arguments, each checked when it is added.
//!
//! ```text
//! let op = self.op("rms_norm");
//! let [r, c] = op.dims([("rows", rows), ("cols", cols)])?;
//! op.read("x", x, &[rows, cols])?
//!     .read("weight", weight, &[cols])?
//!     .write("y", y, &[rows, cols], &["x"])?
//!     .values([r, c])
//!     .value(eps)
//!     .run(stream, "rms_norm", geometry::by_row(r, c, "rms_norm_rows", "rms_norm_block"))
//! ```
//!
//! What a launcher writes down here is what its kernel accesses: it belongs to the source in `kernels/`, as a signature belongs to a C function. From it follow the lengths,
//! the disjointness of every output and every other operand, what the stream orders, and what an [observer](Kernels::observed) sees.

use crate::check::Check;
use crate::layout::{Operand, check_operand, check_output, check_output_of_16_bytes, check_rows_of_16_bytes};
use crate::{Faults, KernelError, KernelResult, Kernels, SequenceLengths, WeightType};
use bytemuck::Pod;
use rocmforge_runtime::{HipBuffer, HipStream, LaunchArgs, LaunchConfig};
use std::ops::Deref;

/// The name that refusals give [`Faults::word`].
pub(crate) const FAULT_WORD: &str = "the fault word";

/// An operand of a launch that an [observer](Kernels::observed) sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observed {
    /// Its name in the launcher's errors.
    pub name: &'static str,
    /// Where it begins on the device.
    pub address: usize,
    /// Bytes from there on that the kernel may access.
    pub bytes: usize,
    /// Whether the kernel writes it.
    pub written: bool,
    /// Whether its length follows from the dimensions. Otherwise a shorter one may be right, too.
    pub sized: bool,
    /// The operands that it may be, byte for byte.
    pub may_be: &'static [&'static str],
}

/// A launch that an [observer](Kernels::observed) sees before it is enqueued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launched {
    /// The launcher.
    pub op: &'static str,
    /// The kernel's source file.
    pub family: &'static str,
    /// The kernel.
    pub kernel: &'static str,
    /// Blocks along x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub threads: u32,
    /// Whether it makes an operand of another launch, as a declaration has it.
    pub prepares: bool,
    /// In the order of the kernel's arguments.
    pub operands: Vec<Observed>,
}

/// A launch that is not complete yet. It derefs to the [`Check`] of its operation.
pub(crate) struct Launch<'k, 'a> {
    kernels: &'k Kernels,
    check: Check,
    args: LaunchArgs<'a>,
    operands: Vec<Observed>,
}

impl Deref for Launch<'_, '_> {
    type Target = Check;

    fn deref(&self) -> &Check {
        &self.check
    }
}

impl Kernels {
    /// The launch of an operation of this name, which its errors carry.
    pub(crate) fn op(&self, name: &'static str) -> Launch<'_, '_> {
        Launch {
            kernels: self,
            check: Check(name),
            args: LaunchArgs::new(),
            operands: Vec::with_capacity(12),
        }
    }
}

impl<'k, 'a> Launch<'k, 'a> {
    /// Its checks, to be used while it is moved.
    pub(crate) fn check(&self) -> Check {
        self.check
    }

    /// An operand of this shape that the kernel reads.
    pub(crate) fn read<T: Pod>(
        self,
        name: &'static str,
        buffer: &'a HipBuffer<T>,
        shape: &[usize],
    ) -> KernelResult<Self> {
        self.check.len(name, buffer, shape)?;
        Ok(self.sized(name, buffer))
    }

    /// The same, or a null pointer.
    pub(crate) fn read_or_null<T: Pod>(
        self,
        name: &'static str,
        buffer: Option<&'a HipBuffer<T>>,
        shape: &[usize],
    ) -> KernelResult<Self> {
        match buffer {
            Some(buffer) => self.read(name, buffer, shape),
            None => Ok(self.null()),
        }
    }

    /// An operand of this shape that the kernel writes, and may read. It is apart from every other operand, or it is one of `may_be`, byte for byte.
    pub(crate) fn write<T: Pod>(
        self,
        name: &'static str,
        buffer: &'a HipBuffer<T>,
        shape: &[usize],
        may_be: &'static [&'static str],
    ) -> KernelResult<Self> {
        self.check.len(name, buffer, shape)?;
        Ok(self.writes(name, buffer, may_be))
    }

    /// The same, or a null pointer.
    pub(crate) fn write_or_null<T: Pod>(
        self,
        name: &'static str,
        buffer: Option<&'a HipBuffer<T>>,
        shape: &[usize],
        may_be: &'static [&'static str],
    ) -> KernelResult<Self> {
        match buffer {
            Some(buffer) => self.write(name, buffer, shape, may_be),
            None => Ok(self.null()),
        }
    }

    /// An operand of this shape that the kernel reads as elements of this alignment.
    pub(crate) fn read_bytes<T: Pod>(
        self,
        name: &'static str,
        buffer: &'a HipBuffer<T>,
        shape: &[usize],
        alignment: usize,
    ) -> KernelResult<Self> {
        self.check.len_at(name, buffer, shape, alignment)?;
        Ok(self.sized(name, buffer))
    }

    /// The same that it writes.
    pub(crate) fn write_bytes<T: Pod>(
        self,
        name: &'static str,
        buffer: &'a HipBuffer<T>,
        shape: &[usize],
        alignment: usize,
    ) -> KernelResult<Self> {
        self.check.len_at(name, buffer, shape, alignment)?;
        Ok(self.writes(name, buffer, &[]))
    }

    /// An operand of this shape that the kernel writes in [parts](Self::part), or that a later launch of the operation writes.
    pub(crate) fn write_later<T: Pod>(
        self,
        name: &'static str,
        buffer: &HipBuffer<T>,
        shape: &[usize],
    ) -> KernelResult<Self> {
        self.check.len(name, buffer, shape)?;
        Ok(self.writes_later(name, buffer))
    }

    /// An operand of this shape that a later launch of the operation reads.
    pub(crate) fn read_later<T: Pod>(
        mut self,
        name: &'static str,
        buffer: &HipBuffer<T>,
        shape: &[usize],
    ) -> KernelResult<Self> {
        self.check.len(name, buffer, shape)?;
        self.note(name, buffer, [false, true], &[]);
        Ok(self)
    }

    /// An operand that a later launch writes, whose extent the launcher has checked in another way.
    pub(crate) fn writes_later<T: Pod>(mut self, name: &'static str, buffer: &HipBuffer<T>) -> Self {
        self.note(name, buffer, [true, true], &[]);
        self
    }

    /// A part that it writes of an operand that is stated as a whole.
    pub(crate) fn part<T: Pod>(mut self, buffer: &'a HipBuffer<T>) -> Self {
        self.args = self.args.out(buffer);
        self
    }

    /// A part that it reads.
    pub(crate) fn part_read<T: Pod>(mut self, buffer: &'a HipBuffer<T>) -> Self {
        self.args = self.args.buffer(buffer);
        self
    }

    /// An operand whose parts it reads, and whose extent the launcher has checked in another way.
    pub(crate) fn reads_later<T: Pod>(mut self, name: &'static str, buffer: &HipBuffer<T>) -> Self {
        self.note(name, buffer, [false, false], &[]);
        self
    }

    /// An operand `[batch, heads, rows, columns]` that the kernel reads through strides.
    pub(crate) fn read_strided<T: Pod>(
        self,
        name: &'static str,
        operand: Operand<'a, T>,
        shape: [usize; 4],
    ) -> KernelResult<Self> {
        check_operand(self.check, name, operand, shape)?;
        Ok(self.sized(name, operand.buffer))
    }

    /// The same for an operand that it writes: no two elements share a place.
    pub(crate) fn write_strided<T: Pod>(
        self,
        name: &'static str,
        operand: Operand<'a, T>,
        shape: [usize; 4],
    ) -> KernelResult<Self> {
        check_output(self.check, name, operand, shape)?;
        Ok(self.writes(name, operand.buffer, &[]))
    }

    /// 16-bit floats that it reads through strides, whose rows begin at multiples of 16 bytes.
    pub(crate) fn read_halves(
        self,
        name: &'static str,
        operand: Operand<'a, u16>,
        shape: [usize; 4],
    ) -> KernelResult<Self> {
        check_rows_of_16_bytes(self.check, name, operand, shape)?;
        Ok(self.sized(name, operand.buffer))
    }

    /// The same that it writes: no two elements share a place.
    pub(crate) fn write_halves(
        self,
        name: &'static str,
        operand: Operand<'a, u16>,
        shape: [usize; 4],
    ) -> KernelResult<Self> {
        check_output_of_16_bytes(self.check, name, operand, shape)?;
        Ok(self.writes(name, operand.buffer, &[]))
    }

    /// `[batch, 2]` queries and keys, or a null pointer.
    pub(crate) fn lengths(self, lengths: Option<&'a SequenceLengths>) -> Self {
        match lengths {
            Some(lengths) => self.reads("lengths", lengths.buffer()),
            None => self.null(),
        }
    }

    /// Elements of so many bytes that it reads through strides, outermost first, to which the buffer is aligned.
    pub(crate) fn read_elements<T: Pod>(
        self,
        name: &'static str,
        (buffer, size): (&'a HipBuffer<T>, usize),
        strides: [u64; 4],
        shape: [usize; 4],
    ) -> KernelResult<Self> {
        self.reach(name, (buffer, size), &shape, &strides)?;
        self.aligned(name, buffer, size)?;
        Ok(self.sized(name, buffer))
    }

    /// The same that it writes; that no two elements share a place is the launcher's to check.
    pub(crate) fn write_elements<T: Pod>(
        self,
        name: &'static str,
        (buffer, size): (&'a HipBuffer<T>, usize),
        strides: [u64; 4],
        shape: [usize; 4],
    ) -> KernelResult<Self> {
        self.reach(name, (buffer, size), &shape, &strides)?;
        self.aligned(name, buffer, size)?;
        Ok(self.writes(name, buffer, &[]))
    }

    /// Rows of `cols` floats that it reads, `stride` apart.
    pub(crate) fn read_rows(
        self,
        name: &'static str,
        buffer: &'a HipBuffer<f32>,
        [rows, cols]: [usize; 2],
        stride: usize,
    ) -> KernelResult<Self> {
        self.reach(name, (buffer, size_of::<f32>()), &[rows, cols], &[stride as u64, 1])?;
        self.holds(
            stride >= cols,
            "rows must not overlap: stride and columns",
            stride,
            cols,
        )?;
        Ok(self.sized(name, buffer))
    }

    /// Weights `[rows, k]` in whole, aligned blocks.
    pub(crate) fn weights(
        self,
        name: &'static str,
        ty: WeightType,
        buffer: &'a HipBuffer<u8>,
        [rows, k]: [usize; 2],
    ) -> KernelResult<Self> {
        self.check.weights(ty, (name, buffer), [rows, k])?;
        Ok(self.sized(name, buffer))
    }

    /// The fault word and its tag: the last two arguments of a kernel that reads indices from memory.
    pub(crate) fn faults(self, faults: Faults<'a>) -> KernelResult<Self> {
        self.check.fault_tag(faults.tag)?;
        Ok(self.write(FAULT_WORD, faults.word, &[1], &[])?.value(faults.tag))
    }

    /// A buffer that the kernel reads, whose extent the launcher has checked in another way.
    pub(crate) fn reads<T: Pod>(mut self, name: &'static str, buffer: &'a HipBuffer<T>) -> Self {
        self.note(name, buffer, [false, false], &[]);
        self.args = self.args.buffer(buffer);
        self
    }

    fn sized<T: Pod>(mut self, name: &'static str, buffer: &'a HipBuffer<T>) -> Self {
        self.note(name, buffer, [false, true], &[]);
        self.args = self.args.buffer(buffer);
        self
    }

    /// A buffer that the kernel writes, whose extent the launcher has checked in another way.
    pub(crate) fn writes<T: Pod>(
        mut self,
        name: &'static str,
        buffer: &'a HipBuffer<T>,
        may_be: &'static [&'static str],
    ) -> Self {
        self.note(name, buffer, [true, true], may_be);
        self.args = self.args.out(buffer);
        self
    }

    /// A null pointer for an operand that is not there.
    pub(crate) fn null(mut self) -> Self {
        self.args = self.args.null();
        self
    }

    /// A number, or a struct of numbers.
    pub(crate) fn value<T: Pod>(mut self, value: T) -> Self {
        self.args = self.args.value(value);
        self
    }

    /// Numbers of one type, each an argument of its own.
    pub(crate) fn values<T: Pod, const N: usize>(mut self, values: [T; N]) -> Self {
        self.args = self.args.values(values);
        self
    }

    /// Enqueues the kernel of `family` on the stream.
    ///
    /// # Errors
    ///
    /// [`KernelError::Overlap`] of an output with another operand, other than the whole of one that it may be; what [`Kernels::kernel`] says; the runtime's.
    pub(crate) fn run(
        self,
        stream: &HipStream,
        family: &'static str,
        (kernel, config): (&'static str, LaunchConfig),
    ) -> KernelResult<()> {
        self.apart()?;
        let accepted = self.kernels.accepts(|| Launched {
            op: self.check.0,
            family,
            kernel,
            grid: config.grid,
            threads: config.block[0],
            prepares: self.kernels.prepares(),
            operands: self.operands.clone(),
        });
        if !accepted {
            return Ok(());
        }
        // SAFETY: a launcher states what its kernel accesses, as its source has it. Each operand has the elements of its shape or the extent of its
        // strides (`read`, `write` and their like), and each output is apart from the other operands or is one that the source allows (`apart`). Arguments are
        // compared with the kernel's own list when they are enqueued.
        unsafe { self.kernels.launch(stream, family, kernel, config, self.args) }
    }

    fn note<T: Pod>(
        &mut self,
        name: &'static str,
        buffer: &HipBuffer<T>,
        [written, sized]: [bool; 2],
        may_be: &'static [&'static str],
    ) {
        self.operands.push(Observed {
            name,
            address: buffer.as_device_ptr().addr(),
            bytes: buffer.byte_len(),
            written,
            sized,
            may_be,
        });
    }

    /// Each output shares no byte with another operand, or is the whole of one that it may be.
    ///
    /// # Errors
    ///
    /// [`KernelError::Overlap`].
    pub(crate) fn apart(&self) -> KernelResult<()> {
        for (at, later) in self.operands.iter().enumerate() {
            for earlier in &self.operands[..at] {
                if (later.written || earlier.written) && later.meets(earlier) && !later.stands_for(earlier) {
                    // The output is named first; the fault word is nobody's result.
                    let swap = !later.written || later.name == FAULT_WORD;
                    let (first, second) = if swap { (earlier, later) } else { (later, earlier) };
                    return Err(KernelError::Overlap {
                        op: self.check.0,
                        first: first.name,
                        second: second.name,
                    });
                }
            }
        }
        Ok(())
    }
}

impl Observed {
    fn meets(&self, other: &Self) -> bool {
        self.address.saturating_add(self.bytes) > other.address
            && other.address.saturating_add(other.bytes) > self.address
    }

    /// Whether one is the other, byte for byte, and may be.
    fn stands_for(&self, other: &Self) -> bool {
        let allowed = self.may_be.contains(&other.name) || other.may_be.contains(&self.name);
        allowed && self.address == other.address && self.bytes == other.bytes
    }
}
