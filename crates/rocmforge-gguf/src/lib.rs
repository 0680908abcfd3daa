//! GGUF files: reader, writer, and block formats.
//!
//! [`Gguf`] maps a model's file (or all files of a split model) and checks every length, count and offset before it
//! uses it: any bytes give a model or a [`GgufError`] that names the place. [`Metadata`] has typed getters,
//! [`TensorInfo`] the shape and [`TensorType`] of a tensor, and [`blocks`] decodes and encodes the quantised formats.
//! [`Writer`] makes files.
//!
//! ```
//! use rocmforge_gguf::{Gguf, TensorType, Writer, blocks};
//!
//! // A row of 32 weights in q8_0: one f16 scale and 32 signed bytes.
//! let weights: Vec<f32> = (0..32).map(|i| i as f32 - 16.0).collect();
//! let packed = blocks::quantize(TensorType::Q8_0, &weights)?;
//!
//! let mut writer = Writer::new();
//! writer.metadata("general.architecture", "llama")?.metadata("llama.block_count", 1_u32)?;
//! writer.tensor("token_embd.weight", &[32, 1], TensorType::Q8_0, packed)?;
//!
//! let model = Gguf::from_bytes(writer.to_bytes()?)?;
//! assert_eq!(model.metadata().string("general.architecture")?, "llama");
//! let tensor = model.tensor("token_embd.weight").expect("it was written");
//! let mut decoded = vec![0.0; tensor.elements()];
//! blocks::dequantize(tensor.ty, model.data(tensor), &mut decoded)?;
//! assert!((decoded[31] - 15.0).abs() < 0.1);
//! # Ok::<(), rocmforge_gguf::GgufError>(())
//! ```

pub mod blocks;
mod cursor;
mod error;
mod file;
mod limits;
mod metadata;
mod parse;
mod reader;
mod tensor_type;
mod value;
mod writer;

pub use error::{GgufError, Result};
pub use file::open_regular;
pub use metadata::Metadata;
pub use parse::TensorInfo;
pub use reader::Gguf;
pub use tensor_type::TensorType;
pub use value::{Array, Value, ValueType};
pub use writer::Writer;
