//! Tokens of a template, with the white space around tags taken away as `trim_blocks` and `lstrip_blocks` ask.

use std::sync::Arc;

use super::error::{Error, wrong};
use super::text::is_space;

/// A token with its line.
#[derive(Clone, Debug)]
pub(super) struct Token {
    pub(super) line: u32,
    pub(super) kind: TokenKind,
}

/// Tokens.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum TokenKind {
    Text(Arc<str>),
    PrintBegin,
    PrintEnd,
    BlockBegin,
    BlockEnd,
    Name(String),
    String(String),
    Int(i128),
    Float(f64),
    Operator(&'static str),
    End,
}

/// Operators, the longer before those they begin with.
const OPERATORS: [&str; 26] = [
    "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[", "]", "(", ")", "{", "}", ">", "<", "=", ".",
    ":", "|", ",", ";",
];

/// Kinds of tags.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tag {
    Print,
    Block,
    Comment,
}

impl Tag {
    fn end(self) -> &'static str {
        match self {
            Tag::Print => "}}",
            Tag::Block => "%}",
            Tag::Comment => "#}",
        }
    }
}

struct Lexer<'s> {
    rest: &'s str,
    line: u32,
    /// Whether what stands before `rest` ended with a newline, or `rest` is the whole template.
    at_line_start: bool,
    tokens: Vec<Token>,
}

/// The tokens of a template.
pub(super) fn tokens(source: &str) -> Result<Vec<Token>, Error> {
    let mut source = source.replace("\r\n", "\n").replace('\r', "\n");
    if source.ends_with('\n') {
        source.pop();
    }
    let mut lexer = Lexer {
        rest: &source,
        line: 1,
        at_line_start: true,
        tokens: Vec::new(),
    };
    lexer.run().map_err(|error| error.at(lexer.line))?;
    lexer.push(TokenKind::End);
    Ok(lexer.tokens)
}

impl<'s> Lexer<'s> {
    fn run(&mut self) -> Result<(), Error> {
        while let Some((at, tag)) = next_tag(self.rest) {
            let before = self.rest.split_at(at).0;
            let sign = self.rest[at + 2..]
                .chars()
                .next()
                .filter(|sign| matches!(sign, '-' | '+'));
            self.text(before, tag, sign);
            self.advance(at + 2 + usize::from(sign.is_some()));
            match tag {
                Tag::Comment => self.comment()?,
                Tag::Block if self.raw_begins() => self.raw()?,
                Tag::Block => {
                    self.push(TokenKind::BlockBegin);
                    self.inside(Tag::Block)?;
                    self.push(TokenKind::BlockEnd);
                }
                Tag::Print => {
                    self.push(TokenKind::PrintBegin);
                    self.inside(Tag::Print)?;
                    self.push(TokenKind::PrintEnd);
                }
            }
        }
        let rest = self.rest;
        self.push_text(rest);
        self.advance(rest.len());
        Ok(())
    }

    /// The text before a tag, without the white space that the tag takes away.
    fn text(&mut self, before: &str, tag: Tag, sign: Option<char>) {
        let kept = match sign {
            Some('-') => before.trim_end_matches(is_space),
            Some(_) => before,
            None if tag == Tag::Print => before,
            None => {
                let line = before.rfind('\n').map_or(0, |at| at + 1);
                let blank = before[line..].chars().all(is_space);
                if blank && (line > 0 || self.at_line_start) {
                    &before[..line]
                } else {
                    before
                }
            }
        };
        self.push_text(kept);
    }

    fn push_text(&mut self, text: &str) {
        if !text.is_empty() {
            self.push(TokenKind::Text(text.into()));
        }
    }

    fn push(&mut self, kind: TokenKind) {
        self.tokens.push(Token { line: self.line, kind });
    }

    fn advance(&mut self, bytes: usize) -> &'s str {
        let (passed, rest) = self.rest.split_at(bytes);
        self.line += passed.bytes().filter(|byte| *byte == b'\n').count() as u32;
        if let Some(last) = passed.bytes().last() {
            self.at_line_start = last == b'\n';
        }
        self.rest = rest;
        passed
    }

    fn skip_space(&mut self) {
        let rest = self.rest.trim_start_matches(is_space);
        self.advance(self.rest.len() - rest.len());
    }

    /// Passes the end of a tag, if it stands here, and the white space that it takes away.
    fn end_of(&mut self, tag: Tag) -> bool {
        let end = tag.end();
        if let Some(rest) = self.rest.strip_prefix('-')
            && rest.starts_with(end)
        {
            self.advance(1 + end.len());
            self.skip_space();
            return true;
        }
        if let Some(rest) = self.rest.strip_prefix('+')
            && rest.starts_with(end)
            && tag != Tag::Print
        {
            self.advance(1 + end.len());
            return true;
        }
        if self.rest.starts_with(end) {
            self.advance(end.len());
            if tag != Tag::Print && self.rest.starts_with('\n') {
                self.advance(1);
            }
            return true;
        }
        false
    }

    fn comment(&mut self) -> Result<(), Error> {
        let Some(at) = self.rest.find("#}") else {
            return Err(wrong("a comment has no end"));
        };
        let sign = self.rest[..at].ends_with(['-', '+']);
        self.advance(at - usize::from(sign));
        self.end_of(Tag::Comment);
        Ok(())
    }

    /// Whether the tag that begins here is `{% raw %}`.
    fn raw_begins(&self) -> bool {
        let word = self.rest.trim_start_matches(is_space).strip_prefix("raw");
        let after = word.map(|rest| rest.trim_start_matches(is_space));
        after.is_some_and(|rest| rest.starts_with("%}") || rest.starts_with("-%}"))
    }

    /// `{% raw %}`, whose text goes on to `{% endraw %}`.
    fn raw(&mut self) -> Result<(), Error> {
        self.skip_space();
        self.advance("raw".len());
        self.skip_space();
        let trims = self.rest.starts_with('-');
        self.advance("%}".len() + usize::from(trims));
        if trims {
            self.skip_space();
        }
        let mut from = 0;
        while let Some(at) = self.rest[from..].find("{%") {
            let at = from + at;
            let tag = &self.rest[at + 2..];
            let sign = tag.chars().next().filter(|sign| matches!(sign, '-' | '+'));
            let word = tag[usize::from(sign.is_some())..].trim_start_matches(is_space);
            if let Some(end) = word.strip_prefix("endraw") {
                let end = end.trim_start_matches(is_space);
                if ["%}", "-%}", "+%}"].iter().any(|form| end.starts_with(form)) {
                    let before = &self.rest[..at];
                    let passed = self.rest.len() - end.len();
                    self.text(before, Tag::Block, sign);
                    self.advance(passed);
                    self.end_of(Tag::Block);
                    return Ok(());
                }
            }
            from = at + 2;
        }
        Err(wrong("`raw` has no `endraw`"))
    }

    /// The tokens inside a tag, and its end.
    fn inside(&mut self, tag: Tag) -> Result<(), Error> {
        let mut open: Vec<&'static str> = Vec::new();
        loop {
            if open.is_empty() && self.end_of(tag) {
                return Ok(());
            }
            let Some(first) = self.rest.chars().next() else {
                return Err(wrong("a tag has no end"));
            };
            if is_space(first) {
                self.skip_space();
            } else if first.is_ascii_digit() {
                self.number()?;
            } else if is_name(first) {
                let length = self.rest.find(|c| !is_name(c)).unwrap_or(self.rest.len());
                let name = self.rest[..length].to_owned();
                self.push(TokenKind::Name(name));
                self.advance(length);
            } else if matches!(first, '"' | '\'') {
                self.string(first)?;
            } else {
                let Some(operator) = OPERATORS.iter().find(|operator| self.rest.starts_with(**operator)) else {
                    return Err(wrong(format!("the character {first:?} does not belong into a tag")));
                };
                match *operator {
                    "(" | "[" | "{" => open.push(operator),
                    ")" | "]" | "}" => {
                        let expected = match *operator {
                            ")" => "(",
                            "]" => "[",
                            _ => "{",
                        };
                        if open.pop() != Some(expected) {
                            return Err(wrong(format!("{operator:?} closes no bracket")));
                        }
                    }
                    _ => {}
                }
                self.push(TokenKind::Operator(operator));
                self.advance(operator.len());
            }
        }
    }

    fn number(&mut self) -> Result<(), Error> {
        let rest = self.rest;
        let bytes = rest.as_bytes();
        let radix = match bytes.get(1) {
            Some(b'x' | b'X') => 16,
            Some(b'o' | b'O') => 8,
            Some(b'b' | b'B') => 2,
            _ => 10,
        };
        if bytes[0] == b'0' && radix != 10 {
            let digits = &rest[2..];
            let length = digits
                .find(|c: char| !c.is_digit(radix) && c != '_')
                .unwrap_or(digits.len());
            let value = i128::from_str_radix(&digits[..length].replace('_', ""), radix);
            self.push(TokenKind::Int(
                value.map_err(|_| wrong("a number that cannot be read"))?,
            ));
            self.advance(2 + length);
            return Ok(());
        }
        let digits = |from: usize| -> usize {
            let mut at = from;
            while let Some(byte) = bytes.get(at) {
                let between = *byte == b'_' && at > from && bytes.get(at + 1).is_some_and(u8::is_ascii_digit);
                if !byte.is_ascii_digit() && !between {
                    break;
                }
                at += 1;
            }
            at
        };
        let whole = digits(0);
        let mut end = whole;
        // `a.0.1` has items, not a fraction.
        let after_dot = matches!(
            self.tokens.last(),
            Some(Token {
                kind: TokenKind::Operator("."),
                ..
            })
        );
        if !after_dot {
            if bytes.get(end) == Some(&b'.') && digits(end + 1) > end + 1 {
                end = digits(end + 1);
            }
            if let Some(b'e' | b'E') = bytes.get(end) {
                let sign = matches!(bytes.get(end + 1), Some(b'+' | b'-'));
                let from = end + 1 + usize::from(sign);
                if digits(from) > from {
                    end = digits(from);
                }
            }
        }
        let text = rest[..end].replace('_', "");
        let kind = if end == whole {
            text.parse().map(TokenKind::Int).ok()
        } else {
            text.parse().map(TokenKind::Float).ok()
        };
        self.push(kind.ok_or_else(|| wrong("a number beyond 128 bits"))?);
        self.advance(end);
        Ok(())
    }

    fn string(&mut self, quote: char) -> Result<(), Error> {
        let mut out = String::new();
        let mut characters = self.rest.char_indices().skip(1).peekable();
        let end = loop {
            let Some((at, character)) = characters.next() else {
                return Err(wrong("a string has no end"));
            };
            if character == quote {
                break at + 1;
            }
            if character != '\\' {
                out.push(character);
                continue;
            }
            let Some((at, escaped)) = characters.next() else {
                return Err(wrong("a string has no end"));
            };
            let simple = match escaped {
                '\n' => None,
                '\\' | '\'' | '"' => Some(escaped),
                'n' => Some('\n'),
                't' => Some('\t'),
                'r' => Some('\r'),
                'a' => Some('\x07'),
                'b' => Some('\x08'),
                'f' => Some('\x0c'),
                'v' => Some('\x0b'),
                'x' | 'u' | 'U' => {
                    let digits = match escaped {
                        'x' => 2,
                        'u' => 4,
                        _ => 8,
                    };
                    let code = self.rest.get(at + 1..at + 1 + digits);
                    let code = code.filter(|code| code.bytes().all(|byte| byte.is_ascii_hexdigit()));
                    let code = code.and_then(|code| u32::from_str_radix(code, 16).ok());
                    for _ in 0..digits {
                        characters.next();
                    }
                    let character = code.and_then(char::from_u32);
                    Some(character.ok_or_else(|| wrong(format!("\\{escaped} names no character")))?)
                }
                '0'..='7' => {
                    let mut code = escaped.to_digit(8).unwrap_or(0);
                    for _ in 0..2 {
                        let Some(digit) = characters.peek().and_then(|(_, c)| c.to_digit(8)) else {
                            break;
                        };
                        code = code * 8 + digit;
                        characters.next();
                    }
                    char::from_u32(code)
                }
                'N' => return Err(wrong("characters by name (\\N) are not supported")),
                _ => {
                    out.push('\\');
                    Some(escaped)
                }
            };
            out.extend(simple);
        };
        self.push(TokenKind::String(out));
        self.advance(end);
        Ok(())
    }
}

/// Where the next tag begins.
fn next_tag(text: &str) -> Option<(usize, Tag)> {
    let bytes = text.as_bytes();
    let at = bytes
        .windows(2)
        .position(|pair| matches!(pair, b"{{" | b"{%" | b"{#"))?;
    let tag = match bytes[at + 1] {
        b'{' => Tag::Print,
        b'%' => Tag::Block,
        _ => Tag::Comment,
    };
    Some((at, tag))
}

fn is_name(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}
