//! Limits of the format, for the reader and the writer alike.

use crate::error::{GgufError, Result};
use crate::tensor_type::TensorType;

/// The key of the alignment of tensor data.
pub(crate) const ALIGNMENT_KEY: &str = "general.alignment";
/// Alignment of a file that does not name one.
pub(crate) const DEFAULT_ALIGNMENT: usize = 32;
/// A larger alignment has no use, and padding to it would make a small file large.
pub(crate) const MAX_ALIGNMENT: u64 = 1 << 20;
/// Longest metadata key in bytes, by the format's specification.
pub(crate) const MAX_KEY_BYTES: u64 = 65_535;
/// Longest tensor name in bytes: ggml keeps names in 64 bytes with a terminator.
pub(crate) const MAX_NAME_BYTES: u64 = 63;
/// Most dimensions of a tensor.
pub(crate) const MAX_DIMS: u64 = 4;
/// Most bytes of a string and most elements of an array, as in llama.cpp.
pub(crate) const MAX_LEN: u64 = 1 << 30;
/// Most metadata entries: files in use have some hundred.
pub(crate) const MAX_ENTRIES: u64 = 1 << 16;
/// Most strings in all arrays of a file's metadata: the longest vocabularies have half a million tokens and as many merges. Each takes several
/// times its bytes in the file.
pub(crate) const MAX_STRINGS: u64 = 1 << 22;
/// Most tensors of a file: models in use have some thousand.
pub(crate) const MAX_TENSORS: u64 = 1 << 18;
/// The shortest metadata entry: a key of one byte with its length, the type, a value of one byte.
pub(crate) const LEAST_ENTRY_BYTES: u64 = 14;
/// No tensor entry is shorter: a name of one byte with its length, the number of dimensions, type and offset.
pub(crate) const LEAST_TENSOR_BYTES: u64 = 25;

/// Room to reserve for so many things. A file can claim more than it has, and what is there is counted as it is read:
/// so at most 65,536 at once.
pub(crate) fn reserve(count: u64) -> usize {
    count.min(1 << 16) as usize
}

/// That a metadata key of `len` bytes, which stands at byte `at`, is neither empty nor too long.
pub(crate) fn check_key(len: u64, at: u64) -> Result<()> {
    match len {
        0 => Err(GgufError::EmptyKey { at }),
        1..=MAX_KEY_BYTES => Ok(()),
        _ => Err(GgufError::KeyTooLong {
            at,
            len,
            most: MAX_KEY_BYTES,
        }),
    }
}

/// That a name, which stands at byte `at`, has no control characters: messages show it, and they would change the reader's terminal.
pub(crate) fn check_name(name: &str, what: &'static str, at: u64) -> Result<()> {
    match name.chars().find(|c| c.is_control()) {
        Some(character) => Err(GgufError::ControlCharacter { what, at, character }),
        None => Ok(()),
    }
}

/// That there are at most `most` of something, which stand at byte `at`.
pub(crate) fn check_count(what: &'static str, count: usize, most: u64, at: u64) -> Result<()> {
    match count as u64 {
        count if count > most => Err(GgufError::TooMany { what, at, count, most }),
        _ => Ok(()),
    }
}

/// The alignment, where it is a power of two of at most 1 MiB.
pub(crate) fn check_alignment(alignment: u64) -> Result<usize> {
    if !alignment.is_power_of_two() || alignment > MAX_ALIGNMENT {
        return Err(GgufError::BadAlignment {
            alignment,
            most: MAX_ALIGNMENT,
        });
    }
    // At most 2^20, so it fits.
    Ok(alignment as usize)
}

/// Elements and bytes of a tensor, where its shape fits the type and both can be addressed.
pub(crate) fn tensor_size(name: &str, dims: &[u64], ty: TensorType) -> Result<(usize, usize)> {
    if dims.is_empty() || dims.len() as u64 > MAX_DIMS {
        return Err(GgufError::BadDimCount {
            name: name.to_string(),
            n_dims: dims.len() as u64,
        });
    }
    if let Some(axis) = dims.iter().position(|&dim| dim == 0) {
        return Err(GgufError::ZeroDim {
            name: name.to_string(),
            axis,
        });
    }
    let too_large = || GgufError::TensorTooLarge {
        name: name.to_string(),
        dims: dims.to_vec(),
    };
    let elements = dims.iter().try_fold(1_u64, |product, &dim| product.checked_mul(dim));
    let elements = elements.filter(|&count| i64::try_from(count).is_ok());
    let elements = usize::try_from(elements.ok_or_else(too_large)?).map_err(|_| too_large())?;
    if !dims[0].is_multiple_of(ty.block_len() as u64) {
        return Err(GgufError::RowNotBlocks {
            name: name.to_string(),
            ne0: dims[0],
            ty,
            block_len: ty.block_len(),
        });
    }
    // Rows are whole blocks, so the tensor is one long row.
    let bytes = ty.row_bytes(elements).filter(|&bytes| isize::try_from(bytes).is_ok());
    Ok((elements, bytes.ok_or_else(too_large)?))
}
