//! Hyper-parameters of a file: one reader over GGUF metadata and config.json.
//!
//! What reads a hyper-parameter takes it by its [`Key`], once, with the values that it may have. [`Keys::finish`] then compares the keys that are left
//! with a [`Known`] list: a key on no list may change what the model computes, so it is refused by name.

mod known;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::path::Path;

use rocmforge_gguf::{Metadata, Value};
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::Value as Json;
use serde_json::value::RawValue;

pub(crate) use known::Known;

use crate::per_layer::PerLayer;
use crate::text::shortened;
use crate::{FileError, ModelError, files};

/// Most bytes of a config.json: the longest lists in use, names of labels, have some hundred thousand.
const LARGEST: u64 = 8 << 20;

/// Names of a hyper-parameter in GGUF, without the architecture's, and in config.json. Of several with spaces between them, the first that is there
/// counts. An empty name: files of this kind do not have it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key(pub(crate) &'static str, pub(crate) &'static str);

/// What a number must be, and the same in words.
pub(crate) struct Within(pub(crate) RangeInclusive<usize>, pub(crate) &'static str);

/// What a finite number must be, and the same in words.
pub(crate) struct Bound(pub(crate) fn(f32) -> bool, pub(crate) &'static str);

pub(crate) const POSITIVE: Bound = Bound(|value| value > 0.0, "it must be finite and positive");
pub(crate) const NOT_NEGATIVE: Bound = Bound(|value| value >= 0.0, "it must be finite and not negative");

/// A truth value.
#[derive(Deserialize)]
#[serde(untagged)]
enum Flag {
    Truth(bool),
    Number(u8),
}

/// A value as the file has it.
enum Raw<'a> {
    Gguf(&'a Value),
    Json(Box<RawValue>),
}

impl Raw<'_> {
    fn shown(&self) -> String {
        match self {
            Self::Gguf(value) => shortened(&value.to_string()),
            Self::Json(raw) => shortened(raw.get()),
        }
    }

    fn is_null(&self) -> bool {
        matches!(self, Self::Json(raw) if raw.get() == "null")
    }

    fn is_list(&self) -> bool {
        match self {
            Self::Gguf(value) => matches!(value, Value::Array(_)),
            Self::Json(raw) => raw.get().starts_with('['),
        }
    }

    /// The value, unless it is longer than any that is compared with others.
    fn small(&self) -> Option<Json> {
        match self {
            Self::Gguf(value) => known::as_json(value),
            Self::Json(raw) if raw.get().len() <= known::COMPARED => serde_json::from_str(raw.get()).ok(),
            Self::Json(_) => None,
        }
    }

    fn read<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        match self {
            Self::Gguf(value) => match known::as_json(value) {
                Some(json) => serde_json::from_value(json),
                None => Err(serde_json::Error::custom("it is longer than any in use")),
            },
            Self::Json(raw) => serde_json::from_str(raw.get()),
        }
    }
}

/// An object whose keys differ.
struct Object<'a>(BTreeMap<String, Raw<'a>>);

impl<'de> Deserialize<'de> for Object<'_> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Object<'static>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut keys = BTreeMap::new();
                while let Some((key, value)) = map.next_entry::<String, _>()? {
                    if keys.contains_key(&key) {
                        return Err(A::Error::custom(format_args!("duplicate field `{}`", shortened(&key))));
                    }
                    keys.insert(key, Raw::Json(value));
                }
                Ok(Object(keys))
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

/// The keys of a file, or of one JSON object, that nobody has taken yet. In JSON `null` is the same as no key.
pub(crate) struct Keys<'a> {
    /// The config.json; `None` for GGUF.
    file: Option<&'a Path>,
    /// What stands before each name: the architecture (`llama.`), or the objects around this one (`rope_parameters.`).
    within: String,
    left: BTreeMap<String, Raw<'a>>,
    /// Keys of features that are read.
    read: Vec<&'static str>,
}

impl<'a> Keys<'a> {
    /// The metadata under an architecture's name.
    pub(crate) fn of_gguf(metadata: &'a Metadata, architecture: &str) -> Self {
        let within = format!("{architecture}.");
        let keys = metadata.iter().filter_map(|(name, value)| {
            let key = name.strip_prefix(&within)?;
            Some((key.to_owned(), Raw::Gguf(value)))
        });
        Self {
            left: keys.collect(),
            read: Vec::new(),
            file: None,
            within,
        }
    }

    /// The settings of a config.json.
    ///
    /// # Errors
    /// The file cannot be read, is too large or no JSON object, or has a key twice.
    pub(crate) fn of_json(file: &'a Path) -> Result<Self, ModelError> {
        let Object(left) = files::read_json_within(file, LARGEST)?;
        Ok(Self {
            file: Some(file),
            within: String::new(),
            left,
            read: Vec::new(),
        })
    }

    pub(crate) const fn is_gguf(&self) -> bool {
        self.file.is_none()
    }

    /// The key's names in this kind of file.
    pub(crate) fn names(&self, Key(gguf, json): Key) -> impl Iterator<Item = &'static str> + use<> {
        let names = if self.is_gguf() { gguf } else { json };
        names.split(' ').filter(|name| !name.is_empty())
    }

    /// A name with what stands before it.
    fn whole(&self, name: &str) -> String {
        format!("{}{}", self.within, shortened(name))
    }

    /// The key's name with what stands before it.
    pub(crate) fn name(&self, key: Key) -> String {
        self.whole(self.names(key).next().unwrap_or_default())
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.left.contains_key(name)
    }

    /// Whether the file states this value.
    pub(crate) fn is(&self, name: &str, value: &str) -> bool {
        let found = self.left.get(name).and_then(Raw::small);
        found.is_some_and(|found| known::is_one_of(&found, value))
    }

    /// Gives settings the names that other files have for them. One that the file has already is left as it is, and nobody takes the other.
    pub(crate) fn rename(&mut self, names: &[(&str, &str)]) {
        for (own, other) in names {
            if !self.has(other)
                && let Some(raw) = self.left.remove(*own)
            {
                self.left.insert((*other).to_owned(), raw);
            }
        }
    }

    /// `absent`, unless the file says null in place of it.
    pub(crate) fn unless_null<T>(&self, key: Key, absent: Option<T>) -> Option<T> {
        let is_null = |name| self.left.get(name).is_some_and(Raw::is_null);
        absent.filter(|_| !self.names(key).any(is_null))
    }

    /// Whether the file states a value.
    pub(crate) fn states(&self, key: Key) -> bool {
        let is_there = |name| self.left.get(name).is_some_and(|raw| !raw.is_null());
        self.names(key).any(is_there)
    }

    /// Whether the file has the key, perhaps with null.
    pub(crate) fn has_any(&self, key: Key) -> bool {
        self.names(key).any(|name| self.has(name))
    }

    pub(crate) fn is_list(&self, key: Key) -> bool {
        self.names(key)
            .any(|name| self.left.get(name).is_some_and(Raw::is_list))
    }

    /// Takes a truth value for each layer, if the file has a list of them.
    ///
    /// # Errors
    /// The list has another length, or other values; llama.cpp saves 0 and 1.
    pub(crate) fn flags(&mut self, key: Key, layers: usize) -> Result<Option<Vec<bool>>, ModelError> {
        if !self.is_list(key) {
            return Ok(None);
        }
        let flags: Vec<Flag> = self.need(key)?;
        let truth = |flag: &Flag| match flag {
            Flag::Truth(truth) => Some(*truth),
            Flag::Number(number) => [false, true].get(usize::from(*number)).copied(),
        };
        let truths: Option<Vec<bool>> = flags.iter().map(truth).collect();
        let truths = truths.filter(|truths| truths.len() == layers);
        let value = format!("a list of {} entries", flags.len());
        let refused = || self.refuse(key, value, "it must be a truth value for each layer, or a period");
        truths.ok_or_else(refused).map(Some)
    }

    /// Takes a hyper-parameter; `None` where it is absent or null.
    ///
    /// # Errors
    /// The value is of another type.
    pub(crate) fn take<T: DeserializeOwned>(&mut self, key: Key) -> Result<Option<T>, ModelError> {
        let mut found = None;
        for name in self.names(key) {
            let Some(raw) = self.left.remove(name) else { continue };
            let value = raw
                .read()
                .map_err(|error| self.wrong_type(name, &raw.shown(), &error))?;
            found = found.or(value);
        }
        Ok(found)
    }

    /// Takes a hyper-parameter that must be there.
    ///
    /// # Errors
    /// As [`Self::take`], or it is absent.
    pub(crate) fn need<T: DeserializeOwned>(&mut self, key: Key) -> Result<T, ModelError> {
        self.take(key)?.ok_or_else(|| self.missing(key))
    }

    /// Takes a number within bounds. Without `absent` it must be there.
    ///
    /// # Errors
    /// As [`Self::need`], or it is not within bounds.
    pub(crate) fn size(&mut self, key: Key, within: &Within, absent: Option<usize>) -> Result<usize, ModelError> {
        let value = self.take(key)?.or(absent).ok_or_else(|| self.missing(key))?;
        self.check(key, value, within)
    }

    /// Takes a number for all layers, or a list with one for each.
    ///
    /// # Errors
    /// As [`Self::size`], or the list has another length.
    pub(crate) fn sizes(
        &mut self,
        key: Key,
        layers: usize,
        within: &Within,
        absent: Option<PerLayer>,
    ) -> Result<PerLayer, ModelError> {
        let found = match self.is_list(key) {
            false => self.take(key)?.map(PerLayer::all),
            true => {
                let list: Vec<usize> = self.need(key)?;
                if list.len() != layers {
                    let value = format!("a list of {} entries", list.len());
                    return Err(self.refuse(key, value, "it must be one number, or one for each layer"));
                }
                PerLayer::each(list)
            }
        };
        let found = found.or(absent).ok_or_else(|| self.missing(key))?;
        for &value in found.values() {
            self.check(key, value, within)?;
        }
        Ok(found)
    }

    /// Takes a finite number. Without `absent` it must be there.
    ///
    /// # Errors
    /// As [`Self::need`], or it is out of bounds.
    pub(crate) fn number(&mut self, key: Key, bound: &Bound, absent: Option<f32>) -> Result<f32, ModelError> {
        let value: f32 = self.take(key)?.or(absent).ok_or_else(|| self.missing(key))?;
        match value.is_finite() && bound.0(value) {
            true => Ok(value),
            false => Err(self.refuse(key, value, bound.1)),
        }
    }

    /// Takes a positive number, if there is one. In GGUF 0 stands for none.
    ///
    /// # Errors
    /// As [`Self::number`].
    pub(crate) fn factor(&mut self, key: Key) -> Result<Option<f32>, ModelError> {
        let found: Option<f32> = self.take(key)?;
        let found = found.filter(|&value| value != 0.0 || !self.is_gguf());
        found.map(|value| self.number(key, &POSITIVE, Some(value))).transpose()
    }

    /// Takes what may be stated in several places: `before` has what another said, with its name.
    ///
    /// # Errors
    /// [`ModelError::Contradiction`], or as [`Self::take`].
    pub(crate) fn agreed<T: DeserializeOwned + PartialEq + fmt::Display>(
        &mut self,
        key: Key,
        before: Option<(String, T)>,
    ) -> Result<Option<(String, T)>, ModelError> {
        let here = self.take(key)?.map(|value: T| (self.name(key), value));
        match (before, here) {
            (Some((first, a)), Some((second, b))) if a != b => {
                let shown = |name, value: T| format!("{name} = {}", shortened(&value.to_string()));
                Err(self.contradiction(shown(first, a), shown(second, b)))
            }
            (before, here) => Ok(before.or(here)),
        }
    }

    /// Takes a JSON object; `None` where it is absent or null.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub(crate) fn object(&mut self, name: &'static str) -> Result<Option<Self>, ModelError> {
        let object: Option<Object<'_>> = self.take(Key("", name))?;
        Ok(object.map(|Object(left)| Self {
            file: self.file,
            within: format!("{}{name}.", self.within),
            left,
            read: Vec::new(),
        }))
    }

    /// Whether these are the keys of an object in the file, and not of the file itself.
    pub(crate) const fn is_within(&self) -> bool {
        !self.within.is_empty()
    }

    /// States a truth value that the object around this one has, as if it were here.
    ///
    /// # Errors
    /// The value here is another.
    pub(crate) fn state(&mut self, key: Key, outer: Option<bool>) -> Result<(), ModelError> {
        let Some(outer) = outer else { return Ok(()) };
        let own: Option<bool> = self.take(key)?;
        if own.is_some_and(|own| own != outer) {
            return Err(self.refuse(key, !outer, "the file states another value outside of this object"));
        }
        for name in self.names(key) {
            let raw = serde_json::value::to_raw_value(&outer).map_err(|error| self.wrong_type(name, "", &error))?;
            self.left.insert(name.to_owned(), Raw::Json(raw));
        }
        Ok(())
    }

    /// The value, if it is within bounds.
    ///
    /// # Errors
    /// As [`Self::refuse`].
    pub(crate) fn check(&self, key: Key, value: usize, within: &Within) -> Result<usize, ModelError> {
        match within.0.contains(&value) {
            true => Ok(value),
            false => Err(self.refuse(key, value, within.1)),
        }
    }

    /// An error about a hyper-parameter: its value makes no sense.
    pub(crate) fn refuse(&self, key: Key, value: impl fmt::Display, rule: &'static str) -> ModelError {
        let value = shortened(&value.to_string());
        match self.file {
            None => ModelError::Hyperparameter {
                key: self.name(key),
                value,
                rule: rule.to_owned(),
            },
            Some(path) => ModelError::Setting {
                path: path.to_owned(),
                field: self.names(key).next().unwrap_or_default(),
                value,
                rule,
            },
        }
    }

    /// An error about a hyper-parameter that must be there.
    pub(crate) fn missing(&self, key: Key) -> ModelError {
        let key = self.name(key);
        match self.file {
            None => ModelError::MissingKey { key },
            Some(path) => {
                let missing = format_args!("missing field `{key}`");
                FileError::json(path)(serde_json::Error::custom(missing)).into()
            }
        }
    }

    fn wrong_type(&self, name: &str, value: &str, error: &serde_json::Error) -> ModelError {
        // The place counts from the start of the value.
        let text = error.to_string();
        let text = text.split(" at line ").next().unwrap_or_default();
        let key = self.whole(name);
        match self.file {
            None => ModelError::Hyperparameter {
                key,
                value: value.to_owned(),
                rule: text.to_owned(),
            },
            Some(path) => {
                let message = format_args!("{key} = {value}: {text}");
                FileError::json(path)(serde_json::Error::custom(message)).into()
            }
        }
    }

    /// An error about two settings, each with its value.
    pub(crate) fn contradiction(&self, first: String, second: String) -> ModelError {
        let path = self.file.unwrap_or(Path::new("")).to_owned();
        ModelError::Contradiction { path, first, second }
    }

    /// Refuses features that the file turns on, before anything else is asked of it.
    ///
    /// # Errors
    /// [`ModelError::Feature`].
    pub(crate) fn refuse_features(&self, known: &Known) -> Result<(), ModelError> {
        for (feature, key) in self.features(known) {
            let value = self.left.get(key);
            if let Some(raw) = value.filter(|raw| !raw.small().is_some_and(|value| known::is_off(&value))) {
                return Err(ModelError::Feature {
                    feature,
                    key: if self.is_gguf() {
                        key.to_owned()
                    } else {
                        self.whole(key)
                    },
                    value: raw.shown(),
                });
            }
        }
        Ok(())
    }

    /// Keys of features that are read: they are not refused for what they turn on.
    pub(crate) fn reads(&mut self, keys: Vec<&'static str>) {
        self.read = keys;
    }

    /// Features that must be off, each with a key.
    fn features(&self, known: &Known) -> impl Iterator<Item = (&'static str, &'static str)> {
        known.features().filter(|(_, key)| !self.read.contains(key))
    }

    /// Refuses keys that nobody took, unless the list knows that they leave the numbers of `architecture` as they are.
    ///
    /// # Errors
    /// An error with the key's name and value.
    pub(crate) fn finish(self, known: &Known, architecture: &'static str) -> Result<(), ModelError> {
        self.refuse_features(known)?;
        for (key, raw) in &self.left {
            if raw.is_null() || known.ignores(key) || self.features(known).any(|(_, feature)| feature == key) {
                continue;
            }
            let (small, path, whole) = (raw.small(), self.file.map(Path::to_owned), self.whole(key));
            let Some((field, values)) = known.fixed(key) else {
                let (key, value) = (whole, raw.shown());
                return Err(match path {
                    None => ModelError::UnknownKey {
                        key,
                        value,
                        architecture,
                    },
                    Some(path) => ModelError::UnknownSetting {
                        path,
                        key,
                        value,
                        architecture,
                    },
                });
            };
            if small.as_ref().is_some_and(|value| known::is_one_of(value, values)) {
                continue;
            }
            let text = small.as_ref().and_then(Json::as_str);
            let (value, supported) = (text.map_or_else(|| raw.shown(), shortened), values.replace(' ', ", "));
            return Err(match path {
                None => ModelError::UnsupportedKey {
                    key: whole,
                    value,
                    supported,
                },
                Some(path) => ModelError::Unsupported {
                    path,
                    field,
                    value,
                    supported,
                },
            });
        }
        Ok(())
    }
}
