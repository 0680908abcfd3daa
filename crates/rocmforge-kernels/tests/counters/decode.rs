//! Launches of the kernels of a decoding step: several packed matrices, a norm that is rounded.

use super::launches::Device;
use rocmforge_kernels::{Faults, GluKind, JointProduct, KernelResult, Rounded, RowInput, RowNorm, WeightType};

impl Device<'_> {
    pub(super) fn decode(&self) -> KernelResult<()> {
        self.packed_together()?;
        self.norms_of_sums()
    }

    /// Query, key and value, gate and up, a prompt and rows of a table, of every type.
    fn packed_together(&self) -> KernelResult<()> {
        let (k, s) = (self.kernels, self.stream);
        let word = self.fault_word()?;
        for ty in WeightType::ALL.into_iter().filter(|ty| ty.is_packable()) {
            let (n, depth) = (128, 1024);
            let bytes = n * depth / ty.block_len() * ty.block_bytes();
            let w = k.pack_weight(s, ty, &self.bytes(bytes)?, self.bytes(bytes)?, [n, depth])?;
            let [x, weight, y] = [self.x(depth)?, self.x(depth)?, self.x(depth)?];
            let norm = Some(RowNorm {
                weight: &weight,
                eps: 1e-5,
                y: &y,
            });
            let input = RowInput { x: &x, norm };
            let [a, b, c] = [self.x(n)?, self.x(n)?, self.x(n)?];
            let product = |y| JointProduct { w: &w, bias: None, y };
            k.matvec_q8_joint(s, input, &[product(&a), product(&b), product(&c)])?;
            k.matvec_q8_gated(s, input, [&w, &w], GluKind::Swiglu, &a)?;
            k.matmul_packed(s, &w, &self.x(64 * depth)?, None, &self.x(64 * n)?, 64)?;
            let (ids, rows) = (self.ids(&[127, 0, 5, 64])?, self.x(4 * depth)?);
            k.get_rows_packed(s, &w, &ids, &rows, Faults { word: &word, tag: 0 })?;
        }
        Ok(())
    }

    fn norms_of_sums(&self) -> KernelResult<()> {
        let (k, s) = (self.kernels, self.stream);
        for (rows, cols) in [(8, 512), (8, 4096)] {
            let n = rows * cols;
            let [a, b, sum, y] = [self.x(n)?, self.x(n)?, self.x(n)?, self.x(n)?];
            let q8 = self.bytes(n / 32 * 40)?;
            let q8 = Some(Rounded::Q8(&q8));
            k.add_rms_norm(s, &a, Some([&b, &sum]), &self.x(cols)?, &y, q8, [rows, cols], 1e-5)?;
        }
        Ok(())
    }
}
