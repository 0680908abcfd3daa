//! Formatting by braces: `str.format`.

use super::error::{Cause, Error, wrong};
use super::format_spec::{float_digits, grouped, int_digits};
use super::given::Given;
use super::interpreter::Interpreter;
use super::text::{write_repr, write_str};
use super::value::{Number, TextBuilder, Value};

/// How often fields may stand in the form of a field.
const MAX_NESTING: usize = 2;

/// `format.format(...)`
pub(super) fn format<'t>(
    interpreter: &mut Interpreter<'t, '_>,
    format: &str,
    given: &Given<'t>,
) -> Result<Value<'t>, Error> {
    let mut out = TextBuilder::new(interpreter.meter())?;
    let mut automatic = 0;
    write(interpreter, format, given, &mut automatic, MAX_NESTING, &mut out)?;
    Ok(out.finish())
}

fn write<'t>(
    interpreter: &mut Interpreter<'t, '_>,
    format: &str,
    given: &Given<'t>,
    automatic: &mut usize,
    nesting: usize,
    out: &mut TextBuilder,
) -> Result<(), Error> {
    if nesting == 0 {
        return Err(Error::new(Cause::Depth {
            what: "fields of a format are",
            limit: MAX_NESTING,
        }));
    }
    let mut rest = format;
    while let Some(at) = rest.find(['{', '}']) {
        out.push(&rest[..at])?;
        let brace = &rest[at..=at];
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix(brace) {
            out.push(brace)?;
            rest = after;
            continue;
        }
        if brace == "}" {
            return Err(wrong("a single `}` in a format"));
        }
        let mut open = 1;
        let end = rest.find(|c| {
            open += i32::from(c == '{') - i32::from(c == '}');
            open == 0
        });
        let end = end.ok_or_else(|| wrong("a field of a format has no end"))?;
        let field = &rest[..end];
        rest = &rest[end + 1..];
        let (name, spec) = field.split_once(':').unwrap_or((field, ""));
        let (name, conversion) = name
            .split_once('!')
            .map_or((name, None), |(name, kind)| (name, Some(kind)));
        let mut value = lookup(interpreter, name, given, automatic)?;
        if let Some(kind) = conversion {
            let mut text = TextBuilder::new(interpreter.meter())?;
            match kind {
                "s" => write_str(&value, &mut text)?,
                "r" => write_repr(&value, &mut text)?,
                _ => return Err(wrong(format!("the conversion {kind:?} of a format is not known"))),
            }
            value = text.finish();
        }
        let mut form = TextBuilder::new(interpreter.meter())?;
        if spec.contains(['{', '}']) {
            write(interpreter, spec, given, automatic, nesting - 1, &mut form)?;
        } else {
            form.push(spec)?;
        }
        write_value(&value, form.as_str(), out)?;
    }
    out.push(rest)
}

/// The value of a field: an argument, and what follows it by `.name` and `[item]`.
fn lookup<'t>(
    interpreter: &mut Interpreter<'t, '_>,
    name: &str,
    given: &Given<'t>,
    automatic: &mut usize,
) -> Result<Value<'t>, Error> {
    let end = name.find(['.', '[']).unwrap_or(name.len());
    let (first, mut rest) = name.split_at(end);
    let mut value = if first.is_empty() || first.bytes().all(|byte| byte.is_ascii_digit()) {
        let index = if first.is_empty() {
            *automatic += 1;
            *automatic - 1
        } else {
            first.parse().unwrap_or(usize::MAX)
        };
        let value = given.positional.get(index).cloned();
        value.ok_or_else(|| wrong(format!("the format wants argument {index}, which is not given")))?
    } else {
        let value = given.named.iter().find(|(known, _)| **known == *first);
        let value = value.map(|(_, value)| value.clone());
        value.ok_or_else(|| wrong(format!("the format wants argument {first:?}, which is not given")))?
    };
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '[']).unwrap_or(after.len());
            value = interpreter.attribute(&value, &after[..end])?;
            rest = &after[end..];
        } else if let Some((key, after)) = rest.strip_prefix('[').and_then(|after| after.split_once(']')) {
            let key = match key.parse::<i64>() {
                Ok(index) => Value::Int(index.into()),
                Err(_) => Value::text(interpreter.meter(), key)?,
            };
            value = interpreter.item(&value, &key)?;
            rest = after;
        } else {
            return Err(wrong(format!("the field {name:?} of a format cannot be read")));
        }
    }
    Ok(value)
}

/// `[[fill]align][sign][#][0][width][grouping][.precision][type]`
#[derive(Default)]
struct Form {
    fill: Option<char>,
    align: Option<char>,
    sign: Option<char>,
    alternate: bool,
    width: usize,
    group: Option<char>,
    precision: Option<usize>,
    kind: Option<char>,
}

fn parse_form(spec: &str) -> Result<Form, Error> {
    let is_align = |c: &char| matches!(c, '<' | '>' | '=' | '^');
    let mut form = Form::default();
    let mut rest = spec;
    let mut characters = spec.chars();
    let (first, second) = (characters.next(), characters.next());
    if let (Some(fill), Some(align)) = (first, second.filter(is_align)) {
        (form.fill, form.align) = (Some(fill), Some(align));
        rest = &rest[fill.len_utf8() + 1..];
    } else if let Some(align) = first.filter(is_align) {
        form.align = Some(align);
        rest = &rest[1..];
    }
    let take = |rest: &mut &str, wanted: &[char]| {
        let found = rest.chars().next().filter(|c| wanted.contains(c));
        *rest = &rest[found.map_or(0, char::len_utf8)..];
        found
    };
    form.sign = take(&mut rest, &['+', '-', ' ']);
    form.alternate = take(&mut rest, &['#']).is_some();
    if take(&mut rest, &['0']).is_some() && form.align.is_none() {
        form.fill = Some('0');
        form.align = Some('=');
    }
    let number = |rest: &mut &str| -> Result<Option<usize>, Error> {
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (digits, after) = rest.split_at(end);
        *rest = after;
        if digits.is_empty() {
            return Ok(None);
        }
        let value = digits.parse();
        value.map(Some).map_err(|_| wrong("a width that is too large"))
    };
    form.width = number(&mut rest)?.unwrap_or(0);
    form.group = take(&mut rest, &[',', '_']);
    if let Some(after) = rest.strip_prefix('.') {
        rest = after;
        form.precision = Some(number(&mut rest)?.ok_or_else(|| wrong("a format lacks its precision"))?);
    }
    form.kind = rest.chars().next();
    if rest.chars().count() > 1 {
        return Err(wrong(format!("the form {spec:?} cannot be read")));
    }
    Ok(form)
}

fn write_value(value: &Value<'_>, spec: &str, out: &mut TextBuilder) -> Result<(), Error> {
    if spec.is_empty() {
        return write_str(value, out);
    }
    let form = parse_form(spec)?;
    let unknown = || wrong(format!("the form {spec:?} does not fit {}", value.type_name()));
    let meter = out.meter();
    let (sign, digits, default_align) = match (value, value.number()) {
        (Value::Text(text), _) => {
            if !matches!(form.kind, None | Some('s')) || form.sign.is_some() || form.align == Some('=') {
                return Err(unknown());
            }
            meter.spend(text.as_str().len())?;
            let text = text.as_str();
            let end = form.precision.and_then(|precision| text.char_indices().nth(precision));
            let shown = &text[..end.map_or(text.len(), |(at, _)| at)];
            return pad(out, "", shown, &form, '<');
        }
        (_, Some(Number::Int(number))) if !matches!(form.kind, Some('e' | 'E' | 'f' | 'F' | 'g' | 'G' | '%')) => {
            let kind = form.kind.unwrap_or('d');
            if !matches!(kind, 'd' | 'x' | 'X' | 'o' | 'b' | 'n') || form.precision.is_some() {
                return Err(unknown());
            }
            (number < 0, int_digits(number, kind, form.alternate), '>')
        }
        (_, Some(number)) => {
            let number = number.float();
            let digits = match (form.kind, form.precision) {
                (None, None) => super::text::float_repr(number.abs()),
                (None, Some(_)) => return Err(wrong("a precision without a type is not supported")),
                (Some(kind @ ('e' | 'E' | 'f' | 'F' | 'g' | 'G' | '%')), precision) => {
                    float_digits(number, kind, precision, form.alternate)?
                }
                _ => return Err(unknown()),
            };
            (number.is_sign_negative() && !number.is_nan(), digits, '>')
        }
        _ => return Err(unknown()),
    };
    let digits = match form.group {
        Some(mark) => grouped(&digits, mark),
        None => digits,
    };
    let sign = match (sign, form.sign) {
        (true, _) => "-",
        (_, Some('+')) => "+",
        (_, Some(' ')) => " ",
        _ => "",
    };
    pad(out, sign, &digits, &form, default_align)
}

fn pad(out: &mut TextBuilder, sign: &str, body: &str, form: &Form, default_align: char) -> Result<(), Error> {
    let mut buffer = [0; 4];
    let fill: &str = form.fill.unwrap_or(' ').encode_utf8(&mut buffer);
    let padding = form.width.saturating_sub(sign.len() + body.chars().count());
    let (before, between, after) = match form.align.unwrap_or(default_align) {
        '<' => (0, 0, padding),
        '^' => (padding / 2, 0, padding - padding / 2),
        '=' => (0, padding, 0),
        _ => (padding, 0, 0),
    };
    out.repeat(fill, before)?;
    out.push(sign)?;
    out.repeat(fill, between)?;
    out.push(body)?;
    out.repeat(fill, after)
}
