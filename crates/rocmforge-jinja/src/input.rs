//! Input of a rendering: plain data, borrowed from its owner until it becomes values.

use std::borrow::Cow;
use std::rc::Rc;

use serde_json::Value as Json;

use super::error::{Cause, Error};
use super::meter::Meter;
use super::value::{DictBuilder, ListBuilder, MAX_VALUE_DEPTH, Value};

/// Plain data.
#[derive(Clone, Debug)]
pub enum Input<'a> {
    /// Python's `None`.
    None,
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i128),
    /// A float.
    Float(f64),
    /// A text that the program wrote, such as a role.
    Own(Cow<'a, str>),
    /// A text of others.
    Text(Cow<'a, str>),
    /// A list.
    List(Vec<Input<'a>>),
    /// A dict, in this order.
    Dict(Vec<(Name<'a>, Input<'a>)>),
}

/// A key of a dict.
#[derive(Clone, Debug)]
pub enum Name<'a> {
    /// A key that the program wrote.
    Own(Cow<'a, str>),
    /// A key of others.
    Text(Cow<'a, str>),
}

impl<'a> Name<'a> {
    /// A key that the program wrote.
    pub fn own(text: &'a str) -> Self {
        Name::Own(text.into())
    }

    fn as_str(&self) -> &str {
        match self {
            Name::Own(text) | Name::Text(text) => text,
        }
    }
}

impl<'a> Input<'a> {
    /// JSON; its texts are those of others.
    ///
    /// # Errors
    /// [`Cause::Depth`].
    pub fn of_json(json: &'a Json) -> Result<Self, Error> {
        Self::of_json_at(json, 0)
    }

    /// A list of JSON.
    ///
    /// # Errors
    /// [`Cause::Depth`].
    pub fn of_list(items: &'a [Json]) -> Result<Self, Error> {
        let items = items.iter().map(|item| Self::of_json_at(item, 1));
        Ok(Input::List(items.collect::<Result<_, _>>()?))
    }

    /// A text that the program wrote.
    pub fn own(text: &'a str) -> Self {
        Input::Own(text.into())
    }

    /// A text of others.
    pub fn text(text: &'a str) -> Self {
        Input::Text(text.into())
    }

    fn of_json_at(json: &'a Json, depth: usize) -> Result<Self, Error> {
        if depth > MAX_VALUE_DEPTH {
            return Err(Error::new(Cause::Depth {
                what: "lists and objects of the input are",
                limit: MAX_VALUE_DEPTH,
            }));
        }
        Ok(match json {
            Json::Null => Input::None,
            Json::Bool(value) => Input::Bool(*value),
            Json::Number(number) => match (number.as_i128(), number.as_f64()) {
                (Some(value), _) => Input::Int(value),
                (None, value) => Input::Float(value.unwrap_or(f64::NAN)),
            },
            Json::String(text) => Input::Text(text.into()),
            Json::Array(items) => {
                let items = items.iter().map(|item| Self::of_json_at(item, depth + 1));
                Input::List(items.collect::<Result<_, _>>()?)
            }
            Json::Object(entries) => {
                let entries = entries
                    .iter()
                    .map(|(key, value)| Ok((Name::Text(key.into()), Self::of_json_at(value, depth + 1)?)));
                Input::Dict(entries.collect::<Result<_, Error>>()?)
            }
        })
    }

    /// Every text of others, keys among them, in an order that does not change.
    pub fn for_each_text(&mut self, visit: &mut dyn FnMut(&mut Cow<'a, str>)) {
        match self {
            Input::Text(text) => visit(text),
            Input::List(items) => items.iter_mut().for_each(|item| item.for_each_text(visit)),
            Input::Dict(entries) => {
                for (name, value) in entries {
                    if let Name::Text(text) = name {
                        visit(text);
                    }
                    value.for_each_text(visit);
                }
            }
            _ => {}
        }
    }

    /// Declares its texts to be the program's own.
    pub fn trust(&mut self) {
        match self {
            Input::Text(text) => *self = Input::Own(std::mem::take(text)),
            Input::List(items) => items.iter_mut().for_each(Self::trust),
            Input::Dict(entries) => {
                for (name, value) in entries {
                    if let Name::Text(text) = name {
                        *name = Name::Own(std::mem::take(text));
                    }
                    value.trust();
                }
            }
            _ => {}
        }
    }

    /// An entry of a dict.
    pub fn entry(&mut self, wanted: &str) -> Option<&mut Self> {
        let Input::Dict(entries) = self else { return None };
        let found = entries.iter_mut().find(|(name, _)| name.as_str() == wanted);
        found.map(|(_, value)| value)
    }

    /// The data as a value.
    pub(super) fn value<'t>(&self, meter: &Rc<Meter>) -> Result<Value<'t>, Error> {
        Ok(match self {
            Input::None => Value::None,
            Input::Bool(value) => Value::Bool(*value),
            Input::Int(value) => Value::Int(*value),
            Input::Float(value) => Value::Float(*value),
            Input::Own(text) | Input::Text(text) => Value::text(meter, text)?,
            Input::List(items) => {
                let mut list = ListBuilder::new(meter)?;
                for item in items {
                    list.push(item.value(meter)?)?;
                }
                list.list()?
            }
            Input::Dict(entries) => {
                let mut dict = DictBuilder::new(meter)?;
                for (name, value) in entries {
                    dict.insert(Value::text(meter, name.as_str())?, value.value(meter)?)?;
                }
                Value::Dict(dict.finish()?)
            }
        })
    }
}
