//! Formatting by `%`, as Python's texts do it.

use std::rc::Rc;

use super::error::{Error, wrong};
use super::format_spec::{float_digits, int_digits};
use super::meter::Meter;
use super::text::{write_repr, write_str};
use super::value::{Items, Number, TextBuilder, Value};

/// What one `%` asks for.
#[derive(Default)]
struct Field {
    left: bool,
    plus: bool,
    space: bool,
    zero: bool,
    alternate: bool,
    width: usize,
    precision: Option<usize>,
}

/// The arguments that are left.
struct Given<'v, 't> {
    argument: &'v Value<'t>,
    items: Option<Rc<Items<'t>>>,
    next: usize,
}

impl<'t> Given<'_, 't> {
    fn next(&mut self) -> Result<Value<'t>, Error> {
        let value = match &self.items {
            Some(items) => items.items.get(self.next).cloned(),
            None => (self.next == 0).then(|| self.argument.clone()),
        };
        self.next += 1;
        value.ok_or_else(|| wrong("not enough arguments for the format"))
    }
}

/// `format % argument`
pub(super) fn format<'t>(meter: &Rc<Meter>, format: &str, argument: &Value<'t>) -> Result<Value<'t>, Error> {
    let mut out = TextBuilder::new(meter)?;
    let mut given = Given {
        argument,
        items: match argument {
            Value::Tuple(items) => Some(Rc::clone(items)),
            _ => None,
        },
        next: 0,
    };
    let mut by_key = false;
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        out.push(&rest[..at])?;
        rest = &rest[at + 1..];
        let mut value = None;
        if let Some(after) = rest.strip_prefix('(') {
            let end = after.find(')').ok_or_else(|| wrong("a key of a format has no end"))?;
            let Value::Dict(dict) = argument else {
                return Err(wrong("a format with keys needs a dict"));
            };
            let found = dict.get(&after[..end]).cloned();
            value = Some(found.ok_or_else(|| wrong(format!("the key {:?} is not there", &after[..end])))?);
            by_key = true;
            rest = &after[end + 1..];
        }
        let mut field = Field::default();
        let flags = rest
            .find(|c| !matches!(c, '-' | '+' | ' ' | '0' | '#'))
            .unwrap_or(rest.len());
        for flag in rest[..flags].chars() {
            match flag {
                '-' => field.left = true,
                '+' => field.plus = true,
                ' ' => field.space = true,
                '0' => field.zero = true,
                _ => field.alternate = true,
            }
        }
        rest = &rest[flags..];
        if let Some(width) = number(&mut rest, &mut given)? {
            field.left |= width < 0;
            field.width = usize::try_from(width.unsigned_abs()).unwrap_or(usize::MAX);
        }
        if let Some(after) = rest.strip_prefix('.') {
            rest = after;
            let precision = number(&mut rest, &mut given)?.unwrap_or(0).max(0);
            field.precision = Some(usize::try_from(precision).unwrap_or(usize::MAX));
        }
        rest = rest.strip_prefix(['h', 'l', 'L']).unwrap_or(rest);
        let kind = rest
            .chars()
            .next()
            .ok_or_else(|| wrong("a format ends within a field"))?;
        rest = &rest[kind.len_utf8()..];
        if kind == '%' {
            out.push("%")?;
            continue;
        }
        let value = match value {
            Some(value) => value,
            None => given.next()?,
        };
        write_field(&field, kind, &value, &mut out)?;
    }
    out.push(rest)?;
    let left = match &given.items {
        Some(items) => given.next < items.items.len(),
        None => given.next == 0 && !by_key && !matches!(argument, Value::Dict(_) | Value::List(_) | Value::Undefined),
    };
    if left {
        return Err(wrong("not all arguments were used by the format"));
    }
    Ok(out.finish())
}

/// A width or precision: digits, or `*` for an argument.
fn number(rest: &mut &str, given: &mut Given<'_, '_>) -> Result<Option<i128>, Error> {
    if let Some(after) = rest.strip_prefix('*') {
        *rest = after;
        let value = given.next()?.integer();
        return value.map(Some).ok_or_else(|| wrong("`*` wants an integer"));
    }
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    if digits == 0 {
        return Ok(None);
    }
    let value = rest[..digits].parse().map_err(|_| wrong("a width that is too large"))?;
    *rest = &rest[digits..];
    Ok(Some(value))
}

fn write_field(field: &Field, kind: char, value: &Value<'_>, out: &mut TextBuilder) -> Result<(), Error> {
    let meter = out.meter();
    match kind {
        's' | 'r' | 'a' | 'c' => {
            let mut text = TextBuilder::new(&meter)?;
            match (kind, value) {
                ('s', value) => write_str(value, &mut text)?,
                ('c', Value::Text(one)) if one.as_str().chars().count() == 1 => text.push(one.as_str())?,
                ('c', value) => {
                    let code = value.integer().and_then(|code| u32::try_from(code).ok());
                    let character = code.and_then(char::from_u32);
                    text.push_char(character.ok_or_else(|| wrong("%c wants one character"))?)?;
                }
                ('r', value) => write_repr(value, &mut text)?,
                _ => return Err(wrong("%a is not supported")),
            }
            let mut shown = text.as_str();
            if let Some(precision) = field.precision {
                let end = shown.char_indices().nth(precision).map_or(shown.len(), |(at, _)| at);
                shown = &shown[..end];
            }
            let padding = field.width.saturating_sub(shown.chars().count());
            pad(out, shown, if field.left { (0, padding) } else { (padding, 0) })
        }
        'd' | 'i' | 'u' | 'x' | 'X' | 'o' => {
            let integer = match value.number() {
                Some(Number::Int(value)) => value,
                Some(Number::Float(value)) if matches!(kind, 'd' | 'i' | 'u') && value.abs() < 1e38 => value as i128,
                _ => return Err(wrong(format!("%{kind} wants a number, not {}", value.type_name()))),
            };
            let mut digits = TextBuilder::new(&meter)?;
            let plain = int_digits(integer, kind, false);
            if field.alternate && matches!(kind, 'x' | 'X' | 'o') {
                digits.push(if kind == 'o' {
                    "0o"
                } else if kind == 'x' {
                    "0x"
                } else {
                    "0X"
                })?;
            }
            digits.repeat("0", field.precision.unwrap_or(0).saturating_sub(plain.len()))?;
            digits.push(&plain)?;
            signed(field, integer < 0, digits.as_str(), true, out)
        }
        'e' | 'E' | 'f' | 'F' | 'g' | 'G' => {
            let number = value
                .number()
                .ok_or_else(|| wrong(format!("%{kind} wants a number, not {}", value.type_name())))?;
            let number = number.float();
            let digits = float_digits(number, kind, field.precision, field.alternate)?;
            signed(
                field,
                number.is_sign_negative() && !number.is_nan(),
                &digits,
                number.is_finite(),
                out,
            )
        }
        other => Err(wrong(format!("%{other} is no format"))),
    }
}

fn signed(field: &Field, negative: bool, digits: &str, zeros: bool, out: &mut TextBuilder) -> Result<(), Error> {
    let sign = match (negative, field.plus, field.space) {
        (true, ..) => "-",
        (_, true, _) => "+",
        (_, _, true) => " ",
        _ => "",
    };
    let padding = field.width.saturating_sub(sign.len() + digits.len());
    if field.left {
        out.push(sign)?;
        return pad(out, digits, (0, padding));
    }
    if field.zero && zeros {
        out.push(sign)?;
        let prefix = digits
            .get(..2)
            .filter(|prefix| matches!(*prefix, "0x" | "0X" | "0o"))
            .unwrap_or("");
        out.push(prefix)?;
        out.repeat("0", padding)?;
        return out.push(&digits[prefix.len()..]);
    }
    out.repeat(" ", padding)?;
    out.push(sign)?;
    out.push(digits)
}

fn pad(out: &mut TextBuilder, text: &str, (before, after): (usize, usize)) -> Result<(), Error> {
    out.repeat(" ", before)?;
    out.push(text)?;
    out.repeat(" ", after)
}
