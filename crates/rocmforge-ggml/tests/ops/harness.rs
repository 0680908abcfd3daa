//! Runs one op on inputs of any type and any strides, and compares results by normalised mean squared error.
//!
//! Memory that no element of an input lies in holds NaN (all bits set), outputs are poisoned the same way, and the gaps of a strided
//! output must keep their poison: reading or writing beside the elements shows.

use rocmforge_ggml::{CpuBackend, DType, GgmlError, Graph, HostAccess, Layout, Op, TensorDesc, TensorId, executor};

pub(crate) use crate::common::reference::values::decode;
use crate::common::reference::{self, Values};
pub(crate) use crate::common::reference::{ravel, unravel};

/// How an input or output lies in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Row-major, memory of its own.
    Plain,
    /// A part of a larger tensor: every second column (whole rows of blocks for a block format), gaps between rows.
    Gaps,
    /// The first dimension is the innermost but the rows, or for plain types the innermost.
    Permuted,
}

/// One input: its memory, and the values that it holds.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    pub(crate) base: TensorDesc,
    pub(crate) view: Option<TensorDesc>,
    pub(crate) bytes: Vec<u8>,
    /// The values in row-major order, as decoded.
    pub(crate) values: Vec<f64>,
    pub(crate) shape: Vec<usize>,
}

/// Values in a type, as bytes; any blocks with harmless scales for a block format without an encoder.
pub(crate) fn encode(dtype: DType, values: &[f32]) -> Vec<u8> {
    if dtype.is_quantized() && !dtype.is_encodable() {
        let rows = values.len() / dtype.block_len();
        return crate::common::weights::weight(dtype, rows, dtype.block_len(), rows as u64).0;
    }
    let values: Vec<f64> = values.iter().map(|&v| f64::from(v)).collect();
    reference::values::encode(dtype, &values)
}

/// Descriptors of a tensor in a form: the memory's, and the view's if it is one.
pub(crate) fn placed(dtype: DType, shape: &[usize], form: Form) -> (TensorDesc, Option<TensorDesc>) {
    let rank = shape.len();
    let block = dtype.block_len();
    if form == Form::Plain || rank == 0 || (form == Form::Permuted && rank < if block > 1 { 3 } else { 2 }) {
        return (TensorDesc::new(shape, dtype, Layout::RowMajor), None);
    }
    let (base_shape, order, step) = if form == Form::Gaps {
        let mut base: Vec<usize> = shape.iter().map(|d| d + 1).collect();
        base[rank - 1] = if block > 1 {
            shape[rank - 1] + block
        } else {
            2 * shape[rank - 1] + 1
        };
        (base, (0..rank).collect::<Vec<_>>(), if block > 1 { 1 } else { 2 })
    } else {
        // Dimension i of the view is dimension order[i] of the memory.
        let mut order: Vec<usize> = (0..rank).collect();
        order.swap(0, if block > 1 { rank - 2 } else { rank - 1 });
        (order.iter().map(|&d| shape[d]).collect(), order, 1)
    };
    let base = TensorDesc::new(base_shape, dtype, Layout::RowMajor);
    let offset = if form == Form::Gaps { dtype.block_bytes() } else { 0 };
    let mut view = TensorDesc::view_of(&base, offset);
    view.shape = shape.to_vec();
    view.strides = order.iter().map(|&d| base.strides[d]).collect();
    view.strides[rank - 1] *= step;
    view.layout = Layout::Strided;
    (base, Some(view))
}

/// First bytes of a view's stored units (plain elements, or blocks along the last dimension), in row-major order.
fn unit_offsets(desc: &TensorDesc) -> Vec<usize> {
    let block = desc.dtype.block_len();
    let rank = desc.shape.len();
    let mut out = vec![0];
    for dim in 0..rank {
        let last = dim + 1 == rank && block > 1;
        let (count, stride) = if last {
            (desc.shape[dim] / block, block)
        } else {
            (desc.shape[dim], desc.strides[dim])
        };
        out = out
            .iter()
            .flat_map(|&at| (0..count).map(move |i| at + i * stride))
            .collect();
    }
    out.iter()
        .map(|at| desc.byte_offset + at / block * desc.dtype.block_bytes())
        .collect()
}

impl Input {
    /// `values`, rounded or quantised to `dtype`.
    pub(crate) fn new(dtype: DType, shape: &[usize], values: &[f32], form: Form) -> Self {
        let encoded = encode(dtype, values);
        let (base, view) = placed(dtype, shape, form);
        let bytes = match &view {
            None => encoded.clone(),
            Some(view) => {
                let mut bytes = vec![0xFF; base.byte_size()];
                let size = dtype.block_bytes();
                for (unit, at) in encoded.chunks(size).zip(unit_offsets(view)) {
                    bytes[at..at + size].copy_from_slice(unit);
                }
                bytes
            }
        };
        let values = decode(dtype, &encoded);
        let shape = shape.to_vec();
        Self {
            base,
            view,
            bytes,
            values,
            shape,
        }
    }

    /// f32 in row-major order.
    pub(crate) fn f32(shape: &[usize], values: &[f32]) -> Self {
        Self::new(DType::F32, shape, values, Form::Plain)
    }

    /// Indices.
    pub(crate) fn ids(shape: &[usize], values: &[usize]) -> Self {
        let values: Vec<f32> = values.iter().map(|&v| v as f32).collect();
        Self::new(DType::U32, shape, &values, Form::Plain)
    }

    /// A matrix `[.., k, n]` stored as `[.., n, k]`: `values` are the stored ones, [`Self::values`] are in order `[.., k, n]`.
    pub(crate) fn weight(dtype: DType, shape: &[usize], stored: &[f32]) -> Self {
        let bytes = encode(dtype, stored);
        let [k, n] = [shape[shape.len() - 2], shape[shape.len() - 1]];
        let decoded = decode(dtype, &bytes);
        let mut values = decoded.clone();
        for (to, from) in values.chunks_mut(k * n).zip(decoded.chunks(k * n)) {
            for i in 0..k {
                for j in 0..n {
                    to[i * n + j] = from[j * k + i];
                }
            }
        }
        let base = TensorDesc::new(shape, dtype, Layout::ColMajor);
        let shape = shape.to_vec();
        Self {
            base,
            view: None,
            bytes,
            values,
            shape,
        }
    }

    /// The operand as the reference takes it.
    pub(crate) fn operand(&self) -> Values {
        Values::new(self.base.dtype, self.shape.clone(), self.values.clone())
    }

    /// Adds the tensor (and its view) to a graph: the id to read, and the id to fill.
    pub(crate) fn add(&self, graph: &mut Graph) -> (TensorId, TensorId) {
        let base = graph.add_tensor(self.base.clone());
        let id = match &self.view {
            None => base,
            Some(view) => graph.view(base, view.clone()).expect("a view of its base"),
        };
        (id, base)
    }
}

/// What the reference gives for an op whose operands determine its shape.
pub(crate) fn exact(op: &Op, inputs: &[Input]) -> Vec<f64> {
    let operands: Vec<Values> = inputs.iter().map(Input::operand).collect();
    reference::run(op, &operands, &[])
}

/// What an op gave: type, shape and values.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) dtype: DType,
    pub(crate) shape: Vec<usize>,
    pub(crate) bytes: Vec<u8>,
    pub(crate) values: Vec<f64>,
}

/// Runs one op whose output the inputs determine; the output lies in memory in `form`.
pub(crate) fn run(op: Op, inputs: &[Input], form: Form) -> Result<Found, GgmlError> {
    let mut graph = Graph::new();
    let ids: Vec<_> = inputs.iter().map(|input| input.add(&mut graph)).collect();
    let read: Vec<TensorId> = ids.iter().map(|ids| ids.0).collect();
    let output = graph.push(op, &read)?;
    let desc = graph.tensor(output).expect("just added").clone();
    let (base, view) = placed(desc.dtype, &desc.shape, form);
    let memory = match &view {
        None => output,
        Some(view) => {
            // The output becomes a part of a larger tensor.
            let memory = graph.add_tensor(base.clone());
            let mut view = view.clone();
            (view.id, view.view_of) = (output, Some(memory));
            *graph.tensor_mut(output).expect("there") = view;
            memory
        }
    };
    graph.mark_output(output);
    run_graph(&graph, inputs, &ids, output, memory)
}

/// Runs a graph on inputs added with [`Input::add`], with `memory`, in which `output` lies, poisoned before. The gaps must stay.
pub(crate) fn run_graph(
    graph: &Graph,
    inputs: &[Input],
    ids: &[(TensorId, TensorId)],
    output: TensorId,
    memory: TensorId,
) -> Result<Found, GgmlError> {
    let poison = vec![0xFF; graph.tensor(memory).expect("there").byte_size()];
    let results = [1, 3].map(|threads| {
        let mut cpu = CpuBackend::with_threads(threads);
        executor::prepare(&mut cpu, graph)?;
        for (input, (_, base)) in inputs.iter().zip(ids) {
            cpu.write(*base, &input.bytes)?;
        }
        if ids.iter().all(|(_, base)| *base != memory) {
            cpu.write(memory, &poison)?;
        }
        executor::execute_graph(&mut cpu, graph)?;
        for (input, (_, base)) in inputs.iter().zip(ids).filter(|(_, (_, base))| *base != memory) {
            assert!(
                cpu.read(*base)? == input.bytes,
                "an input was changed: {}",
                input.base.summary()
            );
        }
        cpu.read(memory)
    });
    let [first, second] = results;
    let bytes = first?;
    assert!(bytes == second?, "one thread and three");
    let desc = graph.tensor(output).expect("there");
    let size = desc.dtype.block_bytes();
    let mut gaps = bytes.clone();
    let mut units = Vec::new();
    for at in unit_offsets(desc) {
        units.extend_from_slice(&bytes[at..at + size]);
        gaps[at..at + size].fill(0xFF);
    }
    if ids.iter().all(|(_, base)| *base != memory) {
        assert!(gaps == poison, "gaps of the output were written");
    }
    Ok(Found {
        dtype: desc.dtype,
        shape: desc.shape.clone(),
        values: decode(desc.dtype, &units),
        bytes: units,
    })
}

/// Squared error over squared size. An infinity must be met by the same infinity; a NaN never matches.
fn nmse(found: &[f64], expected: &[f64]) -> f64 {
    let (mut error, mut size) = (0.0, 0.0);
    for (&found, &expected) in found.iter().zip(expected) {
        if expected.is_infinite() && found == expected {
            continue;
        }
        error += (found - expected).powi(2);
        size += expected.powi(2);
    }
    if error == 0.0 { 0.0 } else { error / size }
}

/// The limit, or what rounding to the result's type costs at most where that is more: a relative error of 2^-11 or 2^-8, squared.
fn limit_of(dtype: DType, limit: f64) -> f64 {
    match dtype {
        DType::F16 => limit.max(0.5f64.powi(22)),
        DType::Bf16 => limit.max(0.5f64.powi(16)),
        _ => limit,
    }
}

/// The normalised error of the whole and of every row must not exceed `limit`.
pub(crate) fn assert_nmse(found: &Found, expected: &[f64], limit: f64, what: &str) {
    assert_eq!(found.values.len(), expected.len(), "{what}");
    let limit = limit_of(found.dtype, limit);
    let row = found.shape.last().copied().unwrap_or(1).max(1);
    let whole = nmse(&found.values, expected);
    assert!(whole <= limit, "{what}: NMSE {whole:e} above {limit:e}");
    for (index, (f, e)) in found.values.chunks(row).zip(expected.chunks(row)).enumerate() {
        let own = nmse(f, e);
        assert!(
            own <= limit,
            "{what}: NMSE {own:e} of row {index} above {limit:e}: {f:?} for {e:?}"
        );
    }
}

/// Every value must be within `tolerance`, absolute or relative.
pub(crate) fn assert_near(found: &Found, expected: &[f64], tolerance: f64, what: &str) {
    assert_eq!(found.values.len(), expected.len(), "{what}");
    let tolerance = match found.dtype {
        DType::F16 => tolerance.max(1.0 / 2048.0),
        DType::Bf16 => tolerance.max(1.0 / 256.0),
        _ => tolerance,
    };
    for (index, (&f, &e)) in found.values.iter().zip(expected).enumerate() {
        let same = f == e || (f.is_nan() && e.is_nan()) || (f - e).abs() <= tolerance * e.abs().max(1.0);
        assert!(same, "{what}: element {index} is {f:e}, not {e:e}");
    }
}
