//! Weights on a device: as they were loaded, or packed for products with rounded activations.
//!
//! A packed weight has no copy in ggml's order on the device. Products and GET_ROWS read it as it is; where another op reads it, it goes back
//! to ggml's order first, and stays there.

use std::ops::Range;
use std::sync::Arc;

use rocmforge_kernels::{
    JointProduct, Kernels, PackedForm, PackedWeights, Q8Activations, WeightMatrix, WeightPacking, WeightType,
};
use rocmforge_runtime::{Elems, HipBuffer, HipStream};

use super::lower::Norm;
use super::operands::{ROUNDED, SLAB};
use super::products::{Product, is_one_matrix, whole_matrices};
use super::types::weight_type;
use super::{HipGgmlBackend, NAME, failed, matrix_order};
use crate::{
    Activations, DType, GgmlBackend, GgmlError, GgmlResult, GluKind, Kernel, Layout, Op, SharedBytes, TensorDesc,
    TensorId,
};

/// Bytes in ggml's order that are on the device while a weight is packed, unless one row has more.
const PIECE: usize = 4 << 20;
/// Columns and rows that the kernels for packed weights count.
const MOST: usize = (1 << 24) - 1;
/// Rows of activations that kernels of 8-bit activations take, and up to which any kernel that reads the weights once beats tiles.
pub(super) const FEW_ROWS: usize = PackedForm::GROUP;
const _: () = assert!(
    ROUNDED.len() == PackedForm::GROUPS,
    "a place for each group of rounded rows"
);

/// In which form a product takes its activations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// f32.
    AsIs,
    /// One row of f32, which the blocks of the product round.
    Row,
    /// Integers of 8 bits.
    Q8,
    /// f16.
    Halves,
}

/// Memory of one tensor.
#[derive(Debug)]
pub(super) enum Memory {
    /// As the descriptor says.
    Plain(HipBuffer<u8>),
    /// In the order of [`PackedWeights`].
    Packed(Packed),
}

/// A packed weight.
pub(super) struct Packed {
    matrix: PackedWeights,
    /// The bytes that it was made of.
    host: Arc<dyn SharedBytes>,
}

impl std::fmt::Debug for Packed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.matrix.fmt(f)
    }
}

/// Type and shape `[n, k]` under which weights can be packed.
fn packable(desc: &TensorDesc) -> Option<(WeightType, [usize; 2])> {
    let ty = weight_type(desc.dtype).filter(|ty| ty.is_packable())?;
    let of_stack = |[experts, n, k]: [usize; 3]| Some([experts.checked_mul(n)?, k]);
    let shape = rows_of(desc).or_else(|| of_stack(stack_of(desc)?))?;
    let fits = desc.view_of.is_none() && shape.iter().all(|n| (1..=MOST).contains(n));
    fits.then_some((ty, shape))
}

/// `[n, k]` of a matrix whose rows of `k` weights lie one after the other: a right operand of products, or a table.
fn rows_of(desc: &TensorDesc) -> Option<[usize; 2]> {
    match (desc.shape.as_slice(), matrix_order(desc)) {
        (&[k, n], Some(true)) if desc.layout == Layout::ColMajor => Some([n, k]),
        (&[n, k], Some(false)) => Some([n, k]),
        _ => None,
    }
}

/// `[experts, n, k]` of matrices that lie one after the other, each in rows of `k` weights.
fn stack_of(desc: &TensorDesc) -> Option<[usize; 3]> {
    match *desc.shape.as_slice() {
        [experts, k, n] if whole_matrices(desc) => Some([experts, n, k]),
        _ => None,
    }
}

/// Kernels that read stacks of matrices, not single ones.
pub(super) const fn is_of_experts(kernel: &Kernel) -> bool {
    matches!(
        kernel,
        Kernel::Op(Op::MulMatId) | Kernel::MulMatIdGlu(_) | Kernel::MulMatIdSum(_)
    )
}

/// Operands of a kernel that may be packed weights: their numbers.
fn packed_operands(kernel: &Kernel, operands: usize) -> Range<usize> {
    match kernel {
        Kernel::Op(Op::GetRows) => 0..1,
        Kernel::MulMatIdGlu(_) => 1..3,
        kernel if is_of_experts(kernel) => 1..2,
        kernel if is_product(kernel) => 1..operands,
        _ => 0..0,
    }
}

/// Kernels whose operands after the first may be packed weights.
pub(super) const fn is_product(kernel: &Kernel) -> bool {
    matches!(
        kernel,
        Kernel::Op(Op::MulMat) | Kernel::MulMatUnary(_) | Kernel::MulMatGlu(_) | Kernel::MulMatMany { .. }
    )
}

impl HipGgmlBackend {
    /// How activations meet weights, from before the first is loaded ([`crate::HostAccess::load_weight`]).
    ///
    /// With [`Activations::Int8`] matrices, and those of experts, of `q4_0`, `q4_1`, `q5_0`, `q5_1`, `q8_0`, `q2_K` to `q6_K`, `iq4_nl`, `iq4_xs` and `mxfp4` are packed as they
    /// are loaded, and their products with up to 8 rows, or 32 on a card without a matrix unit, round activations to 8 bits, as do those of experts with fewer than eight pairs each on the average. They take as many bytes as before. Products of more rows, and of more than 8
    /// with one matrix of any other type, round both operands to the 11 bits of f16, for the matrix unit. A weight beyond f16 may be infinite there ([`Kernels::packed16`]).
    #[must_use]
    pub fn activations(self, activations: Activations) -> Self {
        Self { activations, ..self }
    }

    /// Weights that are packed.
    #[must_use]
    pub fn packed_weights(&self) -> usize {
        self.slots
            .buffers()
            .filter(|memory| matches!(memory, Memory::Packed(_)))
            .count()
    }

    /// Whether [`crate::HostAccess::load_weight`] packs it.
    fn packs(&self, desc: &TensorDesc) -> Option<(WeightType, [usize; 2])> {
        match self.activations {
            Activations::F32 => None,
            Activations::Int8 => packable(desc),
        }
    }

    /// Memory of a tensor that is not packed.
    pub(super) fn plain(&self, root: TensorId) -> GgmlResult<&HipBuffer<u8>> {
        match self.slots.buffer(root) {
            Some(Memory::Plain(buffer)) => Ok(buffer),
            Some(Memory::Packed(_)) => Err(GgmlError::Unimplemented {
                backend: NAME,
                op: "access",
                what: format!("{root}, whose weights are packed"),
            }),
            None => Err(GgmlError::UnknownTensor(root)),
        }
    }

    fn packed(&self, id: TensorId) -> Option<&Packed> {
        let root = self.slots.root(id).ok()?;
        match self.slots.buffer(root)? {
            Memory::Packed(packed) => Some(packed),
            Memory::Plain(_) => None,
        }
    }

    /// The packed matrix that a product or GET_ROWS reads as this operand.
    pub(super) fn packed_matrix(&self, id: TensorId) -> Option<&PackedWeights> {
        let matrix = &self.packed(id)?.matrix;
        let desc = self.slots.desc(id).ok()?;
        let whole = desc.byte_offset == 0 && rows_of(desc) == Some([matrix.n(), matrix.k()]);
        whole.then_some(matrix)
    }

    /// The packed matrices that these operands are, if all of them are.
    fn packed_matrices(&self, weights: &[TensorId]) -> Option<Vec<PackedWeights>> {
        weights.iter().map(|&id| self.packed_matrix(id).cloned()).collect()
    }

    /// The packed matrices of experts that a product reads as this operand, and how many they are.
    pub(super) fn packed_stack(&self, id: TensorId) -> Option<(&PackedWeights, usize)> {
        let matrix = &self.packed(id)?.matrix;
        let desc = self.slots.desc(id).ok()?;
        let [experts, n, k] = stack_of(desc)?;
        let whole = desc.byte_offset == 0 && [experts * n, k] == [matrix.n(), matrix.k()];
        whole.then_some((matrix, experts))
    }

    /// The bytes that a packed weight was made of.
    pub(super) fn host_bytes(&self, id: TensorId, span: &Range<usize>) -> Option<&[u8]> {
        self.packed(id)?.host.bytes().get(span.clone())
    }

    /// Loads a weight, packed if that is possible.
    pub(super) fn load_packed(&mut self, desc: &TensorDesc, bytes: Arc<dyn SharedBytes>) -> GgmlResult<bool> {
        desc.check()?;
        let Some((ty, shape)) = self.packs(desc) else {
            return Ok(false);
        };
        desc.check_bytes(bytes.bytes().len())?;
        self.tensor_changes(desc.id);
        // The old memory goes first: the new may need its room.
        let _ = self.slots.remove(desc.id);
        let row = desc.byte_size() / shape[0];
        let rows = (PIECE / row).clamp(1, shape[0]);
        let piece = HipBuffer::zeroed(self.stream(), Elems(rows * row), "ggml weights to be packed");
        let piece: HipBuffer<u8> = piece.map_err(failed(format!("loading tensor {}", desc.id)))?;
        let matrix = self.pack_with(desc, (ty, shape), self.stream(), |at| {
            let part = &bytes.bytes()[at * row..(at + rows).min(shape[0]) * row];
            let piece = piece.view(0..part.len())?;
            piece.copy_from_host(self.stream(), part)?;
            Ok((piece, part.len() / row))
        })?;
        let packed = Packed { matrix, host: bytes };
        self.slots.insert(desc, Memory::Packed(packed));
        Ok(true)
    }

    /// Packs a weight that is on the device in ggml's order, on a stream of the caller's, if [`crate::HostAccess::load_weight`] would.
    pub(crate) fn pack_loaded(
        &self,
        desc: &TensorDesc,
        loaded: HipBuffer<u8>,
        stream: &HipStream,
        host: &Arc<dyn SharedBytes>,
    ) -> GgmlResult<LoadedWeight> {
        let Some((ty, shape)) = self.packs(desc) else {
            return Ok(LoadedWeight(Memory::Plain(loaded)));
        };
        let matrix = self.pack_with(desc, (ty, shape), stream, |_| Ok((loaded.clone(), shape[0])))?;
        let host = Arc::clone(host);
        Ok(LoadedWeight(Memory::Packed(Packed { matrix, host })))
    }

    /// Gives a tensor a weight that [`Self::pack_loaded`] has made.
    pub(crate) fn bind_loaded(&mut self, desc: &TensorDesc, weight: LoadedWeight) {
        self.tensor_changes(desc.id);
        self.slots.insert(desc, weight.0);
    }

    /// A packed matrix of the pieces that `piece` gives from a row on: rows in ggml's order on the device, and their number.
    fn pack_with(
        &self,
        desc: &TensorDesc,
        (ty, shape): (WeightType, [usize; 2]),
        stream: &HipStream,
        mut piece: impl FnMut(usize) -> Result<(HipBuffer<u8>, usize), rocmforge_runtime::HipError>,
    ) -> GgmlResult<PackedWeights> {
        let at = || format!("packing tensor {} ({})", desc.id, desc.summary());
        let label = format!("ggml {} {}, packed", desc.id, desc.summary());
        let packed = HipBuffer::zeroed(stream, Elems(desc.byte_size()), &label).map_err(failed(at()))?;
        let mut packing = WeightPacking::new(ty, packed, shape).map_err(failed(at()))?;
        let mut done = 0;
        while done < shape[0] {
            let (bytes, rows) = piece(done).map_err(failed(at()))?;
            let launched = self.kernels.pack_rows(stream, &mut packing, &bytes, rows);
            launched.map_err(failed(at()))?;
            done += rows;
        }
        packing.finish().map_err(failed(at()))
    }

    /// Puts a packed weight back into ggml's order, for good.
    pub(super) fn unpack(&mut self, id: TensorId) -> GgmlResult<()> {
        let Some(packed) = self.packed(id) else { return Ok(()) };
        let (root, host) = (self.slots.root(id)?, Arc::clone(&packed.host));
        let desc = self.slots.desc(root)?.clone();
        self.alloc(&desc)?;
        self.write_bytes(root, 0..desc.byte_size(), host.bytes())
    }

    /// Unpacks the operands that a kernel does not read packed.
    pub(super) fn unpack_operands(&mut self, kernel: &Kernel, inputs: &[TensorId]) -> GgmlResult<()> {
        for (index, &id) in inputs.iter().enumerate() {
            let reads = packed_operands(kernel, inputs.len()).contains(&index);
            let is_whole = || match is_of_experts(kernel) {
                true => self.packed_stack(id).is_some(),
                false => self.packed_matrix(id).is_some(),
            };
            if self.packed(id).is_some() && !(reads && is_whole()) {
                self.unpack(id)?;
            }
        }
        Ok(())
    }

    /// The form in which a product with a weight takes its activations `x`; `norm`: whether it computes them.
    pub(super) fn form(&self, x: TensorId, weight: TensorId, norm: bool) -> GgmlResult<Form> {
        let (left, right) = (self.slots.desc(x)?, self.slots.desc(weight)?);
        let rows = |k: usize| left.element_count() / k.max(1);
        let halves = |m| {
            Ok(if self.takes_halves(m)? {
                Form::Halves
            } else {
                Form::AsIs
            })
        };
        match self.packed_matrix(weight) {
            Some(matrix) => match rows(matrix.k()) {
                1 if Self::rounds_itself(matrix.k(), norm) => Ok(Form::Row),
                m if self.rounds(m) => Ok(Form::Q8),
                m if self.takes_tiles(m) => Ok(Form::Halves),
                m => halves(m),
            },
            None if is_one_matrix(left, right) && matrix_order(right) == Some(true) => halves(rows(right.shape[0])),
            None => Ok(Form::AsIs),
        }
    }

    /// Whether a product of `m` rows with packed weights rounds them to 8 bits.
    pub(super) fn rounds(&self, m: usize) -> bool {
        self.kernels.packed_form(m) == PackedForm::Groups
    }

    /// Whether a product of `m` rows with packed weights reads them on the matrix unit.
    pub(super) fn takes_tiles(&self, m: usize) -> bool {
        self.kernels.packed_form(m) == PackedForm::Tiles
    }

    /// Rows of activations times a packed matrix.
    pub(super) fn packed_product(&mut self, product: Product<'_>) -> GgmlResult<()> {
        let Product {
            op,
            inputs,
            bias,
            y,
            with,
        } = product;
        let matrix = self.packed_matrix(inputs[1]).cloned();
        let matrix = &matrix.ok_or_else(|| self.cannot(op, inputs[1]))?;
        let a = self.input(op, inputs[0], 0)?;
        let (n, k) = (matrix.n(), matrix.k());
        let m = a.len() / k;
        let launched = match self.form(inputs[0], inputs[1], with.norm.is_some())? {
            Form::Halves if self.takes_tiles(m) => {
                let x = self.halves_of(op, &a, [m, k], with.halves)?;
                let sums = match self.kernels.packed16_sums([m, n, k]) {
                    0 => None,
                    floats => Some(self.scratch(SLAB, size_of::<f32>().saturating_mul(floats))?),
                };
                let sums = sums.map(|bytes| bytes.cast().map_err(failed(op.name()))).transpose()?;
                self.kernels.packed16(self.stream(), matrix, &x, bias, y, sums.as_ref())
            }
            Form::Halves => {
                return self.halves_product(op, (&a, m, with.halves), WeightMatrix::Packed(matrix), bias, y);
            }
            Form::AsIs => self.kernels.matmul_packed(self.stream(), matrix, &a, bias, y, m),
            Form::Row => {
                let row = self.row(op, a, with.norm)?;
                let (kernels, stream) = (&self.kernels, self.stream());
                kernels.matvec_q8_row(stream, matrix, row.input(), bias, None, y)
            }
            Form::Q8 => {
                for (group, first) in (0..m).step_by(FEW_ROWS).enumerate() {
                    let rows = first..m.min(first + FEW_ROWS);
                    let part = |buffer: &HipBuffer<f32>, row| buffer.view(rows.start * row..rows.end * row);
                    let (a, y) = (part(&a, k), part(y, n));
                    let (a, y) = (a.map_err(failed(op.name()))?, y.map_err(failed(op.name()))?);
                    let x = self.rounded(op, group, &a, [rows.len(), k], with.q8)?;
                    let result = self.kernels.matvec_q8(self.stream(), matrix, &x, bias, None, &y);
                    self.done(op, result)?;
                }
                return Ok(());
            }
        };
        self.done(op, launched)
    }

    /// A group of rows of activations as 8-bit integers, which an earlier launch has left if that `is_made`.
    pub(super) fn rounded(
        &mut self,
        op: &Op,
        group: usize,
        a: &HipBuffer<f32>,
        dims: [usize; 2],
        is_made: bool,
    ) -> GgmlResult<Q8Activations> {
        let to = self.room_for_rounded(group, dims)?;
        let values = if is_made {
            Q8Activations::written(to, dims)
        } else {
            self.kernels.quantize_q8(self.stream(), a, to, dims)
        };
        values.map_err(failed(op.name()))
    }

    /// Room for a group of rows as 8-bit integers.
    pub(super) fn room_for_rounded(&mut self, group: usize, [m, k]: [usize; 2]) -> GgmlResult<HipBuffer<u8>> {
        // Packed matrices have whole blocks.
        let bytes = Q8Activations::byte_len(m, k).unwrap_or(0);
        self.scratch(ROUNDED[group], bytes)
    }

    /// The matrices of two or three products of one row of activations that are one launch: packed weights of one type.
    pub(super) fn joint_matrices(
        &self,
        inputs: &[TensorId],
        outputs: &[TensorId],
    ) -> GgmlResult<Option<Vec<PackedWeights>>> {
        let (weights, biases) = inputs[1..].split_at(outputs.len());
        let Some(matrices) = self.packed_matrices(weights) else {
            return Ok(None);
        };
        let joint = Kernels::are_joint(&matrices.iter().collect::<Vec<_>>())
            && outputs.iter().chain(biases).all(|&id| self.is_plain_f32(id))
            && self.is_one_row(inputs[0], matrices[0].k())?;
        Ok(joint.then_some(matrices))
    }

    /// Those products.
    pub(super) fn packed_joint(
        &mut self,
        matrices: &[PackedWeights],
        inputs: &[TensorId],
        outputs: &[TensorId],
        norm: Option<Norm>,
    ) -> GgmlResult<()> {
        let op = &Op::MulMat;
        let a = self.input(op, inputs[0], 0)?;
        let (results, biases) = (
            self.floats(op, outputs)?,
            self.floats(op, &inputs[1 + outputs.len()..])?,
        );
        let results: Vec<_> = results.iter().collect();
        let products = joint_products(matrices, &results, &biases);
        let row = self.row(op, a, norm)?;
        let joint = self.kernels.matvec_q8_joint(self.stream(), row.input(), &products);
        self.done(op, joint)
    }

    /// The matrices of two or three products of rows of activations that are one launch on the matrix unit: packed weights of one type.
    pub(super) fn tiled_matrices(&self, x: TensorId, weights: &[TensorId]) -> GgmlResult<Option<Vec<PackedWeights>>> {
        let elements = self.slots.desc(x)?.element_count();
        Ok(self.packed_matrices(weights).filter(|matrices| {
            Kernels::are_joint16(&matrices.iter().collect::<Vec<_>>()) && self.takes_tiles(elements / matrices[0].k())
        }))
    }

    /// Those products; the activations are in 16 bits already if that `is_made`.
    pub(super) fn tiled_joint(
        &mut self,
        x: TensorId,
        matrices: &[PackedWeights],
        results: &[&HipBuffer<f32>],
        biases: &[HipBuffer<f32>],
        is_made: bool,
    ) -> GgmlResult<()> {
        let op = &Op::MulMat;
        let (a, k) = (self.input(op, x, 0)?, matrices[0].k());
        let halves = self.halves_of(op, &a, [a.len() / k, k], is_made)?;
        let products = joint_products(matrices, results, biases);
        let launched = self.kernels.packed16_joint(self.stream(), &halves, &products);
        self.done(op, launched)
    }

    /// The matrices of a gated unit of two products of one row of activations that is one launch.
    pub(super) fn gated_matrices(&self, kind: GluKind, inputs: &[TensorId]) -> GgmlResult<Option<[PackedWeights; 2]>> {
        let matrices = self.packed_matrix(inputs[1]).zip(self.packed_matrix(inputs[2]));
        let Some((gate, up)) = matrices else { return Ok(None) };
        let fits = Kernels::are_gated(gate, up, kind) && self.is_one_row(inputs[0], gate.k())?;
        Ok(fits.then(|| [gate.clone(), up.clone()]))
    }

    /// Whether an operand or result is f32 without gaps, which kernels read and write where it is.
    pub(super) fn is_plain_f32(&self, id: TensorId) -> bool {
        let desc = self.slots.desc(id);
        desc.is_ok_and(|desc| desc.dtype == DType::F32 && desc.is_contiguous())
    }

    pub(super) fn is_one_row(&self, id: TensorId, k: usize) -> GgmlResult<bool> {
        Ok(self.slots.desc(id)?.element_count() == k)
    }
}

/// Products of the same activations with these matrices, each with its bias, if there are any.
fn joint_products<'a>(
    matrices: &'a [PackedWeights],
    results: &[&'a HipBuffer<f32>],
    biases: &'a [HipBuffer<f32>],
) -> Vec<JointProduct<'a>> {
    let of = |(index, (w, &y))| JointProduct {
        w,
        bias: biases.get(index),
        y,
    };
    matrices.iter().zip(results).enumerate().map(of).collect()
}

/// A weight on the device that no tensor has yet.
#[derive(Debug)]
pub(crate) struct LoadedWeight(Memory);

impl LoadedWeight {
    /// A weight in ggml's order.
    pub(crate) const fn plain(buffer: HipBuffer<u8>) -> Self {
        Self(Memory::Plain(buffer))
    }
}
