//! Measurement: the variants of a parameter, timed in turns on a card.

use super::{PackedForm, Parameter, Tuning};
use crate::declared::mixed;
use crate::{
    Fault, Faults, HalfRows, KernelResult, Kernels, KvType, PackedWeights, PagedOperands, PagedOptions, PagedShape,
    Q8Activations, RowInput, WeightMatrix, WeightType,
};
use rocmforge_runtime::{Elems, HipBuffer, HipGraphExec, HipStream};
use std::time::{Duration, Instant};

/// The least gain over the rule, as a share of its time: less may be chance.
const GAIN: f64 = 0.02;
/// Rounds of all variants, of which the median counts.
const ROUNDS: usize = 7;
/// The shortest sample: the clock of a card's events ticks in microseconds.
const SAMPLE: Duration = Duration::from_millis(4);
/// Types of weights, which all count alike.
const TYPES: [WeightType; 3] = [WeightType::Q4_0, WeightType::Q8_0, WeightType::Q4K];

/// How much is computed in a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timed {
    /// Matrices of a model of 8 billion weights, more of them than a cache holds: half a gigabyte with all that they need.
    Whole,
    /// Matrices of a few rows, for tests: the times mean nothing.
    Small,
}

/// The times of a parameter's variants.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// The parameter.
    pub parameter: Parameter,
    /// Each variant with its time in microseconds.
    pub times: Vec<(u32, f64)>,
    /// The variant to take: the fastest, or the rule's if no other is at least 2 % faster.
    pub chosen: u32,
}

impl Measured {
    fn new(parameter: Parameter, times: Vec<(u32, f64)>) -> Self {
        let rule = parameter.rule();
        let of_rule = times
            .iter()
            .find(|(value, _)| *value == rule)
            .map_or(0.0, |(_, time)| *time);
        let fastest = times.iter().min_by(|a, b| a.1.total_cmp(&b.1));
        let faster = fastest.filter(|(_, time)| *time < of_rule * (1.0 - GAIN));
        Self {
            parameter,
            chosen: faster.map_or(rule, |(value, _)| *value),
            times,
        }
    }

    /// The time of a variant in microseconds.
    fn time(&self, value: u32) -> Option<f64> {
        self.times
            .iter()
            .find(|(known, _)| *known == value)
            .map(|(_, time)| *time)
    }

    /// Sets what was chosen.
    ///
    /// # Errors
    ///
    /// As [`Tuning::set`], where a time is 0.
    pub fn apply(&self, tuning: &mut Tuning) -> KernelResult<()> {
        let times = [self.chosen, self.parameter.rule()].map(|value| self.time(value).unwrap_or(0.0));
        tuning.set(self.parameter, self.chosen, times)
    }
}

/// What is timed: it enqueues its launches.
type Work = Box<dyn Fn(&Kernels, &HipStream) -> KernelResult<()>>;

impl Kernels {
    /// Times the variants of a parameter in turns on the stream, the other parameters as they are here; `None` where the device lacks what it decides between. It
    /// ends after `within`, once each variant has one sample. `progress` gets the share that is done.
    ///
    /// # Errors
    ///
    /// The runtime's, for example that the budget has no room for the operands, or that the device cannot capture.
    pub fn measure(
        &self,
        stream: &HipStream,
        parameter: Parameter,
        timed: Timed,
        within: Duration,
        progress: &mut dyn FnMut(f64),
    ) -> KernelResult<Option<Measured>> {
        let begin = Instant::now();
        let Some(work) = self.work(stream, parameter, timed)? else {
            return Ok(None);
        };
        let mut variants = Vec::new();
        for &value in parameter.variants() {
            let mut tuning = *self.tuning();
            tuning.set(parameter, value, [1.0; 2])?;
            let kernels = self.tuned(tuning);
            // The first launch loads modules, which a capture cannot.
            work(&kernels, stream)?;
            let capture = stream.capture("tuning")?;
            work(&kernels, stream)?;
            let exec = capture.finish()?.instantiate()?;
            let once = self.sample(stream, &exec, 1)?;
            let launches = match timed {
                Timed::Whole => (SAMPLE.as_secs_f64() / once.as_secs_f64().max(1e-6)).clamp(1.0, 1e4) as usize,
                Timed::Small => 1,
            };
            variants.push((value, exec, launches, Vec::new()));
        }
        'rounds: for round in 0..ROUNDS {
            let count = variants.len();
            for (at, (_, exec, launches, samples)) in variants.iter_mut().enumerate() {
                if round > 0 && begin.elapsed() > within {
                    break 'rounds;
                }
                samples.push(self.sample(stream, exec, *launches)?);
                progress((round * count + at + 1) as f64 / (ROUNDS * count) as f64);
            }
        }
        let times = variants.into_iter().map(|(value, _, _, mut samples)| {
            samples.sort_unstable();
            (value, samples[samples.len() / 2].as_secs_f64() * 1e6)
        });
        Ok(Some(Measured::new(parameter, times.collect())))
    }

    /// The time of one launch of a graph, of so many in a row.
    fn sample(&self, stream: &HipStream, exec: &HipGraphExec, launches: usize) -> KernelResult<Duration> {
        let events = ["begin", "end"].map(|label| self.backend().create_timing_event(label));
        let [begin, end] = events;
        let (begin, end) = (begin?, end?);
        stream.record(&begin)?;
        for _ in 0..launches {
            exec.launch(stream)?;
        }
        stream.record(&end)?;
        end.synchronize()?;
        Ok(begin.elapsed(&end)? / u32::try_from(launches).unwrap_or(u32::MAX))
    }

    fn work(&self, stream: &HipStream, parameter: Parameter, timed: Timed) -> KernelResult<Option<Work>> {
        let rows: &[usize] = match (parameter, timed) {
            (Parameter::AttentionBlocks, _) => return self.attention(stream, timed),
            (Parameter::TileBlocks | Parameter::TilesFrom | Parameter::TilesTo, _) if !self.multiplies_packed16() => {
                return Ok(None);
            }
            (Parameter::TilesTo, _) if !self.multiplies_halves()? => return Ok(None),
            (Parameter::ProductThreads, _) => &[1],
            (Parameter::TileBlocks, Timed::Whole) => &[16, 32, 64],
            (Parameter::TilesFrom, Timed::Whole) => &[10, 16, 24, 32],
            (Parameter::TilesTo, Timed::Whole) => &[48, 80, 112, 160, 224],
            (Parameter::TileBlocks | Parameter::TilesFrom, Timed::Small) => &[10],
            (Parameter::TilesTo, Timed::Small) => &[96],
        };
        let products = Products::new(self, stream, rows, timed)?;
        Ok(Some(Box::new(move |kernels, stream| products.run(kernels, stream))))
    }

    /// One token of several sequences, one after another: their keys and values do not fit into the card's cache.
    fn attention(&self, stream: &HipStream, timed: Timed) -> KernelResult<Option<Work>> {
        let (sequences, pages) = match timed {
            Timed::Whole => (8, 256),
            Timed::Small => (1, 4),
        };
        let shape = PagedShape {
            tokens: 1,
            heads: 32,
            kv_heads: 8,
            head_dim: 128,
            block_size: 16,
            blocks: sequences * pages,
            sequences,
            max_blocks: pages,
        };
        let kv = KvType::F16;
        let Some(floats) = Kernels::paged_partial_len(shape, Self::MAX_PAGED_PARTS) else {
            return Ok(None);
        };
        let width = shape.heads * shape.head_dim;
        let cache = shape.blocks * shape.block_size * shape.kv_heads * shape.head_dim;
        let bytes = kv.byte_len(cache).unwrap_or(0);
        let zeros = |n: usize| HipBuffer::<f32>::zeroed(stream, Elems(n), "tuning: attention");
        let (q, out, partial) = (zeros(width)?, zeros(width)?, zeros(floats)?);
        let caches = HipBuffer::<u8>::zeroed(stream, Elems(2 * bytes), "tuning: caches")?;
        let (k_cache, v_cache) = (caches.view(0..bytes)?, caches.view(bytes..2 * bytes)?);
        let table: Vec<u32> = (0..shape.blocks as u32).collect();
        let block_table = HipBuffer::from_slice(stream, &table, "tuning: pages")?;
        let numbers: Vec<u32> = (0..sequences as u32).collect();
        let numbers = HipBuffer::from_slice(stream, &numbers, "tuning: sequences")?;
        let last = (pages * shape.block_size - 1) as u32;
        let positions = HipBuffer::from_slice(stream, &[last], "tuning: positions")?;
        let word = HipBuffer::from_slice(stream, &[Fault::NONE], "tuning: fault")?;
        Ok(Some(Box::new(move |kernels, stream| {
            let faults = Faults { word: &word, tag: 0 };
            for sequence in 0..sequences {
                let operands = PagedOperands {
                    q: &q,
                    k_cache: &k_cache,
                    v_cache: &v_cache,
                    block_table: &block_table,
                    seq_of: &numbers.view(sequence..sequence + 1)?,
                    positions: &positions,
                    sinks: None,
                    out: &out,
                };
                let options = PagedOptions::new(shape.head_dim);
                match kernels.paged_parts(kv, shape) {
                    Some(parts) => {
                        let floats = Kernels::paged_partial_len(shape, parts).unwrap_or(0);
                        let partial = partial.view(0..floats)?;
                        kernels.paged_attention_split(
                            stream, kv, operands, shape, options, parts, &partial, None, faults,
                        )?;
                    }
                    None => kernels.paged_attention(stream, kv, operands, shape, options, faults)?,
                }
            }
            Ok(())
        })))
    }
}

/// Matrices of several types, and rows of activations for them.
struct Products {
    matrices: Vec<PackedWeights>,
    rows: &'static [usize],
    x: HipBuffer<f32>,
    y: HipBuffer<f32>,
    /// Room for rounded activations, and for weights in 16 bits.
    rounded: HipBuffer<u8>,
    slab: HipBuffer<u8>,
    /// Room for the sums of parts of k.
    sums: HipBuffer<f32>,
}

/// Rows and columns of the matrices, of each type.
const fn shapes(timed: Timed) -> &'static [[usize; 2]] {
    match timed {
        Timed::Whole => &[
            [4096, 4096],
            [4096, 4096],
            [4096, 4096],
            [14_336, 4096],
            [14_336, 4096],
            [4096, 14_336],
        ],
        Timed::Small => &[[32, 256]],
    }
}

impl Products {
    fn new(kernels: &Kernels, stream: &HipStream, rows: &'static [usize], timed: Timed) -> KernelResult<Self> {
        let shapes = shapes(timed);
        let largest = |of: fn(&[usize; 2]) -> usize| shapes.iter().map(of).max().unwrap_or(0);
        let (widest, longest, weights) = (largest(|s| s[0]), largest(|s| s[1]), largest(|s| s[0] * s[1]));
        let most = rows.iter().max().copied().unwrap_or(0);
        let mut matrices = Vec::new();
        for ty in TYPES {
            let bytes = |weights: usize| weights / ty.block_len() * ty.block_bytes();
            let blocks = HipBuffer::from_slice(stream, &noise(bytes(weights)), "tuning: blocks")?;
            for &[n, k] in shapes {
                let packed = HipBuffer::zeroed(stream, Elems(bytes(n * k)), "tuning: weights")?;
                let blocks = blocks.view(0..bytes(n * k))?;
                matrices.push(kernels.pack_weight(stream, ty, &blocks, packed, [n, k])?);
            }
        }
        let ones = |n: usize| HipBuffer::from_slice(stream, &vec![1.0f32; n], "tuning: rows");
        let zeros = |n: usize, label| HipBuffer::<u8>::zeroed(stream, Elems(n), label);
        let (mut slab, mut sums) = (16, 1);
        for matrix in &matrices {
            for &m in rows {
                sums = sums.max(kernels.packed16_sums([m, matrix.n(), matrix.k()]));
            }
            if rows.iter().any(|&m| m > PackedForm::GROUPS * PackedForm::GROUP) {
                slab = slab.max(kernels.matmul_halves_scratch(WeightMatrix::Packed(matrix), most)?);
            }
        }
        let rounded = HalfRows::byte_len(most, longest).max(Q8Activations::byte_len(most, longest));
        Ok(Self {
            rows,
            x: ones(most * longest)?,
            y: ones(most * widest)?,
            rounded: zeros(rounded.unwrap_or(0), "tuning: rounded rows")?,
            slab: zeros(slab, "tuning: weights in 16 bits")?,
            sums: ones(sums)?,
            matrices,
        })
    }

    fn run(&self, kernels: &Kernels, stream: &HipStream) -> KernelResult<()> {
        for matrix in &self.matrices {
            for &m in self.rows {
                self.product(kernels, stream, matrix, m)?;
            }
        }
        Ok(())
    }

    fn product(&self, kernels: &Kernels, stream: &HipStream, w: &PackedWeights, m: usize) -> KernelResult<()> {
        let (n, k) = (w.n(), w.k());
        let y = self.y.view(0..m * n)?;
        let x = self.x.view(0..m * k)?;
        if m == 1 && k <= RowInput::MAX_COLUMNS {
            let row = RowInput { x: &x, norm: None };
            return kernels.matvec_q8_row(stream, w, row, None, None, &y);
        }
        let round = |m: usize| {
            let room = self.rounded.view(0..Q8Activations::byte_len(m, k).unwrap_or(0))?;
            kernels.quantize_q8(stream, &self.x.view(0..m * k)?, room, [m, k])
        };
        let halves = || {
            let room = self.rounded.view(0..HalfRows::byte_len(m, k).unwrap_or(0))?;
            kernels.half_rows(stream, &x, &room, [m, k])
        };
        match kernels.packed_form(m) {
            PackedForm::Tiles => {
                let sums = match kernels.packed16_sums([m, n, k]) {
                    floats if (1..=self.sums.len()).contains(&floats) => Some(self.sums.view(0..floats)?),
                    _ => None,
                };
                kernels.packed16(stream, w, &halves()?, None, &y, sums.as_ref())
            }
            PackedForm::Groups => {
                for first in (0..m).step_by(PackedForm::GROUP) {
                    let rows = PackedForm::GROUP.min(m - first);
                    let y = self.y.view(first * n..(first + rows) * n)?;
                    kernels.matvec_q8(stream, w, &round(rows)?, None, None, &y)?;
                }
                Ok(())
            }
            PackedForm::Copies => {
                kernels.matmul_halves(stream, WeightMatrix::Packed(w), &halves()?, None, &y, &self.slab)
            }
        }
    }
}

/// Bytes without a pattern.
fn noise(n: usize) -> Vec<u8> {
    let words = (0..n.div_ceil(4)).flat_map(|at| mixed("weights", at).to_le_bytes());
    words.take(n).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_variant_is_taken_if_it_is_clearly_faster() {
        let of = |times: &[(u32, f64)]| Measured::new(Parameter::AttentionBlocks, times.to_vec()).chosen;
        assert_eq!(of(&[(1, 12.0), (2, 10.0), (4, 9.0)]), 4);
        assert_eq!(of(&[(1, 9.9), (2, 10.0), (4, 11.0)]), 2);
        assert_eq!(of(&[(2, 10.0)]), 2);
    }

    #[test]
    fn what_was_chosen_is_set_with_its_times() {
        let mut tuning = Tuning::RULES;
        let measured = Measured::new(Parameter::TilesTo, vec![(128, 50.0), (64, 40.0)]);
        measured.apply(&mut tuning).unwrap();
        assert_eq!(tuning.value(Parameter::TilesTo), 64);
        assert_eq!(tuning.micros(Parameter::TilesTo), Some([40.0, 50.0]));
    }
}
