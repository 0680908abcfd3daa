//! Predicates: the tests that `is` asks.

use super::ast::Comparison;
use super::error::{Error, wrong};
use super::filters;
use super::given::Given;
use super::interpreter::Interpreter;
use super::operators::{compare, same};
use super::text::write_str;
use super::value::{TextBuilder, Value};

/// The tests of Jinja.
const NAMES: [&str; 38] = [
    "boolean",
    "callable",
    "defined",
    "divisibleby",
    "eq",
    "equalto",
    "==",
    "escaped",
    "even",
    "false",
    "filter",
    "float",
    "ge",
    ">=",
    "gt",
    "greaterthan",
    ">",
    "in",
    "integer",
    "iterable",
    "le",
    "<=",
    "lower",
    "lt",
    "lessthan",
    "<",
    "mapping",
    "ne",
    "!=",
    "none",
    "number",
    "odd",
    "sameas",
    "sequence",
    "string",
    "true",
    "undefined",
    "upper",
];

/// Whether there is a test of this name.
pub(super) fn exists(name: &str) -> bool {
    name == "test" || NAMES.contains(&name)
}

/// Asks a test.
pub(super) fn call<'t>(
    interpreter: &mut Interpreter<'t, '_>,
    name: &str,
    value: &Value<'t>,
    given: Given<'t>,
) -> Result<bool, Error> {
    let comparison = match name {
        "eq" | "equalto" | "==" => Some(Comparison::Equal),
        "ne" | "!=" => Some(Comparison::NotEqual),
        "lt" | "lessthan" | "<" => Some(Comparison::Less),
        "le" | "<=" => Some(Comparison::LessOrEqual),
        "gt" | "greaterthan" | ">" => Some(Comparison::Greater),
        "ge" | ">=" => Some(Comparison::GreaterOrEqual),
        "in" => Some(Comparison::In),
        _ => None,
    };
    let meter = interpreter.meter().clone();
    if let Some(comparison) = comparison {
        let other = given.one(name, "other")?;
        return compare(&meter, comparison, value, &other);
    }
    match name {
        "divisibleby" => {
            let by = given.one(name, "num")?;
            let rest = super::operators::arithmetic(&meter, super::ast::Operator::Modulo, value, &by)?;
            return compare(&meter, Comparison::Equal, &rest, &Value::Int(0));
        }
        "sameas" => return Ok(same(value, &given.one(name, "other")?)),
        _ => given.none(name)?,
    }
    let rest_of_two = || {
        let two = Value::Int(2);
        super::operators::arithmetic(&meter, super::ast::Operator::Modulo, value, &two)
    };
    let cased = |case: fn(char) -> bool, other: fn(char) -> bool| -> Result<bool, Error> {
        let mut text = TextBuilder::new(&meter)?;
        write_str(value, &mut text)?;
        meter.spend(text.as_str().len())?;
        Ok(text.as_str().chars().any(case) && !text.as_str().chars().any(other))
    };
    Ok(match name {
        "defined" => !matches!(value, Value::Undefined),
        "undefined" => matches!(value, Value::Undefined),
        "none" => matches!(value, Value::None),
        "boolean" => matches!(value, Value::Bool(_)),
        "true" => matches!(value, Value::Bool(true)),
        "false" => matches!(value, Value::Bool(false)),
        "integer" => matches!(value, Value::Int(_)),
        "float" => matches!(value, Value::Float(_)),
        "number" => value.number().is_some(),
        "string" => matches!(value, Value::Text(_)),
        "mapping" => matches!(value, Value::Dict(_)),
        "sequence" => matches!(
            value,
            Value::Undefined | Value::Text(_) | Value::List(_) | Value::Tuple(_) | Value::Dict(_) | Value::Range(_)
        ),
        "iterable" => value.is_iterable(),
        "callable" => matches!(
            value,
            Value::Undefined | Value::Macro(_) | Value::Function(_) | Value::Method(_) | Value::Loop(_)
        ),
        "escaped" => value.is_markup(),
        "even" => compare(&meter, Comparison::Equal, &rest_of_two()?, &Value::Int(0))?,
        "odd" => compare(&meter, Comparison::Equal, &rest_of_two()?, &Value::Int(1))?,
        "lower" => cased(char::is_lowercase, char::is_uppercase)?,
        "upper" => cased(char::is_uppercase, char::is_lowercase)?,
        "filter" => value.as_str().is_some_and(filters::exists),
        "test" => value.as_str().is_some_and(exists),
        other => return Err(wrong(format!("there is no test {other:?}"))),
    })
}
