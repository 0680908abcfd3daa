//! References to buffers: a name, with an offset or without.

use super::Buffer;
use crate::dtype::{DType, Number};
use crate::error::{Error, Place};
use crate::fill::Pointer;
use crate::toml_reader::{Value, nearest};

/// `{ buffer = "x", offset = 4 }`
pub(super) fn buffer_and_offset(value: &Value<'_>, buffers: &[Buffer]) -> Result<(usize, u64), Error> {
    let table = value.table("an argument")?;
    // A misspelt key is reported with the types that might be meant, too.
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

/// What an argument may be.
pub(super) fn form(value: &Value<'_>) -> Error {
    let all: Vec<&str> = DType::ALL.iter().map(|dtype| dtype.name()).collect();
    value.wrong(format!(
        "takes a number, a buffer, or one number with its type as {{ f32 = 1.5 }}; types are: {}",
        all.join(", ")
    ))
}
