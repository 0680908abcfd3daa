//! Expressions, with the precedence that Jinja gives its operators.

use super::super::ast::{Arguments, Comparison, Const, Expr, Operator, Step};
use super::super::error::{Cause, Error, wrong};
use super::super::lexer::TokenKind;
use super::{MAX_NESTING, Parser, RESERVED};

const SUMS: [(&str, Operator); 2] = [("+", Operator::Add), ("-", Operator::Subtract)];
const PRODUCTS: [(&str, Operator); 4] = [
    ("*", Operator::Multiply),
    ("/", Operator::Divide),
    ("//", Operator::FloorDivide),
    ("%", Operator::Modulo),
];
const POWERS: [(&str, Operator); 1] = [("**", Operator::Power)];
const COMPARISONS: [(&str, Comparison); 6] = [
    ("==", Comparison::Equal),
    ("!=", Comparison::NotEqual),
    ("<", Comparison::Less),
    ("<=", Comparison::LessOrEqual),
    (">", Comparison::Greater),
    (">=", Comparison::GreaterOrEqual),
];

type Parse = fn(&mut Parser) -> Result<Expr, Error>;

impl Parser {
    /// An expression, or several that a comma makes a tuple; `conditional` allows `if` in it.
    pub(super) fn tuple(&mut self, conditional: bool, ends: &[&str]) -> Result<Expr, Error> {
        let parse: Parse = if conditional { Self::expression } else { Self::or };
        self.nested(|parser| parser.tuple_of(parse, ends, false))
    }

    fn tuple_of(&mut self, parse: Parse, ends: &[&str], in_parentheses: bool) -> Result<Expr, Error> {
        let mut items = Vec::new();
        let mut is_tuple = false;
        loop {
            let ended = matches!(self.kind(), TokenKind::PrintEnd | TokenKind::BlockEnd)
                || self.is_operator(")")
                || ends.iter().any(|end| self.is_name(end));
            if ended {
                break;
            }
            items.push(parse(self)?);
            if !self.skip_operator(",") {
                break;
            }
            is_tuple = true;
        }
        match items.pop() {
            Some(item) if !is_tuple => Ok(item),
            None if !in_parentheses => Err(self.unexpected("an expression")),
            last => {
                items.extend(last);
                Ok(Expr::Tuple(items))
            }
        }
    }

    /// `a if b else c`, and what binds more strongly.
    pub(super) fn expression(&mut self) -> Result<Expr, Error> {
        self.nested(|parser| {
            let missing = parser.missing.len();
            let mut then = parser.or()?;
            let mut conditions = 0;
            while parser.is_name("if") {
                parser.at += 1;
                conditions += 1;
                if conditions > MAX_NESTING {
                    return Err(Error::new(Cause::Depth {
                        what: "conditions are",
                        limit: MAX_NESTING,
                    }));
                }
                // What stands before the `if` belongs to the condition too.
                parser.missing.truncate(missing);
                let soft = std::mem::replace(&mut parser.soft, true);
                let test = parser.or()?;
                let otherwise = if parser.skip_name("else") {
                    Some(Box::new(parser.expression()?))
                } else {
                    None
                };
                parser.soft = soft;
                then = Expr::Conditional {
                    test: Box::new(test),
                    then: Box::new(then),
                    otherwise,
                };
            }
            Ok(then)
        })
    }

    fn or(&mut self) -> Result<Expr, Error> {
        let first = self.and()?;
        if !self.is_name("or") {
            return Ok(first);
        }
        let mut operands = vec![first];
        while self.skip_name("or") {
            operands.push(self.and()?);
        }
        Ok(Expr::Or(operands))
    }

    fn and(&mut self) -> Result<Expr, Error> {
        let first = self.not()?;
        if !self.is_name("and") {
            return Ok(first);
        }
        let mut operands = vec![first];
        while self.skip_name("and") {
            operands.push(self.not()?);
        }
        Ok(Expr::And(operands))
    }

    fn not(&mut self) -> Result<Expr, Error> {
        if self.skip_name("not") {
            let operand = self.nested(Self::not)?;
            return Ok(Expr::Not(Box::new(operand)));
        }
        self.comparison()
    }

    fn comparison(&mut self) -> Result<Expr, Error> {
        let first = self.sum()?;
        let mut rest = Vec::new();
        loop {
            let comparison = if let TokenKind::Operator(operator) = *self.kind() {
                let known = COMPARISONS.iter().find(|(text, _)| *text == operator);
                let Some((_, comparison)) = known else { break };
                self.at += 1;
                *comparison
            } else if self.skip_name("in") {
                Comparison::In
            } else if self.is_name("not")
                && matches!(self.tokens.get(self.at + 1).map(|token| &token.kind), Some(TokenKind::Name(name)) if name == "in")
            {
                self.at += 2;
                Comparison::NotIn
            } else {
                break;
            };
            rest.push((comparison, self.sum()?));
        }
        Ok(if rest.is_empty() {
            first
        } else {
            Expr::Compare(Box::new(first), rest)
        })
    }

    fn chain(&mut self, operators: &[(&str, Operator)], operand: Parse) -> Result<Expr, Error> {
        let first = operand(self)?;
        let mut rest = Vec::new();
        while let TokenKind::Operator(text) = *self.kind() {
            let Some((_, operator)) = operators.iter().find(|(known, _)| *known == text) else {
                break;
            };
            self.at += 1;
            rest.push((*operator, operand(self)?));
        }
        Ok(if rest.is_empty() {
            first
        } else {
            Expr::Arithmetic(Box::new(first), rest)
        })
    }

    fn sum(&mut self) -> Result<Expr, Error> {
        self.chain(&SUMS, Self::concat)
    }

    fn concat(&mut self) -> Result<Expr, Error> {
        let first = self.product()?;
        if !self.is_operator("~") {
            return Ok(first);
        }
        let mut operands = vec![first];
        while self.skip_operator("~") {
            operands.push(self.product()?);
        }
        Ok(Expr::Concat(operands))
    }

    fn product(&mut self) -> Result<Expr, Error> {
        self.chain(&PRODUCTS, Self::power)
    }

    fn power(&mut self) -> Result<Expr, Error> {
        self.chain(&POWERS, |parser| parser.unary(true))
    }

    fn unary(&mut self, filters: bool) -> Result<Expr, Error> {
        let base = if self.skip_operator("-") {
            let operand = self.nested(|parser| parser.unary(false))?;
            Expr::Negative(Box::new(operand))
        } else if self.skip_operator("+") {
            let operand = self.nested(|parser| parser.unary(false))?;
            Expr::Positive(Box::new(operand))
        } else {
            self.primary()?
        };
        self.postfix(base, filters)
    }

    /// The argument of a test without parentheses.
    pub(super) fn argument_of_test(&mut self) -> Result<Expr, Error> {
        self.nested(|parser| {
            let base = parser.primary()?;
            parser.postfix(base, false)
        })
    }

    fn postfix(&mut self, base: Expr, filters: bool) -> Result<Expr, Error> {
        let mut steps = Vec::new();
        loop {
            if self.skip_operator(".") {
                steps.push(match self.next() {
                    TokenKind::Name(name) => Step::Attribute(name),
                    TokenKind::Int(index) => Step::Item(Expr::Const(Const::Int(index))),
                    _ => return Err(wrong("a name is expected after `.`")),
                });
            } else if self.is_operator("[") {
                steps.push(self.subscript()?);
            } else if self.is_operator("(") {
                steps.push(Step::Call(self.arguments()?));
            } else {
                break;
            }
        }
        if filters {
            self.filters_and_tests(&mut steps)?;
        }
        Ok(if steps.is_empty() {
            base
        } else {
            Expr::Postfix(Box::new(base), steps)
        })
    }

    /// What may follow an operand: filters, tests, and calls of what they give.
    fn filters_and_tests(&mut self, steps: &mut Vec<Step>) -> Result<(), Error> {
        loop {
            if self.skip_operator("|") {
                steps.push(self.filter()?);
            } else if self.skip_name("is") {
                steps.push(self.test()?);
            } else if self.is_operator("(") {
                steps.push(Step::Call(self.arguments()?));
            } else {
                return Ok(());
            }
        }
    }

    fn subscript(&mut self) -> Result<Step, Error> {
        self.expect_operator("[")?;
        let mut bounds = [None, None, None];
        let mut place = 0;
        let mut items = Vec::new();
        let mut is_slice = false;
        while !self.is_operator("]") {
            if self.skip_operator(":") {
                is_slice = true;
                place += 1;
                if place > 2 {
                    return Err(wrong("a slice has at most three parts"));
                }
            } else if self.skip_operator(",") {
                if is_slice {
                    return Err(wrong("slices of several dimensions are not supported"));
                }
                items.extend(bounds[0].take());
            } else if bounds[place].is_some() {
                return Err(self.unexpected("]"));
            } else {
                bounds[place] = Some(self.expression()?);
            }
        }
        self.expect_operator("]")?;
        if is_slice {
            if !items.is_empty() {
                return Err(wrong("slices of several dimensions are not supported"));
            }
            return Ok(Step::Slice(bounds));
        }
        let [last, ..] = bounds;
        if items.is_empty() {
            return Ok(Step::Item(last.ok_or_else(|| wrong("`[]` has no index"))?));
        }
        items.extend(last);
        Ok(Step::Item(Expr::Tuple(items)))
    }

    pub(super) fn arguments(&mut self) -> Result<Arguments, Error> {
        self.expect_operator("(")?;
        let mut arguments = Arguments::default();
        let mut first = true;
        while !self.is_operator(")") {
            if !first {
                self.expect_operator(",")?;
                if self.is_operator(")") {
                    break;
                }
            }
            first = false;
            if self.skip_operator("**") {
                if arguments.dict.is_some() {
                    return Err(wrong("a call has two `**`"));
                }
                arguments.dict = Some(Box::new(self.expression()?));
            } else if self.skip_operator("*") {
                if arguments.list.is_some() || arguments.dict.is_some() {
                    return Err(wrong("a call has two `*`, or one behind `**`"));
                }
                arguments.list = Some(Box::new(self.expression()?));
            } else if matches!(self.kind(), TokenKind::Name(_))
                && matches!(
                    self.tokens.get(self.at + 1).map(|token| &token.kind),
                    Some(TokenKind::Operator("="))
                )
            {
                let name = self.name()?;
                self.at += 1;
                if arguments.dict.is_some() {
                    return Err(wrong("a named argument stands behind `**`"));
                }
                if arguments.named.iter().any(|(known, _)| *known == name) {
                    return Err(wrong(format!("the argument {name:?} is given twice")));
                }
                arguments.named.push((name, self.expression()?));
            } else {
                if !arguments.named.is_empty() || arguments.list.is_some() || arguments.dict.is_some() {
                    return Err(wrong("an argument without a name stands behind named ones"));
                }
                arguments.positional.push(self.expression()?);
            }
        }
        self.expect_operator(")")?;
        Ok(arguments)
    }

    fn primary(&mut self) -> Result<Expr, Error> {
        let at = self.at;
        match self.next() {
            TokenKind::Name(name) => match name.as_str() {
                "true" | "True" => Ok(Expr::Const(Const::Bool(true))),
                "false" | "False" => Ok(Expr::Const(Const::Bool(false))),
                "none" | "None" => Ok(Expr::Const(Const::None)),
                word if RESERVED.contains(&word) => Err(wrong(format!("an expression is expected, not {word:?}"))),
                word => {
                    self.special.varargs |= word == "varargs";
                    self.special.kwargs |= word == "kwargs";
                    self.special.caller |= word == "caller";
                    Ok(Expr::Name(name))
                }
            },
            TokenKind::String(mut text) => {
                while let TokenKind::String(more) = self.kind() {
                    text.push_str(more);
                    self.at += 1;
                }
                Ok(Expr::Const(Const::Text(text.into())))
            }
            TokenKind::Int(value) => Ok(Expr::Const(Const::Int(value))),
            TokenKind::Float(value) => Ok(Expr::Const(Const::Float(value))),
            TokenKind::Operator("(") => {
                let inner = self.nested(|parser| parser.tuple_of(Self::expression, &[], true))?;
                self.expect_operator(")")?;
                Ok(inner)
            }
            TokenKind::Operator("[") => {
                let mut items = Vec::new();
                while !self.is_operator("]") {
                    if !items.is_empty() {
                        self.expect_operator(",")?;
                        if self.is_operator("]") {
                            break;
                        }
                    }
                    items.push(self.expression()?);
                }
                self.expect_operator("]")?;
                Ok(Expr::List(items))
            }
            TokenKind::Operator("{") => {
                let mut pairs = Vec::new();
                while !self.is_operator("}") {
                    if !pairs.is_empty() {
                        self.expect_operator(",")?;
                        if self.is_operator("}") {
                            break;
                        }
                    }
                    let key = self.expression()?;
                    self.expect_operator(":")?;
                    pairs.push((key, self.expression()?));
                }
                self.expect_operator("}")?;
                Ok(Expr::Dict(pairs))
            }
            _ => {
                self.at = at;
                Err(self.unexpected("an expression"))
            }
        }
    }
}
