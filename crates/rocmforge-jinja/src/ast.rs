//! Syntax tree of a template. Chains of one operator are lists, so that only brackets and blocks make it deeper.

use std::sync::Arc;

/// A statement with the line it begins in.
#[derive(Debug)]
pub(super) struct Statement {
    pub(super) line: u32,
    pub(super) kind: StatementKind,
}

/// Statements.
#[derive(Debug)]
pub(super) enum StatementKind {
    /// Text outside of tags.
    Text(Arc<str>),
    /// `{{ ... }}`
    Print(Expr),
    /// `{% if %}` with its `elif`s, and `{% else %}`.
    If {
        branches: Vec<(Expr, Vec<Statement>)>,
        otherwise: Vec<Statement>,
    },
    /// `{% for %}`
    For(Box<For>),
    /// `{% set a = ... %}`
    Set { target: Target, value: Expr },
    /// `{% set a %}...{% endset %}`, with filters.
    SetBlock {
        target: Target,
        filters: Vec<Step>,
        body: Vec<Statement>,
    },
    /// `{% with %}`
    With {
        values: Vec<(Target, Expr)>,
        body: Vec<Statement>,
    },
    /// `{% macro %}`
    Macro(Arc<Macro>),
    /// `{% call %}`: the call, with its body as the macro `caller`.
    Call { caller: Arc<Macro>, call: Expr },
    /// `{% filter %}`
    Filter { filters: Vec<Step>, body: Vec<Statement> },
    /// `{% generation %}`: the model's own words, which only training needs to know.
    Generation(Vec<Statement>),
    /// `{% break %}`
    Break,
    /// `{% continue %}`
    Continue,
}

/// A loop.
#[derive(Debug)]
pub(super) struct For {
    pub(super) target: Target,
    pub(super) items: Expr,
    pub(super) condition: Option<Expr>,
    pub(super) recursive: bool,
    pub(super) body: Vec<Statement>,
    pub(super) otherwise: Vec<Statement>,
}

/// A macro, or the body of a `{% call %}`.
#[derive(Debug)]
pub(super) struct Macro {
    pub(super) name: String,
    pub(super) parameters: Vec<(String, Option<Expr>)>,
    pub(super) body: Vec<Statement>,
    /// Whether the body reads `varargs`, `kwargs`: only then further arguments are allowed.
    pub(super) varargs: bool,
    pub(super) kwargs: bool,
    pub(super) caller: bool,
}

/// What is assigned to.
#[derive(Debug)]
pub(super) enum Target {
    Name(String),
    /// `ns.name`
    Attribute(String, String),
    Tuple(Vec<Target>),
}

/// Expressions.
#[derive(Debug)]
pub(super) enum Expr {
    Const(Const),
    Name(String),
    List(Vec<Expr>),
    Tuple(Vec<Expr>),
    Dict(Vec<(Expr, Expr)>),
    Not(Box<Expr>),
    Negative(Box<Expr>),
    Positive(Box<Expr>),
    /// Operators of one precedence, applied from left to right.
    Arithmetic(Box<Expr>, Vec<(Operator, Expr)>),
    /// `a ~ b`
    Concat(Vec<Expr>),
    And(Vec<Expr>),
    Or(Vec<Expr>),
    Compare(Box<Expr>, Vec<(Comparison, Expr)>),
    /// `a if test else b`
    Conditional {
        test: Box<Expr>,
        then: Box<Expr>,
        otherwise: Option<Box<Expr>>,
    },
    /// What follows an expression, from left to right.
    Postfix(Box<Expr>, Vec<Step>),
}

/// Constants.
#[derive(Clone, Debug)]
pub(super) enum Const {
    None,
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(Arc<str>),
}

/// Arithmetic operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    FloorDivide,
    Modulo,
    Power,
}

/// Comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    NotIn,
}

/// What follows an expression.
#[derive(Debug)]
pub(super) enum Step {
    Attribute(String),
    Item(Expr),
    Slice([Option<Expr>; 3]),
    Call(Arguments),
    Filter(String, Arguments),
    Test {
        name: String,
        arguments: Arguments,
        negated: bool,
    },
}

/// Arguments of a call.
#[derive(Debug, Default)]
pub(super) struct Arguments {
    pub(super) positional: Vec<Expr>,
    pub(super) named: Vec<(String, Expr)>,
    /// `*args` and `**kwargs`.
    pub(super) list: Option<Box<Expr>>,
    pub(super) dict: Option<Box<Expr>>,
}
