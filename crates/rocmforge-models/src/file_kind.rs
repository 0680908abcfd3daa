//! Kinds of GGUF files that hold no whole language model: adapters, parts for pictures and sound, vocabularies, notes of quantisers.

use std::fmt;

use rocmforge_gguf::{Gguf, GgufError};

use crate::text::shortened;

/// What a file is, if it is not a language model.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileKind {
    /// A LoRA adapter, with the name of the model that it changes.
    Adapter {
        /// The name, where the file states one.
        base: Option<String>,
    },
    /// The part of a multimodal model that makes embeddings of pictures or sound (mmproj).
    Projector,
    /// A vocabulary without weights.
    Vocabulary,
    /// Statistics of activations, which quantisers read (imatrix).
    ImportanceMatrix,
    /// Directions that are added to the activations of another model.
    ControlVector,
}

impl FileKind {
    /// The kind of a file; `None` where it may be a model.
    ///
    /// # Errors
    /// A key that says so is no text.
    pub fn of(gguf: &Gguf) -> Result<Option<Self>, GgufError> {
        let metadata = gguf.metadata();
        let adapter = || -> Result<Self, GgufError> {
            let base = metadata.opt_string("general.base_model.0.name")?;
            Ok(Self::Adapter {
                base: base.map(shortened),
            })
        };
        match metadata.opt_string("general.type")? {
            Some("adapter") => return adapter().map(Some),
            Some("mmproj") => return Ok(Some(Self::Projector)),
            Some("vocab") => return Ok(Some(Self::Vocabulary)),
            Some("imatrix") => return Ok(Some(Self::ImportanceMatrix)),
            _ => {}
        }
        if metadata.opt_string("adapter.type")?.is_some() {
            return adapter().map(Some);
        }
        // Files that were made before `general.type` was written.
        match metadata.opt_string("general.architecture")? {
            Some("clip") => return Ok(Some(Self::Projector)),
            Some("controlvector") => return Ok(Some(Self::ControlVector)),
            _ => {}
        }
        let is_vocabulary = gguf.tensors().is_empty() && metadata.get("tokenizer.ggml.tokens").is_some();
        Ok(is_vocabulary.then_some(Self::Vocabulary))
    }
}

/// What it is, and what to do.
impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Adapter { base } => {
                let base = base.as_deref().unwrap_or("another model");
                write!(
                    f,
                    "a LoRA adapter: it changes the weights of {base}, and adapters are not applied here; merge it into that model \
                     (llama-export-lora, or merge_and_unload of PEFT), and open the result"
                )
            }
            Self::Projector => f.write_str(
                "the part of a multimodal model that reads pictures or sound (mmproj): it gives no text; open the other GGUF file of the \
                 same model, which has the text part",
            ),
            Self::Vocabulary => f.write_str(
                "a vocabulary without weights: it can make tokens of texts and nothing else; open a GGUF file of the whole model",
            ),
            Self::ImportanceMatrix => f.write_str(
                "an importance matrix (imatrix): quantisers read it, and it has no weights; open the quantised model itself",
            ),
            Self::ControlVector => f.write_str(
                "a control vector: it is added to the activations of another model, which is not supported here; open that model without it",
            ),
        }
    }
}
