//! Operations by name and shape: what they take, what they have to do, and how they are launched.

use crate::declared;
use crate::inputs::Kind;
use crate::table::Work;
use rocmforge_kernels::declared::{Declared, all};
use rocmforge_kernels::{
    Attention16Operands, Attention16Options, Attention16Shape, Half, KernelResult, Kernels, Matmul16Activation,
    Matmul16Operands, Matmul16Output, Matmul16Shape, Operand, Strides, Visible, WeightType,
};
use rocmforge_runtime::{HipBuffer, HipStream};

/// An operation at a shape. What the numbers mean stands in the first word of each line of [`Op::plan`].
#[derive(Clone, Debug)]
pub(crate) struct Op {
    pub(crate) name: String,
    pub(crate) shape: Vec<usize>,
}

/// What an operation takes and has to do.
pub(crate) struct Plan {
    /// Elements of 4 bytes of each input.
    pub(crate) inputs: Vec<(Kind, usize)>,
    /// Elements of the output, of 4 bytes.
    pub(crate) output: usize,
    /// Whether each of them is two f16.
    pub(crate) halves: bool,
    pub(crate) work: Work,
}

fn moved(inputs: Vec<(Kind, usize)>, output: usize) -> Plan {
    let elements = inputs.iter().map(|input| input.1).sum::<usize>() + output;
    Plan {
        inputs,
        output,
        halves: false,
        work: Work::Bytes(4 * elements as u64),
    }
}

fn numbers(inputs: &[usize]) -> Vec<(Kind, usize)> {
    inputs.iter().map(|&n| (Kind::Numbers, n)).collect()
}

/// Pairs of a query and a key that it sees, where the last query lines up with the last of at least as many keys.
fn visible(queries: usize, keys: usize) -> usize {
    queries * keys - queries * (queries - 1) / 2
}

impl Op {
    pub(crate) fn new(name: &str, shape: &[usize]) -> Self {
        Self {
            name: name.to_owned(),
            shape: shape.to_vec(),
        }
    }

    fn declared(&self) -> Option<&'static Declared> {
        all().find(|kernel| kernel.name == self.name && !kernel.timed.is_empty())
    }

    /// The shape as text: `65536 x 4096`.
    pub(crate) fn shape_text(&self) -> String {
        let dims: Vec<String> = self.shape.iter().map(usize::to_string).collect();
        dims.join(" x ")
    }

    /// `None`: there is no such operation, or it has another number of dimensions.
    pub(crate) fn plan(&self, k: &Kernels, s: &HipStream) -> Option<Plan> {
        if let Some(kernel) = self.declared() {
            return declared::plan(kernel, &self.shape, (k, s));
        }
        let plan = match (self.name.as_str(), self.shape.as_slice()) {
            // elements
            ("driver_copy", &[n]) => moved(numbers(&[n]), n),
            // rows, columns
            ("matvec_q4_0", &[rows, cols]) => moved(
                vec![(Kind::Quantised, rows * (cols / 32) * 18 / 4), (Kind::Numbers, cols)],
                rows,
            ),
            // m, n, k
            ("matmul_f16", &[m, n, k]) => Plan {
                inputs: vec![(Kind::Halves, m * k / 2), (Kind::Halves, n * k / 2)],
                output: m * n / 2,
                halves: true,
                work: Work::Flops(2 * (m * n * k) as u64),
            },
            // batch, heads, queries, keys, head_dim
            ("attention_f16" | "attention_f16_causal", &[b, h, q, k, d]) => {
                // Pairs of a query and a key that it sees.
                let keys = (Kind::Halves, b * h * k * d / 2);
                let pairs = match self.name.ends_with("causal") {
                    true => visible(q, k),
                    false => q * k,
                };
                Plan {
                    inputs: vec![(Kind::Halves, b * h * q * d / 2), keys, keys],
                    output: b * h * q * d / 2,
                    halves: true,
                    work: Work::Flops(4 * (b * h * pairs * d) as u64),
                }
            }
            // batch, heads, heads of keys, keys, head_dim; one query
            ("attention_f16_decode", &[b, h, kv, k, d]) => {
                let keys = (Kind::Halves, b * kv * k * d / 2);
                Plan {
                    inputs: vec![
                        (Kind::Halves, b * h * d / 2),
                        keys,
                        keys,
                        (Kind::Numbers, decode_partial([b, h, kv, k, d])),
                    ],
                    output: b * h * d / 2,
                    halves: true,
                    work: Work::Bytes(4 * (b * kv * k * d + b * h * d) as u64),
                }
            }
            _ => return None,
        };
        Some(plan)
    }

    /// Enqueues it. The buffers have the lengths of its [plan](Self::plan).
    pub(crate) fn launch(
        &self,
        k: &Kernels,
        s: &HipStream,
        inputs: &[HipBuffer<f32>],
        y: &HipBuffer<f32>,
    ) -> KernelResult<()> {
        if let Some(kernel) = self.declared() {
            return declared::launch(kernel, &self.shape, (k, s), inputs, y);
        }
        let x = |nth: usize| &inputs[nth];
        match (self.name.as_str(), self.shape.as_slice()) {
            ("driver_copy", _) => Ok(y.copy_from_buffer(s, x(0))?),
            ("matvec_q4_0", &[rows, cols]) => {
                k.matmul_weight(s, WeightType::Q4_0, &x(0).cast()?, x(1), None, y, 1, rows, cols)
            }
            ("matmul_f16", &[m, n, c]) => {
                let strides = |columns| Strides::heads_first(1, 1, columns);
                let (a, b, y) = (x(0).cast()?, x(1).cast()?, y.cast()?);
                let operands = Matmul16Operands {
                    ty: Half::F16,
                    a: Operand::new(&a, strides(c)),
                    b: Operand::new(&b, strides(c)),
                    bias: None,
                    y: Matmul16Output::Half(Operand::new(&y, strides(n))),
                };
                let shape = Matmul16Shape { batch: 1, m, n, k: c };
                k.matmul16(s, operands, shape, 1.0, Matmul16Activation::None)
            }
            ("attention_f16" | "attention_f16_causal", &[batch, heads, seq_q, seq_k, d]) => {
                let (q, keys, v, y) = (x(0).cast()?, x(1).cast()?, x(2).cast()?, y.cast()?);
                let shape = Attention16Shape {
                    batch,
                    heads,
                    kv_heads: heads,
                    seq_q,
                    seq_k,
                    width_k: d,
                    width_v: d,
                };
                let visible = match self.name.ends_with("causal") {
                    true => Visible::Causal { window: None },
                    false => Visible::All,
                };
                let operands = halves_of(shape, [&q, &keys, &v, &y]);
                k.attention16(s, operands, shape, Attention16Options::new(d, visible))
            }
            ("attention_f16_decode", &[batch, heads, kv_heads, seq_k, d]) => {
                let (q, keys, v, y) = (x(0).cast()?, x(1).cast()?, x(2).cast()?, y.cast()?);
                let shape = decode_shape([batch, heads, kv_heads, seq_k, d]);
                let operands = halves_of(shape, [&q, &keys, &v, &y]);
                let options = Attention16Options::new(d, Visible::All);
                match k.attention16_parts(Half::F16, shape, options)? {
                    Some(parts) => {
                        let len = Kernels::attention16_partial_len(shape, parts).unwrap_or(0);
                        debug_assert!(len <= decode_partial([batch, heads, kv_heads, seq_k, d]));
                        k.attention16_split(s, operands, shape, options, parts, &x(3).view(0..len)?)
                    }
                    None => k.attention16(s, operands, shape, options),
                }
            }
            (name, shape) => unreachable!("{name} has a plan for {shape:?} but no launch"),
        }
    }
}

/// Queries, keys, values and results of f16, head by head.
fn halves_of(shape: Attention16Shape, [q, k, v, out]: [&HipBuffer<u16>; 4]) -> Attention16Operands<'_> {
    let of_queries = Strides::heads_first(shape.heads, shape.seq_q, shape.width_k);
    let of_keys = Strides::heads_first(shape.kv_heads, shape.seq_k, shape.width_k);
    Attention16Operands {
        ty: Half::F16,
        q: Operand::new(q, of_queries),
        k: Operand::new(k, of_keys),
        v: Operand::new(v, of_keys),
        out: Operand::new(out, of_queries),
        lse: None,
        lengths: None,
    }
}

fn decode_shape([batch, heads, kv_heads, seq_k, d]: [usize; 5]) -> Attention16Shape {
    Attention16Shape {
        batch,
        heads,
        kv_heads,
        seq_q: 1,
        seq_k,
        width_k: d,
        width_v: d,
    }
}

/// Floats for as many parts as any card takes.
fn decode_partial(dims: [usize; 5]) -> usize {
    let parts = dims[3].div_ceil(256).min(256);
    Kernels::attention16_partial_len(decode_shape(dims), parts).unwrap_or(0)
}
