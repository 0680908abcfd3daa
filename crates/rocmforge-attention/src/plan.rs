//! Plan of an attention: buffer sizes and the kernels that compute it.

#[cfg(doc)]
use crate::AttentionError;
use crate::config::MAX_ROW_STRIDE;
use crate::error::CHECK;
use crate::{AttentionConfig, AttentionResult, MaskShape};
#[cfg(doc)]
use rocmforge_kernels::KernelError;
use rocmforge_kernels::{AttentionShape, FLASH_MAX_HEAD_DIM, FloatType, MAX_DIM, Strides};
use rocmforge_runtime::Bytes;
use std::fmt;

/// Which kernels compute attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// Flash attention: one kernel, no scratch memory.
    Flash,
    /// The same, without the keys that causality hides: tiles wholly hidden cost nothing.
    FlashCausal,
    /// The same with a mask, causal or not.
    FlashMasked,
    /// Flash attention in f16 or bf16 by matrix instructions, with f32 scores and sums; any mask, cap and window. No scratch memory.
    MatrixUnit,
    /// Scores, mask, softmax and the weighted sum of the values one after the other, with the scores in memory.
    Separate,
}

impl Algorithm {
    /// Flash attention wherever it can, whatever the lengths: it stores no scores, and executes fewer instructions than separate
    /// kernels do. Counted on the simulated gfx1100 from 1 x 1 to 65 queries x 300 keys: 0.3 to 0.93 times as many up to head_dim
    /// 128; at 256, whose tiles are smaller, 0.2 times for one query and up to 1.25 times for many. The GPU test
    /// `flash_executes_less_than_separate_kernels` holds the choice to it.
    fn choose(config: &AttentionConfig) -> Explain {
        let because = |algorithm, reason| Explain { algorithm, reason };
        if config.elements() != FloatType::F32 {
            let reason = "q, k and v are 16-bit floats, which matrix units multiply with f32 sums";
            because(Self::MatrixUnit, reason)
        } else if config.separate_kernels() {
            because(Self::Separate, "the configuration asks for separate kernels")
        } else if config.head_dim() > FLASH_MAX_HEAD_DIM {
            because(Self::Separate, "flash attention has no kernel for so large a head_dim")
        } else if config.mask() != MaskShape::None {
            because(Self::FlashMasked, "f32, with a mask to be added to the scores")
        } else if config.causal() {
            let reason = "f32 and causal without a mask: keys that no query sees are not read";
            because(Self::FlashCausal, reason)
        } else {
            because(Self::Flash, "f32, and every query sees every key")
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Flash => "flash attention",
            Self::FlashCausal => "causal flash attention",
            Self::FlashMasked => "flash attention with a mask",
            Self::MatrixUnit => "flash attention on the matrix unit",
            Self::Separate => "separate kernels",
        })
    }
}

/// Which kernels a plan uses, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Explain {
    /// The kernels.
    pub algorithm: Algorithm,
    /// What decided it.
    pub reason: &'static str,
}

impl fmt::Display for Explain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.algorithm, self.reason)
    }
}

/// An [`AttentionConfig`] with batch and lengths: every size is known and valid, nothing is allocated yet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plan {
    config: AttentionConfig,
    shape: AttentionShape,
    explain: Explain,
    q_elements: usize,
    kv_elements: usize,
    mask_elements: usize,
    /// Scores that `forward` stores, which only separate kernels do.
    scratch_elements: usize,
}

impl AttentionConfig {
    /// How `seq_q` queries look at `seq_k` keys in each of `batch` sequences.
    ///
    /// # Errors
    ///
    /// [`KernelError::Dimension`] for a length of 0 or over what the kernels count, [`KernelError::TooLarge`] for tensors that cannot be
    /// addressed, in an [`AttentionError::Kernel`].
    pub fn plan(&self, batch: usize, seq_q: usize, seq_k: usize) -> AttentionResult<Plan> {
        // The offset of the causal diagonal is a signed number of 32 bits on the device.
        let longest = if self.causal() { i32::MAX as usize } else { MAX_DIM };
        CHECK.dim_to("batch", batch, MAX_DIM)?;
        CHECK.dim_to("seq_q", seq_q, longest)?;
        CHECK.dim_to("seq_k", seq_k, longest)?;
        let planes = batch.saturating_mul(self.heads());
        CHECK.dim_to("batch * heads", planes, MAX_DIM)?;
        let shape = AttentionShape {
            batch,
            heads: self.heads(),
            kv_heads: self.kv_heads(),
            seq_q,
            seq_k,
            head_dim: self.head_dim(),
        };
        let mut plan = Plan {
            config: *self,
            shape,
            explain: Algorithm::choose(self),
            q_elements: 0,
            kv_elements: 0,
            mask_elements: 0,
            scratch_elements: 0,
        };
        plan.q_elements = CHECK.elements("q", &plan.q_shape())?;
        plan.kv_elements = CHECK.elements("k", &plan.kv_shape())?;
        if let Some(shape) = plan.mask_shape() {
            plan.mask_elements = CHECK.elements("mask", &shape)?;
            if plan.mask_strides().row > 0 {
                // A row of the mask is as long as there are keys.
                CHECK.dim_to("seq_k", seq_k, MAX_ROW_STRIDE)?;
            }
        }
        if plan.algorithm() == Algorithm::Separate {
            plan.scratch_elements = plan.score_elements()?;
        }
        Ok(plan)
    }
}

impl Plan {
    /// The configuration it was made from.
    pub fn config(&self) -> &AttentionConfig {
        &self.config
    }

    /// All dimensions, as the kernels take them.
    pub fn shape(&self) -> AttentionShape {
        self.shape
    }

    /// Which kernels `forward` uses. `forward_with_weights` always uses separate ones.
    pub fn algorithm(&self) -> Algorithm {
        self.explain.algorithm
    }

    /// Which kernels `forward` or `forward16` uses, and why.
    ///
    /// ```
    /// use rocmforge_attention::{AttentionConfig, FloatType};
    ///
    /// let config = AttentionConfig::builder(32, 128).causal(true).elements(FloatType::F16).build()?;
    /// assert_eq!(
    ///     config.plan(1, 2048, 2048)?.explain().to_string(),
    ///     "flash attention on the matrix unit: q, k and v are 16-bit floats, which matrix units multiply with f32 sums"
    /// );
    /// # Ok::<(), rocmforge_attention::AttentionError>(())
    /// ```
    pub fn explain(&self) -> Explain {
        self.explain
    }

    /// Device memory that [`Attention::new`](crate::Attention::new) allocates: the scores of separate kernels, or none.
    pub fn scratch_bytes(&self) -> Bytes {
        Bytes(self.scratch_elements as u64 * size_of::<f32>() as u64)
    }

    /// The shape of q and of the output, in the configuration's layout.
    pub fn q_shape(&self) -> [usize; 4] {
        let s = &self.shape;
        self.config.layout().shape(s.batch, s.heads, s.seq_q, s.head_dim)
    }

    /// The shape of k and of v, in the configuration's layout.
    pub fn kv_shape(&self) -> [usize; 4] {
        let s = &self.shape;
        self.config.layout().shape(s.batch, s.kv_heads, s.seq_k, s.head_dim)
    }

    /// The shape of the mask, if there is one, with 1 where it broadcasts.
    pub fn mask_shape(&self) -> Option<[usize; 4]> {
        self.config.mask().shape(&self.shape)
    }

    /// The shape of the weights: `[batch, heads, seq_q, seq_k]` in either layout.
    pub fn weights_shape(&self) -> [usize; 4] {
        [self.shape.batch, self.shape.heads, self.shape.seq_q, self.shape.seq_k]
    }

    /// Elements of q, and of the output.
    pub fn q_elements(&self) -> usize {
        self.q_elements
    }

    /// Elements of k, and of v.
    pub fn kv_elements(&self) -> usize {
        self.kv_elements
    }

    /// Elements of the mask; 0 without one.
    pub fn mask_elements(&self) -> usize {
        self.mask_elements
    }

    /// Elements of the weights, if they can be stored at all: flash attention goes where they cannot.
    ///
    /// # Errors
    ///
    /// [`KernelError::TooLarge`] or [`KernelError::Dimension`] if separate kernels do not take the lengths.
    pub fn weights_elements(&self) -> AttentionResult<usize> {
        self.score_elements()
    }

    pub(crate) fn q_strides(&self) -> Strides {
        let s = &self.shape;
        self.config.layout().strides(s.heads, s.seq_q, s.head_dim)
    }

    pub(crate) fn kv_strides(&self) -> Strides {
        let s = &self.shape;
        self.config.layout().strides(s.kv_heads, s.seq_k, s.head_dim)
    }

    pub(crate) fn mask_strides(&self) -> Strides {
        self.config.mask().strides(&self.shape)
    }

    fn score_elements(&self) -> AttentionResult<usize> {
        let [batch, heads, seq_q, seq_k] = self.weights_shape();
        CHECK.dim_to("seq_k", seq_k, MAX_ROW_STRIDE)?;
        let rows = (batch * heads).saturating_mul(seq_q);
        CHECK.dim_to("batch * heads * seq_q", rows, MAX_DIM)?;
        Ok(CHECK.elements("weights", &self.weights_shape())?)
    }
}
