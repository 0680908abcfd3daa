//! Comparison of a device's output with a reference: checks shapes, treats NaN as a difference, names the worst element.

use crate::recording::record;
pub use rocmforge_gpu_test::tolerance::Tolerance;
use rocmforge_runtime::Pod;
use std::fmt;
use std::panic::Location;

/// The worst element of a comparison that failed.
#[derive(Clone, Debug, PartialEq)]
pub struct Mismatch {
    /// Its index, one number a dimension.
    pub index: Vec<usize>,
    /// What the device computed.
    pub actual: f32,
    /// What the reference says.
    pub expected: f64,
    /// Elements outside the tolerance.
    pub outside: usize,
    /// Elements compared.
    pub compared: usize,
    /// The tolerance they were held to.
    pub tolerance: Tolerance,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} of {} elements are outside {:?}; the worst, at {:?}, is {:e} where {:e} was expected (difference {:e})",
            self.outside,
            self.compared,
            self.tolerance,
            self.index,
            self.actual,
            self.expected,
            (f64::from(self.actual) - self.expected).abs(),
        )
    }
}

/// Compares `actual` with `expected`, both row-major of `shape`.
///
/// # Errors
///
/// The worst element, if one is outside the tolerance.
///
/// # Panics
///
/// If the lengths do not match the shape: that is a mistake of the test.
#[track_caller]
pub fn compare(actual: &[f32], expected: &[f64], shape: &[usize], tolerance: Tolerance) -> Result<(), Mismatch> {
    let bytes = bytemuck::cast_slice(actual);
    record(Location::caller(), "f32", shape, tolerance, bytes);
    compare_here(actual, expected, shape, tolerance)
}

/// The same, but the buffer is not recorded for a run on another device: for what a test computes there
/// another number of times.
///
/// # Errors
///
/// As [`compare`].
///
/// # Panics
///
/// As [`compare`].
#[track_caller]
pub fn compare_here(actual: &[f32], expected: &[f64], shape: &[usize], tolerance: Tolerance) -> Result<(), Mismatch> {
    let elements: usize = shape.iter().product();
    assert_eq!(
        actual.len(),
        elements,
        "actual has {} elements, shape {shape:?} has {elements}",
        actual.len()
    );
    assert_eq!(
        expected.len(),
        elements,
        "expected has {} elements, shape {shape:?} has {elements}",
        expected.len()
    );
    let mut worst: Option<(f64, usize)> = None;
    let mut outside = 0;
    for (i, (&a, &e)) in actual.iter().zip(expected).enumerate() {
        let excess = tolerance.excess(a, e);
        if excess > 1.0 {
            outside += 1;
            if worst.is_none_or(|(most, _)| excess > most) {
                worst = Some((excess, i));
            }
        }
    }
    let Some((_, i)) = worst else { return Ok(()) };
    Err(Mismatch {
        index: unravel(i, shape),
        actual: actual[i],
        expected: expected[i],
        outside,
        compared: elements,
        tolerance,
    })
}

/// [`compare`], panicking with the worst element.
///
/// # Panics
///
/// If an element is outside the tolerance.
#[track_caller]
pub fn assert_close(actual: &[f32], expected: &[f64], shape: &[usize], tolerance: Tolerance) {
    if let Err(mismatch) = compare(actual, expected, shape, tolerance) {
        panic!("{mismatch}");
    }
}

/// Holds `actual` to `expected` bit for bit: for copies, and for kernels that compute with integers.
///
/// # Panics
///
/// If an element differs.
#[track_caller]
pub fn assert_same<T: Pod + fmt::Debug>(actual: &[T], expected: &[T], what: &str) {
    let bits = |values: &[T]| -> Vec<u8> { bytemuck::cast_slice(values).to_vec() };
    let (found, wanted) = (bits(actual), bits(expected));
    let dtype = std::any::type_name::<T>();
    record(Location::caller(), dtype, &[actual.len()], Tolerance::Exact, &found);
    assert_eq!(
        actual.len(),
        expected.len(),
        "{what}: {} elements where {} were expected",
        actual.len(),
        expected.len()
    );
    let size = size_of::<T>().max(1);
    let differs = found.chunks(size).zip(wanted.chunks(size)).position(|(a, b)| a != b);
    if let Some(index) = differs {
        panic!(
            "{what}: element {index} of {} is {:?} where {:?} was expected",
            actual.len(),
            actual[index],
            expected[index]
        );
    }
}

fn unravel(mut flat: usize, shape: &[usize]) -> Vec<usize> {
    let mut index = vec![0; shape.len()];
    for (place, &extent) in index.iter_mut().zip(shape).rev() {
        *place = flat % extent;
        flat /= extent;
    }
    index
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_element_is_named_with_its_index() {
        let expected = [0.0; 24];
        let mut actual = [0.0f32; 24];
        actual[7] = 0.5;
        actual[23] = -2.0;
        let mismatch = compare(&actual, &expected, &[2, 3, 4], Tolerance::Absolute(0.1)).unwrap_err();
        assert_eq!(mismatch.index, [1, 2, 3]);
        assert_eq!((mismatch.outside, mismatch.compared), (2, 24));
        let text = mismatch.to_string();
        assert!(text.contains("[1, 2, 3]") && text.contains("2 of 24"), "{text}");
    }

    #[test]
    fn nan_never_passes() {
        for (a, e) in [(f32::NAN, 0.0), (0.0, f64::NAN), (f32::NAN, f64::NAN)] {
            for tolerance in [Tolerance::Absolute(1e30), Tolerance::Relative(1e30), Tolerance::Exact] {
                assert!(compare(&[a], &[e], &[1], tolerance).is_err(), "{a} {e} {tolerance:?}");
            }
        }
    }

    #[test]
    fn a_limit_that_is_no_number_lets_nothing_pass() {
        for limit in [f64::NAN, -1.0, 0.0] {
            for tolerance in [Tolerance::Absolute(limit), Tolerance::Relative(limit)] {
                assert!(compare(&[1.0], &[2.0], &[1], tolerance).is_err(), "{tolerance:?}");
            }
        }
    }

    #[test]
    fn infinities_must_be_the_same_one() {
        assert!(
            compare(
                &[f32::NEG_INFINITY],
                &[f64::NEG_INFINITY],
                &[1],
                Tolerance::Absolute(0.0)
            )
            .is_ok()
        );
        assert!(compare(&[f32::INFINITY], &[f64::NEG_INFINITY], &[1], Tolerance::Absolute(1e30)).is_err());
        assert!(compare(&[f32::INFINITY], &[1.0], &[1], Tolerance::Relative(1e30)).is_err());
    }

    #[test]
    fn exact_means_every_bit() {
        assert!(compare(&[0.0], &[-0.0], &[1], Tolerance::Exact).is_err());
        assert!(compare(&[1.5], &[1.5], &[1], Tolerance::Exact).is_ok());
        assert!(compare(&[1.0f32.next_up()], &[1.0], &[1], Tolerance::Exact).is_err());
    }

    #[test]
    fn the_same_means_every_bit_of_any_type() {
        assert_same(&[1u8, 2], &[1, 2], "bytes");
        assert_same::<u32>(&[], &[], "nothing");
        for (actual, expected, message) in [
            (
                vec![0.0f32, 1.0],
                vec![-0.0, 1.0],
                "x: element 0 of 2 is 0.0 where -0.0 was expected",
            ),
            (vec![0.0], vec![0.0, 1.0], "x: 1 elements where 2 were expected"),
        ] {
            let caught = std::panic::catch_unwind(|| assert_same(&actual, &expected, "x")).unwrap_err();
            let text = caught.downcast::<String>().unwrap();
            assert!(text.contains(message), "{text}");
        }
    }

    #[test]
    #[should_panic(expected = "actual has 3 elements, shape [2, 2] has 4")]
    fn a_wrong_length_is_a_mistake_of_the_test() {
        let _ = compare(&[0.0; 3], &[0.0; 4], &[2, 2], Tolerance::Exact);
    }
}
