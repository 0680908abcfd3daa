//! Model of a path, by what it makes of a text: further text, or an embedding or a score.

use std::path::Path;

use super::Bert;
use crate::{Model, ModelError};

/// A model that was opened.
#[derive(Clone, Debug)]
pub enum AnyModel {
    /// It makes text.
    Text(Model),
    /// It is an encoder, or a decoder whose files say how its states are pooled.
    Pooled(Box<Bert>),
}

impl AnyModel {
    /// Opens a GGUF file or a model directory, once.
    ///
    /// # Errors
    /// As [`Model::open`] and [`Bert::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ModelError> {
        let model = Model::open_any(path.as_ref())?;
        match model.architecture().is_encoder() || model.states_pooling() {
            true => Ok(Self::Pooled(Box::new(Bert::new(model, None)?))),
            false => Ok(Self::Text(model)),
        }
    }
}
