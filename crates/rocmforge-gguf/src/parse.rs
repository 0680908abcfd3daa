//! Parser of one GGUF file: header, metadata, tensor table.

use crate::cursor::Cursor;
use crate::error::{GgufError, Result};
use crate::limits::{self, ALIGNMENT_KEY, DEFAULT_ALIGNMENT};
use crate::metadata::Metadata;
use crate::tensor_type::TensorType;
use crate::value::{Array, Value, ValueType};

/// One tensor: name, shape, type, and where its data are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorInfo {
    /// The name, unique in the model.
    pub name: String,
    /// Elements along each dimension, the contiguous one first: a matrix `[in, out]` has `out` rows of `in` elements.
    pub dims: Vec<usize>,
    /// The element format.
    pub ty: TensorType,
    pub(crate) elements: usize,
    pub(crate) byte_len: usize,
    /// Number of the part that holds the data.
    pub(crate) part: usize,
    /// Where the data start in that part's file.
    pub(crate) start: usize,
}

impl TensorInfo {
    /// Number of elements.
    pub fn elements(&self) -> usize {
        self.elements
    }

    /// Bytes of the data, without padding.
    pub fn byte_len(&self) -> usize {
        self.byte_len
    }

    /// Number of rows: the product of all dimensions but the contiguous one.
    pub fn rows(&self) -> usize {
        self.dims
            .first()
            .map_or(0, |&ne0| self.elements.checked_div(ne0).unwrap_or(0))
    }

    /// Number of the file that holds the data: 0 but in a split model.
    pub fn part(&self) -> usize {
        self.part
    }

    /// Where the data start in that file, in bytes.
    pub fn file_offset(&self) -> u64 {
        self.start as u64
    }
}

/// What one file says.
pub(crate) struct Parsed {
    pub(crate) version: u32,
    pub(crate) alignment: usize,
    pub(crate) metadata: Metadata,
    pub(crate) tensors: Vec<TensorInfo>,
}

/// Parses one file. Every tensor's data lie inside `bytes`. That names are unique is for the caller to check, over all
/// parts.
pub(crate) fn parse(bytes: &[u8], part: usize) -> Result<Parsed> {
    let mut cursor = Cursor::new(bytes);
    let magic = cursor.array("the magic number")?;
    if magic != *b"GGUF" {
        return Err(GgufError::BadMagic { found: magic });
    }
    let version = cursor.u32("the version")?;
    match version {
        2 | 3 => {}
        1 => return Err(GgufError::Version1),
        // Small numbers of the other byte order end in two zero bytes.
        _ if version != 0 && version & 0xffff == 0 => return Err(GgufError::OtherEndianness { version }),
        _ => return Err(GgufError::UnknownVersion { version }),
    }
    let n_tensors_at = cursor.at();
    let n_tensors = cursor.u64("the number of tensors")?;
    let n_entries = cursor.count("metadata entries", limits::LEAST_ENTRY_BYTES, limits::MAX_ENTRIES)?;
    let check_tensors = |cursor: &Cursor<'_>| {
        let (least, most) = (limits::LEAST_TENSOR_BYTES, limits::MAX_TENSORS);
        cursor.check_count("tensors", n_tensors_at, n_tensors, least, most)
    };
    check_tensors(&cursor)?;

    let metadata = parse_metadata(&mut cursor, n_entries)?;
    let alignment = match metadata.get(ALIGNMENT_KEY) {
        None => DEFAULT_ALIGNMENT,
        Some(Value::U32(alignment)) => limits::check_alignment(u64::from(*alignment))?,
        Some(other) => {
            return Err(GgufError::AlignmentType {
                found: other.value_type(),
            });
        }
    };
    // The metadata have taken bytes, so the count may now be too large.
    check_tensors(&cursor)?;
    let tensors = parse_tensors(&mut cursor, n_tensors, alignment, part, bytes.len())?;
    Ok(Parsed {
        version,
        alignment,
        metadata,
        tensors,
    })
}

fn parse_metadata(cursor: &mut Cursor<'_>, count: u64) -> Result<Metadata> {
    let mut metadata = Metadata::default();
    metadata.reserve(limits::reserve(count));
    let mut strings = limits::MAX_STRINGS;
    for _ in 0..count {
        let at = cursor.at();
        let len = cursor.u64("a metadata key's length")?;
        limits::check_key(len, at)?;
        let key = cursor.text(len, "a metadata key")?;
        limits::check_name(&key, "a metadata key", at)?;
        let ty = value_type(cursor, &key)?;
        let value = parse_value(cursor, &key, ty, strings)?;
        if let Value::Array(Array::String(items)) = &value {
            strings -= items.len() as u64;
        }
        if metadata.get(&key).is_some() {
            return Err(GgufError::DuplicateKey { key, at });
        }
        metadata.push(key, value);
    }
    Ok(metadata)
}

fn value_type(cursor: &mut Cursor<'_>, key: &str) -> Result<ValueType> {
    let at = cursor.at();
    let id = cursor.u32("a metadata value's type")?;
    ValueType::from_id(id).ok_or_else(|| GgufError::UnknownValueType {
        key: key.to_string(),
        id,
        at,
    })
}

/// A value; of strings in an array at most `strings`.
fn parse_value(cursor: &mut Cursor<'_>, key: &str, ty: ValueType, strings: u64) -> Result<Value> {
    const WHAT: &str = "a metadata value";
    Ok(match ty {
        ValueType::U8 => Value::U8(u8::from_le_bytes(cursor.array(WHAT)?)),
        ValueType::I8 => Value::I8(i8::from_le_bytes(cursor.array(WHAT)?)),
        ValueType::U16 => Value::U16(u16::from_le_bytes(cursor.array(WHAT)?)),
        ValueType::I16 => Value::I16(i16::from_le_bytes(cursor.array(WHAT)?)),
        ValueType::U32 => Value::U32(u32::from_le_bytes(cursor.array(WHAT)?)),
        ValueType::I32 => Value::I32(i32::from_le_bytes(cursor.array(WHAT)?)),
        ValueType::F32 => Value::F32(f32::from_le_bytes(cursor.array(WHAT)?)),
        ValueType::U64 => Value::U64(u64::from_le_bytes(cursor.array(WHAT)?)),
        ValueType::I64 => Value::I64(i64::from_le_bytes(cursor.array(WHAT)?)),
        ValueType::F64 => Value::F64(f64::from_le_bytes(cursor.array(WHAT)?)),
        ValueType::Bool => Value::Bool(bools(cursor, key, 1)? == [true]),
        ValueType::String => Value::String(string(cursor)?),
        ValueType::Array => Value::Array(parse_array(cursor, key, strings)?),
    })
}

fn bools(cursor: &mut Cursor<'_>, key: &str, count: u64) -> Result<Vec<bool>> {
    let start = cursor.at();
    let bytes = cursor.take(count, "a metadata value")?;
    let bool_at = |(at, &byte): (usize, &u8)| match byte {
        0 => Ok(false),
        1 => Ok(true),
        value => Err(GgufError::BadBool {
            key: key.to_string(),
            value,
            at: start + at as u64,
        }),
    };
    bytes.iter().enumerate().map(bool_at).collect()
}

fn string(cursor: &mut Cursor<'_>) -> Result<String> {
    let len = cursor.count("bytes of a metadata string", 1, limits::MAX_LEN)?;
    cursor.text(len, "a metadata string")
}

fn parse_array(cursor: &mut Cursor<'_>, key: &str, strings: u64) -> Result<Array> {
    let at = cursor.at();
    let ty = value_type(cursor, key)?;
    if ty == ValueType::Array {
        return Err(GgufError::NestedArray {
            key: key.to_string(),
            at,
        });
    }
    let most = if ty == ValueType::String {
        strings
    } else {
        limits::MAX_LEN
    };
    let count = cursor.count("array elements", ty.least_bytes() as u64, most)?;
    parse_elements(cursor, key, ty, count)
}

/// `count` packed elements; the caller has checked that so many can be there.
fn parse_elements(cursor: &mut Cursor<'_>, key: &str, ty: ValueType, count: u64) -> Result<Array> {
    fn packed<const N: usize, T>(cursor: &mut Cursor<'_>, count: u64, from: fn([u8; N]) -> T) -> Result<Vec<T>> {
        // The count is at most 2^30, so the product does not overflow.
        let bytes = cursor.take(count * N as u64, "a metadata value")?;
        let (items, _) = bytes.as_chunks::<N>();
        Ok(items.iter().map(|&item| from(item)).collect())
    }
    Ok(match ty {
        ValueType::U8 => Array::U8(packed(cursor, count, u8::from_le_bytes)?),
        ValueType::I8 => Array::I8(packed(cursor, count, i8::from_le_bytes)?),
        ValueType::U16 => Array::U16(packed(cursor, count, u16::from_le_bytes)?),
        ValueType::I16 => Array::I16(packed(cursor, count, i16::from_le_bytes)?),
        ValueType::U32 => Array::U32(packed(cursor, count, u32::from_le_bytes)?),
        ValueType::I32 => Array::I32(packed(cursor, count, i32::from_le_bytes)?),
        ValueType::F32 => Array::F32(packed(cursor, count, f32::from_le_bytes)?),
        ValueType::U64 => Array::U64(packed(cursor, count, u64::from_le_bytes)?),
        ValueType::I64 => Array::I64(packed(cursor, count, i64::from_le_bytes)?),
        ValueType::F64 => Array::F64(packed(cursor, count, f64::from_le_bytes)?),
        ValueType::Bool => Array::Bool(bools(cursor, key, count)?),
        ValueType::String => {
            let mut items = Vec::with_capacity(limits::reserve(count));
            for _ in 0..count {
                items.push(string(cursor)?);
            }
            Array::String(items)
        }
        ValueType::Array => {
            return Err(GgufError::NestedArray {
                key: key.to_string(),
                at: cursor.at(),
            });
        }
    })
}

/// A tensor as its entry has it, before its place is known.
struct Entry {
    name: String,
    dims: Vec<u64>,
    ty: TensorType,
    offset: u64,
}

fn parse_tensors(
    cursor: &mut Cursor<'_>,
    count: u64,
    alignment: usize,
    part: usize,
    file_len: usize,
) -> Result<Vec<TensorInfo>> {
    let mut entries = Vec::with_capacity(limits::reserve(count));
    for _ in 0..count {
        entries.push(parse_entry(cursor)?);
    }
    let align = alignment as u64;
    let file_len = file_len as u64;
    // The header ends inside the file, and files are shorter than 2^63 bytes, so this does not overflow.
    let data_start = cursor.at().next_multiple_of(align);
    let mut tensors = Vec::with_capacity(entries.len());
    let mut expected = 0_u64;
    for Entry { name, dims, ty, offset } in entries {
        let (elements, byte_len) = limits::tensor_size(&name, &dims, ty)?;
        if offset != expected {
            return Err(GgufError::BadOffset { name, offset, expected });
        }
        // The tensor before ends inside the file, so this is at most the file's length plus one alignment.
        let start = data_start + expected;
        let end = start.saturating_add(byte_len as u64);
        if end > file_len {
            return Err(GgufError::TensorPastEnd { name, end, file_len });
        }
        expected += (byte_len as u64).next_multiple_of(align);
        tensors.push(TensorInfo {
            name,
            // The product of the dimensions fits usize, so each does.
            dims: dims.iter().map(|&dim| dim as usize).collect(),
            ty,
            elements,
            byte_len,
            part,
            start: start as usize,
        });
    }
    Ok(tensors)
}

fn parse_entry(cursor: &mut Cursor<'_>) -> Result<Entry> {
    let at = cursor.at();
    let len = cursor.u64("a tensor name's length")?;
    if len == 0 || len > limits::MAX_NAME_BYTES {
        return Err(GgufError::BadNameLength {
            at,
            len,
            most: limits::MAX_NAME_BYTES,
        });
    }
    let name = cursor.text(len, "a tensor name")?;
    limits::check_name(&name, "a tensor name", at)?;
    let n_dims = cursor.u32("a tensor's number of dimensions")?;
    if n_dims == 0 || u64::from(n_dims) > limits::MAX_DIMS {
        return Err(GgufError::BadDimCount {
            name,
            n_dims: n_dims.into(),
        });
    }
    let mut dims = Vec::with_capacity(n_dims as usize);
    for _ in 0..n_dims {
        dims.push(cursor.u64("a tensor's dimensions")?);
    }
    let id = cursor.u32("a tensor's type")?;
    let Some(ty) = TensorType::from_id(id) else {
        return Err(GgufError::UnknownTensorType { name, id });
    };
    let offset = cursor.u64("a tensor's offset")?;
    Ok(Entry { name, dims, ty, offset })
}
