//! End of generation: the tokens after which a model's answer is complete.

use std::collections::BTreeSet;

use super::vocabulary::{ENDS_GENERATION, SpecialIds, TokenType};

/// In a vocabulary with both of these `<|end|>` ends a part of the answer, not the answer (gpt-oss).
const END_IS_INNER_WITH: [&str; 2] = ["<|return|>", "<|call|>"];

/// The ids named by metadata, and the control and user-defined tokens in [`ENDS_GENERATION`].
///
/// An ordinary token never becomes an end because of its text: the HTML tag `</s>` of Gemma 3 stays one.
pub(super) fn end_of_generation(
    special: &SpecialIds,
    types: &[TokenType],
    id_of: impl Fn(&str) -> Option<u32>,
) -> BTreeSet<u32> {
    let marked = |text: &str| {
        id_of(text).filter(|&id| {
            let kind = types.get(id as usize);
            matches!(kind, Some(TokenType::Control | TokenType::UserDefined))
        })
    };
    let named = [special.eos, special.eot, special.eom];
    let mut ends: BTreeSet<u32> = named.into_iter().flatten().collect();
    ends.extend(ENDS_GENERATION.iter().filter_map(|text| marked(text)));
    if END_IS_INNER_WITH.iter().all(|text| marked(text).is_some())
        && let Some(inner) = marked("<|end|>")
    {
        ends.remove(&inner);
    }
    ends
}
