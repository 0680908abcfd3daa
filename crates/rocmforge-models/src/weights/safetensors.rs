//! Weights of safetensors files, mapped: one file, or the parts that an index names.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use memmap2::Mmap;
use rocmforge_ggml::{DType, SharedBytes};
use safetensors::{Dtype, SafeTensors};
use serde::Deserialize;

use super::{Naming, Weight, WeightSource};
use crate::{ModelError, files};

/// The tensors of a model directory.
pub struct SafetensorsWeights {
    tensors: BTreeMap<String, Entry>,
}

struct Entry {
    file: Arc<Mapped>,
    range: Range<usize>,
    dims: Vec<usize>,
    dtype: Dtype,
}

struct Mapped {
    path: PathBuf,
    map: Mmap,
}

struct Tensor {
    file: Arc<Mapped>,
    range: Range<usize>,
}

impl SharedBytes for Tensor {
    fn bytes(&self) -> &[u8] {
        &self.file.map[self.range.clone()]
    }
}

/// `model.safetensors.index.json`: the file of each tensor.
#[derive(Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

impl SafetensorsWeights {
    /// Opens `model.safetensors`, or the files that `model.safetensors.index.json` names.
    ///
    /// # Errors
    /// A file cannot be read, is truncated, or an index names a file outside the directory.
    pub fn open(directory: &Path) -> Result<Self, ModelError> {
        let index_path = directory.join("model.safetensors.index.json");
        let index: Option<Index> = files::read_json_if_there(&index_path)?;
        let mut names: Vec<String> = match index {
            None => vec!["model.safetensors".to_owned()],
            Some(index) => index.weight_map.into_values().collect(),
        };
        names.sort();
        names.dedup();
        let mut tensors = BTreeMap::new();
        for name in names {
            let plain = Path::new(&name).file_name().is_some_and(|file| file == name.as_str());
            if !plain {
                return Err(ModelError::Setting {
                    path: index_path,
                    field: "weight_map",
                    value: name,
                    rule: "a part must be a file of the same directory",
                });
            }
            let file = Arc::new(Mapped::open(directory.join(name))?);
            tensors.extend(file.entries()?);
        }
        Ok(Self { tensors })
    }
}

impl Mapped {
    fn open(path: PathBuf) -> Result<Self, ModelError> {
        let map = files::map(&path)?;
        Ok(Self { path, map })
    }

    fn entries(self: &Arc<Self>) -> Result<Vec<(String, Entry)>, ModelError> {
        let parsed = SafeTensors::deserialize(&self.map).map_err(|source| ModelError::Weights {
            path: self.path.clone(),
            source,
        })?;
        let base = self.map.as_ptr() as usize;
        let entry = |(name, view): (String, safetensors::tensor::TensorView<'_>)| {
            let start = view.data().as_ptr() as usize - base;
            let entry = Entry {
                file: Arc::clone(self),
                range: start..start + view.data().len(),
                dims: view.shape().to_vec(),
                dtype: view.dtype(),
            };
            (name, entry)
        };
        Ok(parsed.tensors().into_iter().map(entry).collect())
    }
}

impl WeightSource for SafetensorsWeights {
    fn get(&self, name: &str) -> Result<Option<Weight>, ModelError> {
        let Some(entry) = self.tensors.get(name) else {
            return Ok(None);
        };
        let dtype = match entry.dtype {
            Dtype::F32 => DType::F32,
            Dtype::F16 => DType::F16,
            Dtype::BF16 => DType::Bf16,
            other => {
                return Err(ModelError::TensorDType {
                    name: name.to_owned(),
                    found: format!("{other:?}"),
                });
            }
        };
        let tensor = Tensor {
            file: Arc::clone(&entry.file),
            range: entry.range.clone(),
        };
        Ok(Some(Weight::new(name, entry.dims.clone(), dtype, Arc::new(tensor))))
    }

    fn names(&self) -> Vec<&str> {
        self.tensors.keys().map(String::as_str).collect()
    }

    fn naming(&self) -> Naming {
        Naming::HuggingFace
    }
}
