//! Buffers, in their short form `"f32[8, 64] iota -> y.npy"` and as tables.

use super::toml_reader::Value;
use super::{Buffer, MAX_BYTES};
use crate::dtype::{DType, Number};
use crate::error::Error;
use crate::fill::Fill;
use std::path::Path;

/// Dimensions of a buffer, at most.
const MAX_DIMENSIONS: usize = 16;

/// Whether a string is a buffer's short form rather than the name of one.
pub(super) fn is_short(text: &str) -> bool {
    text.contains('[')
}

/// Reads a buffer in either form. `directory` is what paths are relative to.
pub(super) fn buffer(value: &Value<'_>, label: String, directory: &Path) -> Result<Buffer, Error> {
    let buffer = match value.as_str() {
        Some(text) => short(value, text, label, directory)?,
        None => long(value, label, directory)?,
    };
    let bytes = buffer
        .shape
        .iter()
        .try_fold(buffer.dtype.size() as u64, |n, d| n.checked_mul(*d as u64));
    match bytes {
        Some(bytes) if bytes > 0 && bytes <= MAX_BYTES => Ok(buffer),
        Some(0) => Err(value.wrong("has no elements")),
        _ => Err(value.wrong(format!("has more than {MAX_BYTES} B"))),
    }
}

const FORM: &str = "is no buffer; one is written \"f32[64]\", \"u8[4, 16] zeros\" or \"f16[64] random -> y.npy\"";

fn short(value: &Value<'_>, text: &str, label: String, directory: &Path) -> Result<Buffer, Error> {
    let (text, save) = match text.split_once("->") {
        Some((_, path)) if path.trim().is_empty() => return Err(value.wrong(FORM)),
        Some((text, path)) => (text, Some(directory.join(path.trim()))),
        None => (text, None),
    };
    let (head, fill) = text.split_once(']').ok_or_else(|| value.wrong(FORM))?;
    let (dtype, shape) = head.split_once('[').ok_or_else(|| value.wrong(FORM))?;
    let dtype = dtype_named(value, dtype.trim())?;
    let shape = shape
        .split(',')
        .map(|n| n.trim().parse().ok())
        .collect::<Option<Vec<usize>>>();
    let shape = shape
        .filter(|shape| shape.len() <= MAX_DIMENSIONS)
        .ok_or_else(|| value.wrong(FORM))?;
    Ok(Buffer {
        label,
        place: value.place(),
        dtype,
        shape,
        fill: fill_of(value, fill.trim(), dtype)?,
        save,
    })
}

fn dtype_named(value: &Value<'_>, name: &str) -> Result<DType, Error> {
    DType::named(name).ok_or_else(|| {
        let all: Vec<&str> = DType::ALL.iter().map(|dtype| dtype.name()).collect();
        value.wrong(format!("is of type \"{name}\"; there are: {}", all.join(", ")))
    })
}

/// A word or a number.
fn fill_of(value: &Value<'_>, word: &str, dtype: DType) -> Result<Fill, Error> {
    let seed = word
        .strip_prefix("random(")
        .and_then(|rest| rest.strip_suffix(')'))
        .map(|seed| seed.trim().parse::<u64>());
    let random = |seed| {
        // Integers from 0 to 99; of floats those below 1.
        let high = if dtype.is_float() { 1.0 } else { 100.0 };
        Fill::Random { seed, low: 0.0, high }
    };
    Ok(match (word, seed) {
        ("" | "uninit", _) => Fill::Uninit,
        ("zeros", _) => Fill::Constant(Number::Int(0)),
        ("ones", _) => Fill::Constant(Number::Int(1)),
        ("iota", _) => Fill::Iota,
        ("random", _) => random(0),
        (_, Some(Ok(seed))) => random(seed),
        _ => {
            let number = number(word).ok_or_else(|| {
                value.wrong(format!(
                    "is filled with \"{word}\"; there are: uninit, zeros, ones, iota, random, random(SEED), or a number"
                ))
            })?;
            constant(value, number, dtype)?
        }
    })
}

fn number(word: &str) -> Option<Number> {
    let (digits, radix) = match word.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None => (word, 10),
    };
    match i128::from_str_radix(digits, radix) {
        Ok(value) => Some(Number::Int(value)),
        Err(_) => word.parse().ok().map(Number::Float),
    }
}

fn constant(value: &Value<'_>, number: Number, dtype: DType) -> Result<Fill, Error> {
    match dtype.encode(number) {
        Some(_) => Ok(Fill::Constant(number)),
        None => Err(value.wrong(format!("is filled with {number}, which is no {dtype}"))),
    }
}

fn long(value: &Value<'_>, label: String, directory: &Path) -> Result<Buffer, Error> {
    let table = value.table("a buffer")?;
    let dtype = table.need("dtype")?;
    let dtype = dtype_named(&dtype, dtype.str()?)?;
    let shape = table.need("shape")?;
    let dimension = |value: Value<'_>| value.integer(1, MAX_BYTES).map(|n| n as usize);
    let shape = if shape.is_array() {
        shape.array()?.map(dimension).collect::<Result<Vec<_>, _>>()?
    } else {
        vec![dimension(shape)?]
    };
    if shape.is_empty() || shape.len() > MAX_DIMENSIONS {
        return Err(value.wrong(format!("has 1 to {MAX_DIMENSIONS} dimensions")));
    }
    let fill = match (table.get("fill"), table.get("value"), table.get("file")) {
        (Some(fill), None, None) => fill_of(&fill, fill.str()?, dtype)?,
        (None, Some(value), None) => constant(&value, value.number()?, dtype)?,
        (None, None, Some(file)) => Fill::File(directory.join(file.str()?)),
        (None, None, None) => Fill::Uninit,
        _ => return Err(value.wrong("has more than one of `fill`, `value` and `file`")),
    };
    let fill = random_range(&fill, table.get("seed"), table.get("low"), table.get("high"), dtype)?;
    let save = table
        .get("save")
        .map(|save| save.str().map(|path| directory.join(path)));
    let buffer = Buffer {
        label,
        place: value.place(),
        dtype,
        shape,
        fill,
        save: save.transpose()?,
    };
    table.finish()?;
    Ok(buffer)
}

/// Takes `seed`, `low` and `high` into a random fill.
fn random_range(
    fill: &Fill,
    seed: Option<Value<'_>>,
    low: Option<Value<'_>>,
    high: Option<Value<'_>>,
    dtype: DType,
) -> Result<Fill, Error> {
    let &Fill::Random {
        seed: default,
        low: default_low,
        high: default_high,
    } = fill
    else {
        return match seed.or(low).or(high) {
            Some(extra) => Err(extra.wrong("belongs to `fill = \"random\"`")),
            None => Ok(fill.clone()),
        };
    };
    let limit = |value: Option<Value<'_>>, default: f64| value.map_or(Ok(default), |value| value.float());
    let seed = seed.map_or(Ok(default), |value| value.integer(0, u64::MAX))?;
    let (from, below) = (limit(low, default_low)?, limit(high, default_high)?);
    let range_ok = from < below && dtype.has(from) && dtype.has(below.next_down());
    match (range_ok, high.or(low)) {
        (false, Some(value)) => Err(value.wrong(format!("gives numbers from {from} to {below}, which no {dtype} has"))),
        _ => Ok(Fill::Random {
            seed,
            low: from,
            high: below,
        }),
    }
}
