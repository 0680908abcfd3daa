//! JSON as Python's `json.dumps` writes it, which is what chat templates were trained with.

use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Error, ErrorKind, Value};

/// The deepest nesting that is written.
const MAX_DEPTH: usize = 128;

/// How the parts are set apart.
struct Style {
    /// Characters of one level of indentation; `None` writes one line.
    indent: Option<String>,
    between_items: String,
    between_key_and_value: String,
    ascii: bool,
    sort_keys: bool,
}

/// The filter `tojson`, with the arguments that Hugging Face gives it: `indent`, `ensure_ascii`, `separators`, `sort_keys`.
/// No character is escaped for HTML.
pub(super) fn tojson(value: &Value, positional: Option<Value>, options: Kwargs) -> Result<Value, Error> {
    let indent: Option<Value> = options.get("indent")?;
    let separators: Option<Vec<String>> = options.get("separators")?;
    let ascii: Option<bool> = options.get("ensure_ascii")?;
    let sort_keys: Option<bool> = options.get("sort_keys")?;
    options.assert_all_used()?;
    let indent = match indent
        .or(positional)
        .filter(|value| !value.is_none() && !value.is_undefined())
    {
        None => None,
        Some(value) => Some(match value.as_str() {
            Some(text) => text.to_owned(),
            None => " ".repeat(usize::try_from(value)?.min(MAX_DEPTH)),
        }),
    };
    let plain = if indent.is_some() { "," } else { ", " };
    let (between_items, between_key_and_value) = match separators.as_deref() {
        None => (plain.to_owned(), ": ".to_owned()),
        Some([items, keys]) => (items.clone(), keys.clone()),
        Some(_) => {
            return Err(Error::new(
                ErrorKind::InvalidOperation,
                "separators must be two strings",
            ));
        }
    };
    let ascii = ascii.unwrap_or(false);
    let style = Style {
        indent,
        between_items,
        between_key_and_value,
        ascii,
        sort_keys: sort_keys.unwrap_or(false),
    };
    let mut out = String::new();
    write(value, &style, 0, &mut out)?;
    Ok(Value::from(out))
}

fn write(value: &Value, style: &Style, depth: usize, out: &mut String) -> Result<(), Error> {
    if depth > MAX_DEPTH {
        return Err(Error::new(
            ErrorKind::InvalidOperation,
            "tojson: the value is nested too deeply",
        ));
    }
    match value.kind() {
        ValueKind::None => out.push_str("null"),
        ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
        ValueKind::Number => write_number(value, out)?,
        ValueKind::String => write_string(value.as_str().unwrap_or_default(), style, out),
        ValueKind::Seq | ValueKind::Iterable => {
            out.push('[');
            let mut any = false;
            for item in value.try_iter()? {
                separate(any, style, depth + 1, out);
                write(&item, style, depth + 1, out)?;
                any = true;
            }
            close(any, style, depth, out);
            out.push(']');
        }
        ValueKind::Map => {
            let mut keys: Vec<Value> = value.try_iter()?.collect();
            if style.sort_keys {
                keys.sort();
            }
            out.push('{');
            let mut any = false;
            for key in keys {
                separate(any, style, depth + 1, out);
                write_key(&key, style, out)?;
                out.push_str(&style.between_key_and_value);
                write(&value.get_item(&key)?, style, depth + 1, out)?;
                any = true;
            }
            close(any, style, depth, out);
            out.push('}');
        }
        kind => {
            let message = format!("tojson: a value of type {kind} is no JSON");
            return Err(Error::new(ErrorKind::InvalidOperation, message));
        }
    }
    Ok(())
}

/// What stands before an item: a separator after the first one, and a line of its own if indented.
fn separate(any: bool, style: &Style, depth: usize, out: &mut String) {
    if any {
        out.push_str(&style.between_items);
    }
    if let Some(indent) = &style.indent {
        out.push('\n');
        out.push_str(&indent.repeat(depth));
    }
}

fn close(any: bool, style: &Style, depth: usize, out: &mut String) {
    if let (true, Some(indent)) = (any, &style.indent) {
        out.push('\n');
        out.push_str(&indent.repeat(depth));
    }
}

/// Keys are strings; Python writes other simple keys as strings.
fn write_key(key: &Value, style: &Style, out: &mut String) -> Result<(), Error> {
    let mut text = String::new();
    match key.kind() {
        ValueKind::String => text.push_str(key.as_str().unwrap_or_default()),
        ValueKind::None | ValueKind::Bool | ValueKind::Number => write(key, style, 0, &mut text)?,
        kind => {
            let message = format!("tojson: a key of type {kind} is no JSON");
            return Err(Error::new(ErrorKind::InvalidOperation, message));
        }
    }
    write_string(&text, style, out);
    Ok(())
}

fn write_number(value: &Value, out: &mut String) -> Result<(), Error> {
    if value.is_integer() {
        out.push_str(&value.to_string());
        return Ok(());
    }
    let number = f64::try_from(value.clone())?;
    if number.is_nan() {
        out.push_str("NaN");
    } else if number.is_infinite() {
        out.push_str(if number > 0.0 { "Infinity" } else { "-Infinity" });
    } else {
        // Python and Rust switch to exponents at the same magnitudes; Python's have a sign and two digits.
        let text = format!("{number:?}");
        match text.split_once('e') {
            None => out.push_str(&text),
            Some((digits, exponent)) => {
                let (sign, size) = exponent.strip_prefix('-').map_or(('+', exponent), |size| ('-', size));
                out.push_str(&format!("{digits}e{sign}{size:0>2}"));
            }
        }
    }
    Ok(())
}

fn write_string(text: &str, style: &Style, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            ' '..='\u{7e}' => out.push(character),
            _ if character >= '\u{7f}' && !style.ascii => out.push(character),
            '\u{7f}' => out.push(character),
            _ => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use minijinja::{Environment, context};

    /// Expected strings are Python's `json.dumps(value, ensure_ascii=False)` and the arguments named.
    #[test]
    fn as_python_writes_it() {
        let mut environment = Environment::new();
        environment.add_filter("tojson", super::tojson);
        for (expression, expected) in [
            (
                "{'b': 1, 'a': [true, none, 1.0, 'é<&>\"\\n']}",
                "{\"b\": 1, \"a\": [true, null, 1.0, \"é<&>\\\"\\n\"]}",
            ),
            ("[]|tojson(indent=2)", "[]"),
            ("{}|tojson(indent=2)", "{}"),
            (
                "{'a': [1, {}]}|tojson(indent=2)",
                "{\n  \"a\": [\n    1,\n    {}\n  ]\n}",
            ),
            ("[1, 2]|tojson(4)", "[\n    1,\n    2\n]"),
            ("{'a': [1, 2]}|tojson(separators=(',', ':'))", "{\"a\":[1,2]}"),
            (
                "'é🙂\u{7f}\u{1}'|tojson(ensure_ascii=true)",
                "\"\\u00e9\\ud83d\\ude42\u{7f}\\u0001\"",
            ),
            ("{'b': 1, 'a': 2}|tojson(sort_keys=true)", "{\"a\": 2, \"b\": 1}"),
            (
                "[1e20, 1e16, 123456.5, 0.0001, 0.00001, 1.5e-7]",
                "[1e+20, 1e+16, 123456.5, 0.0001, 1e-05, 1.5e-07]",
            ),
            ("{1: 2, true: 3, none: 4}", "{\"1\": 2, \"true\": 3, \"null\": 4}"),
        ] {
            let filter = if expression.contains("|tojson") { "" } else { "|tojson" };
            let found = environment.render_str(&format!("{{{{ {expression}{filter} }}}}"), context! {});
            assert_eq!(
                found.unwrap_or_else(|error| panic!("{expression}: {error}")),
                expected,
                "{expression}"
            );
        }
        assert!(environment.render_str("{{ nothing|tojson }}", context! {}).is_err());
    }
}
