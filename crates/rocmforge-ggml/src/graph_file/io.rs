//! Reading and writing of graph files.

use std::io::{Read, Write};
use std::path::Path;

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;

use super::{GraphFile, GraphFileError};

/// Most bytes of a file, unpacked: 40 times the largest that is committed.
const MAX_BYTES: u64 = 64 << 20;
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

impl GraphFile {
    /// Reads and checks a file: JSON, or JSON compressed with gzip, whatever its name.
    ///
    /// # Errors
    /// The file cannot be read, is too long, is no JSON of the schema, or contradicts itself.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, GraphFileError> {
        let path = path.as_ref();
        let io = |source| GraphFileError::Io {
            path: path.to_owned(),
            source,
        };
        let mut bytes = Vec::new();
        let (file, _) = rocmforge_gguf::open_regular(path).map_err(io)?;
        file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(io)?;
        Self::from_bytes(&bytes)
    }

    /// [`Self::read`] of a file's bytes.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, GraphFileError> {
        let mut unpacked = Vec::new();
        let json = if bytes.starts_with(&GZIP_MAGIC) {
            let mut limited = MultiGzDecoder::new(bytes).take(MAX_BYTES + 1);
            limited.read_to_end(&mut unpacked).map_err(GraphFileError::Gzip)?;
            unpacked.as_slice()
        } else {
            bytes
        };
        if json.len() as u64 > MAX_BYTES {
            return Err(GraphFileError::TooLong { limit: MAX_BYTES });
        }
        let mut file: Self = serde_json::from_slice(json).map_err(GraphFileError::Json)?;
        file.check()?;
        Ok(file)
    }

    /// The file as JSON.
    ///
    /// # Errors
    /// A field cannot be JSON (a number that is not finite).
    pub fn to_json(&self) -> Result<Vec<u8>, GraphFileError> {
        serde_json::to_vec(self).map_err(GraphFileError::Json)
    }

    /// [`Self::to_json`], compressed with gzip.
    ///
    /// # Errors
    /// As [`Self::to_json`].
    pub fn to_gzip(&self) -> Result<Vec<u8>, GraphFileError> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&self.to_json()?).map_err(GraphFileError::Gzip)?;
        encoder.finish().map_err(GraphFileError::Gzip)
    }

    /// Writes a file, compressed if its name ends in `.gz`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<(), GraphFileError> {
        let path = path.as_ref();
        let packed = path.extension().is_some_and(|extension| extension == "gz");
        let bytes = if packed { self.to_gzip()? } else { self.to_json()? };
        std::fs::write(path, bytes).map_err(|source| GraphFileError::Io {
            path: path.to_owned(),
            source,
        })
    }
}
