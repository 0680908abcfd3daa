//! Hyper-parameters of a model, from GGUF metadata or config.json.

mod experts;
mod factors;
mod global;
mod growth;
mod kimi;
mod latent;
mod layer_types;
pub(crate) mod names;
pub(crate) mod pooling;
mod read;
mod recurrent;
mod rope;
pub(crate) mod rules;
mod streams;
mod texts;
mod windows;

use rocmforge_ggml::{Rope, RopeScaling, RopeStyle, RouteGate};

pub(crate) use self::pooling::Scores;
pub use self::pooling::{Pooling, PoolingMode};
pub(crate) use self::read::Outside;
pub use self::texts::TextsConfig;
pub use crate::per_layer::PerLayer;
use crate::weights::LinearNames;

/// Rotary embedding of a layer.
#[derive(Clone, Debug, PartialEq)]
pub struct RopeConfig {
    /// Base of the frequencies.
    pub theta: f32,
    /// Rotated elements of each head.
    pub n_dims: usize,
    /// Pairing.
    pub style: RopeStyle,
    /// Rule for long contexts.
    pub scaling: RopeScaling,
    /// Factor on cosines and sines.
    pub magnitude: f32,
    /// Whether the frequencies have the model's [divisors](RopeFactors).
    pub divided: bool,
}

impl RopeConfig {
    /// The op's parameters for positions below `max_position`.
    pub(crate) fn op(&self, max_position: usize) -> Rope {
        Rope {
            scaling: self.scaling,
            magnitude: self.magnitude,
            ..Rope::new(self.n_dims, self.theta, self.style, max_position)
        }
    }
}

/// Which keys before it a token sees in a layer with a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowKind {
    /// So many, itself among them.
    Last,
    /// Those from the last position on that is a multiple of so many.
    Chunk,
}

/// Queries that grow with their position: those at position p are multiplied by `1 + scale ln(1 + floor((p + offset) / length))`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueryGrowth {
    /// Factor on the logarithm.
    pub scale: f32,
    /// Positions of a step, at least 1.
    pub length: usize,
    /// Added to the position.
    pub offset: usize,
}

impl QueryGrowth {
    /// The factor at a position.
    #[must_use]
    pub fn of(&self, position: usize) -> f32 {
        let steps = position.saturating_add(self.offset) / self.length.max(1);
        (1.0 + f64::from(self.scale) * (steps as f64).ln_1p()) as f32
    }
}

/// Divisors of the frequencies that a file brings.
#[derive(Clone, Debug, PartialEq)]
pub enum RopeFactors {
    /// None, or a tensor of the file where there is one (Llama 3).
    FromFile,
    /// None; a tensor of the file is not used.
    Unused,
    /// Computed from config.json (Llama 3).
    Given(Vec<f32>),
    /// Phi-3: one list for contexts up to the trained one, one for longer ones.
    LongRope {
        /// Context of the training, in tokens.
        original_context: usize,
        /// The lists, where they are not tensors of the file: short, long.
        lists: Option<[Vec<f32>; 2]>,
    },
}

/// Which matrix gives the logits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputMatrix {
    /// The embedding's, also where the file has another (`tie_word_embeddings`).
    Embedding,
    /// The file's own, which must be there.
    Own,
    /// The file's own where it has one, else the embedding's (GGUF).
    OwnIfThere,
}

/// Latent attention: keys and values of all heads follow from one short vector of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatentConfig {
    /// Length of the vector that queries follow from; `None`: they follow from the input.
    pub query_rank: Option<usize>,
    /// Length of the vector that is kept of a token, beside a rotated part.
    pub rank: usize,
    /// Elements of a head's key that are not rotated.
    pub nope: usize,
    /// Length of a head's value.
    pub value: usize,
}

/// Several residual streams of a token (AltUp), of which a layer computes with the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamsConfig {
    /// How many there are: at least 2.
    pub count: usize,
    /// Rank of the map beside attention; `None`: that of the file's matrix.
    pub rank: Option<usize>,
}

/// Gates of a feed-forward network that are mostly zero: of each row what lies above the mean by some standard deviations is kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SparsityConfig {
    /// Standard deviations above the mean of the row.
    pub deviations: f32,
    /// The deviation is that of a sample: the sum of squares is divided by one less than the number of gates.
    pub sample: bool,
}

/// What each layer is given of a token beside the residual stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayerInputConfig {
    /// Elements for one layer.
    pub width: usize,
    /// Tokens that the table has rows for; the others have that of the first.
    pub tokens: usize,
}

/// Experts: feed-forward networks of which a router chooses some for each token.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpertsConfig {
    /// Experts of a layer.
    pub count: usize,
    /// Experts that each token is given to.
    pub used: usize,
    /// Width of each.
    pub inner: usize,
    /// How the router's scores become factors.
    pub gate: RouteGate,
    /// Whether a bias takes part in the choice.
    pub choice_bias: Presence,
    /// Groups of experts of equal size, and from how many of them a token's are chosen.
    pub groups: [usize; 2],
    /// The factors of the chosen ones are divided by their sum.
    pub normalised: bool,
    /// A factor on the results.
    pub factor: Option<f32>,
    /// The sigmoids of the chosen scores are factors on what the experts see, and the results have none.
    pub on_input: bool,
    /// The network beside them that every token is given to.
    pub shared: Option<SharedExpertConfig>,
}

/// Whether the models of an architecture have a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// No model has it.
    Never,
    /// Where the file has it.
    IfThere,
    /// The file must have it.
    Always,
}

/// A network beside the experts that every token is given to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedExpertConfig {
    /// Width.
    pub inner: usize,
    /// Its result is multiplied by the sigmoid of a product of its input.
    pub gated: bool,
}

/// Layers whose state does not grow with the sequence, in place of attention.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecurrentConfig {
    /// Whether each layer is one.
    pub layers: Vec<bool>,
    /// These layers have attention, too; the results of both are added.
    pub beside: bool,
    /// Tokens that their convolution sees.
    pub taps: usize,
    /// What they compute beside it.
    pub kind: RecurrentKind,
}

/// Kinds of recurrent layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecurrentKind {
    /// A convolution alone.
    ShortConv,
    /// A gated delta net.
    DeltaNet(DeltaNetConfig),
    /// The same, whose states decay column by column, with a convolution each for queries, keys and values (Kimi Linear).
    KimiDelta(DeltaNetConfig),
    /// A selective scan whose decay is the same for all elements of a head (Mamba 2).
    Mamba2(MambaConfig),
}

/// Sizes of a selective scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MambaConfig {
    /// Heads, each with a matrix.
    pub heads: usize,
    /// Rows of a head's matrix.
    pub dim: usize,
    /// Groups of neighbouring heads that share what is written and read.
    pub groups: usize,
    /// Columns of a head's matrix.
    pub state: usize,
}

impl MambaConfig {
    /// Elements of all heads.
    pub(crate) const fn inner(&self) -> usize {
        self.heads * self.dim
    }

    /// Channels of the convolution: inputs, and what is written and read.
    pub(crate) const fn channels(&self) -> usize {
        self.inner() + 2 * self.groups * self.state
    }
}

/// Factors of a selective scan that a file states and its weights lack.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScanFactors {
    /// On its input.
    pub input: f32,
    /// On the parts of what follows from it: gate, inputs of the scan, what is written, what is read, and steps.
    pub parts: [f32; 5],
    /// On its result.
    pub output: f32,
}

/// Sizes of a gated delta net.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeltaNetConfig {
    /// Heads of values, each with a matrix.
    pub heads: usize,
    /// Heads of queries and keys.
    pub key_heads: usize,
    /// Elements of a head of queries, keys or values.
    pub dim: usize,
    /// The heads of values of one head of keys are neighbours; else they come in turn.
    pub neighbours: bool,
}

impl DeltaNetConfig {
    /// Channels of the convolution: queries, keys and values.
    pub(crate) const fn channels(&self) -> usize {
        (2 * self.key_heads + self.heads) * self.dim
    }
}

/// What a classifier makes a score of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClassifierConfig {
    /// Which states it takes: their mean, the first or the last.
    pub(crate) states: PoolingMode,
    /// It gives two scores, of yes and of no.
    pub(crate) answers: bool,
}

/// Kind of norms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NormKind {
    /// Rows divided by their root mean square.
    Rms,
    /// Layer normalisation.
    Layer,
}

/// What fixes a decoder's graph.
#[derive(Clone, Debug, PartialEq)]
pub struct DecoderConfig {
    /// Layers.
    pub layers: usize,
    /// Layers behind them that predict further tokens; nothing here uses them.
    pub predictors: usize,
    /// Width of the residual stream.
    pub width: usize,
    /// Width of the feed-forward network; 0: the layer has none.
    pub ff: PerLayer,
    /// Experts of the layers that have some in place of this network, or beside it (Gemma 4).
    pub experts: PerLayer<Option<ExpertsConfig>>,
    /// Recurrent layers.
    pub recurrent: Option<RecurrentConfig>,
    /// Whether a layer has attention or what stands in its place; the others are a network alone.
    pub mixes: PerLayer<bool>,
    /// Latent attention in all layers: `head_dim` is then the length of what is kept of a token, and there is one head of keys.
    pub latent: Option<LatentConfig>,
    /// Query heads.
    pub heads: PerLayer,
    /// Key and value heads.
    pub kv_heads: PerLayer,
    /// Elements of a head of queries and keys.
    pub head_dim: PerLayer,
    /// Elements of a head of values.
    pub value_dim: PerLayer,
    /// Tokens of the vocabulary.
    pub vocab: usize,
    /// Context that the model was made for, in tokens.
    pub context: usize,
    /// Added to the mean square by the norms.
    pub norm_eps: f32,
    /// The same within latent attention; added to the square of a key's length by [`RecurrentKind::KimiDelta`].
    pub inner_eps: f32,
    /// Kind of the norms.
    pub(crate) norm: NormKind,
    /// Names of the norm before the output matrix.
    pub(crate) output_norm: LinearNames,
    /// Factor on attention scores, if not one over the square root of the head's elements.
    pub attention_scale: Option<f32>,
    /// Rotary embedding.
    pub rope: PerLayer<RopeConfig>,
    /// Divisors of its frequencies.
    pub rope_factors: RopeFactors,
    /// Whether a layer has rotary embedding at all.
    pub rotated: PerLayer<bool>,
    /// Factor on embeddings, beside that of the architecture.
    pub embedding_factor: Option<f32>,
    /// Factor on the results of attention.
    pub attention_factor: Option<f32>,
    /// Factor on the results of attention and feed-forward network.
    pub branch_factor: Option<f32>,
    /// Factor on gates of feed-forward networks.
    pub gate_factor: Option<f32>,
    /// Factors of selective scans.
    pub scan_factors: Option<ScanFactors>,
    /// Factor on logits.
    pub logit_factor: Option<f32>,
    /// The earlier layer whose keys and values a layer reads; `None`: it has its own.
    pub cache_of: PerLayer<Option<usize>>,
    /// What each layer is given of a token beside the residual stream.
    pub layer_input: Option<LayerInputConfig>,
    /// Residual streams, if there is more than one.
    pub streams: Option<StreamsConfig>,
    /// Layers whose gates are mostly zero.
    pub sparsity: PerLayer<Option<SparsityConfig>>,
    /// Keys that a token sees in each layer, itself among them; `None`: all before it.
    pub window: PerLayer<Option<usize>>,
    /// Which keys these are.
    pub window_kind: WindowKind,
    /// How queries grow with their position; `None`: they do not.
    pub growth: PerLayer<Option<QueryGrowth>>,
    /// Queries and keys are normalised, where models of the architecture may be.
    pub query_norm: bool,
    /// Bound of attention scores.
    pub attention_softcap: Option<f32>,
    /// Bound of logits.
    pub logit_softcap: Option<f32>,
    /// The matrix that gives them.
    pub output: OutputMatrix,
    /// How states become a result of a whole text, where the file says it.
    pub pooling: Option<PoolingMode>,
    /// What a model that ranks makes a score of.
    pub(crate) classifier: ClassifierConfig,
    /// What an encoder has beside these: each token sees all tokens of its text.
    pub texts: Option<TextsConfig>,
}
