//! End of generation: the tokens after which a model's answer is complete.

use std::collections::BTreeSet;

use super::marks::MARKS;
use super::vocabulary::{SpecialIds, TokenType};

/// Texts that end an answer where they are control tokens. As ordinary or user-defined tokens they are text: `</s>` is an HTML tag of
/// Gemma 3.
const WORDS: &[&str] = &["</s>", "<eos>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]"];

/// Marks of code with a gap, in models that fill it: what pads, what begins another repository, what begins another file. They are
/// looked for by text where metadata name no id, the first of a list.
const FILL_PAD: &[&str] = &["<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"];
const FILL_REPOSITORY: &[&str] = &["<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"];
const FILL_FILE: &[&str] = &["<|file_sep|>"];

/// In a vocabulary with one of each list `<|end|>` ends a part of the answer, not the answer (gpt-oss, Solar Open).
const END_IS_INNER_WITH: [&[&str]; 2] = [&["<|call|>", "<|calls|>"], &["<|return|>", "<|flush|>"]];

/// In a vocabulary with this token `</s>` is text (Gemma 4).
const TAG_IS_TEXT_WITH: &str = "<|tool_response>";

/// The ids that metadata name, and those of the texts above.
///
/// An ordinary token never becomes an end because of a text that may be written: the HTML tag `</s>` of Gemma 3 stays one.
pub(super) fn end_of_generation(
    special: &SpecialIds,
    types: &[TokenType],
    id_of: impl Fn(&str) -> Option<u32>,
) -> BTreeSet<u32> {
    let control = |text: &&str| id_of(text).filter(|&id| types.get(id as usize) == Some(&TokenType::Control));
    let fill = |named: Option<u32>, texts: &[&str]| {
        let marked = |text: &&str| {
            id_of(text).filter(|&id| {
                let kind = types.get(id as usize);
                let bar = text.starts_with("<|") && kind == Some(&TokenType::UserDefined);
                bar || kind == Some(&TokenType::Control)
            })
        };
        named.or_else(|| texts.iter().find_map(marked))
    };
    let named = [
        special.eos,
        special.eot,
        special.eom,
        fill(special.fim_pad, FILL_PAD),
        fill(special.fim_rep, FILL_REPOSITORY),
        fill(special.fim_sep, FILL_FILE),
    ];
    let mut ends: BTreeSet<u32> = named.into_iter().flatten().collect();
    ends.extend(MARKS.iter().filter_map(|text| id_of(text)));
    ends.extend(WORDS.iter().filter_map(control));
    let any = |texts: &[&str]| texts.iter().any(|text| id_of(text).is_some());
    if END_IS_INNER_WITH.iter().all(|texts| any(texts))
        && let Some(inner) = id_of("<|end|>")
    {
        ends.remove(&inner);
    }
    if id_of(TAG_IS_TEXT_WITH).is_some()
        && let Some(tag) = id_of("</s>")
    {
        ends.remove(&tag);
    }
    ends
}
