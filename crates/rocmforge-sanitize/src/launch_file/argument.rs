//! Arguments of launches.

use super::reference::{buffer_and_offset, form, named_buffer};
use super::{Argument, Buffer, buffer};
use crate::dtype::{DType, Number};
use crate::error::Error;
use crate::toml_reader::Value;
use std::path::Path;

/// Where an argument stands, and what it may name.
pub(super) struct Scope<'a> {
    pub(super) directory: &'a Path,
    /// How many of the buffers have a name of their own.
    pub(super) named: usize,
    /// What a buffer that the argument brings along is called.
    pub(super) label: String,
}

pub(super) fn argument(value: &Value<'_>, scope: &Scope<'_>, buffers: &mut Vec<Buffer>) -> Result<Argument, Error> {
    if let Some(number) = value.as_number() {
        return Ok(Argument::Number(number));
    }
    if value.is_array() {
        let mut bytes = Vec::new();
        for part in value.array()? {
            bytes.extend(typed(&part)?);
        }
        return Ok(Argument::Bytes(bytes));
    }
    let named = &buffers[..scope.named];
    if let Some(text) = value.as_str() {
        if !buffer::is_short(text) {
            let index = named_buffer(value.place(), text, named)?;
            return Ok(Argument::Buffer { index, offset: 0 });
        }
        buffers.push(buffer::buffer(value, scope.label.clone(), scope.directory)?);
        return Ok(Argument::Buffer {
            index: buffers.len() - 1,
            offset: 0,
        });
    }
    let table = value.table("an argument")?;
    let mut keys = table.entries().map(|entry| entry.key());
    if keys.any(|key| DType::named(key).is_some()) {
        return typed(value).map(Argument::Bytes);
    }
    let (index, offset) = buffer_and_offset(value, named)?;
    Ok(Argument::Buffer { index, offset })
}

/// `{ f32 = 1.5 }`
fn typed(value: &Value<'_>) -> Result<Vec<u8>, Error> {
    let table = value.table("an argument")?;
    let mut entries = table.entries();
    let (Some(entry), None) = (entries.next(), entries.next()) else {
        return Err(form(value));
    };
    let dtype = DType::named(entry.key()).ok_or_else(|| form(value))?;
    scalar(dtype, entry.number()?).map_err(|problem| entry.wrong(problem))
}

/// The bytes of a number as an argument of a type. A float must be written as one: `2` is more often a mistake than meant.
pub(crate) fn scalar(dtype: DType, number: Number) -> Result<Vec<u8>, String> {
    match number {
        Number::Int(value) if dtype.is_float() => Err(format!("is {value}, and the type is {dtype}: write {value}.0")),
        Number::Float(value) if !dtype.is_float() => Err(format!("is {value:?}, and the type is {dtype}, an integer")),
        number => dtype
            .encode(number)
            .ok_or_else(|| format!("is {number}, which is no {dtype}{}", range(dtype))),
    }
}

/// ` (0 to 255)`
fn range(dtype: DType) -> String {
    match dtype.range() {
        Some((low, high)) => format!(" ({low} to {high})"),
        None => String::new(),
    }
}
