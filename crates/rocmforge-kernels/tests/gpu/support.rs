//! A device with its kernels, and buffers by the handful.

use rocmforge_kernels::{
    AttentionShape, Fault, Faults, FloatType, Half, KernelResult, Kernels, KvType, Operand, RowIds, RowLists, Strides,
    reference,
};
use rocmforge_runtime::{HipBuffer, HipStream};
use rocmforge_testkit::compare::{Tolerance, assert_close};
use rocmforge_testkit::{GpuLease, data, gpu};
use std::collections::HashMap;
use std::sync::LazyLock;

/// Around the wave size and its multiples.
pub(crate) const SIZES: [usize; 10] = [1, 31, 32, 33, 63, 64, 65, 127, 128, 129];

/// A lease and its kernels. The kernels go first: the lease looks for leaks.
pub(crate) struct Device {
    pub(crate) kernels: Kernels,
    lease: GpuLease,
}

pub(crate) fn device() -> Device {
    let lease = gpu();
    let kernels = Kernels::load(lease.backend()).expect("a pack for the device");
    Device { kernels, lease }
}

/// A device that has a kernel, or the end of the test as skipped.
macro_rules! device_with {
    ($family:literal, $kernel:literal) => {{
        let device = crate::support::device();
        match device.kernels.kernel($family, $kernel) {
            Ok(_) => device,
            Err(error @ rocmforge_kernels::KernelError::NotForDevice { .. }) => rocmforge_testkit::skip!("{error}"),
            Err(error) => panic!("{error}"),
        }
    }};
}
pub(crate) use device_with;

impl Device {
    pub(crate) fn stream(&self) -> &HipStream {
        self.lease.backend().stream()
    }

    pub(crate) fn lease(&self) -> &GpuLease {
        &self.lease
    }

    pub(crate) fn up(&self, values: &[f32]) -> HipBuffer<f32> {
        HipBuffer::from_slice(self.stream(), values, "input").expect("upload")
    }

    pub(crate) fn ids(&self, values: &[u32]) -> HipBuffer<u32> {
        HipBuffer::from_slice(self.stream(), values, "ids").expect("upload")
    }

    /// A word without a fault.
    pub(crate) fn no_fault(&self) -> HipBuffer<u64> {
        HipBuffer::from_slice(self.stream(), &[Fault::NONE], "fault").expect("upload")
    }

    pub(crate) fn faults<'a>(&self, word: &'a HipBuffer<u64>, tag: u32) -> Faults<'a> {
        Faults { word, tag }
    }

    /// Tag, position and index of a fault.
    pub(crate) fn fault(&self, word: &HipBuffer<u64>) -> Option<(u32, u32, u32)> {
        let word = word.to_vec(self.stream()).expect("download");
        Fault::decode(word[0]).map(|f| (f.tag, f.position, f.index))
    }

    /// Writes rows of `width` into the slots of a cache.
    #[allow(clippy::too_many_arguments)] // operands and dimensions of one write
    pub(crate) fn write_rows(
        &self,
        kv: KvType,
        src: &HipBuffer<f32>,
        slots: &HipBuffer<u32>,
        cache: &HipBuffer<u8>,
        slot_count: usize,
        width: usize,
        faults: Faults<'_>,
    ) -> KernelResult<()> {
        let shape = RowLists {
            matrices: [1, 1],
            lists: [1, 1],
            per: slots.len(),
            rows: slot_count,
            cols: width,
        };
        self.kernels
            .set_rows(self.stream(), kv, src, RowIds::U32(slots), cache, shape, faults)
    }

    /// `n` poisoned elements.
    pub(crate) fn out(&self, n: usize) -> HipBuffer<f32> {
        HipBuffer::from_slice(self.stream(), &data::poison(n), "output").expect("upload")
    }

    pub(crate) fn get(&self, buffer: &HipBuffer<f32>) -> Vec<f32> {
        buffer.to_vec(self.stream()).expect("download")
    }

    /// Downloads and compares within an absolute limit.
    #[track_caller]
    pub(crate) fn close(&self, actual: &HipBuffer<f32>, expected: &[f64], shape: &[usize], limit: f64) {
        assert_close(&self.get(actual), expected, shape, Tolerance::Absolute(limit));
    }

    /// Downloads and compares bit for bit.
    #[track_caller]
    pub(crate) fn same(&self, actual: &HipBuffer<f32>, expected: &[f32], shape: &[usize]) {
        assert_close(&self.get(actual), &data::widen(expected), shape, Tolerance::Exact);
    }
}

/// What is called is refused with an error that says `text`.
#[track_caller]
pub(crate) fn refused<T>(result: KernelResult<T>, text: &str) {
    let Err(error) = result else {
        panic!("not refused: {text:?}")
    };
    let error = error.to_string();
    assert!(error.contains(text), "{error:?} does not say {text:?}");
}

pub(crate) fn float_type(ty: Half) -> FloatType {
    match ty {
        Half::F16 => FloatType::F16,
        Half::Bf16 => FloatType::Bf16,
    }
}

/// What bits of a type stand for.
pub(crate) fn half_values(ty: Half, bits: &[u16]) -> Vec<f64> {
    let bytes: Vec<u8> = bits.iter().flat_map(|bits| bits.to_le_bytes()).collect();
    reference::float_values(float_type(ty), &bytes)
}

/// The bits of the nearest number of a type.
pub(crate) fn half_bits(ty: Half, x: f32) -> u16 {
    static BITS: LazyLock<HashMap<u64, u16>> = LazyLock::new(|| {
        let value = |bits: u16| half_values(Half::F16, &[bits])[0].to_bits();
        (0..=u16::MAX).map(|bits| (value(bits), bits)).collect()
    });
    let rounded = reference::round_to(float_type(ty), f64::from(x));
    match ty {
        Half::F16 => BITS[&rounded.to_bits()],
        Half::Bf16 => ((rounded as f32).to_bits() >> 16) as u16,
    }
}

/// Contiguous `[batch, heads, seq_q, head_dim]`.
pub(crate) fn as_q<'a>(buffer: &'a HipBuffer<f32>, shape: &AttentionShape) -> Operand<'a> {
    Operand::new(buffer, shape.q_strides())
}

/// Contiguous `[batch, kv_heads, seq_k, head_dim]`.
pub(crate) fn as_kv<'a>(buffer: &'a HipBuffer<f32>, shape: &AttentionShape) -> Operand<'a> {
    Operand::new(buffer, shape.kv_strides())
}

/// Contiguous `[batch, heads, seq_q, seq_k]`.
pub(crate) fn as_scores<'a>(buffer: &'a HipBuffer<f32>, shape: &AttentionShape) -> Operand<'a> {
    Operand::new(buffer, Strides::heads_first(shape.heads, shape.seq_q, shape.seq_k))
}

/// The scale every model uses.
pub(crate) fn usual_scale(head_dim: usize) -> f32 {
    1.0 / (head_dim as f32).sqrt()
}
