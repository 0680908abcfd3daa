//! A problem, its definition in f64, and its computation on a device.

use rocmforge_attention::{Attention, AttentionConfig, Layout, MaskShape, Plan};
use rocmforge_kernels::{AttentionShape, Kernels, reference};
use rocmforge_runtime::HipBuffer;
use rocmforge_testkit::GpuLease;
use rocmforge_testkit::compare::{Tolerance, assert_close};
use rocmforge_testkit::data::{Rng, poison};

/// Inputs in `[batch, heads, seq, head_dim]`, whatever the configuration's layout is.
#[derive(Clone)]
pub(crate) struct Problem {
    pub(crate) plan: Plan,
    pub(crate) q: Vec<f32>,
    pub(crate) k: Vec<f32>,
    pub(crate) v: Vec<f32>,
    pub(crate) mask: Option<Vec<f32>>,
}

/// f64 from the definition.
pub(crate) struct Expected {
    pub(crate) out: Vec<f64>,
    pub(crate) weights: Vec<f64>,
}

impl Problem {
    /// Elements in [-1, 1). A mask hides a third of what it covers and adds up to 1 to the rest.
    pub(crate) fn random(rng: &mut Rng, config: AttentionConfig, [batch, seq_q, seq_k]: [usize; 3]) -> Self {
        let plan = config.plan(batch, seq_q, seq_k).unwrap();
        let mask = plan.mask_shape().map(|shape| {
            let value = |rng: &mut Rng| match rng.below(3) {
                0 => f32::NEG_INFINITY,
                _ => rng.uniform(-1.0, 1.0),
            };
            (0..shape.iter().product()).map(|_| value(rng)).collect()
        });
        Self {
            plan,
            q: rng.vec(plan.q_elements()),
            k: rng.vec(plan.kv_elements()),
            v: rng.vec(plan.kv_elements()),
            mask,
        }
    }

    /// The same numbers under another configuration of the same dimensions.
    pub(crate) fn with(&self, config: AttentionConfig) -> Self {
        let s = self.plan.shape();
        let plan = config.plan(s.batch, s.seq_q, s.seq_k).unwrap();
        Self { plan, ..self.clone() }
    }

    fn mask_at(&self, b: usize, h: usize, i: usize, j: usize) -> f64 {
        let AttentionShape {
            heads, seq_q, seq_k, ..
        } = self.plan.shape();
        let Some(mask) = &self.mask else { return 0.0 };
        let at = match self.plan.config().mask() {
            MaskShape::None => unreachable!("a mask without a shape"),
            MaskShape::PerQuery => i * seq_k + j,
            MaskShape::KeyPadding => b * seq_k + j,
            MaskShape::PerSequence => (b * seq_q + i) * seq_k + j,
            MaskShape::Full => ((b * heads + h) * seq_q + i) * seq_k + j,
            MaskShape::Along {
                batch,
                heads: of_heads,
                queries,
            } => {
                // A dimension of one element has the index 0.
                let (b, h, i) = (
                    b * usize::from(batch),
                    h * usize::from(of_heads),
                    i * usize::from(queries),
                );
                let (heads, rows) = (if of_heads { heads } else { 1 }, if queries { seq_q } else { 1 });
                ((b * heads + h) * rows + i) * seq_k + j
            }
        };
        f64::from(mask[at])
    }

    /// softmax(scale q k^T + mask) v, term by term.
    pub(crate) fn expected(&self) -> Expected {
        let AttentionShape {
            batch,
            heads,
            kv_heads,
            seq_q,
            seq_k,
            head_dim,
        } = self.plan.shape();
        let config = self.plan.config();
        let (mut out, mut weights) = (Vec::new(), Vec::new());
        for b in 0..batch {
            for h in 0..heads {
                let kv = b * kv_heads + h * kv_heads / heads;
                let key = |j: usize| &self.k[(kv * seq_k + j) * head_dim..][..head_dim];
                let value = |j: usize| &self.v[(kv * seq_k + j) * head_dim..][..head_dim];
                for i in 0..seq_q {
                    let query = &self.q[((b * heads + h) * seq_q + i) * head_dim..][..head_dim];
                    let score = |j: usize| {
                        // The last query is the last token.
                        if config.causal() && j + seq_q > i + seq_k {
                            return f64::NEG_INFINITY;
                        }
                        let dot: f64 = query
                            .iter()
                            .zip(key(j))
                            .map(|(&x, &y)| f64::from(x) * f64::from(y))
                            .sum();
                        f64::from(config.scale()) * dot + self.mask_at(b, h, i, j)
                    };
                    let scores: Vec<f64> = (0..seq_k).map(score).collect();
                    let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                    let powers: Vec<f64> = match top == f64::NEG_INFINITY {
                        true => vec![0.0; seq_k],
                        false => scores.iter().map(|score| (score - top).exp()).collect(),
                    };
                    let sum: f64 = powers.iter().sum();
                    let row: Vec<f64> = powers.iter().map(|p| if sum == 0.0 { 0.0 } else { p / sum }).collect();
                    out.extend(
                        (0..head_dim)
                            .map(|d| -> f64 { row.iter().enumerate().map(|(j, w)| w * f64::from(value(j)[d])).sum() }),
                    );
                    weights.extend(row);
                }
            }
        }
        Expected { out, weights }
    }

    fn to_layout(&self, x: &[f32], heads: usize, seq: usize) -> Vec<f32> {
        let s = self.plan.shape();
        match self.plan.config().layout() {
            Layout::HeadsFirst => x.to_vec(),
            Layout::TokensFirst => reference::swap_middle(x, [s.batch, heads, seq, s.head_dim]),
        }
    }

    /// The inputs on the device, and a poisoned output.
    pub(crate) fn upload(&self, gpu: &GpuLease) -> Uploaded {
        let stream = gpu.backend().stream();
        let s = self.plan.shape();
        let buffer = |data: &[f32], label| HipBuffer::from_slice(stream, data, label).unwrap();
        Uploaded {
            q: buffer(&self.to_layout(&self.q, s.heads, s.seq_q), "q"),
            k: buffer(&self.to_layout(&self.k, s.kv_heads, s.seq_k), "k"),
            v: buffer(&self.to_layout(&self.v, s.kv_heads, s.seq_k), "v"),
            mask: self.mask.as_deref().map(|mask| buffer(mask, "mask")),
            out: buffer(&poison(self.plan.q_elements()), "out"),
        }
    }

    /// The output back in `[batch, heads, seq_q, head_dim]`.
    pub(crate) fn download(&self, gpu: &GpuLease, out: &HipBuffer<f32>) -> Vec<f32> {
        let s = self.plan.shape();
        let out = out.to_vec(gpu.backend().stream()).unwrap();
        match self.plan.config().layout() {
            Layout::HeadsFirst => out,
            Layout::TokensFirst => reference::swap_middle(&out, [s.batch, s.seq_q, s.heads, s.head_dim]),
        }
    }

    /// What the device computes.
    pub(crate) fn run(&self, gpu: &GpuLease, kernels: &Kernels) -> Vec<f32> {
        let attention = Attention::new(kernels, self.plan).unwrap();
        let on = self.upload(gpu);
        attention
            .forward(gpu.backend().stream(), &on.q, &on.k, &on.v, on.mask.as_ref(), &on.out)
            .unwrap();
        self.download(gpu, &on.out)
    }

    /// What the device computes, and its weights.
    pub(crate) fn run_with_weights(&self, gpu: &GpuLease, kernels: &Kernels) -> (Vec<f32>, Vec<f32>) {
        let stream = gpu.backend().stream();
        let attention = Attention::new(kernels, self.plan).unwrap();
        let on = self.upload(gpu);
        let poisoned = poison(self.plan.weights_elements().unwrap());
        let weights = HipBuffer::from_slice(stream, &poisoned, "weights").unwrap();
        attention
            .forward_with_weights(stream, &on.q, &on.k, &on.v, on.mask.as_ref(), &weights, &on.out)
            .unwrap();
        (self.download(gpu, &on.out), weights.to_vec(stream).unwrap())
    }

    /// Runs it and holds it to the definition.
    #[track_caller]
    pub(crate) fn assert_matches(&self, gpu: &GpuLease, kernels: &Kernels, limit: f64) {
        let out = self.run(gpu, kernels);
        let expected = self.expected().out;
        self.assert_out(&out, &expected, limit);
    }

    /// Holds an output to another.
    #[track_caller]
    pub(crate) fn assert_out(&self, out: &[f32], expected: &[f64], limit: f64) {
        let s = self.plan.shape();
        let shape = [s.batch, s.heads, s.seq_q, s.head_dim];
        if let Err(mismatch) = rocmforge_testkit::compare::compare(out, expected, &shape, Tolerance::Absolute(limit)) {
            panic!("{:?}: {mismatch}", self.plan);
        }
    }

    /// Holds weights to the definition.
    #[track_caller]
    pub(crate) fn assert_weights(&self, weights: &[f32], expected: &Expected, limit: f64) {
        assert_close(
            weights,
            &expected.weights,
            &self.plan.weights_shape(),
            Tolerance::Absolute(limit),
        );
    }
}

/// Buffers of a [`Problem`].
pub(crate) struct Uploaded {
    pub(crate) q: HipBuffer<f32>,
    pub(crate) k: HipBuffer<f32>,
    pub(crate) v: HipBuffer<f32>,
    pub(crate) mask: Option<HipBuffer<f32>>,
    pub(crate) out: HipBuffer<f32>,
}
