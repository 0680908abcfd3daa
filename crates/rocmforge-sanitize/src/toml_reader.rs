//! TOML values that know their line.

use crate::dtype::Number;
use crate::error::{Error, Place};
use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

/// A file's name, and where its lines start.
pub(crate) struct Source {
    file: Arc<Path>,
    lines: Vec<usize>,
}

impl Source {
    pub(crate) fn new(path: &Path, text: &str) -> Self {
        let starts = text.match_indices('\n').map(|(at, _)| at + 1);
        Self {
            file: path.into(),
            lines: std::iter::once(0).chain(starts).collect(),
        }
    }

    pub(crate) fn place(&self, offset: usize) -> Place {
        Place {
            file: self.file.clone(),
            line: self.lines.partition_point(|start| *start <= offset).max(1),
        }
    }

    pub(crate) fn parse<'t>(&self, text: &'t str) -> Result<Spanned<DeTable<'t>>, Error> {
        DeTable::parse(text).map_err(|error| Error::Syntax {
            at: self.place(error.span().map_or(0, |span| span.start)),
            message: error.message().to_owned(),
        })
    }
}

/// A value and the key it was found under.
#[derive(Clone, Copy)]
pub(crate) struct Value<'a> {
    source: &'a Source,
    key: &'a str,
    value: &'a Spanned<DeValue<'a>>,
}

/// A table, which notes the keys that were asked for: what is left over is unknown.
pub(crate) struct Table<'a> {
    source: &'a Source,
    name: &'static str,
    table: &'a DeTable<'a>,
    place: Place,
    known: RefCell<Vec<&'static str>>,
}

impl<'a> Table<'a> {
    pub(crate) fn new(source: &'a Source, name: &'static str, table: &'a DeTable<'a>, place: Place) -> Self {
        Self {
            source,
            name,
            table,
            place,
            known: RefCell::default(),
        }
    }

    pub(crate) fn place(&self) -> Place {
        self.place.clone()
    }

    pub(crate) fn get(&self, key: &'static str) -> Option<Value<'a>> {
        self.known.borrow_mut().push(key);
        self.entries().find(|value| value.key == key)
    }

    pub(crate) fn need(&self, key: &'static str) -> Result<Value<'a>, Error> {
        self.get(key).ok_or_else(|| self.missing(key))
    }

    /// An error about a key that must be there: it may stand there misspelt.
    pub(crate) fn missing(&self, key: &'static str) -> Error {
        let misspelt = self
            .table
            .keys()
            .find(|found| !self.asked(found.get_ref()) && nearest(found.get_ref(), [key]).is_some());
        match misspelt {
            Some(found) => self.unknown(found, Some(key), String::new()),
            None => Error::MissingKey {
                at: self.place(),
                key,
                table: self.name,
            },
        }
    }

    fn asked(&self, key: &str) -> bool {
        self.known.borrow().contains(&key)
    }

    fn unknown(&self, key: &Spanned<DeString<'a>>, nearest: Option<&str>, known: String) -> Error {
        Error::UnknownKey {
            at: self.source.place(key.span().start),
            key: key.get_ref().to_string(),
            table: self.name,
            nearest: nearest.map(str::to_owned),
            known,
        }
    }

    /// Every entry, in the order of the file.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Value<'a>> + use<'a> {
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
    pub(crate) fn finish(self) -> Result<(), Error> {
        let mut known = self.known.borrow().clone();
        known.dedup();
        let mut keys: Vec<_> = self.table.keys().collect();
        keys.sort_by_key(|key| key.span().start);
        match keys.into_iter().find(|key| !self.asked(key.get_ref())) {
            None => Ok(()),
            Some(key) => Err(self.unknown(key, nearest(key.get_ref(), known.iter().copied()), known.join(", "))),
        }
    }
}

impl<'a> Value<'a> {
    pub(crate) fn key(&self) -> &'a str {
        self.key
    }

    pub(crate) fn place(&self) -> Place {
        self.source.place(self.value.span().start)
    }

    /// An error about this value.
    pub(crate) fn wrong(&self, problem: impl Into<String>) -> Error {
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

    pub(crate) fn as_str(&self) -> Option<&'a str> {
        match self.value.get_ref() {
            DeValue::String(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn str(&self) -> Result<&'a str, Error> {
        self.as_str().ok_or_else(|| self.expected("a string"))
    }

    pub(crate) fn bool(&self) -> Result<bool, Error> {
        match self.value.get_ref() {
            DeValue::Boolean(value) => Ok(*value),
            _ => Err(self.expected("true or false")),
        }
    }

    pub(crate) fn is_array(&self) -> bool {
        matches!(self.value.get_ref(), DeValue::Array(_))
    }

    pub(crate) fn array(&self) -> Result<impl Iterator<Item = Value<'a>> + use<'a>, Error> {
        let DeValue::Array(array) = self.value.get_ref() else {
            return Err(self.expected("an array"));
        };
        let (source, key) = (self.source, self.key);
        Ok(array.iter().map(move |value| Value { source, key, value }))
    }

    pub(crate) fn as_table(&self, name: &'static str) -> Option<Table<'a>> {
        match self.value.get_ref() {
            DeValue::Table(table) => Some(Table::new(self.source, name, table, self.place())),
            _ => None,
        }
    }

    pub(crate) fn table(&self, name: &'static str) -> Result<Table<'a>, Error> {
        self.as_table(name).ok_or_else(|| self.expected("a table"))
    }

    pub(crate) fn as_number(&self) -> Option<Number> {
        match self.value.get_ref() {
            // At most 64 bits are written in earnest; more digits than 128 bits hold are no number here.
            DeValue::Integer(value) => i128::from_str_radix(value.as_str(), value.radix())
                .ok()
                .map(Number::Int),
            DeValue::Float(value) => value.as_str().parse().ok().map(Number::Float),
            _ => None,
        }
    }

    pub(crate) fn number(&self) -> Result<Number, Error> {
        self.as_number().ok_or_else(|| self.expected("a number"))
    }

    /// An integer from `low` to `high`.
    pub(crate) fn integer(&self, low: u64, high: u64) -> Result<u64, Error> {
        match self.number()? {
            Number::Int(value) => match u64::try_from(value) {
                Ok(value) if (low..=high).contains(&value) => Ok(value),
                _ => Err(self.wrong(format!("is {value}; it goes from {low} to {high}"))),
            },
            Number::Float(_) => Err(self.expected("an integer")),
        }
    }

    pub(crate) fn float(&self) -> Result<f64, Error> {
        Ok(match self.number()? {
            Number::Int(value) => value as f64,
            Number::Float(value) => value,
        })
    }

    /// One of the words of a list.
    pub(crate) fn one_of<T: Copy>(&self, words: &[(&str, T)]) -> Result<T, Error> {
        let word = self.str()?;
        let found = words.iter().find(|(name, _)| *name == word);
        let all = || words.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        found
            .map(|(_, value)| *value)
            .ok_or_else(|| self.wrong(format!("is \"{word}\"; there are: {}", all())))
    }
}

/// The word that `given` is most likely meant to be: at most a third of its letters differ.
pub(crate) fn nearest<'w>(given: &str, words: impl IntoIterator<Item = &'w str>) -> Option<&'w str> {
    // Nobody misspells a text of this length; the comparison takes the product of both lengths.
    if given.len() > 256 {
        return None;
    }
    let near = words.into_iter().map(|word| (strsim::osa_distance(given, word), word));
    let most = (given.chars().count() / 3).max(1);
    near.filter(|(distance, _)| *distance <= most)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, word)| word)
}
