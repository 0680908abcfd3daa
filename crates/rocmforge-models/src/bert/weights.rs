//! Weights of an encoder: `model.safetensors`, mapped into memory.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;

use half::{bf16, f16};
use safetensors::Dtype;

use crate::ModelError;
use crate::weights::tensor_file::{Place, TensorFile};

/// A mapped weights file whose header has been checked, and read once.
#[derive(Debug)]
pub(super) struct Weights {
    file: TensorFile,
    tensors: HashMap<String, Place>,
}

impl Weights {
    pub(super) fn open(path: &Path) -> Result<Self, ModelError> {
        let (file, places) = TensorFile::open(path)?;
        let tensors = places.into_iter().collect();
        Ok(Self { file, tensors })
    }

    fn entry(&self, name: &str) -> Result<&Place, ModelError> {
        // Old checkpoints have TensorFlow's names of the layer norm parameters.
        let old = name
            .replace("LayerNorm.weight", "LayerNorm.gamma")
            .replace("LayerNorm.bias", "LayerNorm.beta");
        [name, &format!("bert.{name}"), &old, &format!("bert.{old}")]
            .iter()
            .find_map(|n| self.tensors.get(*n))
            .ok_or_else(|| ModelError::MissingTensor { name: name.to_owned() })
    }

    /// Whether a tensor is there, with this shape and a type that can be read.
    pub(super) fn check(&self, name: &str, expected: &[usize]) -> Result<(), ModelError> {
        let entry = self.entry(name)?;
        if entry.shape != expected {
            let (found, expected) = (entry.shape.clone(), expected.to_vec());
            return Err(ModelError::TensorShape {
                name: name.to_owned(),
                found,
                expected,
            });
        }
        if !matches!(entry.dtype, Dtype::F32 | Dtype::F16 | Dtype::BF16) {
            return Err(ModelError::TensorDType {
                name: name.to_owned(),
                found: format!("{:?}", entry.dtype),
            });
        }
        Ok(())
    }

    /// Whether a tensor is there and stored in 16 bits.
    pub(super) fn is_half(&self, name: &str) -> bool {
        self.entry(name)
            .is_ok_and(|entry| matches!(entry.dtype, Dtype::F16 | Dtype::BF16))
    }

    /// A tensor as f32, in file order. NaN and infinity are refused.
    pub(super) fn read(&self, name: &str) -> Result<Cow<'_, [f32]>, ModelError> {
        let entry = self.entry(name)?;
        let data = self.file.bytes(entry.range.clone());
        let halves = |convert: fn(u16) -> f32| {
            data.chunks_exact(2)
                .map(|b| convert(u16::from_le_bytes([b[0], b[1]])))
                .collect::<Vec<f32>>()
        };
        let values: Cow<'_, [f32]> = match entry.dtype {
            Dtype::F32 => match bytemuck::try_cast_slice(data) {
                Ok(values) if cfg!(target_endian = "little") => Cow::Borrowed(values),
                _ => Cow::Owned(
                    data.chunks_exact(4)
                        .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
                        .collect(),
                ),
            },
            Dtype::F16 => Cow::Owned(halves(|b| f16::from_bits(b).to_f32())),
            Dtype::BF16 => Cow::Owned(halves(|b| bf16::from_bits(b).to_f32())),
            other => {
                return Err(ModelError::TensorDType {
                    name: name.to_owned(),
                    found: format!("{other:?}"),
                });
            }
        };
        match values.iter().position(|v| !v.is_finite()) {
            None => Ok(values),
            Some(index) => Err(ModelError::NotFinite {
                name: name.to_owned(),
                index,
                value: values[index],
            }),
        }
    }
}
