//! Embedder: an encoder on a backend of its own, for texts of any number and length.

use rocmforge_ggml::optimizer::GraphOptimizer;
use rocmforge_ggml::{GgmlError, HostAccess, TensorId, executor};

use super::{Batch, Bert, Embeddings, TextIds, check_finite, describe, shape_of};
use crate::ModelError;
use crate::step::{InputLayout, Memory, Parameters, Step, StepShape, WholeTexts, WorkSize};

/// Texts shorter than this are padded to it: fewer lengths need fewer graphs.
const SHORTEST: usize = 16;

/// Bounds of an embedder's steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmbedderOptions {
    /// Most tokens of a step, padding included. A longer text has a step of its own. The memory of steps grows with this number.
    pub step_tokens: usize,
    /// Whether [`Embedded::hidden`] is wanted.
    pub hidden: bool,
    /// Passes of the graph optimizer, if not the backend's own.
    pub passes: Option<GraphOptimizer>,
}

impl Default for EmbedderOptions {
    fn default() -> Self {
        Self {
            step_tokens: 2048,
            hidden: false,
            passes: None,
        }
    }
}

/// What texts give: embeddings, or of a model that ranks a score each.
#[derive(Clone, Debug, PartialEq)]
pub struct Embedded {
    /// One embedding a text, in the order of the texts.
    pub embeddings: Embeddings,
    /// Tokens of each text that count, those before and after it included. Longer texts are cut to [`Bert::max_tokens`].
    pub tokens: Vec<usize>,
    /// Of each text, if they are wanted: the hidden states `[tokens, width]` that enter each layer, and those behind the last.
    pub hidden: Vec<Vec<Vec<f32>>>,
    /// Launches given to the backend, each of one node or several.
    pub launches: usize,
}

/// What a step gives.
#[derive(Debug, Default)]
pub(crate) struct Computed {
    /// A row for each text.
    pub(crate) rows: Vec<f32>,
    hidden: Vec<Vec<Vec<f32>>>,
    launches: usize,
}

/// An encoder with its weights on a backend. It can be given to a thread, which then owns both.
///
/// Texts of similar length share a step. A step has one of a few shapes, so a graph is built once for each and reused.
#[derive(Debug)]
pub struct Embedder<B: HostAccess> {
    model: Bert,
    backend: B,
    parameters: Parameters,
    options: EmbedderOptions,
    passes: GraphOptimizer,
    next_id: TensorId,
    steps: Vec<(StepShape, Step, B::Program)>,
}

/// Memory of an embedder, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmbedderMemory {
    /// All weights.
    pub weights: usize,
    /// Inputs, intermediates and results of the largest step, and what the backend's products need beside them.
    pub steps: usize,
}

impl EmbedderMemory {
    /// Bytes of everything.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.weights.saturating_add(self.steps)
    }
}

/// The parameters of an embedder, and what its steps need.
struct Planned {
    parameters: Parameters,
    passes: GraphOptimizer,
    memory: EmbedderMemory,
}

fn plan<B: HostAccess>(model: &Bert, backend: &B, options: &EmbedderOptions) -> Result<Planned, ModelError> {
    let texts = WholeTexts {
        pooling: model.pooling,
        scores: model.scores,
        hidden: options.hidden,
    };
    let described = |work| describe(&model.model, texts, work);
    let unlimited = described(WorkSize::UNLIMITED)?;
    let passes = options.passes.unwrap_or_else(|| backend.optimizer());
    let (mut work, mut beside) = (WorkSize::default(), 0);
    for seq in lengths(model.max_tokens()) {
        for texts in counts(options.step_tokens / seq) {
            let shape = shape_of(texts, seq);
            let inputs = InputLayout::new(shape, unlimited.cache(), unlimited.kept()).elements();
            let step = Step::build(&unlimited, shape, Memory::Shared, unlimited.end(), passes)?;
            work.inputs = work.inputs.max(inputs);
            work.scratch = work.scratch.max(step.plan.bytes);
            beside = beside.max(backend.scratch_bytes(&step.graph));
        }
    }
    let inputs = work.inputs.saturating_mul(size_of::<u32>());
    let parameters = described(work)?;
    Ok(Planned {
        memory: EmbedderMemory {
            weights: parameters.weight_bytes(),
            steps: work.scratch.saturating_add(inputs).saturating_add(beside),
        },
        parameters,
        passes,
    })
}

impl<B: HostAccess> Embedder<B> {
    /// What a model would take, by the plan of [`Self::new`]. Reads shapes and types of weights only.
    ///
    /// # Errors
    /// A weight is missing or has another shape.
    pub fn forecast(backend: &B, model: &Bert, options: EmbedderOptions) -> Result<EmbedderMemory, ModelError> {
        Ok(plan(model, backend, &options)?.memory)
    }

    /// Loads the weights into an empty backend, with memory for the largest step.
    ///
    /// # Errors
    /// A weight cannot be used, or the backend has no memory for it.
    pub fn new(model: Bert, mut backend: B, options: EmbedderOptions) -> Result<Self, ModelError> {
        model.parameters.weights().try_for_each(check_finite)?;
        let Planned { parameters, passes, .. } = plan(&model, &backend, &options)?;
        parameters.load(&mut backend, |_| ())?;
        Ok(Self {
            next_id: parameters.end(),
            options,
            passes,
            model,
            backend,
            parameters,
            steps: Vec::new(),
        })
    }

    /// The model.
    #[must_use]
    pub const fn model(&self) -> &Bert {
        &self.model
    }

    /// The backend that holds the weights.
    #[must_use]
    pub const fn backend(&self) -> &B {
        &self.backend
    }

    /// Graphs that were built: one for each shape of a step that was needed.
    #[must_use]
    pub fn graphs(&self) -> usize {
        self.steps.len()
    }

    /// Embeds texts. An error has no effect on later calls.
    ///
    /// # Errors
    /// No texts, the tokenizer fails or gives ids that the model does not have, or the backend fails.
    pub fn embed(&mut self, texts: &[impl AsRef<str>]) -> Result<Embedded, ModelError> {
        let rows = self.model.encoder.rows(texts)?;
        self.embed_ids(&rows)
    }

    /// Embeds texts, or ranks pairs of texts, that are ids already. An error has no effect on later calls.
    ///
    /// # Errors
    /// No texts, one without ids or with more than [`Bert::max_tokens`], an id that the model does not have, or the backend fails.
    pub fn embed_ids(&mut self, rows: &[TextIds]) -> Result<Embedded, ModelError> {
        self.check(rows)?;
        let width = self.model.result_width();
        let mut data = vec![0.0; rows.len() * width];
        let mut hidden = vec![Vec::new(); if self.options.hidden { rows.len() } else { 0 }];
        let mut launches = 0;
        let mut longest_first: Vec<usize> = (0..rows.len()).collect();
        longest_first.sort_by_key(|&text| std::cmp::Reverse(rows[text].len()));
        let mut rest = &longest_first[..];
        while let Some(&first) = rest.first() {
            let group = self.group(rows[first].len());
            let (texts, after) = rest.split_at(rest.len().min(group.most));
            let of_step: Vec<&TextIds> = texts.iter().map(|&text| &rows[text]).collect();
            let found = self.compute(&of_step, group)?;
            for (&text, row) in texts.iter().zip(found.rows.chunks_exact(width)) {
                data[text * width..][..width].copy_from_slice(row);
            }
            for (&text, states) in texts.iter().zip(found.hidden) {
                hidden[text] = states;
            }
            launches += found.launches;
            rest = after;
        }
        Ok(Embedded {
            embeddings: Embeddings { data, width },
            tokens: rows.iter().map(TextIds::len).collect(),
            hidden,
            launches,
        })
    }

    /// Refuses what no step can compute.
    fn check(&self, rows: &[TextIds]) -> Result<(), ModelError> {
        if rows.is_empty() || rows.iter().any(TextIds::is_empty) {
            return Err(ModelError::NoTexts);
        }
        let (most, vocab) = (self.model.max_tokens(), self.model.config().vocab);
        for row in rows {
            if row.len() > most {
                return Err(ModelError::Hyperparameter {
                    key: "text".to_owned(),
                    value: format!("{} tokens", row.len()),
                    rule: format!("the model takes {most}"),
                });
            }
            if let Some(&id) = row.ids().iter().find(|id| **id as usize >= vocab) {
                return Err(ModelError::TokenOutOfRange { id, vocab });
            }
        }
        Ok(())
    }

    /// The steps that take texts of so many tokens, as long as the longest text.
    pub(crate) fn group(&self, tokens: usize) -> Group {
        let mut all = lengths(self.model.max_tokens());
        let seq = all.find(|&seq| seq >= tokens).unwrap_or(tokens);
        let most = counts(self.options.step_tokens / seq).last().unwrap_or(1);
        Group { seq, most }
    }

    /// The results of at most `group.most` texts of at most `group.seq` tokens: one step.
    pub(crate) fn compute(&mut self, rows: &[&TextIds], group: Group) -> Result<Computed, ModelError> {
        let count = rows.len().next_power_of_two().min(group.most);
        let batch = Batch::of_texts(rows.iter().copied(), count, group.seq);
        let shape = shape_of(batch.len(), batch.seq());
        let index = match self.steps.iter().position(|(kept, ..)| *kept == shape) {
            Some(index) => index,
            None => self.prepare(shape)?,
        };
        let (_, step, program) = &mut self.steps[index];
        let inputs = self.model.inputs(&self.parameters, shape, &batch);
        self.backend.write_u32(step.inputs, &inputs)?;
        executor::run_program(&mut self.backend, program)?;
        let mut found = Computed {
            launches: step.graph.launches().len(),
            ..Computed::default()
        };
        if let Some(result) = step.logits {
            let values = rows.len() * self.model.result_width();
            found.rows = self.backend.read_first_f32(result, values)?;
        }
        if self.options.hidden {
            found.hidden = vec![Vec::new(); rows.len()];
            let width = self.model.config().width;
            for &states in &step.results {
                let states = self.backend.read_f32(states)?;
                for ((of_text, text), states) in found.hidden.iter_mut().zip(rows).zip(states.chunks(group.seq * width))
                {
                    of_text.push(states[..text.len() * width].to_vec());
                }
            }
        }
        Ok(found)
    }

    /// Builds the graph of a shape; its index. An error leaves nothing in the backend.
    fn prepare(&mut self, shape: StepShape) -> Result<usize, ModelError> {
        let step = Step::build(&self.parameters, shape, Memory::Shared, self.next_id, self.passes)?;
        let own = self.next_id.0..step.graph.next_id().0;
        self.next_id = TensorId(own.end);
        let program = executor::compile(&mut self.backend, &step.graph);
        let bound = program.and_then(|program| {
            // No node reads the inputs as a whole.
            let inputs = step.graph.tensor(step.inputs);
            inputs.map_or(Ok(()), |inputs| self.backend.bind_view(inputs))?;
            Ok(program)
        });
        match bound {
            Ok(program) => {
                self.steps.push((shape, step, program));
                Ok(self.steps.len() - 1)
            }
            Err(error) => {
                for id in own.map(TensorId) {
                    match self.backend.free(id) {
                        // Not every tensor of a graph is used by a node.
                        Ok(()) | Err(GgmlError::UnknownTensor(_)) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
                Err(error.into())
            }
        }
    }
}

/// Steps of one length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    /// Tokens of each text, padding included.
    pub(crate) seq: usize,
    /// Most texts of a step.
    pub(crate) most: usize,
}

/// Lengths of padded texts: powers of two, and the longest.
fn lengths(longest: usize) -> impl Iterator<Item = usize> {
    let powers = std::iter::successors(Some(SHORTEST), |length| length.checked_mul(2));
    powers.take_while(move |&length| length < longest).chain([longest])
}

/// Numbers of texts in a step: powers of two, at least one.
fn counts(most: usize) -> impl Iterator<Item = usize> {
    let powers = std::iter::successors(Some(1_usize), |count| count.checked_mul(2));
    powers.take_while(move |&count| count <= most.max(1))
}
