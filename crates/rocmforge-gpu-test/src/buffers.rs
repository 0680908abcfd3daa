//! Recorded buffers: what the tests of two devices compared, held side by side.
//!
//! `--against` names a file in the environment of each test process; the test kit's comparisons append to it what the device
//! computed, with the tolerance the test holds it to. Without the variable nothing is recorded.

use crate::tolerance::Tolerance;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

/// Names the file that a test process appends the buffers it compares to.
pub const BUFFERS_VARIABLE: &str = "ROCMFORGE_TEST_BUFFERS";

/// What is known of a recorded buffer beside its bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// Where the test compares it: `file:line`.
    pub site: String,
    /// The how-manieth buffer compared there it is, from 0.
    pub occurrence: u64,
    /// The type of its elements, as Rust names it.
    pub dtype: String,
    /// Its extents.
    pub shape: Vec<usize>,
    /// What the test holds it to.
    pub tolerance: Tolerance,
    /// Bytes that follow the header.
    pub bytes: usize,
}

impl fmt::Display for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?} at {}", self.dtype, self.shape, self.site)?;
        if self.occurrence > 0 {
            write!(f, " (comparison {})", self.occurrence + 1)?;
        }
        Ok(())
    }
}

/// A buffer as a test compared it.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// What it is.
    pub header: Header,
    /// Its elements, little-endian.
    pub data: Vec<u8>,
}

/// Appends one buffer to a file of recorded ones.
///
/// # Errors
///
/// The file cannot be written.
pub fn write(path: &Path, header: &Header, data: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    let mut bytes = serde_json::to_vec(header)?;
    bytes.push(b'\n');
    bytes.extend_from_slice(data);
    file.write_all(&bytes)
}

/// Everything that a test process recorded in a file of these bytes.
///
/// # Errors
///
/// The file was cut short, or holds something else.
pub fn parse(bytes: &[u8]) -> io::Result<Vec<Recorded>> {
    let mut rest = bytes;
    let mut recorded = Vec::new();
    while !rest.is_empty() {
        let cut = || io::Error::new(io::ErrorKind::UnexpectedEof, "the file of buffers was cut short");
        let end = rest.iter().position(|byte| *byte == b'\n').ok_or_else(cut)?;
        let header: Header = serde_json::from_slice(&rest[..end])?;
        let (data, after) = rest[end + 1..].split_at_checked(header.bytes).ok_or_else(cut)?;
        recorded.push(Recorded {
            header,
            data: data.to_vec(),
        });
        rest = after;
    }
    Ok(recorded)
}

/// How a buffer of one device compares with the other's.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Every bit is the same.
    Identical,
    /// Some bits differ, and every element is within the tolerance. The worst took this part of it.
    Within(f64),
    /// Outside the tolerance, or not the same buffer at all.
    Differs(String),
}

impl Recorded {
    /// Holds this buffer to the same one from another device: bit for bit, or within the test's tolerance if it states one.
    pub fn against(&self, other: &Recorded) -> Outcome {
        let (mine, theirs) = (&self.header, &other.header);
        if (&mine.dtype, &mine.shape, self.data.len()) != (&theirs.dtype, &theirs.shape, other.data.len()) {
            return Outcome::Differs(format!("it is {mine} here and {theirs} there"));
        }
        if self.data == other.data {
            return Outcome::Identical;
        }
        let first = self.data.iter().zip(&other.data).position(|(a, b)| a != b).unwrap_or(0);
        if mine.tolerance == Tolerance::Exact || mine.dtype != "f32" {
            let count = self.data.iter().zip(&other.data).filter(|(a, b)| a != b).count();
            return Outcome::Differs(format!(
                "{count} of {} bytes differ, the first is byte {first}: {:#04x} here, {:#04x} there",
                self.data.len(),
                self.data[first],
                other.data[first]
            ));
        }
        let values = |data: &[u8]| -> Vec<f32> {
            let (words, _) = data.as_chunks::<4>();
            words.iter().map(|word| f32::from_le_bytes(*word)).collect()
        };
        let (here, there) = (values(&self.data), values(&other.data));
        let mut worst = (0.0, 0);
        for (index, (a, b)) in here.iter().zip(&there).enumerate() {
            if a.to_bits() == b.to_bits() {
                continue;
            }
            let excess = mine.tolerance.excess(*a, f64::from(*b));
            if excess > worst.0 {
                worst = (excess, index);
            }
        }
        let (excess, index) = worst;
        if excess <= 1.0 {
            return Outcome::Within(excess);
        }
        Outcome::Differs(format!(
            "element {index} is {:e} here and {:e} there, {excess:.1} times outside {:?}",
            here[index], there[index], mine.tolerance
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(values: &[f32], tolerance: Tolerance) -> Recorded {
        let data: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Recorded {
            header: Header {
                site: "tests/gpu/rope.rs:26".to_owned(),
                occurrence: 0,
                dtype: "f32".to_owned(),
                shape: vec![values.len()],
                tolerance,
                bytes: data.len(),
            },
            data,
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("buffers");
        assert_eq!(parse(b"").unwrap(), []);
        let read = |path: &Path| parse(&std::fs::read(path).unwrap());
        // Bytes that look like the end of a header are data all the same.
        let all = [
            recorded(&[1.0, f32::from_bits(0x0a0a_0a7b)], Tolerance::Absolute(1e-6)),
            recorded(&[], Tolerance::Exact),
            recorded(&[f32::NAN; 3], Tolerance::Relative(0.5)),
        ];
        for one in &all {
            write(&path, &one.header, &one.data).unwrap();
        }
        let found = read(&path).unwrap();
        assert_eq!(found.len(), 3);
        for (found, written) in found.iter().zip(&all) {
            assert_eq!((&found.header, &found.data), (&written.header, &written.data));
        }
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() - 1]).unwrap();
        assert_eq!(read(&path).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn exact_means_every_bit_and_a_tolerance_is_the_tests_own() {
        let zeros = |values: &[f32], tolerance| recorded(values, tolerance).against(&recorded(&[0.0; 3], tolerance));
        let absolute = Tolerance::Absolute(0.5);
        assert_eq!(zeros(&[0.0; 3], Tolerance::Exact), Outcome::Identical);
        assert!(matches!(
            zeros(&[0.0, -0.0, 0.0], Tolerance::Exact),
            Outcome::Differs(_)
        ));
        assert_eq!(zeros(&[0.0, -0.25, 0.0], absolute), Outcome::Within(0.5));
        let Outcome::Differs(text) = zeros(&[0.0, 0.5, 1.0], absolute) else {
            panic!("1 is not within 0.5")
        };
        assert!(text.contains("element 2") && text.contains("2.0 times"), "{text}");
        assert!(matches!(zeros(&[0.0, f32::NAN, 0.0], absolute), Outcome::Differs(_)));
        let nan = recorded(&[f32::NAN], absolute);
        assert_eq!(nan.against(&nan.clone()), Outcome::Identical, "the same poison");
    }

    #[test]
    fn integers_are_compared_bit_for_bit_whatever_the_tolerance() {
        let mut here = recorded(&[1.0], Tolerance::Absolute(1e9));
        here.header.dtype = "u32".to_owned();
        let mut there = here.clone();
        there.data[0] ^= 1;
        assert!(matches!(here.against(&there), Outcome::Differs(_)));
        there.header.shape = vec![1, 1];
        let Outcome::Differs(text) = here.against(&there) else {
            panic!("another shape")
        };
        assert!(text.contains("[1, 1]"), "{text}");
    }
}
