//! Values as text: Python's `str` and `repr`, and what Python takes for white space and lines.

use super::error::{Error, wrong};
use super::meter::STEP;
use super::value::{TextBuilder, Value, View};

/// White space as `str.isspace` knows it.
pub(super) fn is_space(character: char) -> bool {
    character.is_whitespace() || matches!(character, '\x1c'..='\x1f')
}

/// Writes `str(value)`.
pub(super) fn write_str(value: &Value<'_>, out: &mut TextBuilder) -> Result<(), Error> {
    match value {
        Value::Text(text) => out.push(text.as_str()),
        Value::Undefined => Ok(()),
        other => write_repr(other, out),
    }
}

/// Writes `repr(value)`.
pub(super) fn write_repr(value: &Value<'_>, out: &mut TextBuilder) -> Result<(), Error> {
    out.meter().spend(STEP)?;
    match value {
        Value::Undefined => out.push("Undefined"),
        Value::None => out.push("None"),
        Value::Bool(true) => out.push("True"),
        Value::Bool(false) => out.push("False"),
        Value::Int(value) => out.push(&value.to_string()),
        Value::Float(value) => out.push(&float_repr(*value)),
        Value::Text(text) if text.markup => {
            out.push("Markup(")?;
            write_quoted(text.as_str(), out)?;
            out.push(")")
        }
        Value::Text(text) => write_quoted(text.as_str(), out),
        Value::List(items) => write_items("[", &items.items, "]", out),
        Value::Tuple(items) if items.items.len() == 1 => write_items("(", &items.items, ",)", out),
        Value::Tuple(items) => write_items("(", &items.items, ")", out),
        Value::Dict(dict) => {
            out.push("{")?;
            for (index, (key, value)) in dict.entries.iter().enumerate() {
                if index > 0 {
                    out.push(", ")?;
                }
                write_repr(key.value(), out)?;
                out.push(": ")?;
                write_repr(value, out)?;
            }
            out.push("}")
        }
        Value::View(view, dict) => {
            out.push(value.type_name())?;
            out.push("([")?;
            for (index, (key, value)) in dict.entries.iter().enumerate() {
                if index > 0 {
                    out.push(", ")?;
                }
                match view {
                    View::Keys => write_repr(key.value(), out)?,
                    View::Values => write_repr(value, out)?,
                    View::Items => {
                        out.push("(")?;
                        write_repr(key.value(), out)?;
                        out.push(", ")?;
                        write_repr(value, out)?;
                        out.push(")")?;
                    }
                }
            }
            out.push("])")
        }
        Value::Range(range) if range.step == 1 => out.push(&format!("range({}, {})", range.start, range.stop)),
        Value::Range(range) => out.push(&format!("range({}, {}, {})", range.start, range.stop, range.step)),
        other => Err(wrong(format!(
            "a value of type {} has no text that means anything",
            other.type_name()
        ))),
    }
}

fn write_items(open: &str, items: &[Value<'_>], close: &str, out: &mut TextBuilder) -> Result<(), Error> {
    out.push(open)?;
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(", ")?;
        }
        write_repr(item, out)?;
    }
    out.push(close)
}

/// A text in quotes, as Python writes it in lists.
fn write_quoted(text: &str, out: &mut TextBuilder) -> Result<(), Error> {
    out.meter().spend(4 * text.len())?;
    let quote = if text.contains('\'') && !text.contains('"') {
        '"'
    } else {
        '\''
    };
    out.push_char(quote)?;
    for character in text.chars() {
        match character {
            '\\' => out.push("\\\\")?,
            '\n' => out.push("\\n")?,
            '\r' => out.push("\\r")?,
            '\t' => out.push("\\t")?,
            c if c == quote => {
                out.push("\\")?;
                out.push_char(c)?;
            }
            ' '..='~' => out.push_char(character)?,
            c if is_printable(c) || out.meter().is_mark(c) => out.push_char(c)?,
            c => {
                let code = u32::from(c);
                match code {
                    0..=0xff => push_hex("\\x", code, 2, out)?,
                    0x100..=0xffff => push_hex("\\u", code, 4, out)?,
                    _ => push_hex("\\U", code, 8, out)?,
                }
            }
        }
    }
    out.push_char(quote)
}

/// Writes a number in `digits` hexadecimal digits, at most 8.
pub(super) fn push_hex(prefix: &str, code: u32, digits: usize, out: &mut TextBuilder) -> Result<(), Error> {
    out.push(prefix)?;
    for place in (0..digits).rev() {
        let digit = code >> (4 * place) & 0xf;
        out.push_char(char::from_digit(digit, 16).unwrap_or('0'))?;
    }
    Ok(())
}

/// Whether `repr` shows a character as it is. Rust's own debug form follows the same rule, after the first character.
pub(super) fn is_printable(character: char) -> bool {
    if character.is_ascii() {
        return matches!(character, ' '..='~');
    }
    let mut buffer = [b'a'; 5];
    let length = 1 + character.encode_utf8(&mut buffer[1..]).len();
    let text = str::from_utf8(&buffer[..length]).unwrap_or_default();
    text.escape_debug().nth(1) == Some(character)
}

/// A float as Python writes it.
pub(super) fn float_repr(value: f64) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    // Python and Rust switch to exponents at the same magnitudes; Python's have a sign and two digits.
    let text = format!("{value:?}");
    match text.split_once('e') {
        None => text,
        Some((digits, exponent)) => {
            let (sign, size) = exponent.strip_prefix('-').map_or(('+', exponent), |size| ('-', size));
            format!("{digits}e{sign}{size:0>2}")
        }
    }
}

/// The lines of a text, as `str.splitlines` finds them: each with its end, or without.
pub(super) fn lines(text: &str, keep_ends: bool) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let at = rest.find(|c| {
            matches!(
                c,
                '\n' | '\r' | '\x0b' | '\x0c' | '\x1c' | '\x1d' | '\x1e' | '\u{85}' | '\u{2028}' | '\u{2029}'
            )
        });
        let Some(at) = at else {
            return Some(std::mem::take(&mut rest));
        };
        let end = if rest[at..].starts_with("\r\n") {
            2
        } else {
            rest[at..].chars().next().map_or(0, char::len_utf8)
        };
        let line = if keep_ends { &rest[..at + end] } else { &rest[..at] };
        rest = &rest[at + end..];
        Some(line)
    })
}

/// A text with its first character in capitals and the rest in small letters.
pub(super) fn capitalize(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next();
    first.into_iter().flat_map(char::to_uppercase).collect::<String>() + &characters.as_str().to_lowercase()
}
