//! Known keys: those that nothing reads, with what their values may be.

use rocmforge_gguf::{Array, Value};

/// A plain value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Literal {
    Bool(bool),
    Number(f64),
    Text(&'static str),
}

impl Literal {
    /// Whether a JSON value is this one.
    pub(super) fn equals_json(self, value: &serde_json::Value) -> bool {
        match self {
            Self::Bool(wanted) => value.as_bool() == Some(wanted),
            Self::Number(wanted) => value.as_f64() == Some(wanted),
            Self::Text(wanted) => value.as_str() == Some(wanted),
        }
    }

    /// Whether a value of GGUF metadata is this one.
    fn equals_gguf(self, value: &Value) -> bool {
        match (self, value) {
            (Self::Bool(wanted), Value::Bool(found)) => *found == wanted,
            (Self::Number(wanted), Value::F32(found)) => f64::from(*found) == wanted,
            (Self::Number(wanted), Value::F64(found)) => *found == wanted,
            (Self::Number(wanted), other) => other.integer().is_some_and(|found| found as f64 == wanted),
            (Self::Text(wanted), Value::String(found)) => found == wanted,
            _ => false,
        }
    }
}

/// A key with the values that ask for what is computed anyway.
#[derive(Debug)]
pub(crate) struct Fixed {
    pub(crate) key: &'static str,
    pub(crate) values: &'static [Literal],
}

/// A row of [`Known::fixed`].
pub(crate) const fn fixed(key: &'static str, values: &'static [Literal]) -> Fixed {
    Fixed { key, values }
}

impl Fixed {
    /// The values as text.
    pub(crate) fn supported(&self) -> String {
        let text = |literal: &Literal| match literal {
            Literal::Bool(value) => value.to_string(),
            Literal::Number(value) => value.to_string(),
            Literal::Text(value) => (*value).to_owned(),
        };
        self.values.iter().map(text).collect::<Vec<_>>().join(", ")
    }

    /// Whether a value of GGUF metadata is one of these.
    pub(crate) fn allows_gguf(&self, value: &Value) -> bool {
        self.values.iter().any(|literal| literal.equals_gguf(value))
    }
}

/// Lists of keys that nothing reads. A key on no list is refused.
#[derive(Debug)]
pub(crate) struct Known {
    /// What the model computes does not depend on them.
    pub(crate) ignored: &'static [&'static [&'static str]],
    /// They must have one of these values.
    pub(crate) fixed: &'static [&'static [Fixed]],
    /// Keys with the feature that they turn on: they must be 0, false or empty.
    pub(crate) features: &'static [&'static [(&'static str, &'static str)]],
}

impl Known {
    /// No key at all.
    pub(crate) const NOTHING: Self = Self {
        ignored: &[],
        fixed: &[],
        features: &[],
    };

    pub(crate) fn ignores(&self, key: &str) -> bool {
        self.ignored.iter().any(|list| list.contains(&key))
    }

    pub(crate) fn fixed(&self, key: &str) -> Option<&'static Fixed> {
        self.fixed
            .iter()
            .flat_map(|list| list.iter())
            .find(|row| row.key == key)
    }

    pub(crate) fn feature(&self, key: &str) -> Option<&'static str> {
        let mut rows = self.features.iter().flat_map(|list| list.iter());
        rows.find(|(name, _)| *name == key).map(|(_, feature)| *feature)
    }
}

/// Whether a JSON value turns nothing on.
pub(super) fn is_off_json(value: &serde_json::Value) -> bool {
    use serde_json::Value;
    match value {
        Value::Null => true,
        Value::Bool(on) => !on,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.iter().all(is_off_json),
        Value::Object(keys) => keys.is_empty(),
    }
}

/// Whether a value of GGUF metadata turns nothing on: 0, false, empty, or a list of such.
pub(crate) fn is_off_gguf(value: &Value) -> bool {
    fn zeros<T: Default + PartialEq>(items: &[T]) -> bool {
        items.iter().all(|item| *item == T::default())
    }
    match value {
        Value::Bool(on) => !on,
        Value::F32(number) => *number == 0.0,
        Value::F64(number) => *number == 0.0,
        Value::String(text) => text.is_empty(),
        Value::Array(array) => match array {
            Array::U8(items) => zeros(items),
            Array::I8(items) => zeros(items),
            Array::U16(items) => zeros(items),
            Array::I16(items) => zeros(items),
            Array::U32(items) => zeros(items),
            Array::I32(items) => zeros(items),
            Array::U64(items) => zeros(items),
            Array::I64(items) => zeros(items),
            Array::F32(items) => zeros(items),
            Array::F64(items) => zeros(items),
            Array::Bool(items) => zeros(items),
            Array::String(items) => zeros(items),
        },
        other => other.integer() == Some(0),
    }
}
