//! Launches of every kernel at fixed shapes.

use rocmforge_kernels::declared::{Fresh, all};
use rocmforge_kernels::{
    Fault, Half, HalfRows, KernelResult, Kernels, Matmul16Activation, Matmul16Operands, Matmul16Output, Matmul16Shape,
    Operand, Strides, WeightMatrix, WeightType,
};
use rocmforge_runtime::{HipBuffer, HipResult, HipStream};

/// Kernels of a card, and a stream there.
pub(super) struct Device<'a> {
    pub(super) kernels: &'a Kernels,
    pub(super) stream: &'a HipStream,
}

impl Device<'_> {
    /// `n` numbers in -1 to 1.
    pub(super) fn x(&self, n: usize) -> HipResult<HipBuffer<f32>> {
        let values: Vec<f32> = (0..n).map(|k| ((k * 7919) % 1000) as f32 / 500.0 - 1.0).collect();
        HipBuffer::from_slice(self.stream, &values, "input")
    }

    pub(super) fn ids(&self, ids: &[u32]) -> HipResult<HipBuffer<u32>> {
        HipBuffer::from_slice(self.stream, ids, "indices")
    }

    /// `n` bytes that are small numbers in every format.
    pub(super) fn bytes(&self, n: usize) -> HipResult<HipBuffer<u8>> {
        HipBuffer::from_slice(self.stream, &vec![0x35; n], "bytes")
    }

    pub(super) fn fault_word(&self) -> HipResult<HipBuffer<u64>> {
        HipBuffer::from_slice(self.stream, &[Fault::NONE], "fault")
    }

    /// Every kernel once or more. The first launches are those of declarations: the kernel of each, and whether it only prepares an operand.
    pub(super) fn launch_all(&self) -> KernelResult<Vec<(&'static str, bool)>> {
        let mut declared = Vec::new();
        for kernel in all() {
            for dims in kernel.counted {
                let ran = kernel.run(self.kernels, self.stream, &mut Fresh, dims, false)?;
                declared.extend(ran.launched.iter().map(|launch| (launch.kernel, launch.prepares)));
            }
        }
        self.packed_weights()?;
        self.halves()?;
        self.decode()?;
        Ok(declared)
    }

    fn packed_weights(&self) -> KernelResult<()> {
        for ty in WeightType::ALL.into_iter().filter(|ty| ty.is_packable()) {
            for m in [1, 2, 4, 8] {
                self.packed_product(ty, [m, 128, 1024])?;
            }
        }
        Ok(())
    }

    /// Packs weights `[n, k]`, quantises m rows of activations, and multiplies them.
    pub(super) fn packed_product(&self, ty: WeightType, [m, n, depth]: [usize; 3]) -> KernelResult<()> {
        let (k, s) = (self.kernels, self.stream);
        let bytes = n * depth / ty.block_len() * ty.block_bytes();
        let packed = k.pack_weight(s, ty, &self.bytes(bytes)?, self.bytes(bytes)?, [n, depth])?;
        let q8 = k.quantize_q8(s, &self.x(m * depth)?, self.bytes(m * depth / 32 * 40)?, [m, depth])?;
        k.matvec_q8(s, &packed, &q8, None, None, &self.x(m * n)?)?;
        if m == 1 {
            k.matvec_q8_row(s, &packed, (&self.x(depth)?).into(), None, None, &self.x(n)?)?;
        }
        Ok(())
    }

    /// `y = a b^T` for a `[m, k]` and b `[n, k]` of 16-bit floats.
    pub(super) fn product16(&self, ty: Half, f32_out: bool, [m, n, k]: [usize; 3]) -> KernelResult<()> {
        let halves = |n: usize| HipBuffer::from_slice(self.stream, &vec![0x3535u16; n], "halves");
        let (a, b) = (halves(m * k)?, halves(n * k)?);
        let (y, wide) = (halves(m * n)?, self.x(m * n)?);
        let strides = |columns| Strides::heads_first(1, 1, columns);
        let operands = Matmul16Operands {
            ty,
            a: Operand::new(&a, strides(k)),
            b: Operand::new(&b, strides(k)),
            bias: None,
            y: match f32_out {
                false => Matmul16Output::Half(Operand::new(&y, strides(n))),
                true => Matmul16Output::F32(Operand::new(&wide, strides(n))),
            },
        };
        let shape = Matmul16Shape { batch: 1, m, n, k };
        let none = Matmul16Activation::None;
        self.kernels.matmul16(self.stream, operands, shape, 1.0, none)
    }

    /// Rows of weights of every type as f16, and a product of them in two parts.
    fn halves(&self) -> KernelResult<()> {
        let (k, s) = (self.kernels, self.stream);
        let (n, depth, m) = (128, 1024, 64);
        let room = |rows| self.bytes(HalfRows::byte_len(rows, depth).unwrap_or_default());
        for ty in WeightType::ALL {
            let bytes = n * depth / ty.block_len() * ty.block_bytes();
            let w = self.bytes(bytes)?;
            k.half_rows_of(s, WeightMatrix::Plain(ty, &w, [n, depth]), 0..n, &room(n)?)?;
            if ty.is_packable() {
                let packed = k.pack_weight(s, ty, &w, self.bytes(bytes)?, [n, depth])?;
                k.half_rows_of(s, WeightMatrix::Packed(&packed), 0..n, &room(n)?)?;
            }
        }
        let x = k.half_rows(s, &self.x(m * depth)?, &room(m)?, [m, depth])?;
        let w = self.bytes(n * depth * 2)?;
        let w = WeightMatrix::Plain(WeightType::F16, &w, [n, depth]);
        let scratch = self.bytes(k.matmul_halves_scratch(w, m)?)?;
        k.matmul_halves(s, w, &x, None, &self.x(m * n)?, &scratch)
    }
}
