//! JSON as Python's `json.dumps` writes it, which is what chat templates were trained with.

use std::cmp::Ordering;

use super::error::{Error, wrong};
use super::meter::STEP;
use super::operators::{order, sort, to_text};
use super::text::{float_repr, push_hex};
use super::value::{Key, TextBuilder, Value};

/// How the parts are set apart.
pub(super) struct Style<'a> {
    /// What one level is indented by; `None` writes one line.
    pub(super) indent: Option<&'a str>,
    pub(super) between_items: &'a str,
    pub(super) between_key_and_value: &'a str,
    pub(super) ascii: bool,
    pub(super) sort_keys: bool,
}

/// Writes a value.
pub(super) fn write<'t>(
    value: &Value<'t>,
    style: &Style<'_>,
    depth: usize,
    out: &mut TextBuilder,
) -> Result<(), Error> {
    out.meter().spend(STEP)?;
    match value {
        Value::None => out.push("null"),
        Value::Bool(true) => out.push("true"),
        Value::Bool(false) => out.push("false"),
        Value::Int(value) => out.push(&value.to_string()),
        Value::Float(value) => out.push(&json_float(*value)),
        Value::Text(text) => write_text(text.as_str(), style.ascii, out),
        Value::List(items) | Value::Tuple(items) => {
            out.push("[")?;
            for (index, item) in items.items.iter().enumerate() {
                separate(index > 0, style, depth + 1, out)?;
                write(item, style, depth + 1, out)?;
            }
            close(!items.items.is_empty(), style, depth, out)?;
            out.push("]")
        }
        Value::Dict(dict) => {
            let meter = out.meter();
            let mut entries: Vec<(&Key<'t>, &Value<'t>)> = dict.entries.iter().collect();
            let _charge = meter.hold(3 * size_of_val(entries.as_slice()))?;
            if style.sort_keys {
                entries = sort(entries, &mut |(a, _), (b, _)| {
                    Ok(order(&meter, a.value(), b.value())? == Some(Ordering::Less))
                })?;
            }
            out.push("{")?;
            for (index, (key, value)) in entries.iter().enumerate() {
                separate(index > 0, style, depth + 1, out)?;
                let key = match key.value() {
                    Value::Text(text) => {
                        write_text(text.as_str(), style.ascii, out)?;
                        None
                    }
                    Value::None => Some("null".to_owned()),
                    Value::Bool(value) => Some(value.to_string()),
                    Value::Int(value) => Some(value.to_string()),
                    Value::Float(value) => Some(json_float(*value)),
                    other => return Err(wrong(format!("tojson: a key of type {} is no JSON", other.type_name()))),
                };
                if let Some(key) = key {
                    write_text(&key, style.ascii, out)?;
                }
                out.push(style.between_key_and_value)?;
                write(value, style, depth + 1, out)?;
            }
            close(!entries.is_empty(), style, depth, out)?;
            out.push("}")
        }
        other => Err(wrong(format!(
            "tojson: a value of type {} is no JSON",
            other.type_name()
        ))),
    }
}

fn separate(after_first: bool, style: &Style<'_>, depth: usize, out: &mut TextBuilder) -> Result<(), Error> {
    if after_first {
        out.push(style.between_items)?;
    }
    if let Some(indent) = style.indent {
        out.push("\n")?;
        out.repeat(indent, depth)?;
    }
    Ok(())
}

fn close(any: bool, style: &Style<'_>, depth: usize, out: &mut TextBuilder) -> Result<(), Error> {
    if any && let Some(indent) = style.indent {
        out.push("\n")?;
        out.repeat(indent, depth)?;
    }
    Ok(())
}

fn json_float(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    float_repr(value)
}

fn write_text(text: &str, ascii: bool, out: &mut TextBuilder) -> Result<(), Error> {
    out.push("\"")?;
    let mut plain = 0;
    for (at, character) in text.char_indices() {
        let shown = match character {
            '"' | '\\' => false,
            ' '..='~' => true,
            '\0'..='\x1f' => false,
            _ => !ascii || out.meter().is_mark(character),
        };
        if shown {
            continue;
        }
        out.push(&text[plain..at])?;
        plain = at + character.len_utf8();
        match character {
            '"' => out.push("\\\"")?,
            '\\' => out.push("\\\\")?,
            '\n' => out.push("\\n")?,
            '\r' => out.push("\\r")?,
            '\t' => out.push("\\t")?,
            '\x08' => out.push("\\b")?,
            '\x0c' => out.push("\\f")?,
            _ => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    push_hex("\\u", u32::from(*unit), 4, out)?;
                }
            }
        }
    }
    out.push(&text[plain..])?;
    out.push("\"")
}

/// The arguments of the filter `tojson`, as transformers gives it.
pub(super) fn tojson<'t>(
    out: TextBuilder,
    value: &Value<'t>,
    [ascii, indent, separators, sort_keys]: [Option<Value<'t>>; 4],
) -> Result<Value<'t>, Error> {
    let meter = out.meter();
    let mut out = out;
    let indent = match indent.filter(|indent| !matches!(indent, Value::None)) {
        None => None,
        Some(Value::Text(text)) => Some(Value::Text(text)),
        Some(other) => {
            let width = other
                .integer()
                .ok_or_else(|| wrong(format!("tojson: an indentation of type {}", other.type_name())))?;
            let mut spaces = TextBuilder::new(&meter)?;
            spaces.repeat(" ", usize::try_from(width.max(0)).unwrap_or(usize::MAX))?;
            Some(spaces.finish())
        }
    };
    let separators = match separators.filter(|separators| !matches!(separators, Value::None)) {
        None => None,
        Some(given) => {
            let items = given.iterate(&meter)?;
            match items.items.as_slice() {
                [a @ Value::Text(_), b @ Value::Text(_)] => Some((to_text(&meter, a)?, to_text(&meter, b)?)),
                _ => return Err(wrong("tojson: `separators` must be two texts")),
            }
        }
    };
    let plain = if indent.is_some() { "," } else { ", " };
    let (between_items, between_key_and_value) = match &separators {
        Some((items, keys)) => (items.as_str().unwrap_or(plain), keys.as_str().unwrap_or(": ")),
        None => (plain, ": "),
    };
    let style = Style {
        indent: indent.as_ref().and_then(Value::as_str),
        between_items,
        between_key_and_value,
        ascii: ascii.is_some_and(|value| value.is_true()),
        sort_keys: sort_keys.is_some_and(|value| value.is_true()),
    };
    write(value, &style, 0, &mut out)?;
    Ok(out.finish())
}
