//! Tensors of a model: the part that uses a weight asks for it, once, and from there it is found, checked, counted and placed.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use rocmforge_ggml::{DType, GgmlError, Graph, Layout, TensorDesc, TensorId};

use super::graph::Network;
use super::parameters::{Content, Parameter, Parameters, Place, WorkSize};
use crate::ModelError;
use crate::cache::{CacheKind, CacheSpec, Cached, Kept, State};
use crate::config::{Pooling, Presence, QueryGrowth, RopeConfig, Scores};
use crate::weights::{ExpertNames, LinearNames, Name, Naming, Order, Weight, WeightSource, of_expert};

/// Ends of names of tensors that old checkpoints hold although they follow from the configuration.
const DERIVED: [&str; 2] = [".rotary_emb.inv_freq", ".attn_rot_embd.weight"];

/// Beginning of names of layers that predict further tokens, in checkpoints that have them apart from the others (Qwen 3.5).
const PREDICTORS: &str = "mtp.";

/// A map of which another is some rows: query, key and value in one matrix.
#[derive(Clone, Debug)]
pub(crate) struct Fused {
    pub(crate) names: LinearNames,
    /// The first row, and the rows of the whole.
    pub(crate) first: usize,
    pub(crate) of: usize,
}

/// A tensor of a checkpoint, and where the elements of another lie in it.
#[derive(Clone, Debug)]
pub(crate) struct Within {
    pub(crate) name: Name,
    pub(crate) dims: Vec<usize>,
    /// One after the other.
    pub(crate) orders: Vec<Order>,
}

/// What steps of whole texts give.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WholeTexts {
    pub(crate) pooling: Pooling,
    /// What scores become, of a model that ranks.
    pub(crate) scores: Scores,
    /// The hidden states are results, too.
    pub(crate) hidden: bool,
}

/// What a norm's weights lack in Hugging Face files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum NormOffset {
    /// Nothing.
    #[default]
    None,
    /// The 1 that those of GGUF contain.
    One,
}

/// Finds weights and gives each its id in the step graphs.
pub(crate) struct Tensors<'a> {
    source: &'a dyn WeightSource,
    cache: CacheSpec,
    kept: Kept,
    layer: usize,
    place: Place,
    /// Names of the file's tensors that are used, or need not be.
    known: HashSet<String>,
    /// Layers whose tensors need not be used.
    unused_layers: Range<usize>,
    ropes: Vec<RopeConfig>,
    /// Parts of names in Hugging Face files, with what an architecture's checkpoints have in their place.
    renamed: &'static [(&'static str, &'static str)],
    whole_texts: Option<WholeTexts>,
    /// Descriptors of the parameters.
    graph: Graph,
    parameters: Vec<Parameter>,
}

impl<'a> Tensors<'a> {
    /// Nothing has been asked for yet. `cache` is the size of the caches.
    pub(crate) fn new(source: &'a dyn WeightSource, cache: CacheSpec) -> Self {
        Self {
            source,
            cache,
            kept: Kept::default(),
            layer: 0,
            place: Place::Embedding,
            known: HashSet::new(),
            unused_layers: 0..0,
            ropes: Vec::new(),
            renamed: &[],
            whole_texts: None,
            graph: Graph::new(),
            parameters: Vec::new(),
        }
    }

    /// What follows belongs to `place`; names have its layer's number.
    pub(crate) fn at(&mut self, place: Place) {
        self.place = place;
        if let Place::Layer(layer) = place {
            self.layer = layer;
        }
    }

    /// How the file names tensors.
    pub(crate) fn naming(&self) -> Naming {
        self.source.naming()
    }

    /// Checkpoints of Hugging Face have these parts of names in place of those that layers ask for.
    pub(crate) fn rename(&mut self, parts: &'static [(&'static str, &'static str)]) {
        self.renamed = parts;
    }

    fn in_file(&self, name: Name) -> Option<String> {
        let found = name.of(self.naming(), self.layer)?;
        Some(match self.naming() {
            Naming::Gguf => found,
            Naming::HuggingFace => {
                (self.renamed.iter()).fold(found, |name, (of_layers, own)| name.replace(of_layers, own))
            }
        })
    }

    /// Whether the file has a tensor of this name.
    ///
    /// # Errors
    /// It is of a type that cannot be used.
    pub(crate) fn has(&self, name: Name) -> Result<bool, ModelError> {
        Ok(self.get(name)?.is_some())
    }

    /// Whether the file has a tensor of this name and shape.
    ///
    /// # Errors
    /// As [`Self::has`].
    pub(crate) fn has_shape(&self, name: Name, dims: &[usize]) -> Result<bool, ModelError> {
        Ok(self.get(name)?.is_some_and(|weight| weight.dims == dims))
    }

    /// The type of a tensor that the file has.
    ///
    /// # Errors
    /// As [`Self::has`].
    pub(crate) fn dtype(&self, name: Name) -> Result<Option<DType>, ModelError> {
        Ok(self.get(name)?.map(|weight| weight.dtype))
    }

    /// The file may have a tensor of this name, and nobody uses it.
    pub(crate) fn allow(&mut self, name: Name) {
        self.known.extend(self.in_file(name));
    }

    /// The file may have the tensors of this map, and nobody uses them.
    pub(crate) fn allow_linear(&mut self, names: LinearNames) {
        for name in [names.weight, names.bias, names.scale, names.input_scale] {
            self.allow(name);
        }
    }

    /// The file may have any tensors of these layers, and nobody uses them.
    pub(crate) fn allow_layers(&mut self, layers: Range<usize>) {
        self.unused_layers = layers;
    }

    /// The tensor, or the first of those that a checkpoint has in place of it.
    fn get(&self, name: Name) -> Result<Option<Weight>, ModelError> {
        self.in_file(name)
            .map_or(Ok(None), |in_file| self.source.get(&of_expert(&in_file, 0)))
    }

    /// A weight of these dimensions: the tensor of its own name, or rows of another.
    fn need(&self, name: Name, fused: Option<(Name, &Fused)>, dims: &[usize]) -> Result<Weight, ModelError> {
        let own = self.get(name)?;
        if let Some(mut own) = own.clone().filter(|own| own.dims == dims || fused.is_none()) {
            // Checkpoints have dimensions of 1 that GGUF lacks, and the other way round. In a GGUF the outermost ones say nothing.
            let is_same = match self.naming() {
                Naming::HuggingFace => without_ones(&own.dims).eq(without_ones(dims)),
                Naming::Gguf => own
                    .dims
                    .strip_suffix(dims)
                    .is_some_and(|ones| ones.iter().all(|&dim| dim == 1)),
            };
            if is_same {
                own = own.reshaped(dims);
            }
            check_shape(&own, dims)?;
            return Ok(own);
        }
        if let Some((whole, fused)) = fused
            && let Some(whole) = self.get(whole)?
        {
            let expected = [&[fused.of], &dims[1..]].concat();
            check_shape(&whole, &expected)?;
            return Ok(whole.rows(fused.first..fused.first + dims[0]));
        }
        if let Some(own) = own {
            check_shape(&own, dims)?;
        }
        let in_file = self.in_file(name).unwrap_or_else(|| format!("{name:?}"));
        let assumed = self.source.assumed(&in_file, dims);
        assumed.ok_or(ModelError::MissingTensor { name: in_file })
    }

    /// A weight of these dimensions, whose elements lie in another tensor, if the file has that one.
    fn within(&self, within: Option<&Within>, dims: &[usize]) -> Result<Option<Weight>, ModelError> {
        let Some(within) = within else { return Ok(None) };
        let Some(whole) = self.get(within.name)? else {
            return Ok(None);
        };
        check_shape(&whole, &within.dims)?;
        whole.reordered(dims, within.orders.clone()).map(Some)
    }

    fn add(&mut self, desc: TensorDesc, content: Content) -> TensorId {
        let id = self.graph.add_tensor(desc);
        if let Content::Weight(weight) = &content {
            self.known.insert(weight.name.clone());
        }
        let place = self.place;
        self.parameters.push(Parameter { id, place, content });
        id
    }

    /// The matrix of a product: `rows` results from `cols` inputs. `[rows, cols]` in the file is a `[cols, rows]` matrix in column-major order.
    ///
    /// # Errors
    /// It is missing or has another shape.
    pub(crate) fn matrix(
        &mut self,
        name: Name,
        fused: Option<&Fused>,
        [rows, cols]: [usize; 2],
    ) -> Result<TensorId, ModelError> {
        // Writers of GGUF leave out a last dimension of 1.
        if rows == 1 && fused.is_none() {
            return self.row(name, cols);
        }
        let fused = fused.map(|fused| (fused.names.weight, fused));
        let weight = self.need(name, fused, &[rows, cols])?;
        let desc = TensorDesc::new([cols, rows], weight.dtype, Layout::ColMajor);
        Ok(self.add(desc, Content::Weight(weight)))
    }

    /// [`Self::matrix`], where a checkpoint may have it `within` another.
    ///
    /// # Errors
    /// As [`Self::matrix`].
    pub(crate) fn matrix_within(
        &mut self,
        name: Name,
        within: &Within,
        shape: [usize; 2],
    ) -> Result<TensorId, ModelError> {
        let [rows, cols] = shape;
        match self.within(Some(within), &shape)? {
            None => self.matrix(name, None, shape),
            Some(weight) => {
                let desc = TensorDesc::new([cols, rows], weight.dtype, Layout::ColMajor);
                Ok(self.add(desc, Content::Weight(weight)))
            }
        }
    }

    /// The matrix of a product with one result, from `cols` inputs: a vector, or a matrix of one row.
    ///
    /// # Errors
    /// As [`Self::matrix`].
    pub(crate) fn row(&mut self, name: Name, cols: usize) -> Result<TensorId, ModelError> {
        let is_matrix = self.has_shape(name, &[1, cols])?;
        let dims = if is_matrix { &[1, cols][..] } else { &[cols] };
        let weight = self.need(name, None, dims)?;
        let desc = TensorDesc::new([cols, 1], weight.dtype, Layout::ColMajor);
        Ok(self.add(desc, Content::Weight(weight)))
    }

    /// The matrices of a product for each expert, in the file together or one by one: `[count, rows, cols]` there is a list of `[cols, rows]`
    /// matrices in column-major order. Each may be some rows of another, whose name is given with the first row and the number of rows, or lie `within`
    /// another.
    ///
    /// # Errors
    /// One is missing, has another shape, or another type than the first.
    pub(crate) fn experts(
        &mut self,
        names: ExpertNames,
        fused: Option<(Name, usize, usize)>,
        within: Option<&Within>,
        [count, rows, cols]: [usize; 3],
    ) -> Result<TensorId, ModelError> {
        let desc = |dtype| TensorDesc::new([count, cols, rows], dtype, Layout::ColMajor);
        if let Some(weight) = self.within(within, &[count, rows, cols])? {
            return Ok(self.add(desc(weight.dtype), Content::Weight(weight)));
        }
        let whole = match fused {
            Some((name, first, of)) if !self.has(names.together)? => self.get(name)?.map(|whole| (whole, first, of)),
            _ => None,
        };
        let weight = if let Some((whole, first, of)) = whole {
            check_shape(&whole, &[count, of, cols])?;
            whole.rows_of_each(first..first + rows)
        } else if let Some(pattern) = self.in_file(names.apart)
            && (self.in_file(names.together).is_none() || self.source.get(&of_expert(&pattern, 0))?.is_some())
        {
            self.stacked(&pattern, 0..count, &[rows, cols])?
        } else {
            self.need(names.together, None, &[count, rows, cols])?
        };
        Ok(self.add(desc(weight.dtype), Content::Weight(weight)))
    }

    /// The matrices of a product for each head: `[count, rows, cols]` in the file, where one alone may lack the first dimension; or `within` another.
    ///
    /// # Errors
    /// As [`Self::matrix`].
    pub(crate) fn matrices(
        &mut self,
        name: Name,
        within: Option<&Within>,
        [count, rows, cols]: [usize; 3],
    ) -> Result<TensorId, ModelError> {
        let weight = match self.within(within, &[count, rows, cols])? {
            Some(weight) => weight,
            None => {
                let is_alone = count == 1 && self.has_shape(name, &[rows, cols])?;
                self.need(name, None, &[count, rows, cols][usize::from(is_alone)..])?
            }
        };
        let desc = TensorDesc::new([count, cols, rows], weight.dtype, Layout::ColMajor);
        Ok(self.add(desc, Content::Weight(weight)))
    }

    /// Some of `count` matrices of `[rows, cols]` as one matrix, whose results stand one behind the other. The file has them together, or one by one:
    /// `names` are those of both.
    ///
    /// # Errors
    /// As [`Self::experts`].
    pub(crate) fn some_of(
        &mut self,
        [together, apart]: [Name; 2],
        which: Range<usize>,
        [count, rows, cols]: [usize; 3],
    ) -> Result<TensorId, ModelError> {
        let mut weight = match self.in_file(apart) {
            Some(pattern) => self.stacked(&pattern, which.clone(), &[rows, cols])?,
            None => self.need(together, None, &[count, rows, cols])?.rows(which.clone()),
        };
        weight.dims = vec![which.len() * rows, cols];
        let desc = TensorDesc::new([cols, which.len() * rows], weight.dtype, Layout::ColMajor);
        Ok(self.add(desc, Content::Weight(weight)))
    }

    /// A table of indices that follow from the configuration, u32 `[rows, 1]`.
    pub(crate) fn indices(&mut self, name: &str, indices: impl Iterator<Item = u32>) -> TensorId {
        let indices: Vec<u32> = indices.collect();
        let (shape, bytes) = ([indices.len(), 1], bytemuck::cast_slice(&indices).to_vec());
        let weight = Weight::new(name, shape.to_vec(), DType::U32, Arc::new(bytes));
        self.add(TensorDesc::u32(shape), Content::Weight(weight))
    }

    fn stacked(&mut self, pattern: &str, numbers: Range<usize>, dims: &[usize]) -> Result<Weight, ModelError> {
        let mut first: Option<Weight> = None;
        let mut parts = Vec::new();
        for expert in numbers {
            let name = of_expert(pattern, expert);
            let part = self.source.get(&name)?;
            let part = part.ok_or_else(|| ModelError::MissingTensor { name: name.clone() })?;
            check_shape(&part, dims)?;
            parts.push(part.bytes());
            let first = first.get_or_insert_with(|| part.clone());
            if part.dtype != first.dtype {
                return Err(ModelError::TensorDType {
                    found: format!("{}, and those of other experts {}", part.dtype, first.dtype),
                    name,
                });
            }
            self.known.insert(name);
        }
        let first = first.ok_or_else(|| ModelError::MissingTensor {
            name: pattern.to_owned(),
        })?;
        Ok(Weight::stack(pattern, &first, parts))
    }

    /// A table of `rows` rows that are looked up.
    ///
    /// # Errors
    /// As [`Self::matrix`].
    pub(crate) fn table(&mut self, name: Name, [rows, cols]: [usize; 2]) -> Result<TensorId, ModelError> {
        let weight = self.need(name, None, &[rows, cols])?;
        let desc = TensorDesc::new([rows, cols], weight.dtype, Layout::RowMajor);
        Ok(self.add(desc, Content::Weight(weight)))
    }

    /// The memory of a table as the matrix of a product that gives a result for each row.
    ///
    /// # Errors
    /// There is no such table.
    pub(crate) fn table_as_matrix(&mut self, table: TensorId) -> Result<TensorId, ModelError> {
        let desc = self.graph.tensor(table).ok_or(GgmlError::UnknownTensor(table))?;
        let mut matrix = TensorDesc::view_of(desc, 0);
        let shape: Vec<usize> = desc.shape.iter().rev().copied().collect();
        matrix.layout = Layout::ColMajor;
        matrix.set_shape(shape);
        Ok(self.graph.add_tensor(matrix))
    }

    /// The rows of a table from row `first` on.
    ///
    /// # Errors
    /// As [`Self::matrix`].
    pub(crate) fn last_rows(
        &mut self,
        name: Name,
        first: usize,
        [rows, cols]: [usize; 2],
    ) -> Result<TensorId, ModelError> {
        let weight = self.need(name, None, &[first + rows, cols])?.rows(first..first + rows);
        let desc = TensorDesc::new([rows, cols], weight.dtype, Layout::RowMajor);
        Ok(self.add(desc, Content::Weight(weight)))
    }

    /// The rows that the file's matrix of this name has, if there is one.
    ///
    /// # Errors
    /// As [`Self::has`].
    pub(crate) fn rows_of(&self, name: Name) -> Result<Option<usize>, ModelError> {
        Ok(self.get(name)?.and_then(|weight| weight.dims.first().copied()))
    }

    /// A table as f32, `[rows, cols]`, which a checkpoint may have row by row, or as a vector of all rows.
    ///
    /// # Errors
    /// As [`Self::vector`].
    pub(crate) fn floats(&mut self, name: Name, shape: [usize; 2]) -> Result<TensorId, ModelError> {
        self.floats_within(name, None, shape)
    }

    /// The same, where a checkpoint may have it `within` another.
    ///
    /// # Errors
    /// As [`Self::floats`].
    pub(crate) fn floats_within(
        &mut self,
        name: Name,
        within: Option<&Within>,
        shape: [usize; 2],
    ) -> Result<TensorId, ModelError> {
        let is_checkpoint = self.naming() == Naming::HuggingFace;
        let pattern = self.in_file(name).filter(|pattern| pattern.contains('@'));
        let weight = match (self.within(within, &shape)?, pattern) {
            (Some(weight), _) => weight,
            (None, Some(pattern)) if is_checkpoint => self.stacked(&pattern, 0..shape[0], &shape[1..])?,
            _ if is_checkpoint && self.has_shape(name, &[shape[0] * shape[1]])? => {
                self.need(name, None, &[shape[0] * shape[1]])?.reshaped(&shape)
            }
            _ => self.need(name, None, &shape)?,
        };
        self.add_vector(weight)
    }

    /// [`Self::floats`] of a tensor that may have further dimensions of 1 anywhere.
    ///
    /// # Errors
    /// As [`Self::vector`].
    pub(crate) fn floats_without_ones(&mut self, name: Name, shape: [usize; 2]) -> Result<TensorId, ModelError> {
        let others = |dims: &[usize]| -> Vec<usize> { dims.iter().copied().filter(|&dim| dim != 1).collect() };
        let found = self.get(name)?.map(|found| found.dims);
        let dims = found.filter(|found| others(found) == others(&shape));
        let mut weight = self.need(name, None, dims.as_deref().unwrap_or(&shape))?;
        weight.dims = shape.to_vec();
        self.add_vector(weight)
    }

    /// A vector as a table with one column, in f32.
    ///
    /// # Errors
    /// As [`Self::vector`].
    pub(crate) fn column(&mut self, name: Name, rows: usize) -> Result<TensorId, ModelError> {
        let weight = self.need(name, None, &[rows])?;
        let name = weight.name.clone();
        let bytes = Weight::from_f32(&name, &weight.to_f32()?).bytes();
        let weight = Weight::new(&name, vec![rows, 1], DType::F32, bytes);
        Ok(self.add(TensorDesc::f32([rows, 1]), Content::Weight(weight)))
    }

    /// A vector, as f32, which may be some rows of another.
    ///
    /// # Errors
    /// As [`Self::matrix`], or its type is no plain float.
    pub(crate) fn vector(&mut self, name: Name, fused: Option<&Fused>, len: usize) -> Result<TensorId, ModelError> {
        let fused = fused.map(|fused| (fused.names.bias, fused));
        let weight = self.need(name, fused, &[len])?;
        self.add_vector(weight)
    }

    /// A vector times a factor, as f32.
    ///
    /// # Errors
    /// As [`Self::vector`].
    pub(crate) fn scaled(&mut self, name: Name, len: usize, factor: f32) -> Result<TensorId, ModelError> {
        let weight = self.need(name, None, &[len])?;
        self.add_vector(weight.mapped(|w| w * factor)?)
    }

    /// [`Self::vector`], if the file has it.
    ///
    /// # Errors
    /// It has another shape, or its type is no plain float.
    pub(crate) fn vector_if_there(
        &mut self,
        name: Name,
        fused: Option<&Fused>,
        len: usize,
    ) -> Result<Option<TensorId>, ModelError> {
        let is_there = self.has(name)? || fused.map_or(Ok(false), |fused| self.has(fused.names.bias))?;
        is_there.then(|| self.vector(name, fused, len)).transpose()
    }

    /// [`Self::vector`], where models of the architecture have it.
    ///
    /// # Errors
    /// It is missing where it must be there; and as [`Self::vector_if_there`].
    pub(crate) fn vector_where(
        &mut self,
        presence: Presence,
        name: Name,
        len: usize,
    ) -> Result<Option<TensorId>, ModelError> {
        match presence {
            Presence::Never => Ok(None),
            Presence::IfThere => self.vector_if_there(name, None, len),
            Presence::Always => self.vector(name, None, len).map(Some),
        }
    }

    fn add_vector(&mut self, weight: Weight) -> Result<TensorId, ModelError> {
        let weight = match weight.dtype {
            DType::F32 => weight,
            _ => weight.mapped(|w| w)?,
        };
        Ok(self.add(TensorDesc::f32(weight.dims.clone()), Content::Weight(weight)))
    }

    /// Divisors of rotary frequencies, as f32.
    ///
    /// # Errors
    /// As [`Self::vector`], and [`ModelError::RopeFactor`] for one that is 0 or no finite number.
    pub(crate) fn divisors(&mut self, name: Name, len: usize) -> Result<TensorId, ModelError> {
        let weight = self.need(name, None, &[len])?;
        self.add_divisors(&weight.name, &weight.to_f32()?)
    }

    /// [`Self::divisors`] that follow from the configuration.
    ///
    /// # Errors
    /// [`ModelError::RopeFactor`].
    pub(crate) fn add_divisors(&mut self, name: &str, values: &[f32]) -> Result<TensorId, ModelError> {
        let is_wrong = |value: &f32| !(value.is_finite() && *value != 0.0);
        if let Some(index) = values.iter().position(is_wrong) {
            return Err(ModelError::RopeFactor {
                name: name.to_owned(),
                value: values[index],
                index,
            });
        }
        self.add_vector(Weight::from_f32(name, values))
    }

    /// Numbers that follow from the configuration, as a vector.
    ///
    /// # Errors
    /// None; as [`Self::vector`].
    pub(crate) fn constants(&mut self, name: &str, values: &[f32]) -> Result<TensorId, ModelError> {
        self.add_vector(Weight::from_f32(name, values))
    }

    /// The weight of a norm.
    ///
    /// # Errors
    /// As [`Self::vector`].
    pub(crate) fn norm(&mut self, name: Name, len: usize, offset: NormOffset) -> Result<TensorId, ModelError> {
        if offset == NormOffset::None || self.naming() == Naming::Gguf {
            return self.vector(name, None, len);
        }
        let weight = self.need(name, None, &[len])?;
        self.add_vector(weight.mapped(|w| w + 1.0)?)
    }

    /// What a step is multiplied by before it is the exponent of a state's decay: `-exp(w)` of a checkpoint's weight.
    ///
    /// # Errors
    /// As [`Self::vector`].
    pub(crate) fn decay(&mut self, name: Name, shape: &[usize]) -> Result<TensorId, ModelError> {
        let weight = self.need(name, None, shape)?;
        if self.naming() == Naming::Gguf {
            return self.add_vector(weight);
        }
        let values: Vec<f32> = weight.to_f32()?.iter().map(|w| -w.exp()).collect();
        self.add_vector(Weight::from_f32(&weight.name, &values).reshaped(shape))
    }

    /// A cache: for each token that `kind` keeps a row of `heads` heads of `head_dim` elements.
    ///
    /// # Errors
    /// [`ModelError::CacheType`] for heads that are no whole blocks of the cache's type.
    pub(crate) fn cache(&mut self, kind: CacheKind, heads: usize, head_dim: usize) -> Result<Cached, ModelError> {
        let kv = self.cache.kv;
        if !head_dim.is_multiple_of(kv.block_len()) {
            let kv = kv.into();
            return Err(ModelError::CacheType { kv, head_dim });
        }
        let width = heads * head_dim;
        let kinds = &mut self.kept.kinds;
        let pool = kinds.iter().position(|&other| other == kind).unwrap_or_else(|| {
            kinds.push(kind);
            kinds.len() - 1
        });
        let desc = TensorDesc::new([self.cache.slots(kind), width], kv.into(), Layout::RowMajor);
        let row_bytes = width / kv.block_len() * kv.block_bytes();
        let id = self.add(desc, Content::Cache { pool, row_bytes });
        Ok(Cached { id, pool })
    }

    /// Queries grow with the position; those of all layers that do grow alike.
    pub(crate) fn grow(&mut self, growth: QueryGrowth) {
        self.kept.growth = Some(growth);
    }

    /// [`Self::matrices`], one for each head: [`StepGraph::times_heads`](super::StepGraph::times_heads).
    ///
    /// # Errors
    /// As there.
    pub(crate) fn matrices_of_heads(
        &mut self,
        name: Name,
        within: Option<&Within>,
        dims: [usize; 3],
    ) -> Result<TensorId, ModelError> {
        self.kept.numbered_heads = dims[0];
        self.matrices(name, within, dims)
    }

    /// Nothing is kept of a step: its sequences are whole texts, padded to the longest.
    pub(crate) fn of_whole_texts(mut self, texts: WholeTexts) -> Self {
        self.kept.texts = true;
        self.whole_texts = Some(texts);
        self
    }

    /// What steps give, if they are of whole texts.
    pub(crate) fn whole_texts(&self) -> Option<WholeTexts> {
        self.whole_texts
    }

    /// A state: for each sequence `width` elements in f32, at first zero.
    pub(crate) fn state(&mut self, width: usize) -> State {
        self.kept.states = true;
        let desc = TensorDesc::f32([self.cache.state_slots(), width]);
        let row_bytes = width * size_of::<f32>();
        let id = self.add(desc, Content::State { row_bytes });
        State { id }
    }

    /// A rotary embedding is used: devices keep its cosines and sines.
    pub(crate) fn rope(&mut self, rope: &RopeConfig) {
        if !self.ropes.contains(rope) {
            self.ropes.push(rope.clone());
        }
    }

    /// The model's parameters, when every part has its tensors.
    ///
    /// # Errors
    /// [`ModelError::UnusedTensor`]: nobody asked for a tensor of the file.
    pub(crate) fn finish(
        mut self,
        network: Arc<dyn Network>,
        architecture: &'static str,
        work: WorkSize,
    ) -> Result<Parameters, ModelError> {
        let is_derived = |name: &str| DERIVED.iter().any(|end| name.ends_with(end));
        let is_unused = |name: &str| {
            if name.starts_with(PREDICTORS) {
                return true;
            }
            let mut layers = ["blk.", "model.layers."]
                .iter()
                .filter_map(|start| name.strip_prefix(start));
            let number = layers.next().and_then(|rest| rest.split('.').next()?.parse().ok());
            number.is_some_and(|layer: usize| self.unused_layers.contains(&layer))
        };
        let unused = self
            .source
            .names()
            .into_iter()
            .find(|name| !self.known.contains(*name) && !is_derived(name) && !is_unused(name));
        if let Some(name) = unused {
            return Err(ModelError::UnusedTensor {
                name: name.to_owned(),
                architecture,
            });
        }
        self.at(Place::Step);
        let inputs = self.add(TensorDesc::u32([work.inputs]), Content::Work);
        let scratch = TensorDesc::new([work.scratch], DType::I8, Layout::RowMajor);
        let scratch = self.add(scratch, Content::Work);
        let floats: usize = self.ropes.iter().map(|rope| rope.n_dims).sum();
        Ok(Parameters {
            network,
            cache: self.cache,
            kept: self.kept,
            graph: self.graph,
            all: self.parameters,
            inputs,
            scratch,
            rope_row: floats * size_of::<f32>(),
        })
    }
}

fn without_ones(dims: &[usize]) -> impl Iterator<Item = usize> {
    dims.iter().copied().filter(|&dim| dim != 1)
}

fn check_shape(weight: &Weight, expected: &[usize]) -> Result<(), ModelError> {
    if weight.dims == expected {
        return Ok(());
    }
    Err(ModelError::TensorShape {
        name: weight.name.clone(),
        found: weight.dims.clone(),
        expected: expected.to_vec(),
    })
}
