//! Outline of a model: shapes and types of weights without their bytes, to plan memory before anything is fetched.

use std::sync::Arc;

use rocmforge_ggml::DType;

use super::{Naming, Weight, WeightSource};
use crate::ModelError;

/// Most elements of a tensor that is assumed: no model has a larger one.
const MOST_ELEMENTS: usize = 1 << 40;

/// Weights of another model with its matrices in one type, or of no model at all: each that is asked for is there.
pub struct OutlineWeights {
    of: Option<Arc<dyn WeightSource>>,
    dtype: DType,
}

impl OutlineWeights {
    /// The weights of `of`, or all that are asked for, with matrices of this type.
    #[must_use]
    pub fn new(of: Option<Arc<dyn WeightSource>>, dtype: DType) -> Self {
        Self { of, dtype }
    }

    /// The type of a matrix whose rows have so many elements. Rows that are no whole blocks get the smallest common type that has room for them, as
    /// llama.cpp's quantiser does it.
    fn of_row(&self, elements: usize) -> DType {
        let types = [self.dtype, DType::Q8_0, DType::F16].into_iter();
        let mut whole = types.filter(|dtype| elements.is_multiple_of(dtype.block_len()));
        whole.next().unwrap_or(DType::F16)
    }
}

impl WeightSource for OutlineWeights {
    fn get(&self, name: &str) -> Result<Option<Weight>, ModelError> {
        let weight = self.of.as_ref().map_or(Ok(None), |of| of.get(name))?;
        Ok(weight.map(|weight| match weight.dims.as_slice() {
            [_, .., row] => {
                let dtype = self.of_row(*row);
                Weight::new(name, weight.dims, dtype, Arc::new(Vec::new()))
            }
            _ => weight,
        }))
    }

    fn names(&self) -> Vec<&str> {
        self.of.as_ref().map_or_else(Vec::new, |of| of.names())
    }

    fn naming(&self) -> Naming {
        self.of.as_ref().map_or(Naming::Gguf, |of| of.naming())
    }

    fn assumed(&self, name: &str, dims: &[usize]) -> Option<Weight> {
        let elements = dims
            .iter()
            .try_fold(1, |product: usize, &dim| product.checked_mul(dim))?;
        if self.of.is_some() || elements > MOST_ELEMENTS {
            return None;
        }
        let dtype = match dims {
            [_, .., row] => self.of_row(*row),
            _ => DType::F32,
        };
        Some(Weight::new(name, dims.to_vec(), dtype, Arc::new(Vec::new())))
    }
}
