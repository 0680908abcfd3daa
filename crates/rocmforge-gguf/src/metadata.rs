//! GGUF metadata: typed values under string keys, in file order.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::error::{GgufError, Result};
use crate::value::{Array, Value};

/// The metadata of a model. Keys are unique and not empty.
///
/// A typed getter such as [`Metadata::string`] fails where the key is absent; its `opt_` twin gives `None` there. Both
/// fail where the value has another type, or a number does not fit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metadata {
    entries: Vec<(String, Value)>,
    index: HashMap<String, usize>,
}

macro_rules! getters {
    ($($(#[$doc:meta])* $name:ident, $opt:ident -> $out:ty, $expected:literal;)*) => {
        $(
            $(#[$doc])*
            ///
            /// # Errors
            /// [`GgufError::MissingKey`], [`GgufError::WrongType`], [`GgufError::ValueOutOfRange`].
            pub fn $name(&self, key: &str) -> Result<$out> {
                self.$opt(key)?
                    .ok_or_else(|| GgufError::MissingKey { key: key.to_string(), expected: $expected })
            }
        )*
    };
}

impl Metadata {
    /// Number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The value under `key`.
    pub fn get(&self, key: &str) -> Option<&Value> {
        let &at = self.index.get(key)?;
        Some(&self.entries[at].1)
    }

    /// All entries in file order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Value)> {
        self.entries.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// Appends an entry whose key is new.
    pub(crate) fn push(&mut self, key: String, value: Value) {
        self.index.insert(key.clone(), self.entries.len());
        self.entries.push((key, value));
    }

    /// Room for `count` further entries.
    pub(crate) fn reserve(&mut self, count: usize) {
        self.entries.reserve(count);
        self.index.reserve(count);
    }

    getters! {
        /// The string under `key`.
        string, opt_string -> &str, "string";
        /// The integer under `key`, of any integer type, as `u32`.
        u32, opt_u32 -> u32, "integer of 32 bits, not negative";
        /// The integer under `key`, of any integer type, as `i32`.
        i32, opt_i32 -> i32, "integer of 32 bits";
        /// The integer under `key`, of any integer type, as `u64`.
        u64, opt_u64 -> u64, "integer of 64 bits, not negative";
        /// The integer under `key`, of any integer type, as `usize`.
        usize, opt_usize -> usize, "integer, not negative";
        /// The number under `key`, an f32, or an f64 that is rounded.
        f32, opt_f32 -> f32, "f32 or f64";
        /// The truth value under `key`.
        bool, opt_bool -> bool, "bool";
        /// The array of strings under `key`.
        strings, opt_strings -> &[String], "array of string";
        /// The array of truth values under `key`.
        bools, opt_bools -> &[bool], "array of bool";
        /// The array of f32 under `key`; an array of f64 is rounded into a copy.
        f32s, opt_f32s -> Cow<'_, [f32]>, "array of f32 or f64";
        /// The array of integers under `key` as `i32`; copied where it has another integer type.
        i32s, opt_i32s -> Cow<'_, [i32]>, "array of integers of 32 bits";
        /// The array of integers under `key` as `u32`; copied where it has another integer type.
        u32s, opt_u32s -> Cow<'_, [u32]>, "array of integers of 32 bits, not negative";
    }

    /// As [`Metadata::string`]; `None` where the key is absent.
    ///
    /// # Errors
    /// [`GgufError::WrongType`].
    pub fn opt_string(&self, key: &str) -> Result<Option<&str>> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::String(value)) => Ok(Some(value)),
            Some(other) => Err(wrong_type(key, "string", other)),
        }
    }

    /// As [`Metadata::u32`]; `None` where the key is absent.
    ///
    /// # Errors
    /// [`GgufError::WrongType`], [`GgufError::ValueOutOfRange`].
    pub fn opt_u32(&self, key: &str) -> Result<Option<u32>> {
        self.integer(key, "integer of 32 bits, not negative")
    }

    /// As [`Metadata::i32`]; `None` where the key is absent.
    ///
    /// # Errors
    /// [`GgufError::WrongType`], [`GgufError::ValueOutOfRange`].
    pub fn opt_i32(&self, key: &str) -> Result<Option<i32>> {
        self.integer(key, "integer of 32 bits")
    }

    /// As [`Metadata::u64`]; `None` where the key is absent.
    ///
    /// # Errors
    /// [`GgufError::WrongType`], [`GgufError::ValueOutOfRange`].
    pub fn opt_u64(&self, key: &str) -> Result<Option<u64>> {
        self.integer(key, "integer of 64 bits, not negative")
    }

    /// As [`Metadata::usize`]; `None` where the key is absent.
    ///
    /// # Errors
    /// [`GgufError::WrongType`], [`GgufError::ValueOutOfRange`].
    pub fn opt_usize(&self, key: &str) -> Result<Option<usize>> {
        self.integer(key, "integer, not negative")
    }

    /// As [`Metadata::f32`]; `None` where the key is absent.
    ///
    /// # Errors
    /// [`GgufError::WrongType`].
    pub fn opt_f32(&self, key: &str) -> Result<Option<f32>> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::F32(value)) => Ok(Some(*value)),
            Some(Value::F64(value)) => Ok(Some(*value as f32)),
            Some(other) => Err(wrong_type(key, "f32 or f64", other)),
        }
    }

    /// As [`Metadata::bool`]; `None` where the key is absent.
    ///
    /// # Errors
    /// [`GgufError::WrongType`].
    pub fn opt_bool(&self, key: &str) -> Result<Option<bool>> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Bool(value)) => Ok(Some(*value)),
            Some(other) => Err(wrong_type(key, "bool", other)),
        }
    }

    /// As [`Metadata::strings`]; `None` where the key is absent.
    ///
    /// # Errors
    /// [`GgufError::WrongType`].
    pub fn opt_strings(&self, key: &str) -> Result<Option<&[String]>> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Array(Array::String(items))) => Ok(Some(items)),
            Some(other) => Err(wrong_type(key, "array of string", other)),
        }
    }

    /// As [`Metadata::bools`]; `None` where the key is absent.
    ///
    /// # Errors
    /// [`GgufError::WrongType`].
    pub fn opt_bools(&self, key: &str) -> Result<Option<&[bool]>> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Array(Array::Bool(items))) => Ok(Some(items)),
            Some(other) => Err(wrong_type(key, "array of bool", other)),
        }
    }

    /// As [`Metadata::f32s`]; `None` where the key is absent.
    ///
    /// # Errors
    /// [`GgufError::WrongType`].
    pub fn opt_f32s(&self, key: &str) -> Result<Option<Cow<'_, [f32]>>> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Array(Array::F32(items))) => Ok(Some(Cow::Borrowed(items))),
            Some(Value::Array(Array::F64(items))) => {
                Ok(Some(Cow::Owned(items.iter().map(|&item| item as f32).collect())))
            }
            Some(other) => Err(wrong_type(key, "array of f32 or f64", other)),
        }
    }

    /// As [`Metadata::i32s`]; `None` where the key is absent.
    ///
    /// # Errors
    /// [`GgufError::WrongType`], [`GgufError::ValueOutOfRange`].
    pub fn opt_i32s(&self, key: &str) -> Result<Option<Cow<'_, [i32]>>> {
        match self.get(key) {
            Some(Value::Array(Array::I32(items))) => Ok(Some(Cow::Borrowed(items))),
            value => integers(key, value, "array of integers of 32 bits"),
        }
    }

    /// As [`Metadata::u32s`]; `None` where the key is absent.
    ///
    /// # Errors
    /// [`GgufError::WrongType`], [`GgufError::ValueOutOfRange`].
    pub fn opt_u32s(&self, key: &str) -> Result<Option<Cow<'_, [u32]>>> {
        match self.get(key) {
            Some(Value::Array(Array::U32(items))) => Ok(Some(Cow::Borrowed(items))),
            value => integers(key, value, "array of integers of 32 bits, not negative"),
        }
    }

    fn integer<T: TryFrom<i128>>(&self, key: &str, expected: &'static str) -> Result<Option<T>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let number = value.integer().ok_or_else(|| wrong_type(key, expected, value))?;
        narrow(key, number, expected).map(Some)
    }
}

/// The elements of an integer array as `T`.
fn integers<'a, T>(key: &str, value: Option<&Value>, expected: &'static str) -> Result<Option<Cow<'a, [T]>>>
where
    T: Clone + TryFrom<i128>,
{
    let Some(value) = value else { return Ok(None) };
    let numbers = match value {
        Value::Array(array) => array.integers(),
        _ => None,
    };
    let numbers = numbers.ok_or_else(|| wrong_type(key, expected, value))?;
    let narrowed = numbers.into_iter().map(|number| narrow(key, number, expected));
    Ok(Some(Cow::Owned(narrowed.collect::<Result<_>>()?)))
}

fn narrow<T: TryFrom<i128>>(key: &str, value: i128, expected: &'static str) -> Result<T> {
    T::try_from(value).map_err(|_| GgufError::ValueOutOfRange {
        key: key.to_string(),
        expected,
        value,
    })
}

fn wrong_type(key: &str, expected: &'static str, found: &Value) -> GgufError {
    GgufError::WrongType {
        key: key.to_string(),
        expected,
        found: found.describe_type(),
    }
}
