//! Filters of texts.

use std::rc::Rc;

use super::super::error::{Error, wrong};
use super::super::given::{Given, integer, length, text};
use super::super::meter::Meter;
use super::super::methods::{center, replace, strip};
use super::super::operators::to_text;
use super::super::text::{capitalize, lines};
use super::super::value::{TextBuilder, Value};

/// Filters that begin with `str(value)`.
pub(super) const NAMES: [&str; 10] = [
    "capitalize",
    "center",
    "indent",
    "lower",
    "replace",
    "title",
    "trim",
    "truncate",
    "upper",
    "wordcount",
];

/// The width of `center` where none is given.
const CENTER: i128 = 80;

/// The length of `truncate` where none is given, and how far a text may go beyond it.
const TRUNCATE: i128 = 255;
const LEEWAY: i128 = 5;

/// Applies one of [`NAMES`].
pub(super) fn call<'t>(meter: &Rc<Meter>, name: &str, value: &Value<'t>, given: Given<'t>) -> Result<Value<'t>, Error> {
    let is_markup = value.is_markup();
    if name == "indent" && value.as_str().is_none() {
        return Err(wrong(format!("indent of a value of type {}", value.type_name())));
    }
    let value = to_text(meter, value)?;
    let body = value.as_str().unwrap_or_default();
    meter.spend(body.len())?;
    let most = 3 * body.len() + 16;
    let made = match name {
        "lower" => given
            .none(name)
            .and_then(|()| Value::made(meter, most, || body.to_lowercase())),
        "upper" => given
            .none(name)
            .and_then(|()| Value::made(meter, most, || body.to_uppercase())),
        "capitalize" => given
            .none(name)
            .and_then(|()| Value::made(meter, most, || capitalize(body))),
        "trim" => {
            let [characters] = given.bind(name, ["chars"])?;
            strip(meter, body, "strip", characters.as_ref()).and_then(|text| Value::text(meter, text))
        }
        "replace" => {
            let [old, new, count] = given.bind(name, ["old", "new", "count"])?;
            let (Some(old), Some(new)) = (old, new) else {
                return Err(wrong("replace needs two texts"));
            };
            let count = count.filter(|count| !matches!(count, Value::None));
            let count = count.map(|count| integer(name, &count)).transpose()?.unwrap_or(-1);
            let (old, new) = (to_text(meter, &old)?, to_text(meter, &new)?);
            // Without automatic escaping the result is no longer safe.
            return replace(
                meter,
                body,
                old.as_str().unwrap_or_default(),
                new.as_str().unwrap_or_default(),
                count,
            );
        }
        "indent" => indent(meter, body, given),
        "title" => given.none(name).and_then(|()| title(meter, body)),
        "center" => {
            let [width] = given.bind(name, ["width"])?;
            let width = length(name, &width.unwrap_or(Value::Int(CENTER)))?;
            let padding = width.saturating_sub(body.chars().count());
            let before = center(padding, width);
            let mut out = TextBuilder::new(meter)?;
            out.repeat(" ", before)?;
            out.push(body)?;
            out.repeat(" ", padding - before)?;
            Ok(out.finish())
        }
        "truncate" => truncate(meter, body, given),
        "wordcount" => {
            given.none(name)?;
            let is_word = |c: char| c.is_alphanumeric() || c == '_';
            let words = body.split(|c| !is_word(c)).filter(|word| !word.is_empty()).count();
            return Ok(Value::Int(words as i128));
        }
        other => Err(wrong(format!("there is no filter {other:?}"))),
    }?;
    match made {
        Value::Text(made) if is_markup => {
            let mut out = TextBuilder::new(meter)?;
            out.push(made.as_str())?;
            Ok(out.finish_markup())
        }
        made => Ok(made),
    }
}

fn indent<'t>(meter: &Rc<Meter>, body: &str, given: Given<'t>) -> Result<Value<'t>, Error> {
    let [width, first, blank] = given.bind("indent", ["width", "first", "blank"])?;
    let is_set = |value: Option<Value<'t>>| value.is_some_and(|value| value.is_true());
    let (first, blank) = (is_set(first), is_set(blank));
    let width = width.unwrap_or(Value::Int(4));
    let (unit, times) = match width.as_str() {
        Some(text) => (text, 1),
        None => (" ", length("indent", &width)?),
    };
    // An end of line is added first, so that an empty text is a line too.
    let mut ended = TextBuilder::new(meter)?;
    ended.push(body)?;
    ended.push("\n")?;
    let mut out = TextBuilder::new(meter)?;
    for (number, line) in lines(ended.as_str(), false).enumerate() {
        if number > 0 {
            out.push("\n")?;
        }
        if number == 0 && first || number > 0 && (blank || !line.is_empty()) {
            out.repeat(unit, times)?;
        }
        out.push(line)?;
    }
    Ok(out.finish())
}

/// Capitals after white space and opening brackets, small letters elsewhere.
fn title<'t>(meter: &Rc<Meter>, body: &str) -> Result<Value<'t>, Error> {
    let mut out = TextBuilder::new(meter)?;
    let mut begins = true;
    for character in body.chars() {
        let separates = super::super::text::is_space(character) || matches!(character, '-' | '(' | '{' | '[' | '<');
        if begins || separates {
            character.to_uppercase().try_for_each(|c| out.push_char(c))?;
        } else {
            character.to_lowercase().try_for_each(|c| out.push_char(c))?;
        }
        begins = separates;
    }
    Ok(out.finish())
}

fn truncate<'t>(meter: &Rc<Meter>, body: &str, given: Given<'t>) -> Result<Value<'t>, Error> {
    let [most, kill, end, leeway] = given.bind("truncate", ["length", "killwords", "end", "leeway"])?;
    let most = integer("truncate", &most.unwrap_or(Value::Int(TRUNCATE)))?;
    let leeway = leeway.filter(|leeway| !matches!(leeway, Value::None));
    let leeway = integer("truncate", &leeway.unwrap_or(Value::Int(LEEWAY)))?;
    let end = end.map_or_else(|| Value::text(meter, "..."), Ok)?;
    let end = text("truncate", &end)?;
    let tail = end.chars().count() as i128;
    if most < tail || leeway < 0 {
        return Err(wrong(format!(
            "truncate to {most} characters, which has no room for its end"
        )));
    }
    let length = body.chars().count() as i128;
    if length <= most.saturating_add(leeway) {
        return Value::text(meter, body);
    }
    let kept = usize::try_from(most - tail).unwrap_or(0);
    let kept = &body[..body.char_indices().nth(kept).map_or(body.len(), |(at, _)| at)];
    let kept = if kill.is_some_and(|kill| kill.is_true()) {
        kept
    } else {
        kept.rsplit_once(' ').map_or(kept, |(before, _)| before)
    };
    let mut out = TextBuilder::new(meter)?;
    out.push(kept)?;
    out.push(end)?;
    Ok(out.finish())
}
