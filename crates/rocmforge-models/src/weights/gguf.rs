//! Weights of a GGUF model, mapped.

use std::sync::Arc;

use rocmforge_ggml::{DType, SharedBytes};
use rocmforge_gguf::{Gguf, TensorInfo};

use super::{Naming, Weight, WeightSource};
use crate::ModelError;

/// The tensors of an opened GGUF model.
pub struct GgufWeights(Arc<Gguf>);

impl GgufWeights {
    /// The tensors of `gguf`.
    #[must_use]
    pub const fn new(gguf: Arc<Gguf>) -> Self {
        Self(gguf)
    }
}

struct Tensor {
    gguf: Arc<Gguf>,
    info: TensorInfo,
}

impl SharedBytes for Tensor {
    fn bytes(&self) -> &[u8] {
        self.gguf.data(&self.info)
    }
}

impl WeightSource for GgufWeights {
    fn get(&self, name: &str) -> Result<Option<Weight>, ModelError> {
        let Some(tensor) = self.0.tensor(name) else {
            return Ok(None);
        };
        let dtype = DType::of_tensor_type(tensor.ty).filter(|dtype| dtype.is_weight());
        let dtype = dtype.ok_or_else(|| ModelError::TensorDType {
            name: name.to_owned(),
            found: tensor.ty.name().to_owned(),
        })?;
        let dims: Vec<usize> = tensor.dims.iter().rev().copied().collect();
        let data = Tensor {
            gguf: Arc::clone(&self.0),
            info: tensor.clone(),
        };
        Ok(Some(Weight::new(name, dims, dtype, Arc::new(data))))
    }

    fn names(&self) -> Vec<&str> {
        self.0.tensors().iter().map(|tensor| tensor.name.as_str()).collect()
    }

    fn naming(&self) -> Naming {
        Naming::Gguf
    }
}
