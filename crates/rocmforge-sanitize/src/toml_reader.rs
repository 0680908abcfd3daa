//! TOML values that know their line.

use crate::dtype::Number;
use crate::error::{Error, Place};
use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A file's name, and where its lines start.
pub(super) struct Source {
    file: Arc<Path>,
    lines: Vec<usize>,
}

impl Source {
    pub(super) fn new(path: &Path, text: &str) -> Self {
        let starts = text.match_indices('\n').map(|(at, _)| at + 1);
        Self {
            file: path.into(),
            lines: std::iter::once(0).chain(starts).collect(),
        }
    }

    pub(super) fn place(&self, offset: usize) -> Place {
        Place {
            file: self.file.clone(),
            line: self.lines.partition_point(|start| *start <= offset).max(1),
        }
    }

    pub(super) fn parse<'t>(&self, text: &'t str) -> Result<Spanned<DeTable<'t>>, Error> {
        DeTable::parse(text).map_err(|error| Error::Syntax {
            at: self.place(error.span().map_or(0, |span| span.start)),
            message: error.message().to_owned(),
        })
    }
}

/// A value and the key it was found under.
#[derive(Clone, Copy)]
pub(super) struct Value<'a> {
    source: &'a Source,
    key: &'a str,
    value: &'a Spanned<DeValue<'a>>,
}

/// A table, which notes the keys that were asked for: what is left over is unknown.
pub(super) struct Table<'a> {
    source: &'a Source,
    name: &'static str,
    table: &'a DeTable<'a>,
    place: Place,
    known: RefCell<Vec<&'static str>>,
}

impl<'a> Table<'a> {
    pub(super) fn new(source: &'a Source, name: &'static str, table: &'a DeTable<'a>, place: Place) -> Self {
        Self {
            source,
            name,
            table,
            place,
            known: RefCell::default(),
        }
    }

    pub(super) fn place(&self) -> Place {
        self.place.clone()
    }

    pub(super) fn get(&self, key: &'static str) -> Option<Value<'a>> {
        self.known.borrow_mut().push(key);
        self.entries().find(|value| value.key == key)
    }

    pub(super) fn need(&self, key: &'static str) -> Result<Value<'a>, Error> {
        self.get(key).ok_or_else(|| Error::MissingKey {
            at: self.place(),
            key,
            table: self.name,
        })
    }

    /// Every entry, in the order of the file.
    pub(super) fn entries(&self) -> impl Iterator<Item = Value<'a>> + use<'a> {
        let source = self.source;
        let mut entries: Vec<_> = self.table.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        entries.into_iter().map(move |(key, value)| Value {
            source,
            key: key.get_ref(),
            value,
        })
    }

    /// Refuses keys that nobody asked for.
    pub(super) fn finish(self) -> Result<(), Error> {
        let known = self.known.borrow();
        let unknown = self.table.keys().find(|key| !known.contains(&key.get_ref().as_ref()));
        match unknown {
            None => Ok(()),
            Some(key) => Err(Error::UnknownKey {
                at: self.source.place(key.span().start),
                key: key.get_ref().to_string(),
                table: self.name,
                known: known.join(", "),
            }),
        }
    }
}

impl<'a> Value<'a> {
    pub(super) fn key(&self) -> &'a str {
        self.key
    }

    pub(super) fn place(&self) -> Place {
        self.source.place(self.value.span().start)
    }

    /// An error about this value.
    pub(super) fn wrong(&self, problem: impl Into<String>) -> Error {
        Error::value(self.place(), self.key, problem)
    }

    fn expected(&self, what: &str) -> Error {
        let found = match self.value.get_ref() {
            DeValue::String(_) => "a string",
            DeValue::Integer(_) => "an integer",
            DeValue::Float(_) => "a float",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "an array",
            DeValue::Table(_) => "a table",
        };
        self.wrong(format!("takes {what}, this is {found}"))
    }

    pub(super) fn as_str(&self) -> Option<&'a str> {
        match self.value.get_ref() {
            DeValue::String(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn str(&self) -> Result<&'a str, Error> {
        self.as_str().ok_or_else(|| self.expected("a string"))
    }

    pub(super) fn bool(&self) -> Result<bool, Error> {
        match self.value.get_ref() {
            DeValue::Boolean(value) => Ok(*value),
            _ => Err(self.expected("true or false")),
        }
    }

    pub(super) fn is_array(&self) -> bool {
        matches!(self.value.get_ref(), DeValue::Array(_))
    }

    pub(super) fn array(&self) -> Result<impl Iterator<Item = Value<'a>> + use<'a>, Error> {
        let DeValue::Array(array) = self.value.get_ref() else {
            return Err(self.expected("an array"));
        };
        let (source, key) = (self.source, self.key);
        Ok(array.iter().map(move |value| Value { source, key, value }))
    }

    pub(super) fn as_table(&self, name: &'static str) -> Option<Table<'a>> {
        match self.value.get_ref() {
            DeValue::Table(table) => Some(Table::new(self.source, name, table, self.place())),
            _ => None,
        }
    }

    pub(super) fn table(&self, name: &'static str) -> Result<Table<'a>, Error> {
        self.as_table(name).ok_or_else(|| self.expected("a table"))
    }

    pub(super) fn as_number(&self) -> Option<Number> {
        match self.value.get_ref() {
            // At most 64 bits are written in earnest; more digits than 128 bits hold are no number here.
            DeValue::Integer(value) => i128::from_str_radix(value.as_str(), value.radix())
                .ok()
                .map(Number::Int),
            DeValue::Float(value) => value.as_str().parse().ok().map(Number::Float),
            _ => None,
        }
    }

    pub(super) fn number(&self) -> Result<Number, Error> {
        self.as_number().ok_or_else(|| self.expected("a number"))
    }

    /// An integer from `low` to `high`.
    pub(super) fn integer(&self, low: u64, high: u64) -> Result<u64, Error> {
        match self.number()? {
            Number::Int(value) => match u64::try_from(value) {
                Ok(value) if (low..=high).contains(&value) => Ok(value),
                _ => Err(self.wrong(format!("is {value}; it goes from {low} to {high}"))),
            },
            Number::Float(_) => Err(self.expected("an integer")),
        }
    }

    pub(super) fn float(&self) -> Result<f64, Error> {
        Ok(match self.number()? {
            Number::Int(value) => value as f64,
            Number::Float(value) => value,
        })
    }

    /// One of the words of a list.
    pub(super) fn one_of<T: Copy>(&self, words: &[(&str, T)]) -> Result<T, Error> {
        let word = self.str()?;
        let found = words.iter().find(|(name, _)| *name == word);
        let all = || words.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        found
            .map(|(_, value)| *value)
            .ok_or_else(|| self.wrong(format!("is \"{word}\"; there are: {}", all())))
    }
}
