//! Copies of tensors on a device: any strides and shapes, from one float type to another, repeated, padded or joined.

use rocmforge_kernels::{Element, StridedCopy};
use rocmforge_runtime::HipBuffer;

use super::rows::four;
use super::takes::{BLOCKS, GRID, Takes, at_most, contiguous, float, rule};
use super::types::float_type;
use super::{HipGgmlBackend, failed};
use crate::tensor::contiguous_strides;
use crate::{DType, GgmlResult, Layout, Op, TensorDesc, TensorId, shape};

/// Dimensions that the kernel counts.
const DIMS: usize = 4;

/// One dimension of a copy: elements of the destination and of the source, and the distances of neighbours.
type Dim = [usize; 4];

/// A copy that a kernel does.
#[derive(Debug)]
pub(super) struct Copy {
    elements: [Element; 2],
    dims: StridedCopy,
}

/// A descriptor of contiguous memory.
pub(super) fn packed(shape: &[usize], dtype: DType) -> TensorDesc {
    TensorDesc::new(shape, dtype, Layout::RowMajor)
}

/// The kernel that copies `from` to `to`, element by element in row-major order; with `repeat` until `to` is full, else
/// both have as many elements.
///
/// # Errors
/// Why there is none.
pub(super) fn plan(from: &TensorDesc, to: &TensorDesc, repeat: bool) -> Result<Copy, String> {
    let lies = |desc: &TensorDesc| (desc.shape.clone(), desc.strides.clone());
    let (mut source, mut target) = (lies(from), lies(to));
    if !repeat && source.0 != target.0 {
        // The one without gaps takes the other's shape.
        if from.is_contiguous() {
            source = (target.0.clone(), contiguous_strides(&target.0, Layout::RowMajor));
        } else if to.is_contiguous() {
            target = (source.0.clone(), contiguous_strides(&source.0, Layout::RowMajor));
        } else {
            return Err(format!(
                "a copy of {} to {}: both have gaps, and their shapes differ",
                from.summary(),
                to.summary()
            ));
        }
    }
    let mut dims: Vec<Dim> = (0..target.0.len())
        .map(|d| [target.0[d], source.0[d], source.1[d], target.1[d]])
        .collect();
    let elements = elements(from, to)?;
    if from.dtype.is_quantized() {
        let along = from.block_dim().zip(to.block_dim());
        let along = along
            .filter(|(a, b)| a == b)
            .ok_or("blocks that lie in other directions")?
            .0;
        let (block, words) = (from.dtype.block_len(), from.dtype.block_bytes() / elements[0].bytes());
        for (d, dim) in dims.iter_mut().enumerate() {
            if d == along {
                *dim = [dim[0] / block, dim[1] / block, words, words];
            } else {
                (dim[2], dim[3]) = (dim[2] / block * words, dim[3] / block * words);
            }
        }
        dims.push([words, words, 1, 1]);
    }
    let dims = merged(dims);
    let Ok(dims) = <[Dim; DIMS]>::try_from(dims) else {
        return Err(format!(
            "a copy of {} to {}: more than {DIMS} dimensions that are not neighbours in memory",
            from.summary(),
            to.summary()
        ));
    };
    Ok(Copy {
        elements,
        dims: StridedCopy {
            shape: dims.map(|dim| dim[0]),
            source: dims.map(|dim| dim[1]),
            from: dims.map(|dim| dim[2]),
            to: dims.map(|dim| dim[3]),
        },
    })
}

/// The kernels' names for the elements of a copy.
fn elements(from: &TensorDesc, to: &TensorDesc) -> Result<[Element; 2], String> {
    if from.dtype == to.dtype {
        let size = match from.dtype.block_bytes() {
            bytes if !from.dtype.is_quantized() => bytes,
            bytes => 2 - bytes % 2,
        };
        return Ok([Element::Bytes(size); 2]);
    }
    let floats = float_type(from.dtype).zip(float_type(to.dtype));
    let (a, b) = floats.ok_or_else(|| format!("a conversion of {} to {}", from.dtype, to.dtype))?;
    Ok([Element::Float(a), Element::Float(b)])
}

/// The same dimensions with neighbours made one where they are one in memory, filled up to [`DIMS`] with ones before.
fn merged(dims: Vec<Dim>) -> Vec<Dim> {
    let mut kept: Vec<Dim> = Vec::new();
    for dim in dims.into_iter().filter(|dim| dim[0] != 1) {
        let whole = |dim: &Dim| dim[0] == dim[1];
        match kept.last_mut() {
            Some(last) if whole(last) && whole(&dim) && last[2] == dim[0] * dim[2] && last[3] == dim[0] * dim[3] => {
                *last = [last[0] * dim[0], last[0] * dim[0], dim[2], dim[3]];
            }
            _ => kept.push(dim),
        }
    }
    let missing = DIMS.saturating_sub(kept.len());
    let mut filled = vec![[1, 1, 0, 0]; missing];
    filled.append(&mut kept);
    filled
}

/// DUP, CONT, CPY, and names of other memory that have memory of their own.
pub(super) fn moves(inputs: &[&TensorDesc], outputs: &[&TensorDesc]) -> Takes {
    let (from, to) = (inputs[0], outputs[0]);
    rule(from.element_count() == to.element_count(), || {
        format!("{} of other elements than {}", to.summary(), from.summary())
    })?;
    plan(from, to, false).map(drop)
}

/// PERMUTE and TRANSPOSE.
pub(super) fn permuted(op: &Op, inputs: &[&TensorDesc], outputs: &[&TensorDesc]) -> Takes {
    let (from, to) = (inputs[0], outputs[0]);
    moves(&[&moved(op, from)], outputs)?;
    if !by_tiles(op, from, to) {
        return Ok(());
    }
    let [outer, heads, rows, cols] = four(&from.shape);
    at_most("matrices", outer * heads, GRID)?;
    at_most("rows", rows, 32 * GRID)?;
    at_most("columns", cols, 32 * BLOCKS)
}

/// Whether a copy is that of matrices without gaps to their transposed ones.
fn by_tiles(op: &Op, from: &TensorDesc, to: &TensorDesc) -> bool {
    *op == Op::Transpose && from.dtype == DType::F32 && from.is_contiguous() && to.is_contiguous()
}

pub(super) fn repeats(inputs: &[&TensorDesc], outputs: &[&TensorDesc]) -> Takes {
    plan(inputs[0], outputs[0], true).map(drop)
}

pub(super) fn concat(axis: usize, inputs: &[&TensorDesc], outputs: &[&TensorDesc]) -> Takes {
    let output = outputs[0];
    let mut at = vec![0; output.shape.len()];
    for input in inputs {
        plan(input, &part_of(input, output, &at), false)?;
        at[axis] += input.shape[axis];
    }
    Ok(())
}

pub(super) fn pad(left: &[usize], inputs: &[&TensorDesc], outputs: &[&TensorDesc]) -> Takes {
    contiguous(outputs[0])?;
    plan(inputs[0], &part_of(inputs[0], outputs[0], left), false).map(drop)
}

pub(super) fn accumulate(inputs: &[&TensorDesc], outputs: &[&TensorDesc]) -> Takes {
    float(inputs[0])?;
    let sum = outputs[0];
    rule(sum.dtype == DType::F32, || format!("a sum in {}", sum.dtype))?;
    contiguous(sum)
}

impl HipGgmlBackend {
    /// Copies a tensor's bytes to another's, each as its descriptor says.
    pub(super) fn copy(
        &self,
        op: &Op,
        (from, x): (&TensorDesc, &HipBuffer<u8>),
        (to, y): (&TensorDesc, &HipBuffer<u8>),
        repeat: bool,
    ) -> GgmlResult<()> {
        let n = from.element_count();
        if n == 0 {
            return Ok(());
        }
        if from.is_contiguous() && to.is_contiguous() && n == to.element_count() {
            if from.dtype == to.dtype {
                return y.copy_from_buffer(self.stream(), x).map_err(failed(op.name()));
            }
            if let Some((a, b)) = float_type(from.dtype).zip(float_type(to.dtype)) {
                return self.done(op, self.kernels.cast(self.stream(), (a, x), (b, y), n));
            }
        }
        let copy = plan(from, to, repeat).map_err(|reason| super::unimplemented(op, reason))?;
        let [a, b] = copy.elements;
        self.done(op, self.kernels.copy_strided(self.stream(), (a, x), (b, y), copy.dims))
    }

    /// DUP, CONT, CPY, REPEAT, and names of other memory that have memory of their own.
    pub(super) fn move_elements(&self, op: &Op, input: TensorId, output: TensorId) -> GgmlResult<()> {
        let (x, y) = (self.bytes(input)?, self.bytes(output)?);
        let (from, to) = (self.slots.desc(input)?, self.slots.desc(output)?);
        if by_tiles(op, from, to) {
            // Tiles through LDS: neighbours are read and written together.
            let [outer, heads, rows, cols] = four(&from.shape);
            let batch = outer * heads;
            let (x, y) = (self.f32(op, input)?, self.f32(op, output)?);
            return self.done(op, self.kernels.transpose(self.stream(), &x, &y, [batch, rows, cols]));
        }
        let source = moved(op, from);
        self.copy(op, (&source, &x), (to, &y), matches!(op, Op::Repeat))
    }

    /// Zeros, and the input's elements inside of them.
    pub(super) fn pad(&self, op: &Op, left: &[usize], input: TensorId, output: TensorId) -> GgmlResult<()> {
        let (x, y) = (self.bytes(input)?, self.bytes(output)?);
        let (from, to) = (self.slots.desc(input)?, self.slots.desc(output)?);
        y.clear(self.stream()).map_err(failed(op.name()))?;
        self.copy_into(op, (from, &x), (to, &y), left)
    }

    /// Both inputs, one after the other along `axis`.
    pub(super) fn concat(&self, op: &Op, axis: usize, inputs: &[TensorId], output: TensorId) -> GgmlResult<()> {
        let y = self.bytes(output)?;
        let to = self.slots.desc(output)?;
        let mut first = vec![0; to.shape.len()];
        for &id in inputs {
            let x = self.bytes(id)?;
            let from = self.slots.desc(id)?;
            self.copy_into(op, (from, &x), (to, &y), &first)?;
            first[axis] += from.shape[axis];
        }
        Ok(())
    }

    /// Adds the input to the output's elements from `offset` on.
    pub(super) fn accumulate(&mut self, op: &Op, offset: usize, src: TensorId, output: TensorId) -> GgmlResult<()> {
        if self.slots.desc(src)?.element_count() == 0 {
            return Ok(());
        }
        let (src, dst) = (self.input(op, src, 0)?, self.f32(op, output)?);
        let part = dst.view(offset..offset + src.len()).map_err(failed(op.name()))?;
        self.done(op, self.kernels.add(self.stream(), &part, &src, &part))
    }

    /// Copies a tensor into a part of a larger one that begins at index `first`.
    fn copy_into(
        &self,
        op: &Op,
        (from, x): (&TensorDesc, &HipBuffer<u8>),
        (to, y): (&TensorDesc, &HipBuffer<u8>),
        first: &[usize],
    ) -> GgmlResult<()> {
        if from.element_count() == 0 {
            return Ok(());
        }
        let part = part_of(from, to, first);
        let y = y.view(part.byte_offset..part.byte_offset.saturating_add(part.byte_size()));
        let y = y.map_err(failed(op.name()))?;
        self.copy(op, (from, x), (&part, &y), false)
    }
}

/// The input of a move as it is read: with the op's order of dimensions.
pub(super) fn moved(op: &Op, from: &TensorDesc) -> TensorDesc {
    match op {
        Op::Transpose | Op::Permute { .. } => shape::permuted(op, from),
        _ => from.clone(),
    }
}

/// The part of `to` from index `first` on that has the shape of `from`; its offset counts from the start of `to`.
pub(super) fn part_of(from: &TensorDesc, to: &TensorDesc, first: &[usize]) -> TensorDesc {
    let elements: usize = to.strides.iter().zip(first).map(|(stride, first)| stride * first).sum();
    let mut part = TensorDesc {
        shape: from.shape.clone(),
        byte_offset: elements / to.dtype.block_len() * to.dtype.block_bytes(),
        layout: Layout::Strided,
        ..to.clone()
    };
    if part.is_contiguous() {
        part.layout = Layout::RowMajor;
    }
    part
}
