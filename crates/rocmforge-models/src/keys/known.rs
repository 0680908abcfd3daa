//! Known keys: those that nothing reads, with what their values may be.

use rocmforge_gguf::{Array, Value};
use serde_json::{Number, Value as Json};

/// Most bytes or entries of a value that is compared with others: a tree of a large one takes many times its text.
pub(super) const COMPARED: usize = 4096;

/// Lists of keys that nothing reads, each with spaces between its words. A key on no list is refused.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    /// What the model computes does not depend on them.
    pub(crate) ignored: &'static [&'static str],
    /// Further ones, of one kind of model.
    pub(crate) ignored_too: &'static str,
    /// Keys with the values that ask for what is computed anyway.
    pub(crate) fixed: &'static [&'static [(&'static str, &'static str)]],
    /// Features with the keys that turn them on: these must be 0, false or empty, unless they are ignored.
    pub(crate) features: &'static [&'static [(&'static str, &'static str)]],
}

impl Known {
    /// No key at all.
    pub(crate) const NOTHING: Self = Self {
        ignored: &[],
        ignored_too: "",
        fixed: &[],
        features: &[],
    };

    /// The same lists with further ignored keys, in place of those of an earlier call.
    pub(crate) const fn ignoring(self, keys: &'static str) -> Self {
        Self {
            ignored_too: keys,
            ..self
        }
    }

    pub(super) fn ignores(&self, key: &str) -> bool {
        let mut lists = self.ignored.iter().chain([&self.ignored_too]);
        lists.any(|list| has(list, key))
    }

    /// The key's row of [`Self::fixed`].
    pub(super) fn fixed(&self, key: &str) -> Option<(&'static str, &'static str)> {
        let mut rows = self.fixed.iter().flat_map(|list| list.iter());
        rows.find(|(name, _)| *name == key).copied()
    }

    /// Features, each with a key.
    pub(super) fn features(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let rows = self.features.iter().flat_map(|list| list.iter());
        let all = rows.flat_map(|&(feature, keys)| keys.split(' ').map(move |key| (feature, key)));
        all.filter(|(_, key)| !self.ignores(key))
    }
}

/// Whether a list of words has this one.
fn has(list: &str, word: &str) -> bool {
    list.split(' ').any(|other| other == word)
}

/// Whether a value is one of a list of words.
pub(super) fn is_one_of(value: &Json, list: &str) -> bool {
    match value {
        Json::Bool(value) => has(list, if *value { "true" } else { "false" }),
        Json::Number(value) => list.split(' ').any(|word| word.parse().ok() == value.as_f64()),
        Json::String(text) => has(list, text) && serde_json::from_str::<Json>(text).is_err(),
        _ => false,
    }
}

/// Whether a value turns nothing on: it is null, 0, false, empty, or a list of such.
pub(super) fn is_off(value: &Json) -> bool {
    match value {
        Json::Null => true,
        Json::Bool(on) => !on,
        Json::Number(number) => number.as_f64() == Some(0.0),
        Json::String(text) => text.is_empty(),
        Json::Array(items) => items.iter().all(is_off),
        Json::Object(keys) => keys.is_empty(),
    }
}

/// A value of GGUF metadata as JSON, in which NaN and infinity are texts; `None` if it is a long one.
pub(super) fn as_json(value: &Value) -> Option<Json> {
    let number = |n: f64| Number::from_f64(n).map_or_else(|| Json::String(n.to_string()), Json::Number);
    let integer = |n: i128| i64::try_from(n).map_or_else(|_| Json::from(u64::try_from(n).unwrap_or(0)), Json::from);
    Some(match value {
        Value::Bool(truth) => Json::Bool(*truth),
        Value::F32(n) => number(f64::from(*n)),
        Value::F64(n) => number(*n),
        Value::String(text) => (text.len() <= COMPARED).then(|| Json::String(text.clone()))?,
        Value::Array(array) if array.len() > COMPARED => return None,
        Value::Array(Array::Bool(items)) => items.iter().copied().collect(),
        Value::Array(Array::F32(items)) => items.iter().map(|&n| number(f64::from(n))).collect(),
        Value::Array(Array::F64(items)) => items.iter().copied().map(number).collect(),
        Value::Array(Array::String(items)) => items.iter().map(String::as_str).collect(),
        Value::Array(array) => array.integers()?.into_iter().map(integer).collect(),
        other => integer(other.integer()?),
    })
}
