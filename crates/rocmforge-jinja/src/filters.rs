//! Filters: those of Jinja that chat templates may use, and `tojson` as transformers has it.

mod lists;
mod texts;

use std::rc::Rc;

use super::error::{Error, wrong};
use super::given::Given;
use super::interpreter::Interpreter;
use super::meter::{Meter, STEP};
use super::operators::{floats_of, item_at, to_text};
use super::value::{ListBuilder, Number, TextBuilder, Value};
use super::{escape, json, percent};

/// The filters of Jinja. Some are only known, so that a template that uses them is refused when it does.
const NAMES: [&str; 54] = [
    "abs",
    "attr",
    "batch",
    "capitalize",
    "center",
    "count",
    "d",
    "default",
    "dictsort",
    "e",
    "escape",
    "filesizeformat",
    "first",
    "float",
    "forceescape",
    "format",
    "groupby",
    "indent",
    "int",
    "items",
    "join",
    "last",
    "length",
    "list",
    "lower",
    "map",
    "max",
    "min",
    "pprint",
    "random",
    "reject",
    "rejectattr",
    "replace",
    "reverse",
    "round",
    "safe",
    "select",
    "selectattr",
    "slice",
    "sort",
    "string",
    "striptags",
    "sum",
    "title",
    "tojson",
    "trim",
    "truncate",
    "unique",
    "upper",
    "urlencode",
    "urlize",
    "wordcount",
    "wordwrap",
    "xmlattr",
];

/// Whether there is a filter of this name.
pub(super) fn exists(name: &str) -> bool {
    NAMES.contains(&name)
}

/// Applies a filter.
pub(super) fn call<'t>(
    interpreter: &mut Interpreter<'t, '_>,
    name: &str,
    value: &Value<'t>,
    given: Given<'t>,
) -> Result<Value<'t>, Error> {
    let meter = &Rc::clone(interpreter.meter());
    meter.spend(STEP)?;
    match name {
        "default" | "d" => {
            let [default, boolean] = given.bind(name, ["default_value", "boolean"])?;
            let replaced = matches!(value, Value::Undefined)
                || boolean.is_some_and(|boolean| boolean.is_true()) && !value.is_true();
            if !replaced {
                return Ok(value.clone());
            }
            default.map_or_else(|| Value::text(meter, ""), Ok)
        }
        "length" | "count" => {
            given.none(name)?;
            let length = value.len(meter)?;
            let length = length.ok_or_else(|| wrong(format!("a value of type {} has no length", value.type_name())))?;
            Ok(Value::Int(length as i128))
        }
        "tojson" => {
            let options = given.bind(name, ["ensure_ascii", "indent", "separators", "sort_keys"])?;
            json::tojson(TextBuilder::new(meter)?, value, options)
        }
        "string" => given.none(name).and_then(|()| to_text(meter, value)),
        "safe" | "escape" | "e" | "forceescape" => {
            given.none(name)?;
            if value.is_markup() && name != "forceescape" {
                return Ok(value.clone());
            }
            let text = to_text(meter, value)?;
            let text = text.as_str().unwrap_or_default();
            let mut out = TextBuilder::new(meter)?;
            if name == "safe" {
                out.push(text)?;
            } else {
                escape::write(text, &mut out)?;
            }
            Ok(out.finish_markup())
        }
        "format" => {
            let text = to_text(meter, value)?;
            if !given.named.is_empty() && !given.positional.is_empty() {
                return Err(wrong("format takes arguments with names or without, not both"));
            }
            let argument = if given.named.is_empty() {
                let mut tuple = ListBuilder::new(meter)?;
                tuple.extend(&given.positional)?;
                tuple.tuple()?
            } else {
                interpreter.dict_of(given.named)?
            };
            percent::format(meter, text.as_str().unwrap_or_default(), &argument)
        }
        "attr" => {
            let attribute = given.one(name, "name")?;
            let Some(attribute) = attribute.as_str() else {
                return Ok(Value::Undefined);
            };
            interpreter.attribute_only(value, attribute)
        }
        "int" => int(meter, value, given),
        "float" => float(meter, value, given),
        "abs" => {
            given.none(name)?;
            match value.number() {
                Some(Number::Int(number)) => number
                    .checked_abs()
                    .map(Value::Int)
                    .ok_or_else(|| wrong("a number beyond 128 bits")),
                Some(Number::Float(number)) => Ok(Value::Float(number.abs())),
                None => Err(wrong(format!("abs of a value of type {}", value.type_name()))),
            }
        }
        "round" => round(value, given),
        "first" | "last" => {
            given.none(name)?;
            if name == "first" {
                return first(meter, value);
            }
            match value {
                Value::Undefined => Ok(Value::Undefined),
                Value::Dict(dict) => Ok(dict
                    .entries
                    .keys()
                    .next_back()
                    .map_or(Value::Undefined, |key| key.value().clone())),
                Value::Text(_) | Value::List(_) | Value::Tuple(_) | Value::Range(_) => {
                    Ok(item_at(meter, value, -1)?.unwrap_or(Value::Undefined))
                }
                other => Err(wrong(format!("last of a value of type {}", other.type_name()))),
            }
        }
        _ if texts::NAMES.contains(&name) => texts::call(meter, name, value, given),
        _ if lists::NAMES.contains(&name) => lists::call(interpreter, name, value, given),
        _ if exists(name) => Err(wrong(format!("the filter {name:?} is not supported in chat templates"))),
        _ => Err(wrong(format!("there is no filter {name:?}"))),
    }
}

/// The first item; of what can be passed once it is taken.
fn first<'t>(meter: &Rc<Meter>, value: &Value<'t>) -> Result<Value<'t>, Error> {
    match value {
        Value::Text(text) => {
            let end = text.as_str().chars().next().map_or(0, char::len_utf8);
            match end {
                0 => Ok(Value::Undefined),
                end => Value::text(meter, &text.as_str()[..end]),
            }
        }
        Value::Iterator(once) => {
            let at = once.next.get();
            let item = once.items.items.get(at);
            once.next.set(at + usize::from(item.is_some()));
            Ok(item.cloned().unwrap_or(Value::Undefined))
        }
        other => Ok(other.iterate(meter)?.items.first().cloned().unwrap_or(Value::Undefined)),
    }
}

/// `int`: the default for what is no number.
fn int<'t>(meter: &Rc<Meter>, value: &Value<'t>, given: Given<'t>) -> Result<Value<'t>, Error> {
    let [default, base] = given.bind("int", ["default", "base"])?;
    let default = default.unwrap_or(Value::Int(0));
    let base = base.map_or(Ok(10), |base| super::given::integer("int", &base))?;
    let of_float = |number: f64| (number.abs() < 1e38).then_some(Value::Int(number as i128));
    match value {
        Value::Undefined => Err(wrong("an undefined value is no number")),
        Value::Text(text) => {
            meter.spend(4 * text.as_str().len())?;
            let base = u32::try_from(base).unwrap_or(0);
            let number = parse_int(text.as_str(), base);
            let number = number.map(Value::Int).or_else(|| of_float(parse_float(text.as_str())?));
            Ok(number.unwrap_or(default))
        }
        other => Ok(match other.number() {
            Some(Number::Int(number)) => Value::Int(number),
            Some(Number::Float(number)) => of_float(number).unwrap_or(default),
            None => default,
        }),
    }
}

/// `float`: the default for what is no number.
fn float<'t>(meter: &Rc<Meter>, value: &Value<'t>, given: Given<'t>) -> Result<Value<'t>, Error> {
    let [default] = given.bind("float", ["default"])?;
    let number = match value {
        Value::Undefined => return Err(wrong("an undefined value is no number")),
        Value::Text(text) => {
            meter.spend(4 * text.as_str().len())?;
            parse_float(text.as_str())
        }
        other => other.number().map(Number::float),
    };
    Ok(number.map(Value::Float).or(default).unwrap_or(Value::Float(0.0)))
}

/// Digits with underscores between them only.
fn digits(text: &str) -> Option<String> {
    let stray = text.starts_with('_') || text.ends_with('_') || text.contains("__");
    (!stray).then(|| text.replace('_', ""))
}

fn parse_int(text: &str, base: u32) -> Option<i128> {
    let text = text.trim_matches(super::text::is_space);
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let prefix = match base {
        16 => ["0x", "0X"],
        8 => ["0o", "0O"],
        2 => ["0b", "0B"],
        10 => ["", ""],
        _ => return None,
    };
    let text = prefix
        .iter()
        .find_map(|prefix| text.strip_prefix(prefix))
        .unwrap_or(text);
    let text = digits(text).filter(|text| text.chars().all(|c| c.is_digit(base)))?;
    let magnitude = i128::from_str_radix(&text, base).ok()?;
    Some(if negative { -magnitude } else { magnitude })
}

fn parse_float(text: &str) -> Option<f64> {
    digits(text.trim_matches(super::text::is_space))?.parse().ok()
}

/// `round`, half to even as Python rounds.
fn round<'t>(value: &Value<'t>, given: Given<'t>) -> Result<Value<'t>, Error> {
    let [precision, method] = given.bind("round", ["precision", "method"])?;
    let precision = precision.map_or(Ok(0), |precision| super::given::integer("round", &precision))?;
    let places = usize::try_from(precision).ok().filter(|places| *places <= 300);
    let places = places.ok_or_else(|| wrong("round takes a precision from 0 to 300"))?;
    let number = value
        .number()
        .ok_or_else(|| wrong(format!("round of a value of type {}", value.type_name())))?;
    let method = method
        .as_ref()
        .map_or(Ok("common"), |method| super::given::text("round", method))?;
    match (method, number) {
        ("common", Number::Int(number)) => Ok(Value::Int(number)),
        ("common", Number::Float(number)) if number.is_finite() => {
            let text = format!("{number:.places$}");
            Ok(Value::Float(text.parse().unwrap_or(number)))
        }
        ("common", Number::Float(number)) => Ok(Value::Float(number)),
        ("ceil" | "floor", number) => {
            let scale = 10_f64.powi(places as i32);
            let scaled = number.float() * scale;
            floats_of(
                if method == "ceil" {
                    scaled.ceil()
                } else {
                    scaled.floor()
                },
                scale,
            )
        }
        (other, _) => Err(wrong(format!("round knows no method {other:?}"))),
    }
}
