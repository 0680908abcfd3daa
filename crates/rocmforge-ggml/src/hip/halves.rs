//! Products of many rows with rounded operands: both as f16, on the matrix unit.

use rocmforge_kernels::{ExpertStack, ExpertTiles, HalfRows, Kernels, Q8Activations, WeightMatrix};
use rocmforge_runtime::HipBuffer;

use super::operands::{HALVES, SLAB, rows_and_cols};
use super::types::weight_type;
use super::weights::{FEW_ROWS, is_of_experts};
use super::{HipGgmlBackend, failed};
use crate::{Activations, GgmlResult, Graph, Kernel, Launch, Op, TensorId};

/// Places of scratch memory that a launch may need.
const PLACES: usize = 6;

impl HipGgmlBackend {
    /// Whether a product of `m` rows of activations with one matrix rounds both to 16 bits, unless the matrix is packed.
    pub(super) fn takes_halves(&self, m: usize) -> GgmlResult<bool> {
        if self.activations == Activations::F32 || m <= FEW_ROWS {
            return Ok(false);
        }
        self.kernels.multiplies_halves().map_err(failed("loading kernels"))
    }

    /// `m` rows `a` times a matrix, both as f16; `a` is so already if that `is_made`.
    pub(super) fn halves_product(
        &mut self,
        op: &Op,
        (a, m, is_made): (&HipBuffer<f32>, usize, bool),
        w: WeightMatrix<'_>,
        bias: Option<&HipBuffer<f32>>,
        y: &HipBuffer<f32>,
    ) -> GgmlResult<()> {
        let [_, k] = w.shape();
        let x = self.halves_of(op, a, [m, k], is_made)?;
        let wanted = self.kernels.matmul_halves_scratch(w, m).map_err(failed(op.name()))?;
        let scratch = self.scratch(SLAB, wanted)?;
        let result = self.kernels.matmul_halves(self.stream(), w, &x, bias, y, &scratch);
        self.done(op, result)
    }

    /// Bytes of scratch memory that the products of a graph take, each place as large as the largest of its operands.
    pub(super) fn scratch_of(&self, graph: &Graph) -> usize {
        let mut places = [0; PLACES];
        for launch in graph.launches().iter() {
            if let Some(bytes) = self.scratch_of_launch(graph, launch) {
                places
                    .iter_mut()
                    .zip(bytes)
                    .for_each(|(most, bytes)| *most = bytes.max(*most));
            }
        }
        places.into_iter().fold(0, usize::saturating_add)
    }

    /// What lies between the kernels of a launch, its activations as f16, the weights as f16 and the sums of parts, the rounded activations of packed experts, those in 8 bits
    /// of few rows, and the tiles of experts.
    fn scratch_of_launch(&self, graph: &Graph, launch: &Launch) -> Option<[usize; PLACES]> {
        let shape = |id: &TensorId| Some(graph.tensor(*id)?.shape.as_slice());
        let floats = |elements: usize| size_of::<f32>().saturating_mul(elements);
        let a = graph.tensor(*launch.inputs.first()?)?;
        let between = match launch.kernel {
            Kernel::MulMatGlu(_) | Kernel::MulMatIdGlu(_) => {
                floats(graph.tensor(*launch.outputs.first()?)?.element_count())
            }
            Kernel::MulMatIdSum(_) => {
                let (experts, ids) = (shape(launch.inputs.get(1)?)?, shape(launch.inputs.get(2)?)?);
                let (&[tokens, used], n) = (ids, *experts.last()?) else {
                    return None;
                };
                floats(super::experts::between(tokens, used, n))
            }
            Kernel::Op(Op::TopK { k }) => Kernels::top_k_scratch_of(rows_and_cols(&a.shape), k),
            Kernel::Op(Op::PagedAttention(a)) => self.paged_scratch(graph, a, &launch.inputs).unwrap_or(0),
            _ => 0,
        };
        let mut bytes = [between, 0, 0, 0, 0, 0];
        // Activations of 8 bits, where the weights may be packed.
        let rounded = |weight: &TensorId, rows: usize, k: usize| {
            let ty = graph.tensor(*weight).and_then(|desc| weight_type(desc.dtype));
            let packs = self.activations == Activations::Int8 && ty.is_some_and(|ty| ty.is_packable());
            packs.then(|| Q8Activations::byte_len(rows, k)).flatten().unwrap_or(0)
        };
        if is_of_experts(&launch.kernel) {
            let [rows, k] = rows_and_cols(&a.shape);
            let rows = rows.min(ExpertStack::MAX_PAIRS);
            let stacks = launch.inputs.get(1..launch.inputs.len().min(3)).unwrap_or_default();
            bytes[3] = (stacks.iter().map(|stack| rounded(stack, rows, k)).max()).unwrap_or(0);
            if let Some(tiles) = self.bytes_of_tiles(graph, launch).filter(|_| bytes[3] > 0) {
                bytes[5] = tiles;
                bytes[3] = bytes[3].max(HalfRows::byte_len(rows, k).unwrap_or(usize::MAX));
            }
        }
        for &weight in launch.weights() {
            let &[k, n] = graph.tensor(weight)?.shape.as_slice() else {
                continue;
            };
            let m = a.element_count() / k.max(1);
            if m >= 2 && self.rounds(m) {
                bytes[4] = bytes[4].max(rounded(&weight, m, k));
            }
            let tiles = self.takes_tiles(m) && rounded(&weight, m, k) > 0;
            if tiles || self.takes_halves(m).unwrap_or(false) {
                // A weight that another op reads, too, is not packed.
                let slab = self.kernels.matmul_halves_scratch_of([m, n, k]).unwrap_or(0);
                bytes[1] = bytes[1].max(HalfRows::byte_len(m, k).unwrap_or(usize::MAX));
                bytes[2] = bytes[2].max(slab);
                if tiles {
                    bytes[2] = bytes[2].max(floats(self.kernels.packed16_sums([m, n, k])));
                }
            }
        }
        Some(bytes)
    }

    /// Bytes of the tiles of a product with experts.
    fn bytes_of_tiles(&self, graph: &Graph, launch: &Launch) -> Option<usize> {
        let stack = graph.tensor(*launch.inputs.get(1)?)?;
        let at = if matches!(launch.kernel, Kernel::MulMatIdGlu(_)) {
            3
        } else {
            2
        };
        let ids = graph.tensor(*launch.inputs.get(at)?)?;
        let (pairs, experts) = (ids.element_count().min(ExpertStack::MAX_PAIRS), *stack.shape.first()?);
        let rows = self.kernels.expert_tile_rows(pairs, experts)?;
        Some(size_of::<u32>().saturating_mul(ExpertTiles::words(pairs, experts, rows)))
    }

    /// Room for rows as f16.
    pub(super) fn room_for_halves(&mut self, [m, k]: [usize; 2]) -> GgmlResult<HipBuffer<u8>> {
        let bytes = HalfRows::byte_len(m, k).unwrap_or(usize::MAX);
        self.scratch(HALVES, bytes)
    }

    /// Activations as f16, which an earlier launch has left if that `is_made`.
    pub(super) fn halves_of(
        &mut self,
        op: &Op,
        a: &HipBuffer<f32>,
        [m, k]: [usize; 2],
        is_made: bool,
    ) -> GgmlResult<HalfRows> {
        let to = self.room_for_halves([m, k])?;
        let values = if is_made {
            HalfRows::written(&to, [m, k])
        } else {
            self.kernels.half_rows(self.stream(), a, &to, [m, k])
        };
        values.map_err(failed(op.name()))
    }
}
