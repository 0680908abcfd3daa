//! Parser: statements of a template. Expressions are in `expression`.

mod expression;

use std::sync::Arc;

use super::ast::{Expr, For, Macro, Statement, StatementKind, Step, Target};
use super::error::{Cause, Error, wrong};
use super::filters;
use super::lexer::{Token, TokenKind, tokens};
use super::predicates;

/// The deepest nesting of blocks, brackets and operators that stand before their operand.
pub(crate) const MAX_NESTING: usize = 100;

/// Words that are no names of variables.
const RESERVED: [&str; 8] = ["and", "else", "if", "in", "is", "not", "or", "elif"];

/// Words that a macro's body uses to ask for further arguments.
#[derive(Clone, Copy, Default)]
struct Special {
    varargs: bool,
    kwargs: bool,
    caller: bool,
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    nesting: usize,
    /// Whether a filter that does not exist is an error only when it is used, as it is in the branches of a condition.
    soft: bool,
    /// Loops around this place, in this macro.
    loops: usize,
    special: Special,
    /// Filters and tests that do not exist, with their lines.
    missing: Vec<Error>,
}

/// The statements of a template.
pub(super) fn parse(source: &str) -> Result<Vec<Statement>, Error> {
    let mut parser = Parser {
        tokens: tokens(source)?,
        at: 0,
        nesting: 0,
        soft: false,
        loops: 0,
        special: Special::default(),
        missing: Vec::new(),
    };
    let (statements, _) = parser
        .statements(&[])
        .map_err(|error| error.at(parser.tokens[parser.at].line))?;
    match parser.missing.into_iter().next() {
        Some(error) => Err(error),
        None => Ok(statements),
    }
}

impl Parser {
    fn kind(&self) -> &TokenKind {
        &self.tokens[self.at].kind
    }

    fn line(&self) -> u32 {
        self.tokens[self.at].line
    }

    fn next(&mut self) -> TokenKind {
        let kind = self.kind().clone();
        if kind != TokenKind::End {
            self.at += 1;
        }
        kind
    }

    fn is_operator(&self, operator: &str) -> bool {
        matches!(self.kind(), TokenKind::Operator(found) if *found == operator)
    }

    fn is_name(&self, name: &str) -> bool {
        matches!(self.kind(), TokenKind::Name(found) if found == name)
    }

    fn skip_operator(&mut self, operator: &str) -> bool {
        let found = self.is_operator(operator);
        self.at += usize::from(found);
        found
    }

    fn skip_name(&mut self, name: &str) -> bool {
        let found = self.is_name(name);
        self.at += usize::from(found);
        found
    }

    fn expect_operator(&mut self, operator: &str) -> Result<(), Error> {
        if self.skip_operator(operator) {
            return Ok(());
        }
        Err(self.unexpected(operator))
    }

    fn expect_word(&mut self, word: &str) -> Result<(), Error> {
        if self.skip_name(word) {
            return Ok(());
        }
        Err(self.unexpected(word))
    }

    fn name(&mut self) -> Result<String, Error> {
        match self.kind() {
            TokenKind::Name(name) => {
                let name = name.clone();
                self.at += 1;
                Ok(name)
            }
            _ => Err(self.unexpected("a name")),
        }
    }

    fn unexpected(&self, wanted: &str) -> Error {
        let found = match self.kind() {
            TokenKind::Text(_) => "text".to_owned(),
            TokenKind::PrintBegin => "{{".to_owned(),
            TokenKind::PrintEnd => "}}".to_owned(),
            TokenKind::BlockBegin => "{%".to_owned(),
            TokenKind::BlockEnd => "%}".to_owned(),
            TokenKind::Name(name) => format!("the name {name:?}"),
            TokenKind::String(_) => "a string".to_owned(),
            TokenKind::Int(_) | TokenKind::Float(_) => "a number".to_owned(),
            TokenKind::Operator(operator) => (*operator).to_owned(),
            TokenKind::End => "the end of the template".to_owned(),
        };
        wrong(format!("{wanted} is expected, not {found}"))
    }

    /// Counts one level of nesting more.
    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        if self.nesting == MAX_NESTING {
            return Err(Error::new(Cause::Depth {
                what: "blocks and expressions are",
                limit: MAX_NESTING,
            }));
        }
        self.nesting += 1;
        let parsed = parse(self);
        self.nesting -= 1;
        parsed
    }

    /// Statements up to a tag with one of the words `ends`, which is returned and passed; without ends up to the template's end.
    fn statements(&mut self, ends: &[&str]) -> Result<(Vec<Statement>, String), Error> {
        self.nested(|parser| {
            let mut statements = Vec::new();
            loop {
                let line = parser.line();
                let kind = match parser.next() {
                    TokenKind::End if ends.is_empty() => return Ok((statements, String::new())),
                    TokenKind::End => return Err(wrong(format!("a block has no {}", ends.join(" or ")))),
                    TokenKind::Text(text) => StatementKind::Text(text),
                    TokenKind::PrintBegin => {
                        let value = parser.tuple(true, &[])?;
                        if parser.next() != TokenKind::PrintEnd {
                            parser.at -= 1;
                            return Err(parser.unexpected("}}"));
                        }
                        StatementKind::Print(value)
                    }
                    TokenKind::BlockBegin => {
                        let word = parser.name()?;
                        if ends.contains(&word.as_str()) {
                            return Ok((statements, word));
                        }
                        parser.statement(&word)?
                    }
                    _ => return Err(wrong("a tag is expected")),
                };
                statements.push(Statement { line, kind });
            }
        })
    }

    fn block_end(&mut self) -> Result<(), Error> {
        if *self.kind() == TokenKind::BlockEnd {
            self.at += 1;
            return Ok(());
        }
        Err(self.unexpected("%}"))
    }

    /// A body up to its end tag.
    fn body(&mut self, end: &str) -> Result<Vec<Statement>, Error> {
        self.block_end()?;
        let (body, _) = self.statements(&[end])?;
        self.block_end()?;
        Ok(body)
    }

    /// A body with variables of its own.
    fn scoped_body(&mut self, end: &str) -> Result<Vec<Statement>, Error> {
        let soft = std::mem::replace(&mut self.soft, false);
        let body = self.body(end);
        self.soft = soft;
        body
    }

    fn statement(&mut self, word: &str) -> Result<StatementKind, Error> {
        match word {
            "if" => self.if_statement(),
            "for" => self.for_statement(),
            "set" => self.set_statement(),
            "with" => self.with_statement(),
            "macro" => {
                let name = self.name()?;
                self.macro_body(name, "endmacro").map(StatementKind::Macro)
            }
            "call" => self.call_statement(),
            "filter" => {
                let filters = self.filter_chain()?;
                let body = self.scoped_body("endfilter")?;
                Ok(StatementKind::Filter { filters, body })
            }
            "generation" => Ok(StatementKind::Generation(
                self.macro_scope(|parser| parser.body("endgeneration"))?.0,
            )),
            "break" | "continue" => {
                if self.loops == 0 {
                    return Err(wrong(format!("{word} stands outside of a loop")));
                }
                self.block_end()?;
                Ok(if word == "break" {
                    StatementKind::Break
                } else {
                    StatementKind::Continue
                })
            }
            "block" | "extends" | "include" | "import" | "from" | "autoescape" => {
                Err(wrong(format!("the tag {word:?} is not supported in chat templates")))
            }
            _ => Err(wrong(format!("the tag {word:?} is not known here"))),
        }
    }

    fn if_statement(&mut self) -> Result<StatementKind, Error> {
        let soft = std::mem::replace(&mut self.soft, true);
        let mut branches = Vec::new();
        let mut otherwise = Vec::new();
        loop {
            let test = self.tuple(false, &[])?;
            self.block_end()?;
            let (body, end) = self.statements(&["elif", "else", "endif"])?;
            branches.push((test, body));
            match end.as_str() {
                "elif" => continue,
                "else" => {
                    self.block_end()?;
                    (otherwise, _) = self.statements(&["endif"])?;
                }
                _ => {}
            }
            self.block_end()?;
            break;
        }
        self.soft = soft;
        Ok(StatementKind::If { branches, otherwise })
    }

    fn for_statement(&mut self) -> Result<StatementKind, Error> {
        let target = self.target(false, &["in"])?;
        self.expect_word("in")?;
        let items = self.tuple(false, &["recursive"])?;
        let soft = std::mem::replace(&mut self.soft, false);
        let condition = if self.skip_name("if") {
            Some(self.expression()?)
        } else {
            None
        };
        let recursive = self.skip_name("recursive");
        self.block_end()?;
        self.loops += 1;
        let (body, end) = self.statements(&["endfor", "else"])?;
        self.loops -= 1;
        let mut otherwise = Vec::new();
        if end == "else" {
            self.block_end()?;
            (otherwise, _) = self.statements(&["endfor"])?;
        }
        self.block_end()?;
        self.soft = soft;
        Ok(StatementKind::For(Box::new(For {
            target,
            items,
            condition,
            recursive,
            body,
            otherwise,
        })))
    }

    fn set_statement(&mut self) -> Result<StatementKind, Error> {
        let target = self.target(true, &[])?;
        if self.skip_operator("=") {
            let value = self.tuple(true, &[])?;
            self.block_end()?;
            return Ok(StatementKind::Set { target, value });
        }
        let filters = if self.skip_operator("|") {
            self.filter_chain()?
        } else {
            Vec::new()
        };
        let body = self.scoped_body("endset")?;
        Ok(StatementKind::SetBlock { target, filters, body })
    }

    fn with_statement(&mut self) -> Result<StatementKind, Error> {
        let mut values = Vec::new();
        while *self.kind() != TokenKind::BlockEnd {
            if !values.is_empty() {
                self.expect_operator(",")?;
            }
            let target = Target::Name(self.name()?);
            self.expect_operator("=")?;
            values.push((target, self.expression()?));
        }
        let body = self.scoped_body("endwith")?;
        Ok(StatementKind::With { values, body })
    }

    fn call_statement(&mut self) -> Result<StatementKind, Error> {
        let ((parameters, call, body), special) = self.macro_scope(|parser| {
            let parameters = if parser.is_operator("(") {
                parser.parameters()?
            } else {
                Vec::new()
            };
            let call = parser.expression()?;
            Ok((parameters, call, parser.body("endcall")?))
        })?;
        if !matches!(&call, Expr::Postfix(_, steps) if matches!(steps.last(), Some(Step::Call(_)))) {
            return Err(wrong("`call` needs a call"));
        }
        let caller = Arc::new(Macro {
            name: "caller".to_owned(),
            parameters,
            body,
            varargs: special.varargs,
            kwargs: special.kwargs,
            caller: special.caller,
        });
        Ok(StatementKind::Call { caller, call })
    }

    /// Parses what has loops and special names of its own.
    fn macro_scope<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<(T, Special), Error> {
        let outer = (std::mem::take(&mut self.special), self.loops, self.soft);
        (self.loops, self.soft) = (0, false);
        let parsed = parse(self);
        let special = self.special;
        (self.special, self.loops, self.soft) = outer;
        Ok((parsed?, special))
    }

    fn macro_body(&mut self, name: String, end: &str) -> Result<Arc<Macro>, Error> {
        let ((parameters, body), special) = self.macro_scope(|parser| Ok((parser.parameters()?, parser.body(end)?)))?;
        let named = |word: &str| parameters.iter().any(|(name, _)| name == word);
        Ok(Arc::new(Macro {
            varargs: special.varargs && !named("varargs"),
            kwargs: special.kwargs && !named("kwargs"),
            caller: special.caller && !named("caller"),
            name,
            parameters,
            body,
        }))
    }

    fn parameters(&mut self) -> Result<Vec<(String, Option<Expr>)>, Error> {
        self.expect_operator("(")?;
        let mut parameters: Vec<(String, Option<Expr>)> = Vec::new();
        while !self.is_operator(")") {
            if !parameters.is_empty() {
                self.expect_operator(",")?;
            }
            let name = self.name()?;
            let default = if self.skip_operator("=") {
                Some(self.expression()?)
            } else if parameters.last().is_some_and(|(_, default)| default.is_some()) {
                return Err(wrong(format!(
                    "the parameter {name:?} needs a default, as the one before has one"
                )));
            } else {
                None
            };
            parameters.push((name, default));
        }
        self.expect_operator(")")?;
        Ok(parameters)
    }

    /// What is assigned to: a name, an attribute of a namespace, or several.
    fn target(&mut self, attributes: bool, ends: &[&str]) -> Result<Target, Error> {
        let mut targets = Vec::new();
        let mut is_tuple = false;
        loop {
            if self.is_operator("(") {
                self.at += 1;
                let inner = self.nested(|parser| parser.target(attributes, &[]))?;
                self.expect_operator(")")?;
                targets.push(inner);
            } else {
                let name = self.name()?;
                if RESERVED.contains(&name.as_str()) {
                    return Err(wrong(format!("{name:?} cannot be assigned to")));
                }
                if attributes && self.skip_operator(".") {
                    let attribute = self.name()?;
                    targets.push(Target::Attribute(name, attribute));
                } else {
                    targets.push(Target::Name(name));
                }
            }
            if !self.skip_operator(",") {
                break;
            }
            is_tuple = true;
            let ended = self.is_operator("=") || self.is_operator(")") || ends.iter().any(|end| self.is_name(end));
            if ended {
                break;
            }
        }
        match targets.pop() {
            Some(target) if !is_tuple => Ok(target),
            last => {
                targets.extend(last);
                Ok(Target::Tuple(targets))
            }
        }
    }

    /// Filters, the first without `|`.
    fn filter_chain(&mut self) -> Result<Vec<Step>, Error> {
        let mut steps = vec![self.filter()?];
        while self.skip_operator("|") {
            steps.push(self.filter()?);
        }
        Ok(steps)
    }

    /// A filter, after its `|`.
    fn filter(&mut self) -> Result<Step, Error> {
        let mut name = self.name()?;
        while self.skip_operator(".") {
            name = format!("{name}.{}", self.name()?);
        }
        if !self.soft && !filters::exists(&name) {
            self.missing
                .push(wrong(format!("there is no filter {name:?}")).at(self.line()));
        }
        let arguments = if self.is_operator("(") {
            self.arguments()?
        } else {
            super::ast::Arguments::default()
        };
        Ok(Step::Filter(name, arguments))
    }

    /// A test, after its `is`.
    fn test(&mut self) -> Result<Step, Error> {
        let negated = self.skip_name("not");
        let mut name = self.name()?;
        while self.skip_operator(".") {
            name = format!("{name}.{}", self.name()?);
        }
        if !self.soft && !predicates::exists(&name) {
            self.missing
                .push(wrong(format!("there is no test {name:?}")).at(self.line()));
        }
        let begins_argument = match self.kind() {
            TokenKind::Name(word) => {
                if word == "is" {
                    return Err(wrong("tests cannot be chained with `is`"));
                }
                !matches!(word.as_str(), "else" | "or" | "and")
            }
            TokenKind::String(_) | TokenKind::Int(_) | TokenKind::Float(_) => true,
            TokenKind::Operator(operator) => matches!(*operator, "[" | "{"),
            _ => false,
        };
        let arguments = if self.is_operator("(") {
            self.arguments()?
        } else if begins_argument {
            super::ast::Arguments {
                positional: vec![self.argument_of_test()?],
                ..Default::default()
            }
        } else {
            super::ast::Arguments::default()
        };
        Ok(Step::Test {
            name,
            arguments,
            negated,
        })
    }
}
