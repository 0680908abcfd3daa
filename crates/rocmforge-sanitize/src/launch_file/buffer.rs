//! Buffers, in their short form `"f32[8, 64] iota -> y.npy"` and as tables.

use super::reference::pointer;
use super::{Buffer, MAX_BYTES};
use crate::dtype::{DType, Number};
use crate::error::Error;
use crate::fill::{Fill, Pointer};
use crate::toml_reader::{Table, Value};
use std::ops::Range;
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
        written: None,
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
    let seed = word.strip_prefix("random(").and_then(|rest| rest.strip_suffix(')'));
    let seed = seed.map(|seed| seed.trim().parse::<u64>());
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
    let (dtype, shape, fill) = match table.get("pointers") {
        Some(list) => pointers(&table, &list)?,
        None => numbers(value, &table, directory)?,
    };
    let count = shape.iter().try_fold(1usize, |n, d| n.checked_mul(*d));
    let written = match table.get("written") {
        Some(written) if matches!(fill, Fill::Uninit) => {
            return Err(written.wrong("says which elements are written, and the buffer is not filled with anything"));
        }
        Some(written) => Some(ranges(&written, count.unwrap_or(usize::MAX))?),
        // Values that end before the buffer does leave the rest as it is.
        None => match &fill {
            Fill::Values(values) => Some(vec![Range {
                start: 0,
                end: values.len(),
            }]),
            _ => None,
        },
    };
    let save = table
        .get("save")
        .map(|save| save.str().map(|path| directory.join(path)));
    let buffer = Buffer {
        label,
        place: value.place(),
        dtype,
        shape,
        fill,
        written,
        save: save.transpose()?,
    };
    table.finish()?;
    Ok(buffer)
}

/// A buffer of numbers: its type, its shape, and what it is filled with.
fn numbers(value: &Value<'_>, table: &Table<'_>, directory: &Path) -> Result<(DType, Vec<usize>, Fill), Error> {
    let dtype = table.need("dtype")?;
    let dtype = dtype_named(&dtype, dtype.str()?)?;
    let shape = table.get("shape").map(|shape| dimensions(&shape)).transpose()?;
    let sources = ["fill", "value", "values", "range", "file"].into_iter();
    let given: Vec<Value<'_>> = sources.filter_map(|key| table.get(key)).collect();
    if let [first, second, ..] = &given[..] {
        return Err(value.wrong(format!(
            "has `{}` and `{}`; one says what it holds",
            first.key(),
            second.key()
        )));
    }
    let mut count = None;
    let fill = match given.first() {
        None => Fill::Uninit,
        Some(given) => match given.key() {
            "fill" => fill_of(given, given.str()?, dtype)?,
            "value" => constant(given, given.number()?, dtype)?,
            "values" => {
                let mut numbers = Vec::new();
                values(given, dtype, &mut numbers)?;
                count = Some(numbers.len());
                Fill::Values(numbers)
            }
            "range" => {
                let (start, step, length) = progression(given)?;
                count = length;
                Fill::Range { start, step }
            }
            _ => Fill::File(directory.join(given.str()?)),
        },
    };
    let fill = random_range(&fill, table.get("seed"), table.get("low"), table.get("high"), dtype)?;
    let shape = match (shape, count) {
        (Some(shape), None) => shape,
        (None, Some(count)) => vec![count],
        (None, None) => return Err(table.missing("shape")),
        (Some(shape), Some(count)) => {
            let wanted = elements(&shape);
            let fits = match fill {
                Fill::Values(_) => count <= wanted,
                _ => count == wanted,
            };
            if !fits {
                return Err(value.wrong(format!("has {wanted} elements, and {count} are given")));
            }
            shape
        }
    };
    if let (Fill::Range { start, step }, Some(given)) = (&fill, given.first()) {
        let count = elements(&shape);
        let last = Fill::element(*start, *step, count.saturating_sub(1) as u64);
        for number in [*start, last] {
            if dtype.encode(number).is_none() {
                return Err(given.wrong(format!("has {number}, which is no {dtype}")));
            }
        }
    }
    Ok((dtype, shape, fill))
}

fn dimensions(shape: &Value<'_>) -> Result<Vec<usize>, Error> {
    let dimension = |value: Value<'_>| value.integer(1, MAX_BYTES).map(|n| n as usize);
    let shape_of = if shape.is_array() {
        shape.array()?.map(dimension).collect::<Result<Vec<_>, _>>()?
    } else {
        vec![dimension(*shape)?]
    };
    if shape_of.is_empty() || shape_of.len() > MAX_DIMENSIONS {
        return Err(shape.wrong(format!("has 1 to {MAX_DIMENSIONS} dimensions")));
    }
    Ok(shape_of)
}

/// Numbers in the order of the file, rows one after another.
fn values(list: &Value<'_>, dtype: DType, numbers: &mut Vec<Number>) -> Result<(), Error> {
    for value in list.array()? {
        if value.is_array() {
            values(&value, dtype, numbers)?;
            continue;
        }
        let number = value.number()?;
        if dtype.encode(number).is_none() {
            return Err(value.wrong(format!("has {number}, which is no {dtype}")));
        }
        numbers.push(number);
    }
    Ok(())
}

/// `"0..64"`, or `{ start = 1, end = 9, step = 2 }`: the first number, the difference, and how many there are, if it says so.
fn progression(value: &Value<'_>) -> Result<(Number, Number, Option<usize>), Error> {
    if let Some(text) = value.as_str() {
        let ends = text.split_once("..").and_then(|(start, end)| {
            let number = |text: &str| text.trim().parse::<i64>().ok().map(i128::from);
            Some((number(start)?, number(end)?))
        });
        let Some((start, end)) = ends.filter(|(start, end)| start < end) else {
            return Err(value.wrong(format!("is \"{text}\"; a range is \"0..64\", its end beyond its start")));
        };
        let count = usize::try_from(end - start).unwrap_or(usize::MAX);
        return Ok((Number::Int(start), Number::Int(1), Some(count)));
    }
    let table = value.table("a range")?;
    let part = |key, default| match table.get(key) {
        Some(part) => match part.number()? {
            Number::Int(n) if i64::try_from(n).is_err() => Err(part.wrong("has more than 64 bits")),
            Number::Float(n) if !n.is_finite() => Err(part.wrong("is no finite number")),
            number => Ok(Some(number)),
        },
        None => Ok(default),
    };
    let start = part("start", Some(Number::Int(0)))?;
    let step = part("step", Some(Number::Int(1)))?;
    let end = part("end", None)?;
    let (start, step) = (start.unwrap_or(Number::Int(0)), step.unwrap_or(Number::Int(1)));
    table.finish()?;
    let count = match (start, step, end) {
        (_, _, None) => return Ok((start, step, None)),
        (Number::Int(start), Number::Int(step), Some(Number::Int(end))) => {
            let steps = if step == 0 {
                -1
            } else {
                (end - start + step - step.signum()) / step
            };
            usize::try_from(steps).unwrap_or(0)
        }
        (start, step, Some(end)) => {
            let steps = ((end.as_f64() - start.as_f64()) / step.as_f64()).ceil();
            // A count that is too large for memory is refused with the buffer's size.
            if steps.is_finite() && steps > 0.0 {
                steps as usize
            } else {
                0
            }
        }
    };
    if count == 0 {
        return Err(value.wrong("has no elements: `step` does not lead from `start` to `end`"));
    }
    Ok((start, step, Some(count)))
}

/// `"0..8"` or a list of such: ranges of elements.
fn ranges(value: &Value<'_>, count: usize) -> Result<Vec<Range<usize>>, Error> {
    let one = |value: &Value<'_>| {
        let text = value.str()?;
        let ends = text.split_once("..").and_then(|(start, end)| {
            let number = |text: &str| text.trim().parse::<usize>().ok();
            Some(number(start)?..number(end)?)
        });
        match ends {
            Some(range) if range.start < range.end && range.end <= count => Ok(range),
            _ => Err(value.wrong(format!(
                "is \"{text}\"; a range of the elements is \"0..8\", and the buffer has {count}"
            ))),
        }
    };
    if !value.is_array() {
        return Ok(vec![one(value)?]);
    }
    let ranges = value.array()?.map(|part| one(&part)).collect::<Result<Vec<_>, _>>()?;
    // Otherwise a short file could ask for the same bytes to be written without end.
    if let Some(pair) = ranges.windows(2).find(|pair| pair[1].start < pair[0].end) {
        let [Range { start, end }, next] = [&pair[0], &pair[1]];
        return Err(value.wrong(format!(
            "has {}..{} after {start}..{end}; ranges are in order and do not overlap",
            next.start, next.end
        )));
    }
    if ranges.is_empty() {
        return Err(value.wrong("is empty: leave the buffer without a fill"));
    }
    Ok(ranges)
}

/// A buffer of addresses. Which they are is known when all buffers are.
fn pointers(table: &Table<'_>, list: &Value<'_>) -> Result<(DType, Vec<usize>, Fill), Error> {
    let count = list.array()?.count();
    Ok((
        DType::U64,
        match table.get("shape") {
            Some(shape) => {
                let shape_of = dimensions(&shape)?;
                if shape_of.iter().try_fold(1usize, |n, d| n.checked_mul(*d)) != Some(count) {
                    return Err(shape.wrong(format!(
                        "does not have {count} elements, and so many pointers are given"
                    )));
                }
                shape_of
            }
            None => vec![count],
        },
        Fill::Pointers(vec![Pointer::Null; count]),
    ))
}

/// Finds the buffers that a pointer buffer names.
pub(super) fn point(value: &Value<'_>, index: usize, buffers: &mut [Buffer]) -> Result<(), Error> {
    let Some(list) = value.as_table("a buffer").and_then(|table| table.get("pointers")) else {
        return Ok(());
    };
    let found = list.array()?.map(|part| pointer(&part, buffers));
    let found = found.collect::<Result<Vec<_>, _>>()?;
    buffers[index].fill = Fill::Pointers(found);
    Ok(())
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

/// How many elements a shape has, `usize::MAX` for more than can be counted.
fn elements(shape: &[usize]) -> usize {
    let count = shape.iter().try_fold(1usize, |n, d| n.checked_mul(*d));
    count.unwrap_or(usize::MAX)
}
