//! Attention on a device.

use crate::error::CHECK;
use crate::{Algorithm, AttentionError, AttentionResult, Plan};
use parking_lot::Mutex;
use rocmforge_kernels::{FlashOptions, FloatType, Kernels, Operand};
use rocmforge_runtime::{Bytes, Elems, HipBuffer, HipStream};

/// A [`Plan`] with the kernels and the memory it takes.
///
/// `forward` may be called from any thread and on any stream; calls that share scratch memory run one after the other.
#[derive(Debug)]
pub struct Attention {
    pub(crate) kernels: Kernels,
    pub(crate) plan: Plan,
    /// The scores of separate kernels. Locked while the steps of one call are enqueued: the runtime orders streams by the buffers
    /// they use, but another call's steps must not come between.
    scratch: Option<Mutex<HipBuffer<f32>>>,
    /// Parts of the keys of a few queries in 16 bits, and the memory that holds them until they are joined, locked likewise.
    pub(crate) parts: Option<(usize, Mutex<HipBuffer<f32>>)>,
}

impl Attention {
    /// Takes [`Plan::scratch_bytes`] of the budget of the kernels' device; for few queries in 16 bits, whose keys are computed in parts, what these leave
    /// until they are joined ([`Self::parts`]).
    ///
    /// # Errors
    ///
    /// [`AttentionError::Scratch`] if the budget or the driver refuses.
    #[track_caller]
    pub fn new(kernels: &Kernels, plan: Plan) -> AttentionResult<Self> {
        let memory = |elements: usize, shape, label| {
            let buffer = HipBuffer::zeroed(kernels.backend().stream(), Elems(elements), label);
            buffer.map(Mutex::new).map_err(|source| AttentionError::Scratch {
                bytes: Bytes(elements as u64 * size_of::<f32>() as u64),
                shape,
                source: Box::new(source),
            })
        };
        let scratch = match plan.algorithm() {
            Algorithm::Separate => Some(memory(
                plan.weights_elements()?,
                plan.weights_shape(),
                "attention scores",
            )?),
            _ => None,
        };
        let parts = match crate::halves::parts(kernels, &plan)? {
            Some((parts, elements)) => Some((parts, memory(elements, plan.q_shape(), "attention in parts")?)),
            None => None,
        };
        Ok(Self {
            kernels: kernels.clone(),
            plan,
            scratch,
            parts,
        })
    }

    /// Parts into which the keys of a few queries in 16 bits are divided, by the shape and the card; `None` if they are not.
    pub fn parts(&self) -> Option<usize> {
        self.parts.as_ref().map(|(parts, _)| *parts)
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// `out = softmax(scale q k^T + mask) v`, enqueued on `stream`.
    ///
    /// Buffers have exactly the elements that the plan tells; views will do. `mask` is given exactly if the configuration names
    /// one. `out` overlaps no other operand. A query that sees no key gives zeros.
    ///
    /// # Errors
    ///
    /// [`AttentionError::MaskMissing`], [`AttentionError::MaskUnexpected`], [`AttentionError::Elements`] if the plan is not for f32, or
    /// [`AttentionError::Kernel`] with a wrong length, an overlap or what the launch says.
    pub fn forward(
        &self,
        stream: &HipStream,
        q: &HipBuffer<f32>,
        k: &HipBuffer<f32>,
        v: &HipBuffer<f32>,
        mask: Option<&HipBuffer<f32>>,
        out: &HipBuffer<f32>,
    ) -> AttentionResult<()> {
        let operands = Operands { q, k, v, mask, out };
        operands.check(&self.plan)?;
        match &self.scratch {
            Some(scores) => self.separate(stream, operands, &scores.lock()),
            None => self.flash(stream, operands),
        }
    }

    /// [`forward`](Self::forward), which also leaves the weights `softmax(scale q k^T + mask)` in `weights`,
    /// `[batch, heads, seq_q, seq_k]` in either layout. Rows sum to 1, or are zeros where a query sees no key.
    ///
    /// Separate kernels compute it whatever the plan says, with `weights` as their scratch memory.
    ///
    /// # Errors
    ///
    /// As [`forward`](Self::forward); and what [`Plan::weights_elements`] says.
    pub fn forward_with_weights(
        &self,
        stream: &HipStream,
        q: &HipBuffer<f32>,
        k: &HipBuffer<f32>,
        v: &HipBuffer<f32>,
        mask: Option<&HipBuffer<f32>>,
        weights: &HipBuffer<f32>,
        out: &HipBuffer<f32>,
    ) -> AttentionResult<()> {
        let operands = Operands { q, k, v, mask, out };
        operands.check(&self.plan)?;
        self.plan.weights_elements()?;
        CHECK.len("weights", weights, &self.plan.weights_shape())?;
        operands.check_apart("weights", weights)?;
        CHECK.disjoint(("out", out), ("weights", weights))?;
        self.separate(stream, operands, weights)
    }

    fn flash(&self, stream: &HipStream, operands: Operands<'_>) -> AttentionResult<()> {
        let plan = &self.plan;
        let options = FlashOptions {
            scale: plan.config().scale(),
            causal: plan.config().causal(),
            mask: operands.mask.map(|mask| Operand::new(mask, plan.mask_strides())),
        };
        self.kernels.flash_attention(
            stream,
            Operand::new(operands.q, plan.q_strides()),
            Operand::new(operands.k, plan.kv_strides()),
            Operand::new(operands.v, plan.kv_strides()),
            Operand::new(operands.out, plan.q_strides()),
            plan.shape(),
            options,
        )?;
        Ok(())
    }

    /// One kernel a step, all in `scores`, which ends as the weights.
    fn separate(&self, stream: &HipStream, operands: Operands<'_>, scores: &HipBuffer<f32>) -> AttentionResult<()> {
        let (kernels, plan) = (&self.kernels, &self.plan);
        let shape = plan.shape();
        let [batch, heads, seq_q, seq_k] = plan.weights_shape();
        let q = Operand::new(operands.q, plan.q_strides());
        let k = Operand::new(operands.k, plan.kv_strides());
        kernels.qk_matmul(stream, q, k, scores, shape, plan.config().scale())?;
        let mask = operands.mask.map(|mask| Operand::new(mask, plan.mask_strides()));
        let planes = batch * heads;
        match (mask, plan.config().causal()) {
            (None, false) => kernels.softmax(stream, scores, scores, planes * seq_q, seq_k, 1.0)?,
            (None, true) => kernels.softmax_causal(stream, scores, scores, [planes, seq_q, seq_k], 1.0)?,
            (Some(mask), false) => kernels.softmax_masked(stream, scores, mask, scores, plan.weights_shape(), 1.0)?,
            (Some(mask), true) => {
                // In this order a key hidden by causality stays hidden whatever the mask holds there, as in flash attention.
                kernels.mask(stream, scores, mask, scores, plan.weights_shape())?;
                kernels.softmax_causal(stream, scores, scores, [planes, seq_q, seq_k], 1.0)?;
            }
        }
        let v = Operand::new(operands.v, plan.kv_strides());
        let out = Operand::new(operands.out, plan.q_strides());
        kernels.weighted_matmul(stream, scores, v, out, shape)?;
        Ok(())
    }
}

#[derive(Clone, Copy)]
struct Operands<'a> {
    q: &'a HipBuffer<f32>,
    k: &'a HipBuffer<f32>,
    v: &'a HipBuffer<f32>,
    mask: Option<&'a HipBuffer<f32>>,
    out: &'a HipBuffer<f32>,
}

impl Operands<'_> {
    /// Everything is checked before the first of several launches.
    fn check(&self, plan: &Plan) -> AttentionResult<()> {
        if plan.config().elements() != FloatType::F32 {
            return Err(AttentionError::Elements {
                plan: plan.config().elements(),
            });
        }
        CHECK.len("q", self.q, &plan.q_shape())?;
        CHECK.len("k", self.k, &plan.kv_shape())?;
        CHECK.len("v", self.v, &plan.kv_shape())?;
        CHECK.len("out", self.out, &plan.q_shape())?;
        check_mask(plan, self.mask)?;
        self.check_apart("out", self.out)
    }

    fn check_apart(&self, name: &'static str, output: &HipBuffer<f32>) -> AttentionResult<()> {
        for input in [("q", self.q), ("k", self.k), ("v", self.v)] {
            CHECK.disjoint((name, output), input)?;
        }
        if let Some(mask) = self.mask {
            CHECK.disjoint((name, output), ("mask", mask))?;
        }
        Ok(())
    }
}

/// A mask exactly if the plan has one, of its shape.
pub(crate) fn check_mask(plan: &Plan, mask: Option<&HipBuffer<f32>>) -> AttentionResult<()> {
    match (mask, plan.mask_shape()) {
        (None, None) => Ok(()),
        (Some(mask), Some(shape)) => Ok(CHECK.len("mask", mask, &shape)?),
        (None, Some(shape)) => Err(AttentionError::MaskMissing { shape }),
        (Some(mask), None) => Err(AttentionError::MaskUnexpected { elements: mask.len() }),
    }
}
