//! Filters of lists and dicts.

use std::cmp::Ordering;
use std::rc::Rc;

use super::super::ast::Operator;
use super::super::error::{Error, wrong};
use super::super::given::{Given, length, text};
use super::super::interpreter::Interpreter;
use super::super::meter::{Meter, STEP};
use super::super::operators::{arithmetic, order, sort};
use super::super::predicates;
use super::super::text::write_str;
use super::super::value::{ListBuilder, TextBuilder, Value, View};

/// Filters of what can be iterated over.
pub(super) const NAMES: [&str; 17] = [
    "batch",
    "dictsort",
    "items",
    "join",
    "list",
    "map",
    "max",
    "min",
    "reject",
    "rejectattr",
    "reverse",
    "select",
    "selectattr",
    "slice",
    "sort",
    "sum",
    "unique",
];

/// Applies one of [`NAMES`].
pub(super) fn call<'t>(
    interpreter: &mut Interpreter<'t, '_>,
    name: &str,
    value: &Value<'t>,
    given: Given<'t>,
) -> Result<Value<'t>, Error> {
    let meter = &Rc::clone(interpreter.meter());
    match name {
        "list" => {
            given.none(name)?;
            Ok(Value::List(value.iterate(meter)?))
        }
        "items" => {
            given.none(name)?;
            let mut list = ListBuilder::new(meter)?;
            match value {
                Value::Undefined => {}
                Value::Dict(dict) => {
                    let pairs = Value::View(View::Items, Rc::clone(dict)).iterate(meter)?;
                    list.extend(&pairs.items)?;
                }
                other => return Err(wrong(format!("items of a value of type {}", other.type_name()))),
            }
            list.once()
        }
        "join" => join(interpreter, value, given),
        "map" => map(interpreter, value, given),
        "select" | "reject" | "selectattr" | "rejectattr" => select(interpreter, name, value, given),
        "dictsort" => dictsort(interpreter, value, given),
        "sort" => {
            let [reverse, cased, attribute] = given.bind(name, ["reverse", "case_sensitive", "attribute"])?;
            let items = value.iterate(meter)?;
            let mut keyed = Vec::new();
            let _charge = meter.hold(items.items.len() * 2 * size_of::<Value<'_>>())?;
            let fold = !cased.is_some_and(|cased| cased.is_true());
            for item in &items.items {
                keyed.push((sort_key(interpreter, item, attribute.as_ref(), fold)?, item.clone()));
            }
            sorted(meter, keyed, reverse.is_some_and(|reverse| reverse.is_true()))
        }
        "unique" => {
            let [cased, attribute] = given.bind(name, ["case_sensitive", "attribute"])?;
            let fold = !cased.is_some_and(|cased| cased.is_true());
            let mut seen = super::super::value::DictBuilder::new(meter)?;
            let mut list = ListBuilder::new(meter)?;
            for item in &value.iterate(meter)?.items {
                let key = sort_key(interpreter, item, attribute.as_ref(), fold)?;
                if seen.insert(key, Value::None)? {
                    list.push(item.clone())?;
                }
            }
            list.once()
        }
        "min" | "max" => {
            let [cased, attribute] = given.bind(name, ["case_sensitive", "attribute"])?;
            let fold = !cased.is_some_and(|cased| cased.is_true());
            let wanted = if name == "min" {
                Ordering::Less
            } else {
                Ordering::Greater
            };
            let mut best: Option<(Value<'t>, Value<'t>)> = None;
            for item in &value.iterate(meter)?.items {
                let key = sort_key(interpreter, item, attribute.as_ref(), fold)?;
                let better = match &best {
                    None => true,
                    Some((known, _)) => order(meter, &key, known)? == Some(wanted),
                };
                if better {
                    best = Some((key, item.clone()));
                }
            }
            Ok(best.map_or(Value::Undefined, |(_, item)| item))
        }
        "reverse" => {
            given.none(name)?;
            if let Value::Text(own) = value {
                meter.spend(4 * own.as_str().len())?;
                return Value::made(meter, own.as_str().len(), || own.as_str().chars().rev().collect());
            }
            let mut list = ListBuilder::new(meter)?;
            for item in value.iterate(meter)?.items.iter().rev() {
                list.push(item.clone())?;
            }
            list.once()
        }
        "sum" => {
            let [attribute, start] = given.bind(name, ["attribute", "start"])?;
            let mut sum = start.unwrap_or(Value::Int(0));
            if sum.as_str().is_some() {
                return Err(wrong("sum does not add texts"));
            }
            for item in &value.iterate(meter)?.items {
                let item = match &attribute {
                    Some(attribute) => path(interpreter, item, attribute)?,
                    None => item.clone(),
                };
                sum = arithmetic(meter, Operator::Add, &sum, &item)?;
            }
            Ok(sum)
        }
        "batch" => {
            let [count, fill] = given.bind(name, ["linecount", "fill_with"])?;
            let count = length(name, &count.ok_or_else(|| wrong("batch needs a number"))?)?.max(1);
            let mut list = ListBuilder::new(meter)?;
            for part in value.iterate(meter)?.items.chunks(count) {
                let mut line = ListBuilder::new(meter)?;
                line.extend(part)?;
                if let Some(fill) = fill.as_ref().filter(|fill| !matches!(fill, Value::None)) {
                    for _ in part.len()..count {
                        line.push(fill.clone())?;
                    }
                }
                list.push(line.list()?)?;
            }
            list.once()
        }
        "slice" => {
            let [slices, fill] = given.bind(name, ["slices", "fill_with"])?;
            let slices = length(name, &slices.ok_or_else(|| wrong("slice needs a number"))?)?;
            let items = value.iterate(meter)?;
            if slices == 0 {
                return Err(wrong("slice into 0 parts"));
            }
            let (each, more) = (items.items.len() / slices, items.items.len() % slices);
            let mut list = ListBuilder::new(meter)?;
            let mut at = 0;
            for index in 0..slices {
                let size = each + usize::from(index < more);
                let mut column = ListBuilder::new(meter)?;
                column.extend(&items.items[at..at + size])?;
                at += size;
                if let Some(fill) = fill.as_ref().filter(|fill| !matches!(fill, Value::None))
                    && index >= more
                {
                    column.push(fill.clone())?;
                }
                list.push(column.list()?)?;
            }
            list.once()
        }
        other => Err(wrong(format!(
            "the filter {other:?} is not supported in chat templates"
        ))),
    }
}

/// The value of an attribute such as `a.b.0`.
fn path<'t>(
    interpreter: &mut Interpreter<'t, '_>,
    value: &Value<'t>,
    attribute: &Value<'t>,
) -> Result<Value<'t>, Error> {
    let meter = Rc::clone(interpreter.meter());
    let Some(names) = attribute.as_str() else {
        return interpreter.item(value, attribute);
    };
    let mut value = value.clone();
    for name in names.split('.') {
        let key = match name.parse::<u32>() {
            Ok(index) => Value::Int(index.into()),
            Err(_) => Value::text(&meter, name)?,
        };
        value = interpreter.item(&value, &key)?;
    }
    Ok(value)
}

/// What an item is put into order by: itself or its attributes, in small letters if `fold`.
fn sort_key<'t>(
    interpreter: &mut Interpreter<'t, '_>,
    item: &Value<'t>,
    attribute: Option<&Value<'t>>,
    fold: bool,
) -> Result<Value<'t>, Error> {
    let meter = Rc::clone(interpreter.meter());
    let folded = |value: Value<'t>| match &value {
        Value::Text(own) if fold => {
            let own = own.as_str();
            meter.spend(own.len())?;
            Value::made(&meter, 3 * own.len(), || own.to_lowercase())
        }
        _ => Ok(value),
    };
    match attribute.filter(|attribute| !matches!(attribute, Value::None)) {
        None => folded(item.clone()),
        Some(names) => match names.as_str() {
            Some(several) if several.contains(',') => {
                let mut list = ListBuilder::new(&meter)?;
                for name in several.split(',') {
                    let name = Value::text(&meter, name)?;
                    let value = path(interpreter, item, &name)?;
                    list.push(folded(value)?)?;
                }
                list.list()
            }
            _ => {
                let value = path(interpreter, item, names)?;
                folded(value)
            }
        },
    }
}

/// The items in the order of their keys, a list.
fn sorted<'t>(meter: &Rc<Meter>, keyed: Vec<(Value<'t>, Value<'t>)>, reverse: bool) -> Result<Value<'t>, Error> {
    let wanted = if reverse { Ordering::Greater } else { Ordering::Less };
    let keyed = sort(keyed, &mut |(a, _), (b, _)| Ok(order(meter, a, b)? == Some(wanted)))?;
    let mut list = ListBuilder::new(meter)?;
    for (_, item) in keyed {
        list.push(item)?;
    }
    list.list()
}

fn dictsort<'t>(
    interpreter: &mut Interpreter<'t, '_>,
    value: &Value<'t>,
    given: Given<'t>,
) -> Result<Value<'t>, Error> {
    let [cased, by, reverse] = given.bind("dictsort", ["case_sensitive", "by", "reverse"])?;
    let meter = Rc::clone(interpreter.meter());
    let Value::Dict(dict) = value else {
        return Err(wrong(format!("dictsort of a value of type {}", value.type_name())));
    };
    let by_key = match by.as_ref().map_or(Ok("key"), |by| text("dictsort", by))? {
        "key" => true,
        "value" => false,
        other => return Err(wrong(format!("dictsort sorts by key or value, not {other:?}"))),
    };
    let fold = !cased.is_some_and(|cased| cased.is_true());
    let _charge = meter.hold(dict.entries.len() * 2 * size_of::<Value<'_>>())?;
    let pairs = Value::View(View::Items, Rc::clone(dict)).iterate(&meter)?;
    let mut keyed = Vec::new();
    for (pair, (key, value)) in pairs.items.iter().zip(&dict.entries) {
        let key = if by_key { key.value() } else { value };
        keyed.push((sort_key(interpreter, key, None, fold)?, pair.clone()));
    }
    sorted(&meter, keyed, reverse.is_some_and(|reverse| reverse.is_true()))
}

fn join<'t>(interpreter: &mut Interpreter<'t, '_>, value: &Value<'t>, given: Given<'t>) -> Result<Value<'t>, Error> {
    let [separator, attribute] = given.bind("join", ["d", "attribute"])?;
    let meter = Rc::clone(interpreter.meter());
    let mut between = TextBuilder::new(&meter)?;
    if let Some(separator) = separator {
        write_str(&separator, &mut between)?;
    }
    let attribute = attribute.filter(|attribute| !matches!(attribute, Value::None));
    let mut out = TextBuilder::new(&meter)?;
    for (index, item) in value.iterate(&meter)?.items.iter().enumerate() {
        meter.spend(STEP)?;
        if index > 0 {
            out.push(between.as_str())?;
        }
        match &attribute {
            Some(attribute) => write_str(&path(interpreter, item, attribute)?, &mut out)?,
            None => write_str(item, &mut out)?,
        }
    }
    Ok(out.finish())
}

fn map<'t>(interpreter: &mut Interpreter<'t, '_>, value: &Value<'t>, mut given: Given<'t>) -> Result<Value<'t>, Error> {
    let meter = Rc::clone(interpreter.meter());
    let mut list = ListBuilder::new(&meter)?;
    // None and what else is false has no items here, although it cannot be iterated over.
    if !value.is_true() {
        return list.once();
    }
    if given.positional.is_empty() {
        let [attribute, default] = given.bind("map", ["attribute", "default"])?;
        let attribute = attribute.ok_or_else(|| wrong("map needs a filter or an attribute"))?;
        for item in &value.iterate(&meter)?.items {
            let found = path(interpreter, item, &attribute)?;
            list.push(match (&found, &default) {
                (Value::Undefined, Some(default)) => default.clone(),
                _ => found,
            })?;
        }
        return list.once();
    }
    let filter = given.positional.remove(0);
    let filter = text("map", &filter)?;
    for item in &value.iterate(&meter)?.items {
        let given = Given {
            positional: given.positional.clone(),
            named: given.named.clone(),
        };
        list.push(interpreter.filter(filter, item, given)?)?;
    }
    list.once()
}

fn select<'t>(
    interpreter: &mut Interpreter<'t, '_>,
    name: &str,
    value: &Value<'t>,
    mut given: Given<'t>,
) -> Result<Value<'t>, Error> {
    let meter = Rc::clone(interpreter.meter());
    if !value.is_true() {
        return ListBuilder::new(&meter)?.once();
    }
    let attribute = if name.ends_with("attr") {
        if given.positional.is_empty() {
            return Err(wrong(format!("{name} needs an attribute")));
        }
        Some(given.positional.remove(0))
    } else {
        None
    };
    let test = if given.positional.is_empty() {
        None
    } else {
        Some(given.positional.remove(0))
    };
    let test = test.as_ref().map(|test| text(name, test)).transpose()?;
    let wanted = name.starts_with("select");
    let mut list = ListBuilder::new(&meter)?;
    for item in &value.iterate(&meter)?.items {
        meter.spend(STEP)?;
        let asked = match &attribute {
            Some(attribute) => path(interpreter, item, attribute)?,
            None => item.clone(),
        };
        let answer = match test {
            None => asked.is_true(),
            Some(test) => {
                let given = Given {
                    positional: given.positional.clone(),
                    named: given.named.clone(),
                };
                predicates::call(interpreter, test, &asked, given)?
            }
        };
        if answer == wanted {
            list.push(item.clone())?;
        }
    }
    list.once()
}
