//! Words and marks of PTX, with the line they stand in.

use crate::ParseError;

/// One token. Strings are left out: no kernel's parameters stand in one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// A directive, an instruction, a register, a name or a number.
    Word(&'a str),
    /// Anything else.
    Mark(char),
}

pub(super) struct Tokens<'a> {
    rest: &'a str,
    line: usize,
}

impl<'a> Tokens<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { rest: text, line: 1 }
    }

    pub(super) fn error(&self, reason: String) -> ParseError {
        ParseError::Ptx {
            line: self.line,
            reason: reason.chars().take(200).collect(),
        }
    }

    fn skip(&mut self, bytes: usize) -> &'a str {
        let (skipped, rest) = self.rest.split_at(bytes);
        self.line += skipped.bytes().filter(|&b| b == b'\n').count();
        self.rest = rest;
        skipped
    }

    /// Skips blanks, comments and strings.
    fn skip_blanks(&mut self) -> Result<(), ParseError> {
        loop {
            let blanks = self.rest.len() - self.rest.trim_start().len();
            self.skip(blanks);
            let length = if self.rest.starts_with("//") {
                self.rest.find('\n').unwrap_or(self.rest.len())
            } else if let Some(comment) = self.rest.strip_prefix("/*") {
                let end = comment.find("*/");
                end.ok_or_else(|| self.error("a comment without an end".to_owned()))? + 4
            } else if let Some(string) = self.rest.strip_prefix('"') {
                let end = string.find('"');
                end.ok_or_else(|| self.error("a string without an end".to_owned()))? + 2
            } else {
                return Ok(());
            };
            self.skip(length);
        }
    }

    pub(super) fn next(&mut self) -> Result<Option<Token<'a>>, ParseError> {
        self.skip_blanks()?;
        let part_of_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '.' | '%');
        let Some(first) = self.rest.chars().next() else {
            return Ok(None);
        };
        if !part_of_word(first) {
            self.skip(first.len_utf8());
            return Ok(Some(Token::Mark(first)));
        }
        let length = self.rest.find(|c| !part_of_word(c)).unwrap_or(self.rest.len());
        Ok(Some(Token::Word(self.skip(length))))
    }

    /// Takes this mark, if it comes next.
    pub(super) fn take_if(&mut self, mark: char) -> Result<bool, ParseError> {
        self.skip_blanks()?;
        let found = self.rest.starts_with(mark);
        if found {
            self.skip(mark.len_utf8());
        }
        Ok(found)
    }

    pub(super) fn word(&mut self) -> Result<&'a str, ParseError> {
        match self.next()? {
            Some(Token::Word(word)) => Ok(word),
            Some(Token::Mark(mark)) => Err(self.error(format!("{mark:?} where a word belongs"))),
            None => Err(self.error("the text ends where a word belongs".to_owned())),
        }
    }

    pub(super) fn number(&mut self) -> Result<u32, ParseError> {
        let word = self.word()?;
        word.parse()
            .map_err(|_| self.error(format!("{word:?} where a number belongs")))
    }

    pub(super) fn number_and(&mut self, mark: char) -> Result<u32, ParseError> {
        let number = self.number()?;
        if self.take_if(mark)? {
            Ok(number)
        } else {
            Err(self.error(format!("no {mark:?} behind {number}")))
        }
    }

    /// `256, 1, 1`; what is left out is 1.
    pub(super) fn threads(&mut self) -> Result<[u32; 3], ParseError> {
        let mut dims = [self.number()?, 1, 1];
        for dim in &mut dims[1..] {
            if !self.take_if(',')? {
                break;
            }
            *dim = self.number()?;
        }
        Ok(dims)
    }

    /// Everything up to the brace that closes the one just taken, and that brace.
    pub(super) fn block(&mut self, mut each: impl FnMut(Token<'a>)) -> Result<(), ParseError> {
        let mut open = 1usize;
        while let Some(token) = self.next()? {
            match token {
                Token::Mark('{') => open += 1,
                Token::Mark('}') => open -= 1,
                _ => {}
            }
            if open == 0 {
                return Ok(());
            }
            each(token);
        }
        Err(self.error(format!("{open} braces are never closed")))
    }
}
