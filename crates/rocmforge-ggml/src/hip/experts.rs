//! Products with the matrices of chosen experts.

use rocmforge_kernels::{
    BesideExperts, Binary, ExpertStack, ExpertTiles, HalfRows, Kernels, Map, PackedWeights, Q8Activations, WeightType,
};
use rocmforge_runtime::HipBuffer;

use super::faults::faults;
use super::operands::{BETWEEN, ROUNDED_OF_EXPERTS, TILES, rows_and_cols};
use super::products::whole_matrices;
use super::types::weight_type;
use super::{HipGgmlBackend, failed};
use crate::optimizer::row_step;
use crate::{ExpertUnit, GgmlResult, Kernel, Launch, Op, SumOf, TensorId, Unary};

/// Where factors and biases are packed that do not lie as a kernel reads them: apart from the place of weights.
const FACTORS: usize = 4;
const BIASES: [usize; 2] = [2, 3];

const OP: &Op = &Op::MulMatId;

/// Floats between the kernels of a sum: the results of all pairs, or then a factor of each token and, from the next multiple of 64 floats on, rows times it.
pub(super) const fn between(tokens: usize, used: usize, n: usize) -> usize {
    let (results, scaled) = (
        tokens.saturating_mul(used).saturating_mul(n),
        tokens.next_multiple_of(64).saturating_add(tokens.saturating_mul(n)),
    );
    if results > scaled { results } else { scaled }
}

/// Dimensions of `x [tokens, rows, k]` and `ids [tokens, used]`.
#[derive(Clone, Copy)]
struct Dims {
    tokens: usize,
    used: usize,
    /// Rows of each token: 1, or one for each of its experts.
    rows: usize,
    k: usize,
}

impl Dims {
    /// Pairs that share a row.
    const fn share(self) -> usize {
        if self.rows == self.used { 1 } else { self.used }
    }
}

/// Rounded rows of activations.
enum ExpertRows {
    /// For the pairs of few tokens.
    Q8(Q8Activations),
    /// For pairs in tiles.
    Halves(HalfRows, ExpertTiles),
}

/// A packed stack with its experts, the operands of the product with it, and the result.
type PackedProduct<'a> = ((PackedWeights, usize), [TensorId; 3], &'a HipBuffer<f32>);

impl HipGgmlBackend {
    pub(super) fn matmul_id(&mut self, inputs: &[TensorId], output: TensorId) -> GgmlResult<()> {
        let y = self.result(OP, output)?;
        self.experts_products([inputs[0], inputs[2]], &[(inputs[1], &y)])?;
        self.store(OP, output, &y)
    }

    /// The gated unit of two products: of one token in one launch, where the weights are packed.
    pub(super) fn experts_glu(&mut self, unit: ExpertUnit, inputs: &[TensorId], output: TensorId) -> GgmlResult<()> {
        let &[x, gate, up, ids, ref biases @ ..] = inputs else {
            return Err(self.cannot(OP, output));
        };
        let y = self.result(OP, output)?;
        let dims = self.experts_dims(x, ids)?;
        let biases = self.biases(biases)?;
        let list = self.u32(OP, ids)?;
        if let Some(stacks) = self.stack(gate).zip(self.stack(up)).filter(|_| dims.tokens == 1) {
            let [gate_of, up_of] = [&stacks.0, &stacks.1].map(|(w, experts)| ExpertStack { w, experts: *experts });
            if Kernels::are_gated_experts(gate_of, up_of, unit) {
                let row = self.input(OP, x, 0)?;
                let site = self.fault_site(OP, &[x, gate, ids])?;
                let both = match biases.as_slice() {
                    [gate, up] => Some([gate, up]),
                    _ => None,
                };
                let (stream, share) = (self.stream(), dims.share());
                let (stacks, faults) = ([gate_of, up_of], faults(&site));
                let launched = self
                    .kernels
                    .experts_gated(stream, &row, &list, stacks, both, unit, &y, share, faults);
                return self.stored(OP, launched, output, &y);
            }
        }
        let other = self.scratch(BETWEEN, size_of::<f32>() * y.len())?;
        let other = other.cast().map_err(failed(OP.name()))?;
        self.experts_products([x, ids], &[(gate, &y), (up, &other)])?;
        for (rows, bias) in [&y, &other].into_iter().zip(&biases) {
            self.add_biases(rows, bias, (&list, [x, gate, ids]))?;
        }
        let kind = match unit {
            ExpertUnit::Glu(kind) => kind,
            ExpertUnit::Bounded { bound } => {
                let (min, max) = (f32::NEG_INFINITY, bound);
                let one = Map::Affine { factor: 1.0, add: 1.0 };
                for (f, rows) in [
                    (Map::Clamp { min, max }, &y),
                    (Map::Clamp { min: -bound, max }, &other),
                    (one, &other),
                ] {
                    let launched = self.kernels.map(self.stream(), f, rows, rows);
                    self.done(OP, launched)?;
                }
                ExpertUnit::BOUNDED_KIND
            }
        };
        let shape = rows_and_cols(&self.slots.desc(output)?.shape);
        self.gated(OP, kind, [&y, &other], &y, shape)?;
        self.store(OP, output, &y)
    }

    /// The sum of a token's results times their factors, and what is added to it: of one token in one launch, where the weights are packed.
    pub(super) fn experts_sum(&mut self, of: SumOf, inputs: &[TensorId], output: TensorId) -> GgmlResult<()> {
        let &[x, weights, ids, factors, ref rest @ ..] = inputs else {
            return Err(self.cannot(OP, output));
        };
        let [bias, beside, gate, residual] = of.operands(rest);
        let y = self.result(OP, output)?;
        let dims = self.experts_dims(x, ids)?;
        let (factors, list) = (self.input(OP, factors, FACTORS)?, self.u32(OP, ids)?);
        let bias = bias.map(|&id| self.input(OP, id, BIASES[0])).transpose()?;
        let [beside, gate, residual] = [beside, gate, residual].map(|id| id.map(|&id| self.f32(OP, id)).transpose());
        let (beside, gate, residual) = (beside?, gate?, residual?);
        let one = self
            .stack(weights)
            .filter(|_| dims.tokens == 1 && dims.rows == dims.used);
        if let Some((w, experts)) = one {
            let stack = ExpertStack { w: &w, experts };
            if dims.used <= stack.most_in_sum() {
                let rows = self.input(OP, x, 0)?;
                let site = self.fault_site(OP, &[x, weights, ids])?;
                let (stream, used, bias) = (self.stream(), dims.used, bias.as_ref());
                let added = BesideExperts {
                    x: beside.as_ref(),
                    gate: gate.as_ref(),
                    residual: residual.as_ref(),
                };
                let (kernels, faults) = (&self.kernels, faults(&site));
                let launched =
                    kernels.experts_sum(stream, &rows, &list, &factors, stack, bias, added, &y, used, faults);
                return self.stored(OP, launched, output, &y);
            }
        }
        let Dims { tokens, used, .. } = dims;
        let n = y.len() / tokens.max(1);
        let room = self.scratch(BETWEEN, size_of::<f32>().saturating_mul(between(tokens, used, n)))?;
        let room: HipBuffer<f32> = room.cast().map_err(failed(OP.name()))?;
        let part = |part| room.view(part).map_err(failed(OP.name()));
        let floats = part(0..tokens * used * n)?;
        self.experts_products([x, ids], &[(weights, &floats)])?;
        let bias = bias.as_ref().map(|bias| (bias, bias.len() / n.max(1)));
        let launched =
            (self.kernels).expert_rows_sum(self.stream(), &floats, &list, &factors, bias, &y, [tokens, used, n]);
        self.done(OP, launched)?;
        let mut beside = beside;
        if let (Some(rows), Some(gate)) = (&beside, &gate) {
            let (factors, first) = (part(0..tokens)?, tokens.next_multiple_of(64));
            let scaled = part(first..first + tokens * n)?;
            let launched = (self.kernels).map(self.stream(), Map::Unary(Unary::Sigmoid), gate, &factors);
            self.done(OP, launched)?;
            let (rows, factors) = ((rows, [1, 1, tokens, n]), (&factors, [1, 1, tokens, 1]));
            let launched = (self.kernels).binary_repeat(self.stream(), Binary::Mul, rows, factors, &scaled);
            self.done(OP, launched)?;
            beside = Some(scaled);
        }
        for more in [beside, residual].iter().flatten() {
            let launched = self.kernels.add(self.stream(), &y, more, &y);
            self.done(OP, launched)?;
        }
        self.store(OP, output, &y)
    }

    /// Biases `[experts, n]` of gate and up; empty where there are no biases.
    fn biases(&mut self, ids: &[TensorId]) -> GgmlResult<Vec<HipBuffer<f32>>> {
        let places = ids.iter().zip(BIASES);
        places.map(|(&id, place)| self.input(OP, id, place)).collect()
    }

    /// Adds to each row the bias of its expert.
    fn add_biases(
        &mut self,
        rows: &HipBuffer<f32>,
        bias: &HipBuffer<f32>,
        (list, site): (&HipBuffer<u32>, [TensorId; 3]),
    ) -> GgmlResult<()> {
        let n = rows.len() / list.len().max(1);
        let dims = [bias.len() / n.max(1), n];
        let site = self.fault_site(OP, &site)?;
        let launched = self
            .kernels
            .add_id(self.stream(), rows, bias, list, rows, dims, faults(&site));
        self.done(OP, launched)
    }

    fn experts_dims(&self, x: TensorId, ids: TensorId) -> GgmlResult<Dims> {
        let (x_desc, ids_desc) = (self.slots.desc(x)?, self.slots.desc(ids)?);
        match (x_desc.shape.as_slice(), ids_desc.shape.as_slice()) {
            (&[_, rows, k], &[tokens, used]) => Ok(Dims { tokens, used, rows, k }),
            _ => Err(self.cannot(OP, x)),
        }
    }

    fn stack(&self, id: TensorId) -> Option<(PackedWeights, usize)> {
        let (matrix, experts) = self.packed_stack(id)?;
        Some((matrix.clone(), experts))
    }

    /// Products of `x` with the experts of `ids` in each of the stacks, to as many results. Packed stacks take rounded activations.
    fn experts_products(
        &mut self,
        [x, ids]: [TensorId; 2],
        products: &[(TensorId, &HipBuffer<f32>)],
    ) -> GgmlResult<()> {
        let dims = self.experts_dims(x, ids)?;
        let (rows, list) = (self.input(OP, x, 0)?, self.u32(OP, ids)?);
        let mut packed = Vec::new();
        for &(weights, y) in products {
            match self.stack(weights) {
                Some(stack) => packed.push((stack, [x, weights, ids], y)),
                None => self.plain_experts([x, weights, ids], (&rows, &list), y, dims)?,
            }
        }
        self.packed_experts((&rows, dims.k), &list, &packed, dims)
    }

    /// Whether joined launches are a copy of rows with gaps and a product of them with a packed stack that rounds them where they lie: to 8 bits.
    pub(super) fn rounds_rows(&self, group: &[Launch]) -> GgmlResult<bool> {
        let [copy, product] = group else { return Ok(false) };
        if [copy.kernel, product.kernel] != [Op::Cont, Op::MulMatId].map(Kernel::Op) {
            return Ok(false);
        }
        let Some((_, experts)) = self.packed_stack(product.inputs[1]) else {
            return Ok(false);
        };
        let pairs = self.slots.desc(product.inputs[2])?.element_count();
        Ok(self.kernels.expert_tile_rows(pairs, experts).is_none())
    }

    /// Both in as many launches as the product takes. Nothing else reads the copy, which is not made.
    pub(super) fn matmul_id_of_rows(&mut self, copy: &Launch, product: &Launch) -> GgmlResult<()> {
        let (&[x, weights, ids], &[output]) = (product.inputs.as_slice(), product.outputs.as_slice()) else {
            return Err(self.cannot(OP, copy.inputs[0]));
        };
        let view = copy.inputs[0];
        let step = row_step(self.slots.desc(view)?).ok_or_else(|| self.cannot(OP, view))?;
        let rows = self.bytes(view)?.cast().map_err(failed(OP.name()))?;
        let stack = self.stack(weights).ok_or_else(|| self.cannot(OP, weights))?;
        let (dims, list, y) = (self.experts_dims(x, ids)?, self.u32(OP, ids)?, self.result(OP, output)?);
        self.packed_experts((&rows, step), &list, &[(stack, [x, weights, ids], &y)], dims)?;
        self.store(OP, output, &y)
    }

    /// Products with packed stacks, of rows that lie `step` elements apart.
    fn packed_experts(
        &mut self,
        (rows, step): (&HipBuffer<f32>, usize),
        list: &HipBuffer<u32>,
        packed: &[PackedProduct<'_>],
        dims: Dims,
    ) -> GgmlResult<()> {
        let Some((first_stack, first_site, _)) = packed.first() else {
            return Ok(());
        };
        let Dims { tokens, used, k, .. } = dims;
        let at_once = (ExpertStack::MAX_PAIRS / used.max(1)).max(1);
        for first in (0..tokens).step_by(at_once) {
            let some = first..tokens.min(first + at_once);
            let count = some.len() * dims.rows;
            let begin = some.start * dims.rows * step;
            let some_rows = rows.view(begin..begin + count.saturating_sub(1) * step + k);
            let some_rows = some_rows.map_err(failed(OP.name()))?;
            let some_ids = list.view(some.start * used..some.end * used);
            let some_ids = some_ids.map_err(failed(OP.name()))?;
            let tiles = match step == k {
                true => self.expert_tiles(first_site, &some_ids, first_stack.1)?,
                false => None,
            };
            let rounded = self.rounded_of_experts((&some_rows, step), [count, k], tiles)?;
            for ((w, experts), site, y) in packed {
                let stack = ExpertStack { w, experts: *experts };
                let each = used * (w.n() / experts);
                let y = y.view(some.start * each..some.end * each).map_err(failed(OP.name()))?;
                let site = self.fault_site(OP, site)?;
                let (kernels, stream, share) = (&self.kernels, self.stream(), dims.share());
                let launched = match &rounded {
                    ExpertRows::Halves(x, tiles) => kernels.experts_in_tiles(stream, x, tiles, stack, &y, share),
                    ExpertRows::Q8(x) => kernels.experts_pairs(stream, x, &some_ids, stack, &y, share, faults(&site)),
                };
                self.done(OP, launched)?;
            }
        }
        Ok(())
    }

    /// Rows that lie `step` elements apart, rounded for products with packed stacks.
    fn rounded_of_experts(
        &mut self,
        (rows, step): (&HipBuffer<f32>, usize),
        dims: [usize; 2],
        tiles: Option<ExpertTiles>,
    ) -> GgmlResult<ExpertRows> {
        let bytes = match &tiles {
            Some(_) => HalfRows::byte_len(dims[0], dims[1]),
            None => Q8Activations::byte_len(dims[0], dims[1]),
        };
        let room = self.scratch(ROUNDED_OF_EXPERTS, bytes.unwrap_or(usize::MAX))?;
        let (kernels, stream) = (&self.kernels, self.stream());
        let rounded = match tiles {
            Some(tiles) => (kernels.half_rows(stream, rows, &room, dims)).map(|x| ExpertRows::Halves(x, tiles)),
            None if step == dims[1] => kernels.quantize_q8(stream, rows, room, dims).map(ExpertRows::Q8),
            None => (kernels.quantize_q8_rows(stream, rows, room, dims, step)).map(ExpertRows::Q8),
        };
        rounded.map_err(failed(OP.name()))
    }

    /// The pairs of `ids` in tiles, where they are enough for products in tiles. Ids that are no experts are faults at `site`.
    fn expert_tiles(
        &mut self,
        site: &[TensorId; 3],
        ids: &HipBuffer<u32>,
        experts: usize,
    ) -> GgmlResult<Option<ExpertTiles>> {
        let Some(rows) = self.kernels.expert_tile_rows(ids.len(), experts) else {
            return Ok(None);
        };
        let words = ExpertTiles::words(ids.len(), experts, rows);
        let room = self.scratch(TILES, size_of::<u32>().saturating_mul(words))?;
        let room = room.cast().map_err(failed(OP.name()))?;
        let site = self.fault_site(OP, site)?;
        let stream = self.stream();
        let tiles = (self.kernels).expert_tiles(stream, ids, [experts, rows], &room, faults(&site));
        tiles.map(Some).map_err(failed(OP.name()))
    }

    /// The product with a stack that is not packed.
    fn plain_experts(
        &mut self,
        inputs: [TensorId; 3],
        (x, ids): (&HipBuffer<f32>, &HipBuffer<u32>),
        y: &HipBuffer<f32>,
        dims: Dims,
    ) -> GgmlResult<()> {
        let experts = self.slots.desc(inputs[1])?.clone();
        let &[count, k, n] = experts.shape.as_slice() else {
            return Err(self.cannot(OP, inputs[1]));
        };
        let bytes = self.bytes(inputs[1])?;
        let (ty, w) = match weight_type(experts.dtype).filter(|_| whole_matrices(&experts)) {
            Some(ty) => (ty, bytes),
            None => {
                // In rows of [n, k].
                let transposed = crate::shape::permuted(&Op::Transpose, &experts);
                let rows = self.pack(OP, (&transposed, &bytes), 1)?;
                (WeightType::F32, rows.cast().map_err(failed(OP.name()))?)
            }
        };
        let site = self.fault_site(OP, &inputs)?;
        let (stream, matrices) = (self.stream(), [count, n, k]);
        let launched = self
            .kernels
            .matmul_id(stream, ty, &w, x, ids, y, matrices, dims.share(), faults(&site));
        self.done(OP, launched)
    }
}
