//! Added tokens: finds the tokens that are matched as a whole, before text is split and merged.

use std::collections::BTreeMap;
use std::ops::Range;

/// A token that is matched as a whole.
#[derive(Clone, Debug)]
pub(super) struct AddedToken {
    pub(super) id: u32,
    /// Whether the token marks the format. It is then matched only where that is allowed.
    pub(super) control: bool,
    /// Whether white space before it belongs to it.
    pub(super) strip_left: bool,
    /// Whether white space after it belongs to it.
    pub(super) strip_right: bool,
    /// Whether it is matched only where no letter or digit stands beside it.
    pub(super) single_word: bool,
}

/// A place where an added token stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Found {
    /// The token's bytes in the text, with the white space that belongs to it.
    pub(super) span: Range<usize>,
    pub(super) id: u32,
}

/// Added tokens of a vocabulary.
#[derive(Clone, Debug, Default)]
pub(super) struct AddedTokens {
    /// Sorted by text, each text once, without the empty one.
    sorted: Vec<Token>,
    /// Those of them that are no control tokens.
    plain: Vec<Token>,
}

/// A token with its text.
type Token = (String, AddedToken);

impl AddedTokens {
    /// Of several tokens with one text the last is taken.
    pub(super) fn new(tokens: impl IntoIterator<Item = (String, AddedToken)>) -> Self {
        let by_text: BTreeMap<String, AddedToken> = tokens.into_iter().filter(|(text, _)| !text.is_empty()).collect();
        let sorted: Vec<Token> = by_text.into_iter().collect();
        Self {
            plain: sorted.iter().filter(|(_, token)| !token.control).cloned().collect(),
            sorted,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// The control tokens' texts.
    pub(super) fn control_texts(&self) -> impl Iterator<Item = &str> {
        self.sorted
            .iter()
            .filter(|(_, token)| token.control)
            .map(|(text, _)| text.as_str())
    }

    /// The longest token that `text` begins with and that fits.
    fn longest<'a>(tokens: &'a [Token], text: &[u8], fits: impl Fn(&Token) -> bool) -> Option<&'a Token> {
        // Tokens that agree with the text so far and are longer.
        let mut agree = tokens;
        let mut longest = None;
        for (at, &byte) in text.iter().enumerate() {
            if let [only] = agree {
                let whole = text.starts_with(only.0.as_bytes()) && fits(only);
                return whole.then_some(only).or(longest);
            }
            let byte_of = |token: &Token| token.0.as_bytes().get(at).copied();
            let start = agree.partition_point(|token| byte_of(token) < Some(byte));
            let end = agree.partition_point(|token| byte_of(token) <= Some(byte));
            agree = &agree[start..end];
            // The one that ends here, if any, comes first.
            match agree.split_first() {
                None => break,
                Some((first, rest)) if first.0.len() == at + 1 => {
                    longest = if fits(first) { Some(first) } else { longest };
                    agree = rest;
                }
                Some(_) => {}
            }
        }
        longest
    }

    /// The first added token of `text` that begins at or after `from`, the longest where several begin at one place.
    /// A control token counts only where it lies within one of the `allowed` spans, which are sorted and apart.
    pub(super) fn find(&self, text: &str, from: usize, allowed: &[Range<usize>]) -> Option<Found> {
        let tokens = if allowed.is_empty() { &self.plain } else { &self.sorted };
        (from..text.len()).find_map(|start| {
            let span = |token: &Token| start..start + token.0.len();
            let fits = |token: &Token| {
                let span = span(token);
                (!token.1.control || lies_within(&span, allowed)) && token.1.fits(text, &span)
            };
            let found = Self::longest(tokens, &text.as_bytes()[start..], fits)?;
            Some(Found {
                span: found.1.with_space(text, span(found), from),
                id: found.1.id,
            })
        })
    }
}

impl AddedToken {
    fn fits(&self, text: &str, span: &Range<usize>) -> bool {
        let word = |character: Option<char>| character.is_some_and(|c| c.is_alphanumeric() || c == '_');
        !self.single_word || !(word(text[..span.start].chars().next_back()) || word(text[span.end..].chars().next()))
    }

    /// The span with the white space that belongs to the token, back to `from` at most.
    fn with_space(&self, text: &str, span: Range<usize>, from: usize) -> Range<usize> {
        let start = if self.strip_left {
            from + text[from..span.start].trim_end().len()
        } else {
            span.start
        };
        let end = if self.strip_right {
            text.len() - text[span.end..].trim_start().len()
        } else {
            span.end
        };
        start..end
    }
}

fn lies_within(span: &Range<usize>, allowed: &[Range<usize>]) -> bool {
    let after = allowed.partition_point(|range| range.start <= span.start);
    after
        .checked_sub(1)
        .and_then(|at| allowed.get(at))
        .is_some_and(|range| span.end <= range.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(id: u32, control: bool) -> AddedToken {
        AddedToken {
            id,
            control,
            strip_left: false,
            strip_right: false,
            single_word: false,
        }
    }

    #[test]
    fn the_leftmost_and_there_the_longest_token_is_found() {
        let added = AddedTokens::new([
            ("<a>".to_owned(), token(1, false)),
            ("<a><b>".to_owned(), token(2, false)),
            (String::new(), token(3, false)),
        ]);
        assert_eq!(added.find("é<a><b><a>", 0, &[]), Some(Found { span: 2..8, id: 2 }));
        assert_eq!(added.find("é<a><b><a>", 3, &[]), Some(Found { span: 8..11, id: 1 }));
        assert_eq!(added.find("é<a><b><a>", 9, &[]), None);
    }

    #[test]
    fn control_tokens_must_lie_within_one_allowed_span() {
        let added = AddedTokens::new([("<e>".to_owned(), token(7, true))]);
        let text = "x<e>";
        assert_eq!(added.find(text, 0, &[]), None);
        assert_eq!(added.find(text, 0, &[0..2, 2..4]), None);
        let short: &[Range<usize>] = &[Range { start: 0, end: 3 }];
        assert_eq!(added.find(text, 0, short), None);
        assert_eq!(added.find(text, 0, &[0..1, 1..4]), Some(Found { span: 1..4, id: 7 }));
    }

    #[test]
    fn white_space_and_words_beside_a_token() {
        let strips = AddedToken {
            strip_left: true,
            strip_right: true,
            ..token(5, false)
        };
        let added = AddedTokens::new([("<m>".to_owned(), strips)]);
        assert_eq!(added.find("a  <m>\n b", 2, &[]), Some(Found { span: 2..8, id: 5 }));
        let word = AddedToken {
            single_word: true,
            ..token(6, false)
        };
        let added = AddedTokens::new([("ab".to_owned(), word)]);
        assert_eq!(added.find("xab abx ab.", 0, &[]), Some(Found { span: 8..10, id: 6 }));
    }
}
