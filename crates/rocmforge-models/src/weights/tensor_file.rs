//! A mapped safetensors file: the bytes of its tensors, and where each lies.

use std::ops::Range;
use std::path::Path;

use memmap2::Mmap;
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

use crate::text::shortened;
use crate::{ModelError, files};

/// Most bytes of a header. One of 100,000 tensors has ten megabytes, and the library takes as much ten times over.
const MAX_HEADER: u64 = 16 << 20;
/// Most bytes of a tensor's name. Messages show it.
const MAX_NAME: usize = 1024;

/// A mapped file whose header has been checked.
#[derive(Debug)]
pub(crate) struct TensorFile {
    map: Mmap,
}

/// A tensor's bytes in its file, which lie inside it, and what they are.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) range: Range<usize>,
    pub(crate) shape: Vec<usize>,
    pub(crate) dtype: Dtype,
}

impl TensorFile {
    /// The file, and the names and places of its tensors.
    ///
    /// # Errors
    /// It cannot be read, is truncated, or has a header that is larger than any in use or names that cannot be shown.
    pub(crate) fn open(path: &Path) -> Result<(Self, Vec<(String, Place)>), ModelError> {
        let map = files::map(path)?;
        let refuse = |field, value: String, rule| ModelError::Setting {
            path: path.to_owned(),
            field,
            value,
            rule,
        };
        let header = map.first_chunk().map_or(0, |length| u64::from_le_bytes(*length));
        if header > MAX_HEADER && header < map.len() as u64 {
            let rule = "at most 16,777,216 bytes are read";
            return Err(refuse("length of the header", header.to_string(), rule));
        }
        let parsed = SafeTensors::deserialize(&map).map_err(|source| ModelError::Weights {
            path: path.to_owned(),
            source,
        })?;
        let start = map.as_ptr() as usize;
        let place = |(name, view): (String, TensorView<'_>)| {
            if name.len() > MAX_NAME || name.chars().any(char::is_control) {
                let rule = "a tensor's name has at most 1,024 bytes and no control characters";
                return Err(refuse("name", shortened(&name), rule));
            }
            let at = view.data().as_ptr() as usize - start;
            let place = Place {
                range: at..at + view.data().len(),
                shape: view.shape().to_vec(),
                dtype: view.dtype(),
            };
            Ok((name, place))
        };
        let places = parsed.tensors().into_iter().map(place).collect::<Result<_, _>>()?;
        Ok((Self { map }, places))
    }

    /// The bytes of a tensor of this file.
    pub(crate) fn bytes(&self, range: Range<usize>) -> &[u8] {
        &self.map[range]
    }
}
