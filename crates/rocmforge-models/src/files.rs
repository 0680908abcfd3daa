//! Reading of small files with a limit.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::de::DeserializeOwned;

use crate::ModelError;

/// No configuration file is this large; a tokenizer with 250,000 tokens has 17 MB.
const LIMIT: u64 = 128 << 20;

/// The whole file.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, ModelError> {
    let io = |source| ModelError::File {
        path: path.to_path_buf(),
        source,
    };
    let file = File::open(path).map_err(io)?;
    let size = file.metadata().map_err(io)?.len();
    if size > LIMIT {
        return Err(ModelError::TooLarge {
            path: path.to_path_buf(),
            size,
            limit: LIMIT,
        });
    }
    let mut bytes = Vec::new();
    file.take(LIMIT).read_to_end(&mut bytes).map_err(io)?;
    Ok(bytes)
}

/// The file as JSON.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, ModelError> {
    serde_json::from_slice(&read(path)?).map_err(|source| ModelError::Json {
        path: path.to_path_buf(),
        source,
    })
}

/// The file as JSON, or `None` if it does not exist.
pub(crate) fn read_json_if_there<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, ModelError> {
    match read_json(path) {
        Err(ModelError::File { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}
