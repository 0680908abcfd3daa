//! Configuration of attention: what a layer of a model fixes.

use crate::error::CHECK;
use crate::{AttentionError, AttentionResult};
#[cfg(doc)]
use rocmforge_kernels::KernelError;
use rocmforge_kernels::{AttentionShape, FLASH_MAX_HEAD_DIM, FloatType, MAX_DIM, Strides};

/// The kernels take the distance of two rows within a tile of 64 in 32 bits.
pub(crate) const MAX_ROW_STRIDE: usize = Strides::MAX_ROW as usize;

/// How the elements of q, k, v and the output lie. All are contiguous.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Layout {
    /// `[batch, heads, seq, head_dim]`.
    #[default]
    HeadsFirst,
    /// `[batch, seq, heads, head_dim]`: what a projection to `heads * head_dim` leaves, so nothing needs to be transposed.
    TokensFirst,
}

impl Layout {
    pub(crate) fn strides(self, heads: usize, seq: usize, head_dim: usize) -> Strides {
        match self {
            Self::HeadsFirst => Strides::heads_first(heads, seq, head_dim),
            Self::TokensFirst => Strides::tokens_first(heads, seq, head_dim),
        }
    }

    pub(crate) fn shape(self, batch: usize, heads: usize, seq: usize, head_dim: usize) -> [usize; 4] {
        match self {
            Self::HeadsFirst => [batch, heads, seq, head_dim],
            Self::TokensFirst => [batch, seq, heads, head_dim],
        }
    }
}

/// The shape of the additive mask: 0 where a query sees a key, -inf where it does not, or any bias. Contiguous.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum MaskShape {
    /// No mask.
    #[default]
    None,
    /// `[seq_q, seq_k]`, the same for every sequence and head.
    PerQuery,
    /// `[batch, 1, 1, seq_k]`: which keys of each sequence are padding.
    KeyPadding,
    /// `[batch, 1, seq_q, seq_k]`, the same for every head.
    PerSequence,
    /// `[batch, heads, seq_q, seq_k]`.
    Full,
    /// `[batch or 1, heads or 1, seq_q or 1, seq_k]`: 1 where the mask is the same for all.
    Along {
        /// Whether sequences have masks of their own.
        batch: bool,
        /// Whether heads have.
        heads: bool,
        /// Whether queries have.
        queries: bool,
    },
}

impl MaskShape {
    /// Whether the mask has a dimension of sequences, of heads and of queries.
    fn dims(self) -> Option<[bool; 3]> {
        match self {
            Self::None => None,
            Self::PerQuery => Some([false, false, true]),
            Self::KeyPadding => Some([true, false, false]),
            Self::PerSequence => Some([true, false, true]),
            Self::Full => Some([true, true, true]),
            Self::Along { batch, heads, queries } => Some([batch, heads, queries]),
        }
    }

    /// The mask's dimensions, those it is the same along as 1.
    pub(crate) fn shape(self, s: &AttentionShape) -> Option<[usize; 4]> {
        let [batch, heads, queries] = self.dims()?;
        let size = |has, dim| if has { dim } else { 1 };
        Some([
            size(batch, s.batch),
            size(heads, s.heads),
            size(queries, s.seq_q),
            s.seq_k,
        ])
    }

    /// Sizes are checked before: no product saturates.
    pub(crate) fn strides(self, s: &AttentionShape) -> Strides {
        let [batch, heads, queries] = self.dims().unwrap_or_default();
        let [_, shape_heads, shape_queries, _] = self.shape(s).unwrap_or([1; 4]);
        let whole = Strides::heads_first(shape_heads, shape_queries, s.seq_k);
        let stride = |has, stride| if has { stride } else { 0 };
        Strides {
            batch: stride(batch, whole.batch),
            head: stride(heads, whole.head),
            row: stride(queries, whole.row),
        }
    }
}

/// What a layer of a model fixes about its attention. Valid by construction.
///
/// ```
/// use rocmforge_attention::AttentionConfig;
///
/// let config = AttentionConfig::builder(32, 128).kv_heads(8).causal(true).build()?;
/// assert_eq!((config.heads(), config.kv_heads(), config.head_dim()), (32, 8, 128));
/// assert_eq!(config.scale(), 1.0 / 128f32.sqrt());
///
/// let error = AttentionConfig::builder(32, 128).kv_heads(12).build().unwrap_err();
/// assert_eq!(error.to_string(), "attention: 32 heads cannot share 12 key/value heads evenly");
/// # Ok::<(), rocmforge_attention::AttentionError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AttentionConfig {
    heads: usize,
    kv_heads: usize,
    head_dim: usize,
    scale: f32,
    causal: bool,
    mask: MaskShape,
    layout: Layout,
    separate: bool,
    elements: FloatType,
    window: Option<usize>,
    softcap: Option<f32>,
}

impl AttentionConfig {
    /// Multi-head attention of `heads` heads with `head_dim` elements each, unless the builder sets something else.
    pub fn builder(heads: usize, head_dim: usize) -> AttentionBuilder {
        AttentionBuilder(AttentionConfig {
            heads,
            kv_heads: heads,
            head_dim,
            scale: 1.0 / (head_dim as f32).sqrt(),
            causal: false,
            mask: MaskShape::None,
            layout: Layout::HeadsFirst,
            separate: false,
            elements: FloatType::F32,
            window: None,
            softcap: None,
        })
    }

    /// Query heads.
    pub fn heads(&self) -> usize {
        self.heads
    }

    /// Key and value heads.
    pub fn kv_heads(&self) -> usize {
        self.kv_heads
    }

    /// Elements of a query, a key and a value.
    pub fn head_dim(&self) -> usize {
        self.head_dim
    }

    /// The factor of the scores.
    pub fn scale(&self) -> f32 {
        self.scale
    }

    /// Whether later keys are hidden.
    pub fn causal(&self) -> bool {
        self.causal
    }

    /// The mask's shape.
    pub fn mask(&self) -> MaskShape {
        self.mask
    }

    /// The layout of q, k, v and the output.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Whether flash attention is not to be used.
    pub fn separate_kernels(&self) -> bool {
        self.separate
    }

    /// The type of q, k, v and the output.
    pub fn elements(&self) -> FloatType {
        self.elements
    }

    /// Keys that a query sees at most.
    pub fn window(&self) -> Option<usize> {
        self.window
    }

    /// The bound of the scores.
    pub fn softcap(&self) -> Option<f32> {
        self.softcap
    }

    /// What f32 attention lacks, and what attention in 16 bits needs.
    fn check_elements(&self) -> AttentionResult<()> {
        let lacks = |what, lacking: bool| match lacking {
            true => Err(AttentionError::NotWith {
                elements: self.elements,
                what,
            }),
            false => Ok(()),
        };
        if self.elements == FloatType::F32 {
            lacks("a window", self.window.is_some())?;
            return lacks("a soft cap", self.softcap.is_some());
        }
        lacks("separate kernels", self.separate)?;
        CHECK.dim_to("head_dim", self.head_dim, FLASH_MAX_HEAD_DIM)?;
        lacks("a head_dim that is no multiple of 8", !self.head_dim.is_multiple_of(8))?;
        lacks("a window without causality", self.window.is_some() && !self.causal)?;
        CHECK.dim_to("window", self.window.map_or(1, |keys| keys.min(MAX_DIM)), MAX_DIM)?;
        if let Some(cap) = self.softcap {
            CHECK.value("softcap", cap, |cap| cap >= f32::MIN_POSITIVE, "positive and normal")?;
        }
        Ok(())
    }
}

/// Makes an [`AttentionConfig`].
#[derive(Debug, Clone, Copy, PartialEq)]
#[must_use]
pub struct AttentionBuilder(AttentionConfig);

impl AttentionBuilder {
    /// Key and value heads, each shared by `heads / kv_heads` neighbouring query heads (GQA; 1 is MQA). As many as query heads
    /// without this.
    pub fn kv_heads(mut self, kv_heads: usize) -> Self {
        self.0.kv_heads = kv_heads;
        self
    }

    /// The factor of the scores. 1 / sqrt(head_dim) without this.
    pub fn scale(mut self, scale: f32) -> Self {
        self.0.scale = scale;
        self
    }

    /// Query i sees key j only when j <= i + seq_k - seq_q: the last query lines up with the last key, as when the keys of earlier
    /// tokens come from a cache. Not causal without this.
    pub fn causal(mut self, causal: bool) -> Self {
        self.0.causal = causal;
        self
    }

    /// The shape of the mask that `forward` will be given. None without this.
    pub fn mask(mut self, mask: MaskShape) -> Self {
        self.0.mask = mask;
        self
    }

    /// The layout of q, k, v and the output. [`Layout::HeadsFirst`] without this.
    pub fn layout(mut self, layout: Layout) -> Self {
        self.0.layout = layout;
        self
    }

    /// Never flash attention, but one kernel for each step, with the scores in memory: to compare the two.
    pub fn separate_kernels(mut self, separate: bool) -> Self {
        self.0.separate = separate;
        self
    }

    /// The type of q, k, v and the output; f16 and bf16 go through [`Attention::forward16`](crate::Attention::forward16). f32 without this.
    pub fn elements(mut self, elements: FloatType) -> Self {
        self.0.elements = elements;
        self
    }

    /// Of the keys that causality leaves, each query sees only the last `keys`. f16 and bf16 only.
    pub fn window(mut self, keys: usize) -> Self {
        self.0.window = Some(keys);
        self
    }

    /// A score s becomes `cap * tanh(s / cap)`. f16 and bf16 only.
    pub fn softcap(mut self, cap: f32) -> Self {
        self.0.softcap = Some(cap);
        self
    }

    /// Checks it all.
    ///
    /// # Errors
    ///
    /// [`KernelError::Heads`], [`KernelError::Dimension`] or [`KernelError::Value`] in an [`AttentionError::Kernel`], or
    /// [`AttentionError::NotWith`] for what the type of the elements does not go with.
    pub fn build(self) -> AttentionResult<AttentionConfig> {
        let config = self.0;
        let (heads, head_dim) = (config.heads, config.head_dim);
        CHECK.dim_to("heads", heads, MAX_ROW_STRIDE)?;
        CHECK.dim_to("kv_heads", config.kv_heads, MAX_ROW_STRIDE)?;
        CHECK.dim_to("head_dim", head_dim, MAX_ROW_STRIDE)?;
        CHECK.heads(heads, config.kv_heads)?;
        if config.layout == Layout::TokensFirst {
            // Both below 2^24: no overflow.
            CHECK.dim_to("heads * head_dim", heads * head_dim, MAX_ROW_STRIDE)?;
        }
        CHECK.value("scale", config.scale, |_| true, "finite")?;
        config.check_elements()?;
        Ok(config)
    }
}
