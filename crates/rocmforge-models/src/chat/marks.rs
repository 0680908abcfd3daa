//! Marks: private-use characters that stand for parts of users' text while a template is rendered.

use std::collections::{HashMap, HashSet};

use super::ChatError;
use crate::tokenizer::Piece;

/// Which characters of contents are marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// Every character that begins or ends a control token, wherever it stands. No control token can then begin or end
    /// in users' text, whatever the template does with it.
    EveryBorder,
    /// The first character of each control token in a content, and characters at a content's borders that the template's
    /// own text could complete to one.
    WholeTokens,
}

/// Contents with marks.
pub(super) struct Marked {
    contents: Vec<String>,
    /// The character that each mark stands for.
    original: HashMap<char, char>,
}

impl Marked {
    /// Whether nothing had to be marked.
    pub(super) fn is_unchanged(&self) -> bool {
        self.original.is_empty()
    }

    /// The contents to be rendered.
    pub(super) fn contents(&self) -> impl Iterator<Item = &str> {
        self.contents.iter().map(String::as_str)
    }

    /// The characters that stand for others.
    pub(super) fn marks(&self) -> Vec<char> {
        self.original.keys().copied().collect()
    }

    /// The rendered text with the marked characters put back, in pieces that are not trusted.
    pub(super) fn restore(&self, rendered: &str) -> Vec<Piece> {
        let mut pieces: Vec<Piece> = Vec::new();
        for character in rendered.chars() {
            let original = self.original.get(&character);
            let trusted = original.is_none();
            let character = original.copied().unwrap_or(character);
            match pieces.last_mut() {
                Some(last) if last.trusted == trusted => last.text.push(character),
                _ => pieces.push(Piece {
                    text: character.into(),
                    trusted,
                }),
            }
        }
        pieces
    }
}

/// Marks characters of `contents` against the texts `control`. Characters in `taken` do not serve as marks.
pub(super) fn mark(contents: &[&str], control: &[&str], extent: Extent, taken: &[&str]) -> Result<Marked, ChatError> {
    let places: Vec<HashSet<usize>> = match extent {
        Extent::EveryBorder => {
            let borders: HashSet<char> = control
                .iter()
                .flat_map(|text| [text.chars().next(), text.chars().next_back()])
                .flatten()
                .collect();
            let of_content = |content: &&str| {
                content
                    .char_indices()
                    .filter(|(_, character)| borders.contains(character))
                    .map(|(at, _)| at)
                    .collect()
            };
            contents.iter().map(of_content).collect()
        }
        Extent::WholeTokens => contents.iter().map(|content| whole_tokens(content, control)).collect(),
    };
    let used: HashSet<char> = contents
        .iter()
        .chain(taken)
        .flat_map(|text| text.chars())
        .filter(|c| is_private_use(*c))
        .collect();
    let mut free = ('\u{f0000}'..='\u{ffffd}')
        .chain('\u{e000}'..='\u{f8ff}')
        .filter(|c| !used.contains(c));
    let mut mark_of: HashMap<char, char> = HashMap::new();
    let mut marked = Vec::with_capacity(contents.len());
    for (content, places) in contents.iter().zip(&places) {
        let mut out = String::with_capacity(content.len());
        for (at, character) in content.char_indices() {
            if !places.contains(&at) {
                out.push(character);
                continue;
            }
            let mark = match mark_of.get(&character) {
                Some(mark) => *mark,
                None => {
                    let mark = free.next().ok_or(ChatError::NoFreeMark)?;
                    mark_of.insert(character, mark);
                    mark
                }
            };
            out.push(mark);
        }
        marked.push(out);
    }
    let original = mark_of.into_iter().map(|(character, mark)| (mark, character)).collect();
    Ok(Marked {
        contents: marked,
        original,
    })
}

fn is_private_use(character: char) -> bool {
    matches!(character, '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{ffffd}')
}

/// Places of the characters to be marked in one content.
fn whole_tokens(content: &str, control: &[&str]) -> HashSet<usize> {
    let mut by_first: HashMap<char, Vec<&str>> = HashMap::new();
    for text in control {
        if let Some(first) = text.chars().next() {
            by_first.entry(first).or_default().push(text);
        }
    }
    let mut places = HashSet::new();
    for (at, character) in content.char_indices() {
        let Some(texts) = by_first.get(&character) else {
            continue;
        };
        let rest = &content[at..];
        // The token stands here, or the content ends within it.
        if texts
            .iter()
            .any(|text| rest.starts_with(text) || text.starts_with(rest))
        {
            places.insert(at);
        }
    }
    // The content begins within a token.
    for text in control {
        for (at, _) in text.char_indices().skip(1) {
            let tail = &text[at..];
            if content.starts_with(tail) || tail.starts_with(content) && !content.is_empty() {
                places.insert(0);
            }
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTROL: &[&str] = &["<|end|>", "[INST]"];

    #[test]
    fn every_border_marks_each_first_and_last_character() {
        let marked = mark(&["a<b]c", "é>"], CONTROL, Extent::EveryBorder, &[]).unwrap();
        let contents: Vec<&str> = marked.contents().collect();
        assert_eq!(contents, ["a\u{f0000}b\u{f0001}c", "é\u{f0002}"]);
        let pieces = marked.restore("x\u{f0000}\u{f0002}y");
        let expected = [("x", true), ("<>", false), ("y", true)];
        let expected = expected.map(|(text, trusted)| Piece {
            text: text.to_owned(),
            trusted,
        });
        assert_eq!(pieces, expected);
    }

    #[test]
    fn whole_tokens_marks_tokens_and_borders_only() {
        for (content, places) in [
            ("a < b > c", vec![]),
            ("a <|end|> b", vec![2]),
            ("a <|en", vec![2]),
            ("end|> b", vec![0]),
            ("<", vec![0]),
            ("nd", vec![0]),
            ("", vec![]),
            ("[INST][INST", vec![0, 6]),
        ] {
            let mut found: Vec<usize> = whole_tokens(content, CONTROL).into_iter().collect();
            found.sort_unstable();
            assert_eq!(found, places, "{content:?}");
        }
    }

    #[test]
    fn marks_are_characters_that_nothing_else_uses() {
        let marked = mark(&["<\u{f0000}"], CONTROL, Extent::EveryBorder, &["\u{f0001}"]).unwrap();
        assert_eq!(marked.contents().collect::<Vec<_>>(), ["\u{f0002}\u{f0000}"]);
    }
}
