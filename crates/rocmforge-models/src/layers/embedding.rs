//! Embedding: rows of the tokens' ids, and with them those of types and positions.

use rocmforge_ggml::{GgmlResult, Op, TensorId};

use super::{Norm, NormRule};
use crate::ModelError;
use crate::config::TextsConfig;
use crate::step::{StepGraph, Tensors};
use crate::weights::{LinearNames, Name};

const TYPES: Name = Name::new("token_types.weight", "embeddings.token_type_embeddings.weight");
const POSITIONS: Name = Name::new("position_embd.weight", "embeddings.position_embeddings.weight");
const NORM: LinearNames = LinearNames::new("token_embd_norm", "embeddings.LayerNorm");

/// What enters the first layer.
#[derive(Debug)]
pub(crate) struct Embedding {
    words: TensorId,
    /// Factor on the rows of ids.
    scale: Option<f32>,
    types: Option<TensorId>,
    positions: Option<TensorId>,
    norm: Option<Norm>,
}

impl Embedding {
    /// Rows of `words`, and what an encoder of `context` positions adds to them.
    ///
    /// # Errors
    /// A weight is missing or has another shape.
    pub(crate) fn new(
        t: &mut Tensors<'_>,
        words: TensorId,
        scale: Option<f32>,
        texts: Option<TextsConfig>,
        [context, width]: [usize; 2],
        rule: NormRule,
    ) -> Result<Self, ModelError> {
        let mut embedding = Self {
            words,
            scale,
            types: None,
            positions: None,
            norm: None,
        };
        let Some(texts) = texts else { return Ok(embedding) };
        if texts.types > 0 {
            embedding.types = Some(t.table(TYPES, [texts.types, width])?);
        }
        if let Some(first) = texts.first_position {
            embedding.positions = Some(t.last_rows(POSITIONS, first, [context, width])?);
        }
        if texts.embedding_norm {
            embedding.norm = Some(Norm::new(t, NORM, width, rule)?);
        }
        Ok(embedding)
    }

    /// Adds the nodes.
    pub(crate) fn build(&self, g: &mut StepGraph<'_>) -> GgmlResult<TensorId> {
        let mut x = g.push(Op::GetRows, &[self.words, g.ids])?;
        if let Some(factor) = self.scale {
            x = g.push(Op::Scale { factor }, &[x])?;
        }
        if let Some(table) = self.types {
            let types = g.texts()?.types;
            let rows = g.push(Op::GetRows, &[table, types])?;
            x = g.push(Op::Add, &[x, rows])?;
        }
        if let Some(table) = self.positions {
            let rows = g.push(Op::GetRows, &[table, g.positions])?;
            x = g.push(Op::Add, &[x, rows])?;
        }
        Norm::of(self.norm.as_ref(), g, x)
    }
}
