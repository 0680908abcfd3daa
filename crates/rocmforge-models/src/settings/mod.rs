//! Settings of a model's JSON file: each key is taken by what reads it, and a key that is left over is an error.
//!
//! A reader takes the keys that it understands. [`Settings::finish`] then compares what is left with a [`Known`] list: a key on no list may
//! change what the model computes, so it is refused by name.

mod known;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;

pub(crate) use known::{Fixed, Known, Literal, fixed, is_off_gguf};

use crate::{FileError, ModelError, files};

/// Most bytes of a config.json: the longest lists in use, names of labels, have some hundred thousand.
const LARGEST: u64 = 8 << 20;

/// Most characters of a value that an error shows.
const SHOWN: usize = 80;

/// Most characters of another library's message that an error shows.
const BRIEF: usize = 400;

/// Most bytes of a value that is compared with others.
const COMPARED: usize = 4096;

/// The keys of one JSON object that nobody has taken yet. `null` is the same as no key.
pub(crate) struct Settings<'a> {
    file: &'a Path,
    /// The objects around this one, such as `rope_parameters.`.
    within: String,
    left: BTreeMap<String, Box<RawValue>>,
}

/// An object whose keys differ.
struct Object(BTreeMap<String, Box<RawValue>>);

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Keys;
        impl<'de> Visitor<'de> for Keys {
            type Value = Object;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
                let mut keys = BTreeMap::new();
                while let Some((key, value)) = map.next_entry::<String, Box<RawValue>>()? {
                    if keys.contains_key(&key) {
                        return Err(A::Error::custom(format_args!("duplicate field `{}`", shortened(&key))));
                    }
                    keys.insert(key, value);
                }
                Ok(Object(keys))
            }
        }
        deserializer.deserialize_map(Keys)
    }
}

/// Text on one line, with its end left out where it is long.
pub(crate) fn shortened(text: &str) -> String {
    at_most(SHOWN, text)
}

/// What another library says, which may hold text of a file, on one line.
pub(crate) fn brief(said: &impl fmt::Display) -> String {
    at_most(BRIEF, &said.to_string())
}

fn at_most(most: usize, text: &str) -> String {
    let mut shown = String::new();
    for (count, character) in text.chars().filter(|c| !c.is_whitespace() || *c == ' ').enumerate() {
        if count == most {
            shown.push_str("...");
            break;
        }
        match character.is_control() {
            true => shown.extend(character.escape_default()),
            false => shown.push(character),
        }
    }
    shown
}

/// The value, unless it is longer than any that is compared with others: a tree of a large one takes many times its text.
fn small(raw: &RawValue) -> Option<serde_json::Value> {
    let text = Some(raw.get()).filter(|text| text.len() <= COMPARED);
    text.and_then(|text| serde_json::from_str(text).ok())
}

impl<'a> Settings<'a> {
    /// The settings of a file.
    ///
    /// # Errors
    /// The file cannot be read, is too large or no JSON object, or has a key twice.
    pub(crate) fn read(file: &'a Path) -> Result<Self, ModelError> {
        let Object(left) = files::read_json_within(file, LARGEST)?;
        let within = String::new();
        Ok(Self { file, within, left })
    }

    /// The file.
    pub(crate) const fn file(&self) -> &'a Path {
        self.file
    }

    /// The key with the names of the objects around it.
    fn name(&self, key: &str) -> String {
        format!("{}{}", self.within, shortened(key))
    }

    fn json_error(&self, key: &str, value: &str, error: &serde_json::Error) -> ModelError {
        // The place counts from the start of the value.
        let text = error.to_string();
        let text = text.split(" at line ").next().unwrap_or_default();
        let message = format_args!("{} = {}: {text}", self.name(key), shortened(value));
        FileError::json(self.file)(serde_json::Error::custom(message)).into()
    }

    /// Takes a key; `None` where it is absent or null.
    ///
    /// # Errors
    /// [`FileError::Json`]: the value is of another type.
    pub(crate) fn take<T: DeserializeOwned>(&mut self, key: &str) -> Result<Option<T>, ModelError> {
        Ok(self.take_stated(key)?.flatten())
    }

    /// Takes a key; the outer `None` where it is absent, the inner one where it is null.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub(crate) fn take_stated<T: DeserializeOwned>(&mut self, key: &str) -> Result<Option<Option<T>>, ModelError> {
        let Some(raw) = self.left.remove(key) else {
            return Ok(None);
        };
        let value = serde_json::from_str(raw.get()).map_err(|error| self.json_error(key, raw.get(), &error))?;
        Ok(Some(value))
    }

    /// Takes a key that must be there.
    ///
    /// # Errors
    /// As [`Self::take`], or the key is absent.
    pub(crate) fn need<T: DeserializeOwned>(&mut self, key: &str) -> Result<T, ModelError> {
        self.take(key)?.ok_or_else(|| {
            let missing = format_args!("missing field `{}`", self.name(key));
            FileError::json(self.file)(serde_json::Error::custom(missing)).into()
        })
    }

    /// Takes an object; `None` where it is absent or null.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub(crate) fn take_object(&mut self, key: &str) -> Result<Option<Self>, ModelError> {
        let object: Option<Object> = self.take(key)?;
        Ok(object.map(|Object(left)| Self {
            file: self.file,
            within: format!("{}{key}.", self.within),
            left,
        }))
    }

    /// Whether a key is there and nobody has taken it.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.left.contains_key(key)
    }

    /// An error about a key: its value makes no sense.
    pub(crate) fn refuse(&self, field: &'static str, value: impl fmt::Display, rule: &'static str) -> ModelError {
        ModelError::Setting {
            path: self.file.to_owned(),
            field,
            value: shortened(&value.to_string()),
            rule,
        }
    }

    /// An error about two keys, each with its value.
    pub(crate) fn contradiction(
        &self,
        first: (&str, impl fmt::Display),
        second: (&str, impl fmt::Display),
    ) -> ModelError {
        ModelError::Contradiction {
            path: self.file.to_owned(),
            first: format!("{} = {}", self.name(first.0), shortened(&first.1.to_string())),
            second: format!("{} = {}", self.name(second.0), shortened(&second.1.to_string())),
        }
    }

    /// Refuses features that the file turns on, before anything else is asked of it.
    ///
    /// # Errors
    /// [`ModelError::Feature`].
    pub(crate) fn refuse_features(&self, known: &Known) -> Result<(), ModelError> {
        for (key, feature) in known.features.iter().flat_map(|list| list.iter()) {
            let Some(raw) = self.left.get(*key) else {
                continue;
            };
            if !small(raw).is_some_and(|value| known::is_off_json(&value)) {
                return Err(ModelError::Feature {
                    feature,
                    key: self.name(key),
                    value: shortened(raw.get()),
                });
            }
        }
        Ok(())
    }

    /// Refuses keys that nobody took, unless the list knows that they leave the numbers of `architecture` as they are.
    ///
    /// # Errors
    /// [`ModelError::UnknownSetting`], [`ModelError::Unsupported`].
    pub(crate) fn finish(self, known: &Known, architecture: &'static str) -> Result<(), ModelError> {
        self.refuse_features(known)?;
        for (key, raw) in &self.left {
            if raw.get() == "null" || known.ignores(key) || known.feature(key).is_some() {
                continue;
            }
            let shown = || shortened(raw.get());
            if let Some(row) = known.fixed(key) {
                let value = small(raw);
                let is = |literal: &Literal| value.as_ref().is_some_and(|value| literal.equals_json(value));
                if row.values.iter().any(is) {
                    continue;
                }
                let text = value.as_ref().and_then(|value| value.as_str());
                return Err(ModelError::Unsupported {
                    path: self.file.to_owned(),
                    field: row.key,
                    value: text.map_or_else(shown, shortened),
                    supported: row.supported(),
                });
            }
            return Err(ModelError::UnknownSetting {
                path: self.file.to_owned(),
                key: self.name(key),
                value: shown(),
                architecture,
            });
        }
        Ok(())
    }
}
