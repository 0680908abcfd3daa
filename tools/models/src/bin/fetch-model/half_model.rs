//! Half models: a model directory with its weights as f16: half the size, and the same numbers on every device that reads it.

use crate::{FetchError, at};
use half::f16;
use rocmforge_fetch_models::WEIGHTS;
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use std::fs;
use std::path::Path;

/// Copies the model, its weights rounded to f16 (to nearest, ties to even).
///
/// # Errors
///
/// A file cannot be read or written, or a weight does not fit f16.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<(), FetchError> {
    fs::create_dir_all(to).map_err(at(to))?;
    for entry in fs::read_dir(from).map_err(at(from))? {
        let path = entry.map_err(at(from))?.path();
        let Some(name) = path.file_name() else { continue };
        if path.is_dir() {
            copy(&path, &to.join(name))?;
        } else if name == WEIGHTS {
            halve(&path, &to.join(name))?;
        } else {
            fs::copy(&path, to.join(name)).map_err(at(&path))?;
        }
    }
    Ok(())
}

fn halve(from: &Path, to: &Path) -> Result<(), FetchError> {
    let bytes = fs::read(from).map_err(at(from))?;
    let failed = |error: safetensors::SafeTensorError| FetchError::Weights(error.to_string());
    let tensors = SafeTensors::deserialize(&bytes).map_err(failed)?;
    let mut halves = Vec::new();
    for (name, tensor) in tensors.tensors() {
        let (dtype, data) = match tensor.dtype() {
            Dtype::F32 => (Dtype::F16, rounded(&name, tensor.data())?),
            other => (other, tensor.data().to_vec()),
        };
        halves.push((name, dtype, tensor.shape().to_vec(), data));
    }
    let views = halves
        .iter()
        .map(|(name, dtype, shape, data)| Ok((name, TensorView::new(*dtype, shape.clone(), data)?)));
    let views: Vec<_> = views.collect::<Result<_, _>>().map_err(failed)?;
    let text = safetensors::serialize(views, None).map_err(failed)?;
    fs::write(to, text).map_err(at(to))
}

fn rounded(name: &str, data: &[u8]) -> Result<Vec<u8>, FetchError> {
    let mut halves = Vec::with_capacity(data.len() / 2);
    for value in data.chunks_exact(4) {
        let value = f32::from_le_bytes([value[0], value[1], value[2], value[3]]);
        let half = f16::from_f32(value);
        if half.is_finite() != value.is_finite() {
            return Err(FetchError::Weights(format!(
                "{name} has {value:e}, beyond the largest f16"
            )));
        }
        halves.extend(half.to_le_bytes());
    }
    Ok(halves)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    #[test]
    fn weights_are_rounded_and_all_else_is_copied() {
        let work = tempfile::tempdir().unwrap();
        let (from, to) = (work.path().join("from"), work.path().join("to"));
        fs::create_dir_all(from.join("1_Pooling")).unwrap();
        fs::write(from.join("1_Pooling/config.json"), "{}").unwrap();
        let weights = bytes(&[1.0, 1.0 + f32::EPSILON, -65504.0, 0.1]);
        let places = 7_i64.to_le_bytes();
        let tensors = [
            ("w", TensorView::new(Dtype::F32, vec![2, 2], &weights).unwrap()),
            ("places", TensorView::new(Dtype::I64, vec![1], &places).unwrap()),
        ];
        fs::write(from.join(WEIGHTS), safetensors::serialize(tensors, None).unwrap()).unwrap();

        copy(&from, &to).unwrap();
        assert_eq!(fs::read_to_string(to.join("1_Pooling/config.json")).unwrap(), "{}");
        let text = fs::read(to.join(WEIGHTS)).unwrap();
        let read = SafeTensors::deserialize(&text).unwrap();
        let w = read.tensor("w").unwrap();
        assert_eq!((w.dtype(), w.shape()), (Dtype::F16, [2, 2].as_slice()));
        let halves: Vec<f32> = w
            .data()
            .chunks(2)
            .map(|b| f16::from_le_bytes([b[0], b[1]]).to_f32())
            .collect();
        assert_eq!(halves, [1.0, 1.0, -65504.0, 0.099_975_586]);
        assert_eq!(read.tensor("places").unwrap().data(), places);
    }

    #[test]
    fn what_f16_cannot_hold_is_refused() {
        let error = rounded("w", &bytes(&[1e6])).unwrap_err().to_string();
        assert!(error.contains("w has 1e6, beyond the largest f16"), "{error}");
    }
}
