//! Weights of safetensors files, mapped: one file, or the parts that an index names.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use rocmforge_ggml::{DType, SharedBytes};
use safetensors::Dtype;
use serde::de::{Error as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::tensor_file::{Place, TensorFile};
use super::{Naming, Weight, WeightSource, mxfp4};
use crate::text::shortened;
use crate::{ModelError, files};

/// Most bytes of an index: one of 100,000 tensors has ten megabytes.
const MAX_INDEX: u64 = 32 << 20;
/// Most files of a model: the largest have some hundred.
const MAX_FILES: usize = 4096;

/// The tensors of a model directory.
pub struct SafetensorsWeights {
    tensors: BTreeMap<String, (Arc<TensorFile>, Place)>,
}

struct Tensor {
    file: Arc<TensorFile>,
    range: Range<usize>,
}

impl SharedBytes for Tensor {
    fn bytes(&self) -> &[u8] {
        self.file.bytes(self.range.clone())
    }
}

/// `model.safetensors.index.json`: the files of the tensors. Each file says itself which it has.
#[derive(Deserialize)]
struct Index {
    weight_map: Files,
}

/// The values of an object, each once.
struct Files(BTreeSet<String>);

impl<'de> Deserialize<'de> for Files {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Values;
        impl<'de> Visitor<'de> for Values {
            type Value = Files;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with the file of each tensor")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Files, A::Error> {
                let mut files = BTreeSet::new();
                while let Some((_, file)) = map.next_entry::<IgnoredAny, String>()? {
                    files.insert(file);
                    if files.len() > MAX_FILES {
                        return Err(A::Error::custom(format_args!("it names more than {MAX_FILES} files")));
                    }
                }
                Ok(Files(files))
            }
        }
        deserializer.deserialize_map(Values)
    }
}

impl SafetensorsWeights {
    /// Opens `model.safetensors`, or the files that `model.safetensors.index.json` names.
    ///
    /// # Errors
    /// A file cannot be read, is truncated, an index names a file outside the directory, or two files have one tensor.
    pub fn open(directory: &Path) -> Result<Self, ModelError> {
        let index_path = directory.join("model.safetensors.index.json");
        let index: Option<Index> = files::read_json_if_there_within(&index_path, MAX_INDEX)?;
        let names = match index {
            None => BTreeSet::from(["model.safetensors".to_owned()]),
            Some(index) => index.weight_map.0,
        };
        let mut tensors = BTreeMap::new();
        for name in names {
            let plain = Path::new(&name).file_name().is_some_and(|file| file == name.as_str());
            if !plain || name.chars().any(char::is_control) {
                return Err(ModelError::Setting {
                    path: index_path,
                    field: "weight_map",
                    value: shortened(&name),
                    rule: "a part must be a file of the same directory",
                });
            }
            let path = directory.join(name);
            let (file, places) = TensorFile::open(&path)?;
            let file = Arc::new(file);
            for (tensor, place) in places {
                match tensors.entry(tensor) {
                    Entry::Vacant(free) => free.insert((Arc::clone(&file), place)),
                    Entry::Occupied(taken) => {
                        return Err(ModelError::TensorTwice {
                            name: taken.key().clone(),
                            path,
                        });
                    }
                };
            }
        }
        Ok(Self { tensors })
    }

    /// These tensors, and the one of a module in another directory, by another name.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub(crate) fn with_module(mut self, directory: &Path, name: &str, as_name: String) -> Result<Self, ModelError> {
        let module = Self::open(directory)?;
        let mut found = module.tensors.into_iter();
        let tensor = found.find(|(own, _)| own == name).map(|(_, tensor)| tensor);
        let tensor = tensor.ok_or_else(|| ModelError::MissingTensor { name: name.to_owned() })?;
        self.tensors.insert(as_name, tensor);
        Ok(self)
    }

    /// The tensors to which `rename` gives a name.
    pub(crate) fn renamed(self, rename: impl Fn(&str) -> Option<String>) -> Self {
        let tensors = self.tensors.into_iter();
        Self {
            tensors: tensors
                .filter_map(|(name, tensor)| Some((rename(&name)?, tensor)))
                .collect(),
        }
    }
}

/// Ends of the names of codes and scales of MXFP4.
const MXFP4: [&str; 2] = ["_blocks", "_scales"];

impl SafetensorsWeights {
    /// MXFP4 of this name, whose codes and scales are two tensors.
    fn mxfp4(&self, name: &str) -> Result<Option<Weight>, ModelError> {
        let [codes, scales] = MXFP4.map(|end| self.tensors.get(&format!("{name}{end}")));
        let (Some((codes_file, codes)), Some((scales_file, scales))) = (codes, scales) else {
            return Ok(None);
        };
        let wrong = |end: &str, found: String| ModelError::TensorDType {
            name: format!("{name}{end}"),
            found,
        };
        if codes.dtype != Dtype::U8 || scales.dtype != Dtype::U8 {
            return Err(wrong(
                MXFP4[0],
                format!("{:?}, and the scales {:?}", codes.dtype, scales.dtype),
            ));
        }
        let expected = [scales.shape.as_slice(), &[mxfp4::CODES]].concat();
        if codes.shape != expected {
            return Err(ModelError::TensorShape {
                name: format!("{name}{}", MXFP4[0]),
                found: codes.shape.clone(),
                expected,
            });
        }
        let mut dims = scales.shape.clone();
        if let Some(blocks) = dims.last_mut() {
            *blocks = blocks.saturating_mul(mxfp4::ELEMENTS);
        }
        let part = |file: &Arc<TensorFile>, place: &Place| -> Arc<dyn SharedBytes> {
            Arc::new(Tensor {
                file: Arc::clone(file),
                range: place.range.clone(),
            })
        };
        let parts = [part(codes_file, codes), part(scales_file, scales)];
        Ok(Some(Weight::mxfp4(name, dims, parts)))
    }
}

impl WeightSource for SafetensorsWeights {
    fn get(&self, name: &str) -> Result<Option<Weight>, ModelError> {
        let Some((file, place)) = self.tensors.get(name) else {
            return self.mxfp4(name);
        };
        let dtype = match place.dtype {
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
            file: Arc::clone(file),
            range: place.range.clone(),
        };
        Ok(Some(Weight::new(name, place.shape.clone(), dtype, Arc::new(tensor))))
    }

    fn names(&self) -> Vec<&str> {
        let names = self.tensors.iter().filter_map(|(name, (_, place))| {
            // Codes and scales are one tensor.
            match MXFP4.map(|end| name.strip_suffix(end).filter(|_| place.dtype == Dtype::U8)) {
                [None, None] => Some(name.as_str()),
                [codes, _] => codes,
            }
        });
        names.collect()
    }

    fn naming(&self) -> Naming {
        Naming::HuggingFace
    }
}
