//! Names of one tensor in the two kinds of files.

/// How a kind of file names tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    /// GGUF: `blk.0.attn_q.weight`.
    Gguf,
    /// Hugging Face: `model.layers.0.self_attn.q_proj.weight`.
    HuggingFace,
}

/// The name of a tensor in each kind of file; `*` stands for the layer, `@` for the expert where each has a tensor of its own. An empty name: files of this kind do not have the tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    gguf: &'static str,
    hugging_face: &'static str,
    /// What both names end in.
    end: &'static str,
}

impl Name {
    /// Of no tensor.
    pub(crate) const NONE: Self = Self::new("", "");

    pub(crate) const fn new(gguf: &'static str, hugging_face: &'static str) -> Self {
        Self::ending(gguf, hugging_face, "")
    }

    /// The same tensor, which no GGUF has.
    pub(crate) const fn of_checkpoints(self) -> Self {
        Self { gguf: "", ..self }
    }

    /// Both names, without their common end.
    pub(crate) const fn ending(gguf: &'static str, hugging_face: &'static str, end: &'static str) -> Self {
        Self {
            gguf,
            hugging_face,
            end,
        }
    }

    /// The name in a file; `None` if files of this kind do not have the tensor.
    pub(crate) fn of(self, naming: Naming, layer: usize) -> Option<String> {
        let name = match naming {
            Naming::Gguf => self.gguf,
            Naming::HuggingFace => self.hugging_face,
        };
        (!name.is_empty()).then(|| name.replace('*', &layer.to_string()) + self.end)
    }
}

/// Names of the tensors of a linear map.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LinearNames {
    pub(crate) weight: Name,
    pub(crate) bias: Name,
    /// A factor on the products.
    pub(crate) scale: Name,
    /// A factor on inputs that are rounded to NVFP4. Nobody rounds them here.
    pub(crate) input_scale: Name,
}

impl LinearNames {
    /// Those of no map.
    pub(crate) const NONE: Self = Self::new("", "");

    /// Those of a weight with these whole names.
    pub(crate) const fn whole(gguf: &'static str, hugging_face: &'static str) -> Self {
        Self {
            weight: Name::new(gguf, hugging_face),
            ..Self::NONE
        }
    }

    /// Those of a map: its name in each kind of file, and then `.weight`, `.bias` and so on.
    pub(crate) const fn new(gguf: &'static str, hugging_face: &'static str) -> Self {
        Self {
            weight: Name::ending(gguf, hugging_face, ".weight"),
            bias: Name::ending(gguf, hugging_face, ".bias"),
            scale: Name::ending(gguf, "", ".scale"),
            input_scale: Name::ending(gguf, "", ".input_scale"),
        }
    }
}

/// Names of the matrices of all experts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExpertNames {
    /// Of the tensor with all of them.
    pub(crate) together: Name,
    /// Of the tensor of each, with `@`.
    pub(crate) apart: Name,
    /// Of a bias of each.
    pub(crate) bias: Name,
    /// Of a factor for each.
    pub(crate) scale: Name,
    /// As [`LinearNames::input_scale`].
    pub(crate) input_scale: Name,
}

/// The name of an expert's tensor, from one with `@`.
pub(crate) fn of_expert(name: &str, expert: usize) -> String {
    name.replace('@', &expert.to_string())
}

/// Beginnings of names in the text part of a multimodal checkpoint, with what a text model has in their place.
const TEXT_PART: [(&str, &str); 3] = [
    ("model.language_model.", "model."),
    ("language_model.model.", "model."),
    ("language_model.lm_head.", "lm_head."),
];
/// The other parts of such checkpoints, some of which stand under `model.`.
const OTHER_PARTS: [&str; 7] = [
    "audio_tower.",
    "embed_audio.",
    "embed_vision.",
    "multi_modal_projector.",
    "vision_model.",
    "vision_tower.",
    "visual.",
];

/// The name of a tensor as a text model has it; `None` for a tensor of another part of a multimodal model.
pub(crate) fn of_text_part(name: &str) -> Option<String> {
    for (beginning, instead) in TEXT_PART {
        if let Some(rest) = name.strip_prefix(beginning) {
            return Some(format!("{instead}{rest}"));
        }
    }
    let bare = name.strip_prefix("model.").unwrap_or(name);
    let is_other = OTHER_PARTS.iter().any(|part| bare.starts_with(part));
    (!is_other).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layer_stands_for_the_star() {
        let name = Name::new("blk.*.attn_q.weight", "model.layers.*.self_attn.q_proj.weight");
        assert_eq!(name.of(Naming::Gguf, 3).unwrap(), "blk.3.attn_q.weight");
        let hugging_face = name.of(Naming::HuggingFace, 12).unwrap();
        assert_eq!(hugging_face, "model.layers.12.self_attn.q_proj.weight");
        let of_gguf = Name::new("rope_freqs.weight", "");
        assert_eq!(of_gguf.of(Naming::HuggingFace, 0), None);
    }
}
