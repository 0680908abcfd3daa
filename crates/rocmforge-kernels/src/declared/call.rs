//! A call of a declared kernel: its operands by name, and what it gave.

use crate::launch::FAULT_WORD;
use crate::{Fault, KernelResult, Kernels, KvType, WeightType, reference};
use bytemuck::Pod;
use rocmforge_runtime::{HipBuffer, HipStream};
use std::any::Any;
use std::collections::BTreeMap;
use std::ops::Range;

/// The elements that an input begins with.
#[derive(Debug, Clone)]
pub enum Values {
    /// 32-bit floats.
    F32(Vec<f32>),
    /// Indices.
    U32(Vec<u32>),
    /// Bytes.
    U8(Vec<u8>),
    /// 64-bit words.
    U64(Vec<u64>),
}

/// An operand that a call asks for.
pub struct Ask<'a> {
    /// Its name in the launcher's errors.
    pub name: &'static str,
    /// Whether the kernel writes it.
    pub written: bool,
    /// Elements.
    pub len: usize,
    /// What the elements are.
    pub elements: Elements,
    /// Makes the elements that it begins with.
    pub make: &'a dyn Fn() -> Values,
}

/// What the elements of an operand are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Elements {
    /// 32-bit floats.
    F32,
    /// 32-bit words; indices below this where it is not 0.
    U32(u32),
    /// Bytes.
    U8,
    /// 64-bit words.
    U64,
}

impl Elements {
    /// Bytes of one.
    pub fn size(self) -> usize {
        match self {
            Self::F32 | Self::U32(_) => 4,
            Self::U8 => 1,
            Self::U64 => 8,
        }
    }
}

/// Where a call takes its buffers from. Tests give short ones, overlapping ones and views; a benchmark gives one set after another.
pub trait Buffers {
    /// The buffer of an operand, a `HipBuffer` of the type of its values.
    ///
    /// # Errors
    ///
    /// The runtime's.
    fn buffer(&mut self, stream: &HipStream, ask: &Ask<'_>) -> KernelResult<Box<dyn Any>>;
}

/// What an output must hold after the call.
#[derive(Debug, Clone)]
pub struct Expected {
    /// The operand.
    pub name: &'static str,
    /// Its elements from the definition, in f64.
    pub values: Vec<f64>,
    /// The type of its elements, where they are bytes. `None`: each byte is one.
    pub ty: Option<KvType>,
    /// The largest difference allowed; 0: none, bit for bit.
    pub within: f64,
}

/// One call.
pub struct Call<'a> {
    /// The launchers.
    pub kernels: &'a Kernels,
    /// Where the call is enqueued.
    pub stream: &'a HipStream,
    buffers: &'a mut dyn Buffers,
    inputs: BTreeMap<&'static str, Values>,
    expected: Option<Vec<Expected>>,
    flops: u64,
    moved: Option<usize>,
}

impl std::fmt::Debug for Call<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Call")
            .field("inputs", &self.inputs.keys())
            .finish_non_exhaustive()
    }
}

impl<'a> Call<'a> {
    /// A call with buffers from `buffers`. With `compare` it computes what the kernel must give, which is slow.
    pub fn new(kernels: &'a Kernels, stream: &'a HipStream, buffers: &'a mut dyn Buffers, compare: bool) -> Self {
        Self {
            kernels,
            stream,
            buffers,
            inputs: BTreeMap::new(),
            expected: compare.then(Vec::new),
            flops: 0,
            moved: None,
        }
    }

    /// The fewest bytes that the kernel can move, where they are not those of all operands.
    pub fn moved(&self) -> Option<usize> {
        self.moved
    }

    /// What the outputs must hold; empty where nothing is compared.
    pub fn expected(self) -> Vec<Expected> {
        self.expected.unwrap_or_default()
    }

    /// Floating-point operations of the definition, of a kernel that arithmetic bounds; 0 for one that memory bounds.
    pub fn flops(&self) -> u64 {
        self.flops
    }

    /// `n` floats in a range.
    pub(crate) fn input(&mut self, name: &'static str, n: usize, range: Range<f32>) -> KernelResult<HipBuffer<f32>> {
        let value = |at| range.start + (range.end - range.start) * unit(name, at);
        self.take(name, n, Elements::F32, &|| Values::F32((0..n).map(value).collect()))
    }

    /// `n` floats of the operand `bias` where there is one.
    pub(crate) fn input_bias(&mut self, there: bool, n: usize) -> KernelResult<Option<HipBuffer<f32>>> {
        there.then(|| self.input("bias", n, -1.0..1.0)).transpose()
    }

    /// These floats; `None` where there is no bias.
    pub(crate) fn bias(&self) -> Option<&[f32]> {
        Some(self.f32("bias")).filter(|bias| !bias.is_empty())
    }

    /// Floats that the declaration chooses.
    pub(crate) fn floats(&mut self, name: &'static str, values: Vec<f32>) -> KernelResult<HipBuffer<f32>> {
        self.take(name, values.len(), Elements::F32, &|| Values::F32(values.clone()))
    }

    /// `n` indices below a limit.
    pub(crate) fn indices(&mut self, name: &'static str, n: usize, below: usize) -> KernelResult<HipBuffer<u32>> {
        let below = below.max(1) as u32;
        // In an order that passes over the memory in strides, each once where 37 does not divide the limit.
        let value = |at| (at as u32).wrapping_mul(37).wrapping_add(11) % below;
        self.take(name, n, Elements::U32(below), &|| {
            Values::U32((0..n).map(value).collect())
        })
    }

    /// Indices that the declaration chooses.
    pub(crate) fn words(&mut self, name: &'static str, values: Vec<u32>) -> KernelResult<HipBuffer<u32>> {
        self.take(name, values.len(), Elements::U32(0), &|| Values::U32(values.clone()))
    }

    /// Bytes that the declaration chooses.
    pub(crate) fn bytes(&mut self, name: &'static str, values: Vec<u8>) -> KernelResult<HipBuffer<u8>> {
        self.take(name, values.len(), Elements::U8, &|| Values::U8(values.clone()))
    }

    /// `n` numbers in -1 to 1 as a cache of this type holds them.
    pub(crate) fn cache(&mut self, name: &'static str, kv: KvType, n: usize) -> KernelResult<HipBuffer<u8>> {
        let len = kv.byte_len(n).unwrap_or(0);
        self.take(name, len, Elements::U8, &|| {
            let values: Vec<f32> = (0..n).map(|at| 2.0 * unit(name, at) - 1.0).collect();
            Values::U8(reference::kv_bytes(kv, &values))
        })
    }

    /// A fault word without a fault.
    pub(crate) fn fault_word(&mut self) -> KernelResult<HipBuffer<u64>> {
        self.written(FAULT_WORD, 1, Elements::U64, &|| Values::U64(vec![Fault::NONE]))
    }

    /// `n` floats that the kernel writes: NaN before.
    pub(crate) fn output(&mut self, name: &'static str, n: usize) -> KernelResult<HipBuffer<f32>> {
        self.written(name, n, Elements::F32, &|| Values::F32(vec![f32::NAN; n]))
    }

    /// `n` words that the kernel writes.
    pub(crate) fn output_words(&mut self, name: &'static str, n: usize) -> KernelResult<HipBuffer<u32>> {
        self.written(name, n, Elements::U32(0), &|| Values::U32(vec![0xA5A5_A5A5; n]))
    }

    /// `n` words of 64 bits that the kernel writes.
    pub(crate) fn output_longs(&mut self, name: &'static str, n: usize) -> KernelResult<HipBuffer<u64>> {
        self.written(name, n, Elements::U64, &|| Values::U64(vec![u64::MAX; n]))
    }

    /// `n` bytes that the kernel writes.
    pub(crate) fn output_bytes(&mut self, name: &'static str, n: usize) -> KernelResult<HipBuffer<u8>> {
        self.written(name, n, Elements::U8, &|| Values::U8(vec![0xA5; n]))
    }

    /// The floats of an input.
    pub(crate) fn f32(&self, name: &'static str) -> &[f32] {
        match self.inputs.get(name) {
            Some(Values::F32(values)) => values,
            _ => &[],
        }
    }

    /// The indices of an input.
    pub(crate) fn u32(&self, name: &'static str) -> &[u32] {
        match self.inputs.get(name) {
            Some(Values::U32(values)) => values,
            _ => &[],
        }
    }

    /// The values of an input in bytes.
    pub(crate) fn kv(&self, name: &'static str, kv: KvType) -> Vec<f64> {
        match self.inputs.get(name) {
            Some(Values::U8(bytes)) => reference::kv_values(kv, bytes),
            _ => Vec::new(),
        }
    }

    /// What an output must hold, computed where it is compared.
    pub(crate) fn expect(&mut self, name: &'static str, within: f64, values: impl FnOnce(&Self) -> Vec<f64>) {
        self.expect_typed(name, KvType::F32, within, values);
    }

    /// The same for an output in bytes, whose elements have a type.
    pub(crate) fn expect_typed(
        &mut self,
        name: &'static str,
        ty: KvType,
        within: f64,
        values: impl FnOnce(&Self) -> Vec<f64>,
    ) {
        if self.expected.is_some() {
            let values = values(self);
            self.add(name, values, Some(ty), within);
        }
    }

    /// The bytes that an output must hold.
    pub(crate) fn expect_bytes(&mut self, name: &'static str, bytes: impl FnOnce(&Self) -> Vec<u8>) {
        if self.expected.is_some() {
            let bytes = bytes(self);
            self.add(name, bytes.into_iter().map(f64::from).collect(), None, 0.0);
        }
    }

    fn add(&mut self, name: &'static str, values: Vec<f64>, ty: Option<KvType>, within: f64) {
        let expected = Expected {
            name,
            values,
            ty,
            within,
        };
        self.expected.get_or_insert_default().push(expected);
    }

    /// States that arithmetic bounds this kernel.
    pub(crate) fn computes(&mut self, flops: usize) {
        self.flops = flops as u64;
    }

    /// States the fewest bytes, where they are not those of all operands: a table of which some rows are read, for example.
    pub(crate) fn moves(&mut self, bytes: usize) {
        self.moved = Some(bytes);
    }

    /// The same as [`expect`](Self::expect), for a largest difference that follows from the values: it comes first.
    pub(crate) fn expect_within(&mut self, name: &'static str, values: impl FnOnce(&Self) -> (f64, Vec<f64>)) {
        self.expect_typed_within(name, KvType::F32, values);
    }

    /// The same for an output in bytes, whose elements have a type.
    pub(crate) fn expect_typed_within(
        &mut self,
        name: &'static str,
        ty: KvType,
        values: impl FnOnce(&Self) -> (f64, Vec<f64>),
    ) {
        if self.expected.is_some() {
            let (within, values) = values(self);
            self.add(name, values, Some(ty), within);
        }
    }

    /// `n` weights in whole blocks of a type.
    pub(crate) fn weights(&mut self, name: &'static str, ty: WeightType, n: usize) -> KernelResult<HipBuffer<u8>> {
        let blocks = n / ty.block_len();
        self.take(name, blocks * ty.block_bytes(), Elements::U8, &|| {
            let mut at = 0;
            Values::U8(super::blocks(ty, blocks, || {
                at += 1;
                u64::from(mixed(name, at))
            }))
        })
    }

    /// The bytes of an input.
    pub(crate) fn u8(&self, name: &'static str) -> &[u8] {
        match self.inputs.get(name) {
            Some(Values::U8(values)) => values,
            _ => &[],
        }
    }

    /// The launchers, for what a call does before its kernel: an observer sees such launches as [preparations](crate::Launched::prepares).
    pub(crate) fn preparing(&self) -> Kernels {
        self.kernels.preparing()
    }

    fn take<T: Pod>(
        &mut self,
        name: &'static str,
        len: usize,
        elements: Elements,
        make: &dyn Fn() -> Values,
    ) -> KernelResult<HipBuffer<T>> {
        if self.expected.is_some() {
            self.inputs.insert(name, make());
        }
        self.ask(&Ask {
            name,
            written: false,
            len,
            elements,
            make,
        })
    }

    fn written<T: Pod>(
        &mut self,
        name: &'static str,
        len: usize,
        elements: Elements,
        make: &dyn Fn() -> Values,
    ) -> KernelResult<HipBuffer<T>> {
        self.ask(&Ask {
            name,
            written: true,
            len,
            elements,
            make,
        })
    }

    fn ask<T: Pod>(&mut self, ask: &Ask<'_>) -> KernelResult<HipBuffer<T>> {
        let buffer = self.buffers.buffer(self.stream, ask)?.downcast::<HipBuffer<T>>();
        Ok(*buffer.unwrap_or_else(|_| unreachable!("a buffer of {} with other elements", ask.name)))
    }
}

/// 32 well mixed bits (Wellons, "Prospecting for hash functions", 2018: lowbias32) of an operand's element.
pub(crate) fn mixed(name: &str, at: usize) -> u32 {
    let seed = name
        .bytes()
        .fold(17u32, |seed, byte| seed.wrapping_mul(31).wrapping_add(u32::from(byte)));
    let mut x = (at as u32).wrapping_add(seed.wrapping_mul(0x9e37_79b9));
    x = (x ^ (x >> 16)).wrapping_mul(0x7feb_352d);
    x = (x ^ (x >> 15)).wrapping_mul(0x846c_a68b);
    x ^ (x >> 16)
}

/// A number from 0 to 1, exact in a float.
fn unit(name: &str, at: usize) -> f32 {
    (mixed(name, at) >> 8) as f32 / (1 << 24) as f32
}

/// New buffers with the elements that a call asks for.
#[derive(Debug, Clone, Copy)]
pub struct Fresh;

impl Buffers for Fresh {
    fn buffer(&mut self, stream: &HipStream, ask: &Ask<'_>) -> KernelResult<Box<dyn Any>> {
        let name = ask.name;
        Ok(match (ask.make)() {
            Values::F32(values) => Box::new(HipBuffer::from_slice(stream, &values, name)?),
            Values::U32(values) => Box::new(HipBuffer::from_slice(stream, &values, name)?),
            Values::U8(values) => Box::new(HipBuffer::from_slice(stream, &values, name)?),
            Values::U64(values) => Box::new(HipBuffer::from_slice(stream, &values, name)?),
        })
    }
}
