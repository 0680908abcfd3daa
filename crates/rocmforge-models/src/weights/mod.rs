//! Weights by name: tensors of a GGUF or of safetensors files, where they lie.

mod gguf;
mod mxfp4;
mod names;
mod order;
mod outline;
mod safetensors;
mod tensor_file;

use std::ops::Range;
use std::sync::Arc;

use half::{bf16, f16};
use rocmforge_ggml::{DType, SharedBytes};

pub use gguf::GgufWeights;
pub use names::Naming;
pub(crate) use names::{ExpertNames, LinearNames, Name, of_expert, of_text_part};
pub(crate) use order::Order;
pub use outline::OutlineWeights;
pub use safetensors::SafetensorsWeights;

use crate::ModelError;

/// A tensor of a model file: its shape, type and bytes. Cloning shares the bytes.
#[derive(Clone)]
pub struct Weight {
    /// Name in the file.
    pub name: String,
    /// Dimensions, outermost first: a matrix is `[out, in]`.
    pub dims: Vec<usize>,
    /// Element type.
    pub dtype: DType,
    /// One after the other.
    parts: Vec<Arc<dyn SharedBytes>>,
    /// Where the elements lie in these bytes, if not one after the other.
    orders: Vec<Order>,
    /// The parts are codes and scales of a checkpoint's MXFP4.
    is_mxfp4: bool,
}

impl std::fmt::Debug for Weight {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} {:?}", self.name, self.dtype, self.dims)
    }
}

/// Part of the bytes of another.
struct Part {
    whole: Arc<dyn SharedBytes>,
    range: Range<usize>,
}

impl SharedBytes for Part {
    fn bytes(&self) -> &[u8] {
        self.whole.bytes().get(self.range.clone()).unwrap_or(&[])
    }
}

impl Weight {
    /// Tensors of one shape and type as one with a further dimension, outermost.
    pub(crate) fn stack(name: &str, first: &Self, parts: Vec<Arc<dyn SharedBytes>>) -> Self {
        let dims = [&[parts.len()], first.dims.as_slice()].concat();
        Self {
            name: name.to_owned(),
            dims,
            dtype: first.dtype,
            parts,
            orders: Vec::new(),
            is_mxfp4: false,
        }
    }

    pub(crate) fn new(name: &str, dims: Vec<usize>, dtype: DType, bytes: Arc<dyn SharedBytes>) -> Self {
        let name = name.to_owned();
        Self {
            name,
            dims,
            dtype,
            parts: vec![bytes],
            orders: Vec::new(),
            is_mxfp4: false,
        }
    }

    /// A vector of f32 values.
    pub(crate) fn from_f32(name: &str, values: &[f32]) -> Self {
        let bytes: Vec<u8> = bytemuck::cast_slice(values).to_vec();
        Self::new(name, vec![values.len()], DType::F32, Arc::new(bytes))
    }

    /// A function of each value of a small tensor, as f32 in the same shape; an outline, which has no values, keeps its shape.
    ///
    /// # Errors
    /// As [`Self::to_f32`].
    pub(crate) fn mapped(&self, function: impl Fn(f32) -> f32) -> Result<Self, ModelError> {
        let values: Vec<f32> = self.to_f32()?.into_iter().map(function).collect();
        let bytes: Vec<u8> = bytemuck::cast_slice(&values).to_vec();
        Ok(Self::new(&self.name, self.dims.clone(), DType::F32, Arc::new(bytes)))
    }

    /// The bytes, where they lie; those of a tensor that the file has in parts in a copy.
    #[must_use]
    pub fn bytes(&self) -> Arc<dyn SharedBytes> {
        let whole = match self.parts.as_slice() {
            [codes, scales] if self.is_mxfp4 => Arc::new(mxfp4::blocks(codes.bytes(), scales.bytes())),
            _ => self.joined(),
        };
        if self.orders.is_empty() {
            return whole;
        }
        let mut out = Vec::with_capacity(self.byte_size());
        for order in &self.orders {
            order.gather(whole.bytes(), self.dtype.block_bytes(), &mut out);
        }
        Arc::new(out)
    }

    /// The bytes of all parts.
    fn joined(&self) -> Arc<dyn SharedBytes> {
        match self.parts.as_slice() {
            [one] => Arc::clone(one),
            parts => {
                let parts: Vec<&[u8]> = parts.iter().map(|part| part.bytes()).collect();
                Arc::new(parts.concat())
            }
        }
    }

    /// Whether [`Self::bytes`] makes a copy.
    pub(crate) fn is_copied(&self) -> bool {
        self.parts.len() > 1 || !self.orders.is_empty()
    }

    /// The same elements in other dimensions.
    pub(crate) fn reshaped(self, dims: &[usize]) -> Self {
        Self {
            dims: dims.to_vec(),
            ..self
        }
    }

    /// MXFP4 of a checkpoint, from its codes and scales.
    pub(crate) fn mxfp4(name: &str, dims: Vec<usize>, parts: [Arc<dyn SharedBytes>; 2]) -> Self {
        Self {
            name: name.to_owned(),
            dims,
            dtype: DType::Mxfp4,
            parts: parts.into(),
            orders: Vec::new(),
            is_mxfp4: true,
        }
    }

    /// Elements of this tensor, or blocks, in another order, as a tensor of these dimensions: one order after the other.
    ///
    /// # Errors
    /// [`ModelError::TensorDType`] for a block format whose blocks are not what the orders count.
    pub(crate) fn reordered(&self, dims: &[usize], orders: Vec<Order>) -> Result<Self, ModelError> {
        let count = |dims: &[usize]| dims.iter().copied().fold(1, usize::saturating_mul);
        let ordered: usize = orders.iter().map(|order| count(&order.dims)).sum();
        if ordered.saturating_mul(self.dtype.block_len()) != count(dims) {
            return Err(ModelError::TensorDType {
                name: self.name.clone(),
                found: self.dtype.to_string(),
            });
        }
        Ok(Self {
            dims: dims.to_vec(),
            orders,
            ..self.clone()
        })
    }

    /// Number of the bytes, by shape and type: those of an outline are not there.
    #[must_use]
    pub fn byte_size(&self) -> usize {
        let elements = self.dims.iter().copied().fold(1, usize::saturating_mul);
        (elements / self.dtype.block_len()).saturating_mul(self.dtype.block_bytes())
    }

    /// Some rows of a matrix, without a copy.
    pub(crate) fn rows(&self, rows: Range<usize>) -> Self {
        let row = self.byte_size().checked_div(self.dims[0]).unwrap_or(0);
        let mut dims = self.dims.clone();
        dims[0] = rows.len();
        let range = rows.start * row..rows.end * row;
        let part = Part {
            whole: self.bytes(),
            range,
        };
        Self::new(&self.name, dims, self.dtype, Arc::new(part))
    }

    /// Some rows of each matrix of a list `[count, rows, cols]`.
    pub(crate) fn rows_of_each(&self, rows: Range<usize>) -> Self {
        let of_one = self.byte_size().checked_div(self.dims[0]).unwrap_or(0);
        let row = of_one.checked_div(self.dims[1]).unwrap_or(0);
        let whole = self.bytes();
        let part = |index: usize| -> Arc<dyn SharedBytes> {
            let start = index * of_one;
            let range = start + rows.start * row..start + rows.end * row;
            let whole = Arc::clone(&whole);
            Arc::new(Part { whole, range })
        };
        let mut dims = self.dims.clone();
        dims[1] = rows.len();
        Self {
            name: self.name.clone(),
            parts: (0..dims[0]).map(part).collect(),
            dims,
            dtype: self.dtype,
            orders: Vec::new(),
            is_mxfp4: false,
        }
    }

    /// A small tensor (a norm's weight, a bias) as f32.
    ///
    /// # Errors
    /// [`ModelError::TensorDType`] for block formats.
    pub(crate) fn to_f32(&self) -> Result<Vec<f32>, ModelError> {
        let whole = self.bytes();
        let bytes = whole.bytes();
        let halves = |convert: fn(u16) -> f32| {
            let pairs = bytes.as_chunks::<2>().0.iter();
            pairs.map(|&b| convert(u16::from_le_bytes(b))).collect()
        };
        match self.dtype {
            DType::F32 => Ok(bytes
                .as_chunks::<4>()
                .0
                .iter()
                .map(|&b| f32::from_le_bytes(b))
                .collect()),
            DType::F16 => Ok(halves(|b| f16::from_bits(b).to_f32())),
            DType::Bf16 => Ok(halves(|b| bf16::from_bits(b).to_f32())),
            other => Err(ModelError::TensorDType {
                name: self.name.clone(),
                found: other.to_string(),
            }),
        }
    }
}

/// Where a model's weights come from.
pub trait WeightSource: Send + Sync {
    /// A tensor by the name in the file.
    ///
    /// # Errors
    /// The tensor is there, but of a type that cannot be used.
    fn get(&self, name: &str) -> Result<Option<Weight>, ModelError>;

    /// Names of all tensors.
    fn names(&self) -> Vec<&str>;

    /// How this kind of file names tensors.
    fn naming(&self) -> Naming;

    /// The weight that an outline assumes in place of an absent one; a file with weights assumes nothing.
    fn assumed(&self, name: &str, dims: &[usize]) -> Option<Weight> {
        let _ = (name, dims);
        None
    }
}
