//! Arguments of launches, and the addresses that pointer buffers hold.

use super::{Argument, Buffer, buffer};
use crate::dtype::{DType, Number};
use crate::error::{Error, Place};
use crate::fill::Pointer;
use crate::toml_reader::{Value, nearest};
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

/// `{ buffer = "x", offset = 4 }`
fn buffer_and_offset(value: &Value<'_>, buffers: &[Buffer]) -> Result<(usize, u64), Error> {
    let table = value.table("an argument")?;
    // A misspelt key is told with the types that might be meant, too.
    for dtype in DType::ALL {
        table.get(dtype.name());
    }
    let name = table.get("buffer");
    let offset = table.get("offset");
    let Some(name) = name else {
        table.finish()?;
        return Err(form(value));
    };
    let offset = offset.map_or(Ok(0), |offset| offset.integer(0, u64::MAX))?;
    let index = named_buffer(name.place(), name.str()?, buffers)?;
    table.finish()?;
    Ok((index, offset))
}

/// The buffer of a name.
pub(super) fn named_buffer(at: Place, name: &str, buffers: &[Buffer]) -> Result<usize, Error> {
    let labels = || buffers.iter().map(|buffer| buffer.label.as_str());
    labels().position(|label| label == name).ok_or_else(|| {
        let known: Vec<&str> = labels().collect();
        Error::NoSuchBuffer {
            at,
            name: name.to_owned(),
            nearest: nearest(name, labels()).map(str::to_owned),
            known: if known.is_empty() {
                "none".to_owned()
            } else {
                known.join(", ")
            },
        }
    })
}

/// An address in a pointer buffer: the name of a buffer, `{ buffer = "x", offset = 4 }`, or 0.
pub(super) fn pointer(value: &Value<'_>, buffers: &[Buffer]) -> Result<Pointer, Error> {
    if let Some(name) = value.as_str() {
        let index = named_buffer(value.place(), name, buffers)?;
        return Ok(Pointer::Buffer { index, offset: 0 });
    }
    match value.as_number() {
        Some(Number::Int(0)) => return Ok(Pointer::Null),
        Some(number) => {
            return Err(value.wrong(format!(
                "has {number}; a pointer is the name of a buffer, {{ buffer = \"x\", offset = 4 }}, or 0"
            )));
        }
        None => {}
    }
    let (index, offset) = buffer_and_offset(value, buffers)?;
    let bytes = buffers[index].bytes() as u64;
    if offset > bytes {
        return Err(value.wrong(format!("starts {offset} B into a buffer of {bytes} B")));
    }
    Ok(Pointer::Buffer { index, offset })
}

fn form(value: &Value<'_>) -> Error {
    let all: Vec<&str> = DType::ALL.iter().map(|dtype| dtype.name()).collect();
    value.wrong(format!(
        "takes a number, a buffer, or one number with its type as {{ f32 = 1.5 }}; types are: {}",
        all.join(", ")
    ))
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
