//! Operators: arithmetic, order, membership, items and slices, with Python's rules.

use std::cmp::Ordering;
use std::rc::Rc;

use super::ast::{Comparison, Operator};
use super::error::{Error, wrong};
use super::meter::{Meter, STEP};
use super::text::write_str;
use super::value::{ListBuilder, Number, Range, TextBuilder, Value, View};
use super::{escape, percent};

/// An arithmetic operator.
pub(super) fn arithmetic<'t>(
    meter: &Rc<Meter>,
    operator: Operator,
    a: &Value<'t>,
    b: &Value<'t>,
) -> Result<Value<'t>, Error> {
    match (operator, a, b) {
        (Operator::Add, Value::Text(left), Value::Text(right)) => {
            let mut out = TextBuilder::new(meter)?;
            let markup = left.markup || right.markup;
            for text in [left, right] {
                if markup && !text.markup {
                    escape::write(text.as_str(), &mut out)?;
                } else {
                    out.push(text.as_str())?;
                }
            }
            return Ok(if markup { out.finish_markup() } else { out.finish() });
        }
        (Operator::Add, Value::List(left), Value::List(right)) => {
            let mut list = ListBuilder::new(meter)?;
            list.extend(&left.items)?;
            list.extend(&right.items)?;
            return list.list();
        }
        (Operator::Add, Value::Tuple(left), Value::Tuple(right)) => {
            let mut list = ListBuilder::new(meter)?;
            list.extend(&left.items)?;
            list.extend(&right.items)?;
            return list.tuple();
        }
        (Operator::Modulo, Value::Text(format), argument) => return percent::format(meter, format.as_str(), argument),
        (Operator::Multiply, sequence @ (Value::Text(_) | Value::List(_) | Value::Tuple(_)), times)
        | (Operator::Multiply, times, sequence @ (Value::Text(_) | Value::List(_) | Value::Tuple(_)))
            if times.integer().is_some() =>
        {
            let times = usize::try_from(times.integer().unwrap_or(0).max(0)).unwrap_or(usize::MAX);
            return repeat(meter, sequence, times);
        }
        _ => {}
    }
    meter.spend(STEP)?;
    match (a.number(), b.number()) {
        (Some(Number::Int(a)), Some(Number::Int(b))) => integers(operator, a, b),
        (Some(a), Some(b)) => floats(operator, a.float(), b.float()),
        _ => Err(wrong(format!(
            "{} and {} cannot be combined by {}",
            a.type_name(),
            b.type_name(),
            symbol(operator)
        ))),
    }
}

fn symbol(operator: Operator) -> &'static str {
    match operator {
        Operator::Add => "+",
        Operator::Subtract => "-",
        Operator::Multiply => "*",
        Operator::Divide => "/",
        Operator::FloorDivide => "//",
        Operator::Modulo => "%",
        Operator::Power => "**",
    }
}

fn repeat<'t>(meter: &Rc<Meter>, sequence: &Value<'t>, times: usize) -> Result<Value<'t>, Error> {
    if let Value::Text(text) = sequence {
        let mut out = TextBuilder::new(meter)?;
        out.repeat(text.as_str(), times)?;
        return Ok(if text.markup { out.finish_markup() } else { out.finish() });
    }
    let (Value::List(items) | Value::Tuple(items)) = sequence else {
        return Err(wrong("only texts and lists can be repeated"));
    };
    let mut list = ListBuilder::new(meter)?;
    if !items.items.is_empty() {
        for _ in 0..times {
            list.extend(&items.items)?;
        }
    }
    if matches!(sequence, Value::List(_)) {
        list.list()
    } else {
        list.tuple()
    }
}

fn integers<'t>(operator: Operator, a: i128, b: i128) -> Result<Value<'t>, Error> {
    let value = match operator {
        Operator::Add => a.checked_add(b),
        Operator::Subtract => a.checked_sub(b),
        Operator::Multiply => a.checked_mul(b),
        Operator::Divide | Operator::FloorDivide | Operator::Modulo if b == 0 => return Err(wrong("division by zero")),
        Operator::Divide => return Ok(Value::Float(a as f64 / b as f64)),
        Operator::FloorDivide => floor_divide(a, b),
        Operator::Modulo => floor_divide(a, b).and_then(|quotient| a.checked_sub(quotient.checked_mul(b)?)),
        Operator::Power if b < 0 => return floats(operator, a as f64, b as f64),
        Operator::Power => match (a, u32::try_from(b)) {
            (_, Ok(b)) => a.checked_pow(b),
            (0 | 1, Err(_)) => Some(a),
            (-1, Err(_)) => Some(if b % 2 == 0 { 1 } else { -1 }),
            _ => None,
        },
    };
    value.map(Value::Int).ok_or_else(|| wrong("a number beyond 128 bits"))
}

fn floor_divide(a: i128, b: i128) -> Option<i128> {
    let quotient = a.checked_div(b)?;
    Some(quotient - i128::from(a % b != 0 && (a < 0) != (b < 0)))
}

fn floats<'t>(operator: Operator, a: f64, b: f64) -> Result<Value<'t>, Error> {
    if b == 0.0 && matches!(operator, Operator::Divide | Operator::FloorDivide | Operator::Modulo)
        || a == 0.0 && b < 0.0 && operator == Operator::Power
    {
        return Err(wrong("division by zero"));
    }
    let modulo = || {
        let rest = a % b;
        if rest != 0.0 && (rest < 0.0) != (b < 0.0) {
            rest + b
        } else if rest == 0.0 {
            0.0_f64.copysign(b)
        } else {
            rest
        }
    };
    let value = match operator {
        Operator::Add => a + b,
        Operator::Subtract => a - b,
        Operator::Multiply => a * b,
        Operator::Divide => a / b,
        Operator::FloorDivide => {
            let quotient = (a - modulo()) / b;
            let floor = quotient.floor();
            if quotient - floor > 0.5 { floor + 1.0 } else { floor }
        }
        Operator::Modulo => modulo(),
        Operator::Power => {
            let power = a.powf(b);
            if power.is_nan() && !a.is_nan() && !b.is_nan() {
                return Err(wrong("a negative number has no such power"));
            }
            if power.is_infinite() && a.is_finite() && b.is_finite() {
                return Err(wrong("the result is too large for a float"));
            }
            power
        }
    };
    Ok(Value::Float(value))
}

/// `a / b` of floats.
pub(super) fn floats_of<'t>(a: f64, b: f64) -> Result<Value<'t>, Error> {
    floats(Operator::Divide, a, b)
}

/// `-a` and `+a`
pub(super) fn signed<'t>(value: &Value<'t>, negative: bool) -> Result<Value<'t>, Error> {
    match value.number() {
        Some(Number::Int(value)) if negative => integers(Operator::Subtract, 0, value),
        Some(Number::Int(value)) => Ok(Value::Int(value)),
        Some(Number::Float(value)) => Ok(Value::Float(if negative { -value } else { value })),
        None => Err(wrong(format!("a value of type {} has no sign", value.type_name()))),
    }
}

/// One comparison.
pub(super) fn compare<'t>(
    meter: &Rc<Meter>,
    comparison: Comparison,
    a: &Value<'t>,
    b: &Value<'t>,
) -> Result<bool, Error> {
    match comparison {
        Comparison::Equal => equal(meter, a, b),
        Comparison::NotEqual => Ok(!equal(meter, a, b)?),
        Comparison::In => contains(meter, b, a),
        Comparison::NotIn => Ok(!contains(meter, b, a)?),
        Comparison::Less => Ok(order(meter, a, b)? == Some(Ordering::Less)),
        Comparison::LessOrEqual => Ok(order(meter, a, b)?.is_some_and(Ordering::is_le)),
        Comparison::Greater => Ok(order(meter, a, b)? == Some(Ordering::Greater)),
        Comparison::GreaterOrEqual => Ok(order(meter, a, b)?.is_some_and(Ordering::is_ge)),
    }
}

/// `a == b`
pub(super) fn equal<'t>(meter: &Meter, a: &Value<'t>, b: &Value<'t>) -> Result<bool, Error> {
    meter.spend(STEP)?;
    Ok(match (a, b) {
        (Value::Undefined, Value::Undefined) | (Value::None, Value::None) => true,
        (Value::Text(a), Value::Text(b)) => {
            let (a, b) = (a.as_str(), b.as_str());
            meter.spend(a.len().min(b.len()))?;
            a == b
        }
        (Value::List(a), Value::List(b)) | (Value::Tuple(a), Value::Tuple(b)) => {
            if a.items.len() != b.items.len() {
                return Ok(false);
            }
            for (a, b) in a.items.iter().zip(&b.items) {
                if !equal(meter, a, b)? {
                    return Ok(false);
                }
            }
            true
        }
        (Value::Dict(a), Value::Dict(b)) => {
            if a.entries.len() != b.entries.len() {
                return Ok(false);
            }
            for (key, value) in &a.entries {
                charge_key(meter, key.value())?;
                match b.entries.get(key) {
                    Some(other) if equal(meter, value, other)? => {}
                    _ => return Ok(false),
                }
            }
            true
        }
        (Value::Range(a), Value::Range(b)) => {
            let length = a.len();
            length == b.len() && (length == 0 || a.start == b.start) && (length <= 1 || a.step == b.step)
        }
        (Value::View(View::Values, _), Value::View(View::Values, _)) => same(a, b),
        (Value::View(..), Value::View(..)) => return Err(wrong("views of dicts cannot be compared")),
        _ => match (a.number(), b.number()) {
            (Some(a), Some(b)) => a.compare(b) == Some(Ordering::Equal),
            _ => same(a, b),
        },
    })
}

/// `a is b`
pub(super) fn same<'t>(a: &Value<'t>, b: &Value<'t>) -> bool {
    match (a, b) {
        (Value::Undefined, Value::Undefined) | (Value::None, Value::None) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Int(a), Value::Int(b)) => a == b,
        (Value::Float(a), Value::Float(b)) => a == b,
        (Value::Text(a), Value::Text(b)) => Rc::ptr_eq(a, b) || a.as_str() == b.as_str(),
        (Value::List(a), Value::List(b)) | (Value::Tuple(a), Value::Tuple(b)) => Rc::ptr_eq(a, b),
        (Value::Dict(a), Value::Dict(b)) => Rc::ptr_eq(a, b),
        (Value::Iterator(a), Value::Iterator(b)) => Rc::ptr_eq(a, b),
        (Value::Namespace(a), Value::Namespace(b)) => a == b,
        (Value::Macro(a), Value::Macro(b)) => std::ptr::eq(a.definition, b.definition),
        (Value::Loop(a), Value::Loop(b)) => Rc::ptr_eq(a, b),
        (Value::Function(a), Value::Function(b)) => a == b,
        _ => false,
    }
}

/// Which of two values comes first; `None` if one is not a number.
pub(super) fn order<'t>(meter: &Meter, a: &Value<'t>, b: &Value<'t>) -> Result<Option<Ordering>, Error> {
    meter.spend(STEP)?;
    match (a, b) {
        (Value::Text(a), Value::Text(b)) => {
            meter.spend(a.as_str().len().min(b.as_str().len()))?;
            Ok(Some(a.as_str().cmp(b.as_str())))
        }
        (Value::List(a), Value::List(b)) | (Value::Tuple(a), Value::Tuple(b)) => {
            for (a, b) in a.items.iter().zip(&b.items) {
                if !equal(meter, a, b)? {
                    return order(meter, a, b);
                }
            }
            Ok(Some(a.items.len().cmp(&b.items.len())))
        }
        _ => match (a.number(), b.number()) {
            (Some(a), Some(b)) => Ok(a.compare(b)),
            _ => Err(wrong(format!("{} and {} have no order", a.type_name(), b.type_name()))),
        },
    }
}

/// Sorts by `before`, which may fail and need not be an order (`nan` has none); what is equal keeps its order.
pub(super) fn sort<T>(
    mut items: Vec<T>,
    before: &mut dyn FnMut(&T, &T) -> Result<bool, Error>,
) -> Result<Vec<T>, Error> {
    let mut width = 1;
    while width < items.len() {
        let mut merged = Vec::with_capacity(items.len());
        let mut rest = items.into_iter().peekable();
        while rest.peek().is_some() {
            let left: Vec<T> = rest.by_ref().take(width).collect();
            let right: Vec<T> = rest.by_ref().take(width).collect();
            let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
            while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
                let next = if before(b, a)? { right.next() } else { left.next() };
                merged.extend(next);
            }
            merged.extend(left);
            merged.extend(right);
        }
        items = merged;
        width *= 2;
    }
    Ok(items)
}

/// Charges the work of looking up a key.
pub(super) fn charge_key(meter: &Meter, key: &Value<'_>) -> Result<(), Error> {
    match key {
        Value::Text(text) => meter.spend(STEP + text.as_str().len()),
        Value::Tuple(items) => items.items.iter().try_for_each(|item| match item {
            Value::Text(text) => meter.spend(text.as_str().len()),
            _ => meter.spend(STEP),
        }),
        _ => meter.spend(STEP),
    }
}

/// `item in container`
pub(super) fn contains<'t>(meter: &Rc<Meter>, container: &Value<'t>, item: &Value<'t>) -> Result<bool, Error> {
    match container {
        Value::Text(text) => match item.as_str() {
            Some(part) => {
                meter.spend(text.as_str().len() + part.len())?;
                Ok(text.as_str().contains(part))
            }
            None => Err(wrong(format!(
                "a value of type {} cannot be part of a text",
                item.type_name()
            ))),
        },
        Value::Dict(dict) | Value::View(View::Keys, dict) => {
            charge_key(meter, item)?;
            if matches!(item, Value::List(_) | Value::Dict(_)) {
                return Err(wrong(format!(
                    "a value of type {} is no key of a dict",
                    item.type_name()
                )));
            }
            Ok(dict.get_value(item).is_some())
        }
        Value::List(_)
        | Value::Tuple(_)
        | Value::View(..)
        | Value::Range(_)
        | Value::Iterator(_)
        | Value::Undefined => {
            for other in &container.iterate(meter)?.items {
                if equal(meter, other, item)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        other => Err(wrong(format!("a value of type {} has no items", other.type_name()))),
    }
}

/// `sequence[start:stop:step]`; undefined where the value has no slices.
pub(super) fn slice<'t>(meter: &Rc<Meter>, value: &Value<'t>, bounds: [Value<'t>; 3]) -> Result<Value<'t>, Error> {
    let length = match value {
        Value::Undefined => return Err(wrong("an undefined value has no items")),
        Value::Text(_) | Value::List(_) | Value::Tuple(_) | Value::Range(_) => value.len(meter)?.unwrap_or(0),
        _ => return Ok(Value::Undefined),
    };
    let mut numbers = [None; 3];
    for (number, bound) in numbers.iter_mut().zip(&bounds) {
        *number = match bound {
            Value::None => None,
            other => match other.integer() {
                Some(integer) => Some(integer),
                None => return Ok(Value::Undefined),
            },
        };
    }
    let [start, stop, step] = numbers;
    let step = step.unwrap_or(1);
    if step == 0 {
        return Err(wrong("the step of a slice is 0"));
    }
    let length = length as i128;
    let (low, high) = if step > 0 { (0, length) } else { (-1, length - 1) };
    let clamp = |bound: i128| {
        let bound = if bound < 0 { bound.saturating_add(length) } else { bound };
        bound.clamp(low, high)
    };
    let start = start.map_or(if step > 0 { low } else { high }, clamp);
    let stop = stop.map_or(if step > 0 { high } else { low }, clamp);
    let step = step.clamp(-length - 1, length + 1);
    let to_i64 = |value: i128| i64::try_from(value).unwrap_or(0);
    let places = Range {
        start: to_i64(start),
        stop: to_i64(stop),
        step: to_i64(step),
    };
    let count = places.len();
    match value {
        Value::Text(text) => {
            let body = text.as_str();
            meter.spend(3 * body.len())?;
            let mut out = TextBuilder::new(meter)?;
            if step == 1 {
                let (from, to) = (places.start as usize, places.start as usize + count);
                let mut bounds = body.char_indices().map(|(at, _)| at).chain([body.len()]);
                let begin = bounds.clone().nth(from).unwrap_or(body.len());
                let end = bounds.nth(to).unwrap_or(body.len());
                out.push(&body[begin..end])?;
            } else {
                let _charge = meter.hold(4 * body.len() + 16)?;
                let characters: Vec<char> = body.chars().collect();
                for index in 0..count {
                    out.push_char(characters[places.get(index) as usize])?;
                }
            }
            Ok(if text.markup { out.finish_markup() } else { out.finish() })
        }
        Value::List(items) | Value::Tuple(items) => {
            let mut list = ListBuilder::new(meter)?;
            for index in 0..count {
                list.push(items.items[places.get(index) as usize].clone())?;
            }
            if matches!(value, Value::List(_)) {
                list.list()
            } else {
                list.tuple()
            }
        }
        Value::Range(range) => {
            let of = |at: i64| range.start.checked_add(at.checked_mul(range.step)?);
            let sliced = (|| {
                Some(Range {
                    start: of(places.start)?,
                    stop: of(places.stop)?,
                    step: range.step.checked_mul(places.step)?,
                })
            })();
            sliced.map(Value::Range).ok_or_else(|| wrong("a number beyond 64 bits"))
        }
        _ => Ok(Value::Undefined),
    }
}

/// The item of a sequence at an index that may count from the end.
pub(super) fn item_at<'t>(meter: &Rc<Meter>, value: &Value<'t>, index: i128) -> Result<Option<Value<'t>>, Error> {
    let length = match value {
        Value::Text(_) | Value::List(_) | Value::Tuple(_) | Value::Range(_) => value.len(meter)?.unwrap_or(0),
        _ => return Ok(None),
    };
    let at = if index < 0 { index + length as i128 } else { index };
    let Some(at) = usize::try_from(at).ok().filter(|at| *at < length) else {
        return Ok(None);
    };
    Ok(match value {
        Value::Text(text) => {
            meter.spend(3 * text.as_str().len())?;
            let character = text.as_str().chars().nth(at).unwrap_or_default();
            Some(Value::text(meter, character.encode_utf8(&mut [0; 4]))?)
        }
        Value::List(items) | Value::Tuple(items) => items.items.get(at).cloned(),
        Value::Range(range) => Some(Value::Int(range.get(at))),
        _ => None,
    })
}

/// `str(value)` as a value.
pub(super) fn to_text<'t>(meter: &Rc<Meter>, value: &Value<'t>) -> Result<Value<'t>, Error> {
    if let Value::Text(_) = value {
        return Ok(value.clone());
    }
    let mut out = TextBuilder::new(meter)?;
    write_str(value, &mut out)?;
    Ok(out.finish())
}
