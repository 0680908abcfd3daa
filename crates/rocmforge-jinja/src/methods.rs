//! Methods of texts, lists and dicts that do not change them.

use std::rc::Rc;

use super::braces;
use super::error::{Error, wrong};
use super::given::{Given, integer, length, text};
use super::interpreter::Interpreter;
use super::meter::{Meter, STEP};
use super::operators::{charge_key, equal};
use super::text::{capitalize, is_printable, is_space, lines};
use super::value::{DictBuilder, ListBuilder, TextBuilder, Value, View};

/// Methods of texts. Some are only known, so that a template that asks for them is refused.
const TEXT: [&str; 47] = [
    "capitalize",
    "casefold",
    "center",
    "count",
    "encode",
    "endswith",
    "expandtabs",
    "find",
    "format",
    "format_map",
    "index",
    "isalnum",
    "isalpha",
    "isascii",
    "isdecimal",
    "isdigit",
    "isidentifier",
    "islower",
    "isnumeric",
    "isprintable",
    "isspace",
    "istitle",
    "isupper",
    "join",
    "ljust",
    "lower",
    "lstrip",
    "partition",
    "removeprefix",
    "removesuffix",
    "replace",
    "rfind",
    "rindex",
    "rjust",
    "rpartition",
    "rsplit",
    "rstrip",
    "split",
    "splitlines",
    "startswith",
    "strip",
    "swapcase",
    "title",
    "upper",
    "zfill",
    "translate",
    "maketrans",
];

/// Methods of lists and tuples. Those that change a list are hidden from templates.
const LIST: [&str; 3] = ["copy", "count", "index"];

/// Methods of dicts. Those that change a dict are hidden from templates.
const DICT: [&str; 6] = ["copy", "fromkeys", "get", "items", "keys", "values"];

/// Attributes of numbers, which are refused.
const NUMBER: [&str; 12] = [
    "as_integer_ratio",
    "bit_length",
    "bit_count",
    "conjugate",
    "denominator",
    "from_bytes",
    "fromhex",
    "hex",
    "imag",
    "is_integer",
    "numerator",
    "real",
];

/// The method of a value by its name.
pub(super) fn find(value: &Value<'_>, name: &str) -> Option<&'static str> {
    let among = |names: &'static [&'static str]| names.iter().find(|known| **known == name).copied();
    match value {
        Value::Text(_) => among(&TEXT),
        Value::List(_) => among(&LIST),
        Value::Tuple(_) | Value::Range(_) => among(&LIST[1..]),
        Value::Dict(_) => among(&DICT),
        Value::Bool(_) | Value::Int(_) | Value::Float(_) => among(&NUMBER),
        Value::Loop(_) => among(&["cycle", "changed"]),
        _ => None,
    }
}

/// Calls a method.
pub(super) fn call<'t>(
    interpreter: &mut Interpreter<'t, '_>,
    value: &Value<'t>,
    name: &'static str,
    given: Given<'t>,
) -> Result<Value<'t>, Error> {
    let meter = Rc::clone(interpreter.meter());
    match value {
        Value::Text(own) => {
            if own.markup && given.positional.iter().any(|value| value.as_str().is_some()) {
                return Err(wrong(format!("the method {name:?} of a text that was marked as safe")));
            }
            let body = own.as_str();
            meter.spend(STEP + body.len())?;
            if name == "format" {
                return braces::format(interpreter, body, &given);
            }
            let made = of_text(&meter, body, name, given)?;
            Ok(match made {
                // Methods of safe texts give safe texts.
                Value::Text(made) if own.markup => {
                    let mut out = TextBuilder::new(&meter)?;
                    out.push(made.as_str())?;
                    out.finish_markup()
                }
                made => made,
            })
        }
        Value::Dict(dict) => match name {
            "get" => {
                let [key, default] = given.bind("get", ["key", "default"])?;
                let key = key.ok_or_else(|| wrong("get needs a key"))?;
                if matches!(key, Value::List(_) | Value::Dict(_)) {
                    return Err(wrong(format!(
                        "a value of type {} is no key of a dict",
                        key.type_name()
                    )));
                }
                charge_key(&meter, &key)?;
                let found = dict.get_value(&key).cloned();
                Ok(found.or(default).unwrap_or(Value::None))
            }
            "keys" => given.none(name).map(|()| Value::View(View::Keys, Rc::clone(dict))),
            "values" => given.none(name).map(|()| Value::View(View::Values, Rc::clone(dict))),
            "items" => given.none(name).map(|()| Value::View(View::Items, Rc::clone(dict))),
            "copy" => given.none(name).map(|()| value.clone()),
            _ => Err(refused(value, name)),
        },
        Value::List(_) | Value::Tuple(_) | Value::Range(_) => {
            if name == "copy" {
                return given.none(name).map(|()| value.clone());
            }
            let wanted = given.one(name, "value")?;
            let mut count = 0;
            for (index, item) in value.iterate(&meter)?.items.iter().enumerate() {
                if equal(&meter, item, &wanted)? {
                    if name == "index" {
                        return Ok(Value::Int(index as i128));
                    }
                    count += 1;
                }
            }
            if name == "index" {
                return Err(wrong("the value is not in the list"));
            }
            Ok(Value::Int(count))
        }
        Value::Loop(state) if name == "cycle" => {
            if given.positional.is_empty() {
                return Err(wrong("cycle needs values"));
            }
            let index = state.index.get() % given.positional.len();
            Ok(given.positional[index].clone())
        }
        other => Err(refused(other, name)),
    }
}

fn refused(value: &Value<'_>, name: &str) -> Error {
    wrong(format!(
        "the method {name:?} of a value of type {} is not supported",
        value.type_name()
    ))
}

/// Units of asking for the class of a character.
const CLASS: usize = 8;

/// The longest that a text can become by a change of case.
const CASE: usize = 3;

fn of_text<'t>(meter: &Rc<Meter>, body: &str, name: &'static str, given: Given<'t>) -> Result<Value<'t>, Error> {
    let same = |text: &str| Value::text(meter, text);
    if name.starts_with("is") {
        meter.spend(CLASS * body.len())?;
    }
    let all = |given: Given<'t>, is: &dyn Fn(char) -> bool| {
        given.none(name)?;
        Ok(Value::Bool(!body.is_empty() && body.chars().all(is)))
    };
    match name {
        "strip" | "lstrip" | "rstrip" => {
            let [characters] = given.bind(name, ["chars"])?;
            strip(meter, body, name, characters.as_ref()).and_then(same)
        }
        "split" | "rsplit" => split(meter, body, name, given),
        "splitlines" => {
            let [keep] = given.bind(name, ["keepends"])?;
            let mut list = ListBuilder::new(meter)?;
            for line in lines(body, keep.is_some_and(|keep| keep.is_true())) {
                list.push(same(line)?)?;
            }
            list.list()
        }
        "startswith" | "endswith" => affix(meter, body, name, given),
        "replace" => {
            let [old, new, count] = given.bind(name, ["old", "new", "count"])?;
            let (Some(old), Some(new)) = (old, new) else {
                return Err(wrong("replace needs two texts"));
            };
            let count = count.map(|count| integer(name, &count)).transpose()?;
            replace(meter, body, text(name, &old)?, text(name, &new)?, count.unwrap_or(-1))
        }
        "lower" | "casefold" => given
            .none(name)
            .and_then(|()| Value::made(meter, CASE * body.len(), || body.to_lowercase())),
        "upper" => given
            .none(name)
            .and_then(|()| Value::made(meter, CASE * body.len(), || body.to_uppercase())),
        "capitalize" => given
            .none(name)
            .and_then(|()| Value::made(meter, CASE * body.len() + 16, || capitalize(body))),
        "swapcase" => given.none(name).and_then(|()| {
            let mut out = TextBuilder::new(meter)?;
            for character in body.chars() {
                if character.is_uppercase() {
                    character.to_lowercase().try_for_each(|c| out.push_char(c))?;
                } else {
                    character.to_uppercase().try_for_each(|c| out.push_char(c))?;
                }
            }
            Ok(out.finish())
        }),
        "title" => given.none(name).and_then(|()| {
            let mut out = TextBuilder::new(meter)?;
            let mut inside = false;
            for character in body.chars() {
                if inside {
                    character.to_lowercase().try_for_each(|c| out.push_char(c))?;
                } else {
                    character.to_uppercase().try_for_each(|c| out.push_char(c))?;
                }
                inside = character.is_alphabetic();
            }
            Ok(out.finish())
        }),
        "join" => {
            let items = given.one(name, "iterable")?.iterate(meter)?;
            let mut out = TextBuilder::new(meter)?;
            for (index, item) in items.items.iter().enumerate() {
                if index > 0 {
                    out.push(body)?;
                }
                out.push(text("join", item)?)?;
            }
            Ok(out.finish())
        }
        "find" | "rfind" | "index" | "rindex" | "count" => search(meter, body, name, given),
        "partition" | "rpartition" => {
            let separator = given.one(name, "sep")?;
            let separator = text(name, &separator)?;
            if separator.is_empty() {
                return Err(wrong("the separator is empty"));
            }
            meter.spend(body.len() + separator.len())?;
            let from_end = name == "rpartition";
            let at = if from_end {
                body.rfind(separator)
            } else {
                body.find(separator)
            };
            let parts = match at {
                Some(at) => [&body[..at], separator, &body[at + separator.len()..]],
                None if from_end => ["", "", body],
                None => [body, "", ""],
            };
            let mut list = ListBuilder::new(meter)?;
            for part in parts {
                list.push(same(part)?)?;
            }
            list.tuple()
        }
        "removeprefix" | "removesuffix" => {
            let affix = given.one(name, "affix")?;
            let affix = text(name, &affix)?;
            let rest = if name == "removeprefix" {
                body.strip_prefix(affix)
            } else {
                body.strip_suffix(affix)
            };
            same(rest.unwrap_or(body))
        }
        "ljust" | "rjust" | "center" => {
            let [width, fill] = given.bind(name, ["width", "fillchar"])?;
            let width = width.ok_or_else(|| wrong(format!("{name} needs a width")))?;
            let fill = match fill {
                Some(fill) => fill,
                None => same(" ")?,
            };
            let fill = text(name, &fill)?;
            if fill.chars().count() != 1 {
                return Err(wrong(format!("{name} fills with one character")));
            }
            let padding = length(name, &width)?.saturating_sub(body.chars().count());
            let before = match name {
                "ljust" => 0,
                "rjust" => padding,
                _ => center(padding, length(name, &width)?),
            };
            let mut out = TextBuilder::new(meter)?;
            out.repeat(fill, before)?;
            out.push(body)?;
            out.repeat(fill, padding - before)?;
            Ok(out.finish())
        }
        "isspace" => all(given, &is_space),
        "isalpha" => all(given, &char::is_alphabetic),
        "isalnum" => all(given, &char::is_alphanumeric),
        "isdigit" | "isdecimal" | "isnumeric" => {
            if !body.is_ascii() {
                return Err(wrong(format!(
                    "the method {name:?} of a text beyond ASCII is not supported"
                )));
            }
            all(given, &|c| c.is_ascii_digit())
        }
        "isascii" => given.none(name).map(|()| Value::Bool(body.is_ascii())),
        "isprintable" => given.none(name).map(|()| Value::Bool(body.chars().all(is_printable))),
        "isidentifier" => given.none(name).map(|()| {
            let mut characters = body.chars();
            let first = characters.next().is_some_and(|c| c.is_alphabetic() || c == '_');
            Value::Bool(first && characters.all(|c| c.is_alphanumeric() || c == '_'))
        }),
        "islower" | "isupper" => given.none(name).map(|()| {
            let (lower, upper) = (
                body.chars().any(char::is_lowercase),
                body.chars().any(char::is_uppercase),
            );
            Value::Bool(if name == "islower" {
                lower && !upper
            } else {
                upper && !lower
            })
        }),
        other => Err(wrong(format!("the method {other:?} of a text is not supported"))),
    }
}

/// Where `str.center` puts what is left over.
pub(super) fn center(padding: usize, width: usize) -> usize {
    padding / 2 + (padding & width & 1)
}

/// `strip`, `lstrip` and `rstrip`, of white space or of the characters given.
pub(super) fn strip<'b>(
    meter: &Meter,
    body: &'b str,
    name: &str,
    characters: Option<&Value<'_>>,
) -> Result<&'b str, Error> {
    let set: Option<Vec<char>> = match characters {
        None | Some(Value::None) => None,
        Some(value) => {
            let set = text(name, value)?;
            if set.len() > 256 {
                return Err(wrong(format!(
                    "{name} takes at most 256 bytes of characters, not {}",
                    set.len()
                )));
            }
            Some(set.chars().collect())
        }
    };
    // Every character that is dropped is looked for among those given.
    meter.spend(set.as_ref().map_or(0, |set| body.len() * set.len() / 8))?;
    let drop = |c: char| set.as_ref().map_or_else(|| is_space(c), |set| set.contains(&c));
    let rest = if name == "rstrip" {
        body
    } else {
        body.trim_start_matches(drop)
    };
    let rest = if name == "lstrip" {
        rest
    } else {
        rest.trim_end_matches(drop)
    };
    meter.spend(CLASS * (body.len() - rest.len()))?;
    Ok(rest)
}

fn split<'t>(meter: &Rc<Meter>, body: &str, name: &str, given: Given<'t>) -> Result<Value<'t>, Error> {
    let [separator, most] = given.bind(name, ["sep", "maxsplit"])?;
    let most = most.map(|most| integer(name, &most)).transpose()?.unwrap_or(-1);
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let from_end = name == "rsplit";
    let mut list = ListBuilder::new(meter)?;
    match separator.filter(|separator| !matches!(separator, Value::None)) {
        Some(separator) => {
            let separator = text(name, &separator)?;
            if separator.is_empty() {
                return Err(wrong("the separator is empty"));
            }
            meter.spend(separator.len())?;
            let parts = most.saturating_add(1);
            if from_end {
                for part in body.rsplitn(parts, separator) {
                    list.push(Value::text(meter, part)?)?;
                }
            } else {
                for part in body.splitn(parts, separator) {
                    list.push(Value::text(meter, part)?)?;
                }
            }
        }
        None => {
            let mut rest = if from_end {
                body.trim_end_matches(is_space)
            } else {
                body.trim_start_matches(is_space)
            };
            let mut splits = 0;
            while !rest.is_empty() {
                let at = if from_end {
                    rest.rfind(is_space)
                } else {
                    rest.find(is_space)
                };
                let (part, after) = match at.filter(|_| splits < most) {
                    // The last part keeps the white space at its far end.
                    None => (rest, ""),
                    Some(at) if from_end => {
                        let space = rest[at..].chars().next().map_or(0, char::len_utf8);
                        (&rest[at + space..], rest[..at].trim_end_matches(is_space))
                    }
                    Some(at) => (&rest[..at], rest[at..].trim_start_matches(is_space)),
                };
                list.push(Value::text(meter, part)?)?;
                splits += 1;
                rest = after;
            }
        }
    }
    if from_end {
        list.as_mut().reverse();
    }
    list.list()
}

fn affix<'t>(meter: &Rc<Meter>, body: &str, name: &str, given: Given<'t>) -> Result<Value<'t>, Error> {
    let [affix, start, end] = given.bind(name, ["prefix", "start", "end"])?;
    let affix = affix.ok_or_else(|| wrong(format!("{name} needs a text")))?;
    let part = window(meter, body, name, start, end)?;
    let Some((body, _)) = part else {
        return Ok(Value::Bool(false));
    };
    let matches = |affix: &Value<'t>| -> Result<bool, Error> {
        let affix = text(name, affix)?;
        meter.spend(affix.len().min(body.len()))?;
        Ok(if name == "startswith" {
            body.starts_with(affix)
        } else {
            body.ends_with(affix)
        })
    };
    if let Value::Tuple(affixes) = &affix {
        for affix in &affixes.items {
            if matches(affix)? {
                return Ok(Value::Bool(true));
            }
        }
        return Ok(Value::Bool(false));
    }
    matches(&affix).map(Value::Bool)
}

/// The part of a text between two characters, and the number of the first; `None` if it begins behind the end.
fn window<'b>(
    meter: &Meter,
    body: &'b str,
    name: &str,
    start: Option<Value<'_>>,
    end: Option<Value<'_>>,
) -> Result<Option<(&'b str, usize)>, Error> {
    let bound = |value: Option<Value<'_>>| match value {
        None | Some(Value::None) => Ok(None),
        Some(value) => integer(name, &value).map(Some),
    };
    let (start, end) = (bound(start)?, bound(end)?);
    if start.is_none() && end.is_none() {
        return Ok(Some((body, 0)));
    }
    meter.spend(2 * body.len())?;
    let length = body.chars().count();
    let place = |bound: i128| {
        let at = if bound < 0 { bound + length as i128 } else { bound };
        usize::try_from(at.max(0)).unwrap_or(usize::MAX)
    };
    let (start, end) = (start.map_or(0, place), end.map_or(length, place).min(length));
    if start > length || start > end {
        return Ok(None);
    }
    let byte = |place: usize| body.char_indices().nth(place).map_or(body.len(), |(at, _)| at);
    Ok(Some((&body[byte(start)..byte(end)], start)))
}

fn search<'t>(meter: &Rc<Meter>, body: &str, name: &str, given: Given<'t>) -> Result<Value<'t>, Error> {
    let [wanted, start, end] = given.bind(name, ["sub", "start", "end"])?;
    let wanted = wanted.ok_or_else(|| wrong(format!("{name} needs a text")))?;
    let wanted = text(name, &wanted)?;
    meter.spend(2 * (body.len() + wanted.len()))?;
    let part = window(meter, body, name, start, end)?;
    if name == "count" {
        let count = part.map_or(0, |(body, _)| match wanted {
            "" => body.chars().count() + 1,
            wanted => body.matches(wanted).count(),
        });
        return Ok(Value::Int(count as i128));
    }
    let found = part.and_then(|(body, first)| {
        let at = if name.starts_with('r') {
            body.rfind(wanted)
        } else {
            body.find(wanted)
        };
        at.map(|at| first + body[..at].chars().count())
    });
    match found {
        Some(at) => Ok(Value::Int(at as i128)),
        None if matches!(name, "find" | "rfind") => Ok(Value::Int(-1)),
        None => Err(wrong(format!("{wanted:.40?} is not in the text"))),
    }
}

/// `str.replace`; a negative count replaces all.
pub(super) fn replace<'t>(
    meter: &Rc<Meter>,
    body: &str,
    old: &str,
    new: &str,
    count: i128,
) -> Result<Value<'t>, Error> {
    let most = usize::try_from(count).unwrap_or(usize::MAX);
    meter.spend(body.len() + old.len())?;
    let mut out = TextBuilder::new(meter)?;
    let mut rest = 0;
    for (done, (at, found)) in body.match_indices(old).enumerate() {
        if done == most {
            break;
        }
        meter.spend(STEP)?;
        out.push(&body[rest..at])?;
        out.push(new)?;
        rest = at + found.len();
    }
    out.push(&body[rest..])?;
    Ok(out.finish())
}

/// A copy of a dict.
pub(super) fn copy_dict<'t>(meter: &Rc<Meter>, value: &Value<'t>) -> Result<DictBuilder<'t>, Error> {
    let mut dict = DictBuilder::new(meter)?;
    match value {
        Value::Dict(from) => {
            for (key, value) in &from.entries {
                dict.insert(key.value().clone(), value.clone())?;
            }
        }
        other => {
            for pair in &other.iterate(meter)?.items {
                let pair = pair.iterate(meter)?;
                let [key, value] = pair.items.as_slice() else {
                    return Err(wrong("a dict is made of pairs"));
                };
                dict.insert(key.clone(), value.clone())?;
            }
        }
    }
    Ok(dict)
}
