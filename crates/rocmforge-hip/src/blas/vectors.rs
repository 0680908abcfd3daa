//! C functions over vectors: `axpy`, `dot`, `scal`, `nrm2`, and `gemv`. Sums are f64, rounded once.

use super::element::Element;
use super::gemm::{Factor, size, transposes};
use super::handle;
use super::memory::{Matrix, Memory};
use super::status::{INVALID_VALUE, NOT_SUPPORTED, Status};
use super::work;
use std::ffi::{c_int, c_void};

/// A vector in device memory: a matrix of one row. With a negative increment its first element is the last in memory.
#[derive(Clone, Copy)]
struct Vector {
    matrix: Matrix,
    reversed: bool,
}

impl Vector {
    /// Of `n` elements; none if that is negative. An increment of 0 is not supported.
    fn of(address: *const c_void, n: c_int, increment: c_int, element: Element) -> Result<Self, Status> {
        if increment == 0 {
            return Err(NOT_SUPPORTED);
        }
        let matrix = Matrix {
            address: address.addr(),
            rows: 1,
            columns: size(n).unwrap_or(0),
            ld: increment.unsigned_abs() as usize,
            element,
        };
        Ok(Self {
            matrix,
            reversed: increment < 0,
        })
    }

    fn check(&self, memory: &Memory<'_>) -> Result<(), Status> {
        match self.matrix.columns {
            0 => Ok(()),
            _ => memory.check(self.matrix.address, self.matrix.span()),
        }
    }

    fn read(&self, memory: &Memory<'_>) -> Result<Vec<f64>, Status> {
        self.check(memory)?;
        let bytes = memory.read(&self.matrix)?;
        let mut values: Vec<f64> = self.matrix.element.decode(&bytes).collect();
        if self.reversed {
            values.reverse();
        }
        Ok(values)
    }

    fn write(&self, memory: &Memory<'_>, mut values: Vec<f64>) -> Result<(), Status> {
        self.check(memory)?;
        if self.reversed {
            values.reverse();
        }
        memory.write(&self.matrix, &encoded(self.matrix.element, &values))
    }
}

fn encoded(element: Element, values: &[f64]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(values.len() * element.size());
    for value in values {
        element.encode(*value, &mut bytes);
    }
    bytes
}

fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).fold(0.0, |sum, (x, y)| sum + x * y)
}

/// The Euclidean length. Squares of the values themselves might not be finite.
fn length(x: &[f64]) -> f64 {
    let largest = x.iter().fold(0.0, |largest: f64, x| largest.max(x.abs()));
    if largest == 0.0 || largest.is_infinite() {
        return x.iter().fold(0.0, |sum, x| sum + x.abs());
    }
    let squares: f64 = x.iter().map(|x| (x / largest).powi(2)).sum();
    squares.sqrt() * largest
}

/// Computes one number, and stores it where the pointer mode says. On the host it is there when the call returns; the stream may not be captured
/// then, as the call waits for it.
///
/// # Safety
/// `result` is null or, in the mode of the host, valid for writing a number of this type.
unsafe fn answer(
    handle: *mut c_void,
    name: &'static str,
    result: *mut c_void,
    element: Element,
    value: impl Fn(&Memory<'_>) -> Result<f64, Status> + Send + Sync + 'static,
) -> Status {
    handle::with(handle, |process, handle| {
        if result.is_null() {
            return Err(INVALID_VALUE);
        }
        if !handle.factors_on_device {
            let bytes = encoded(element, &[value(&Memory::of_stream(process, handle.stream()))?]);
            // SAFETY: promised by the caller; not null.
            unsafe {
                result
                    .cast::<u8>()
                    .copy_from_nonoverlapping(bytes.as_ptr(), bytes.len())
            };
            return Ok(());
        }
        let place = Vector::of(result, 1, 1, element)?;
        work::run(process, handle, name, move |memory| {
            place.write(memory, vec![value(memory)?])
        })
    })
}

macro_rules! typed {
    ($($axpy:ident $dot:ident $scal:ident $nrm2:ident $gemv:ident: $element:ident;)*) => {$(
        pub(crate) unsafe extern "C" fn $axpy(
            handle: *mut c_void, n: c_int, alpha: *const c_void, x: *const c_void, incx: c_int, y: *mut c_void, incy: c_int,
        ) -> Status {
            handle::with(handle, |process, handle| {
                let element = Element::$element;
                let (x, y) = (Vector::of(x, n, incx, element)?, Vector::of(y, n, incy, element)?);
                // SAFETY: promised by the program.
                let alpha = unsafe { Factor::of(handle, alpha, element) }?;
                work::run(process, handle, stringify!($axpy), move |memory| {
                    let alpha = alpha.value(memory)?;
                    let sums = x.read(memory)?.into_iter().zip(y.read(memory)?).map(|(x, y)| alpha * x + y);
                    y.write(memory, sums.collect())
                })
            })
        }

        pub(crate) unsafe extern "C" fn $dot(
            handle: *mut c_void, n: c_int, x: *const c_void, incx: c_int, y: *const c_void, incy: c_int, result: *mut c_void,
        ) -> Status {
            let element = Element::$element;
            let vectors = (Vector::of(x, n, incx, element), Vector::of(y, n, incy, element));
            // SAFETY: promised by the program.
            unsafe {
                answer(handle, stringify!($dot), result, element, move |memory| {
                    Ok(dot(&vectors.0?.read(memory)?, &vectors.1?.read(memory)?))
                })
            }
        }

        pub(crate) unsafe extern "C" fn $scal(
            handle: *mut c_void, n: c_int, alpha: *const c_void, x: *mut c_void, incx: c_int,
        ) -> Status {
            handle::with(handle, |process, handle| {
                if incx <= 0 {
                    return Ok(());
                }
                let element = Element::$element;
                let x = Vector::of(x, n, incx, element)?;
                // SAFETY: promised by the program.
                let alpha = unsafe { Factor::of(handle, alpha, element) }?;
                work::run(process, handle, stringify!($scal), move |memory| {
                    let alpha = alpha.value(memory)?;
                    x.write(memory, x.read(memory)?.into_iter().map(|x| alpha * x).collect())
                })
            })
        }

        pub(crate) unsafe extern "C" fn $nrm2(
            handle: *mut c_void, n: c_int, x: *const c_void, incx: c_int, result: *mut c_void,
        ) -> Status {
            let element = Element::$element;
            // Without a positive increment the length is 0.
            let x = Vector::of(x, if incx > 0 { n } else { 0 }, incx.max(1), element);
            // SAFETY: promised by the program.
            unsafe { answer(handle, stringify!($nrm2), result, element, move |memory| Ok(length(&x?.read(memory)?))) }
        }

        pub(crate) unsafe extern "C" fn $gemv(
            handle: *mut c_void, op: c_int, m: c_int, n: c_int, alpha: *const c_void, a: *const c_void, lda: c_int,
            x: *const c_void, incx: c_int, beta: *const c_void, y: *mut c_void, incy: c_int,
        ) -> Status {
            handle::with(handle, |process, handle| {
                let element = Element::$element;
                let transposed = transposes(op)?;
                let (rows, columns, ld) = (size(m)?, size(n)?, size(lda)?);
                if ld < rows.max(1) || incx == 0 || incy == 0 {
                    return Err(INVALID_VALUE);
                }
                if rows == 0 || columns == 0 {
                    return Ok(());
                }
                let a = Matrix { address: a.addr(), rows, columns, ld, element };
                let (of_x, of_y) = if transposed { (m, n) } else { (n, m) };
                let (x, y) = (Vector::of(x, of_x, incx, element)?, Vector::of(y, of_y, incy, element)?);
                // SAFETY: promised by the program.
                let [alpha, beta] = unsafe { [Factor::of(handle, alpha, element)?, Factor::of(handle, beta, element)?] };
                work::run(process, handle, stringify!($gemv), move |memory| {
                    let (alpha, beta) = (alpha.value(memory)?, beta.value(memory)?);
                    y.check(memory)?;
                    let mut sums = vec![0.0; y.matrix.columns];
                    if alpha != 0.0 {
                        memory.check(a.address, a.span())?;
                        let x = x.read(memory)?;
                        let bytes = memory.read(&a)?;
                        for (at, value) in element.decode(&bytes).enumerate() {
                            let (row, column) = (at % rows, at / rows);
                            let (to, from) = if transposed { (column, row) } else { (row, column) };
                            sums[to] += alpha * value * x[from];
                        }
                    }
                    // What y held is not read where beta is zero: it may be NaN.
                    if beta != 0.0 {
                        for (sum, old) in sums.iter_mut().zip(y.read(memory)?) {
                            *sum += beta * old;
                        }
                    }
                    y.write(memory, sums)
                })
            })
        }
    )*};
}

typed! {
    hipblasSaxpy hipblasSdot hipblasSscal hipblasSnrm2 hipblasSgemv: F32;
    hipblasDaxpy hipblasDdot hipblasDscal hipblasDnrm2 hipblasDgemv: F64;
}

#[cfg(test)]
mod tests {
    use super::super::handle::hipblasSetPointerMode;
    use super::super::status::SUCCESS;
    use super::super::tests::{Device, handle};
    use super::*;

    const A: [f64; 6] = [1.5, -2.0, 0.25, 3.0, -1.0, 4.5];
    const FACTORS: [f64; 2] = [-1.5, 0.5];

    /// Where the element of a number is, by BLAS's definition.
    fn place(at: usize, n: usize, increment: c_int) -> usize {
        let ld = increment.unsigned_abs() as usize;
        if increment > 0 { at * ld } else { (n - 1 - at) * ld }
    }

    /// A vector between whose elements nothing but NaN is.
    fn vector(element: Element, values: &[f64], increment: c_int) -> Device {
        let mut all = vec![f64::NAN; (values.len() - 1) * increment.unsigned_abs() as usize + 1];
        for (at, value) in values.iter().enumerate() {
            all[place(at, values.len(), increment)] = *value;
        }
        Device::of(&encoded(element, &all))
    }

    fn values(element: Element, device: &Device, n: usize, increment: c_int) -> Vec<f64> {
        let all: Vec<f64> = element.decode(&device.bytes()).collect();
        let gaps = all.iter().filter(|value| value.is_nan()).count();
        assert_eq!(gaps, all.len() - n, "only elements are written");
        (0..n).map(|at| all[place(at, n, increment)]).collect()
    }

    #[allow(clippy::multiple_unsafe_ops_per_block)] // calls of the C functions, one after the other
    fn check(
        element: Element,
        axpy: unsafe extern "C" fn(
            *mut c_void,
            c_int,
            *const c_void,
            *const c_void,
            c_int,
            *mut c_void,
            c_int,
        ) -> Status,
        dots: unsafe extern "C" fn(
            *mut c_void,
            c_int,
            *const c_void,
            c_int,
            *const c_void,
            c_int,
            *mut c_void,
        ) -> Status,
        scal: unsafe extern "C" fn(*mut c_void, c_int, *const c_void, *mut c_void, c_int) -> Status,
        nrm2: unsafe extern "C" fn(*mut c_void, c_int, *const c_void, c_int, *mut c_void) -> Status,
        gemv: unsafe extern "C" fn(
            *mut c_void,
            c_int,
            c_int,
            c_int,
            *const c_void,
            *const c_void,
            c_int,
            *const c_void,
            c_int,
            *const c_void,
            *mut c_void,
            c_int,
        ) -> Status,
    ) {
        let (handle, [alpha, beta]) = (handle(), FACTORS);
        let (x, y) = ([1.0, -2.5, 0.5], [4.0, 0.125, -8.0]);
        let host = encoded(element, &FACTORS);
        let device = Device::of(&host);
        for (mode, factors) in [(0, host.as_ptr().cast::<c_void>()), (1, device.0.cast_const())] {
            let second = factors.wrapping_byte_add(element.size());
            // The number that a call stores by the mode.
            let number = |call: &dyn Fn(*mut c_void) -> Status| {
                let (mut host, device) = ([0; 8], Device::of(&[0; 8]));
                assert_eq!(
                    call(if mode == 0 { host.as_mut_ptr().cast() } else { device.0 }),
                    SUCCESS
                );
                let bytes = if mode == 0 { host.to_vec() } else { device.bytes() };
                element.decode(&bytes[..element.size()]).next().unwrap()
            };
            for (incx, incy) in [(1, 1), (3, -2), (-1, 4), (-2, -3)] {
                let (vx, vy) = (vector(element, &x, incx), vector(element, &y, incy));
                // SAFETY: the factors live, and the rest is checked.
                unsafe {
                    assert_eq!(hipblasSetPointerMode(handle, mode), SUCCESS);
                    assert_eq!(
                        number(&|to| dots(handle, 3, vx.0, incx, vy.0, incy, to)),
                        x[0] * y[0] + x[1] * y[1] + x[2] * y[2]
                    );
                    let length: f64 = if incx > 0 { 7.5_f64.sqrt() } else { 0.0 };
                    assert!((number(&|to| nrm2(handle, 3, vx.0, incx, to)) - length).abs() < 1e-6);
                    assert_eq!(axpy(handle, 3, factors, vx.0, incx, vy.0, incy), SUCCESS);
                    let sums: Vec<f64> = x.iter().zip(y).map(|(x, y)| alpha * x + y).collect();
                    assert_eq!(values(element, &vy, 3, incy), sums);
                    assert_eq!(scal(handle, 3, factors, vx.0, incx), SUCCESS);
                    let scaled = if incx > 0 { x.map(|x| alpha * x) } else { x };
                    assert_eq!(values(element, &vx, 3, incx), scaled);
                    // A has 2 rows and 3 columns, of 3 elements each with the gaps.
                    let gap = [A[0], A[1], f64::NAN, A[2], A[3], f64::NAN, A[4], A[5]];
                    let a = Device::of(&encoded(element, &gap));
                    for (op, [of_x, of_y]) in [(111, [3, 2]), (112, [2, 3])] {
                        let (vx, vy) = (vector(element, &x[..of_x], incx), vector(element, &y[..of_y], incy));
                        assert_eq!(
                            gemv(handle, op, 2, 3, factors, a.0, 3, vx.0, incx, second, vy.0, incy),
                            SUCCESS
                        );
                        let at = |to: usize, from: usize| if op == 111 { A[from * 2 + to] } else { A[to * 2 + from] };
                        let product = |to| (0..of_x).map(|from| at(to, from) * x[from]).sum::<f64>();
                        let expected: Vec<f64> = (0..of_y).map(|to| alpha * product(to) + beta * y[to]).collect();
                        assert_eq!(values(element, &vy, of_y, incy), expected);
                    }
                }
            }
        }
        // SAFETY: sizes and places are checked before anything is read.
        unsafe {
            assert_eq!(hipblasSetPointerMode(handle, 0), SUCCESS);
            let (short, factors) = (vector(element, &x, 1), host.as_ptr().cast::<c_void>());
            let mut number = [1_u8; 8];
            let to = number.as_mut_ptr().cast::<c_void>();
            assert_eq!(dots(handle, 3, short.0, 2, short.0, 1, to), INVALID_VALUE);
            assert_eq!(
                dots(handle, 3, short.0, 1, short.0, 1, std::ptr::null_mut()),
                INVALID_VALUE
            );
            assert_eq!(dots(handle, 3, short.0, 0, short.0, 1, to), NOT_SUPPORTED);
            assert_eq!(nrm2(handle, c_int::MAX, short.0, c_int::MAX, to), INVALID_VALUE);
            assert_eq!(axpy(handle, 4, factors, short.0, 1, short.0, 1), INVALID_VALUE);
            assert_eq!(scal(handle, 3, std::ptr::null(), short.0, 1), INVALID_VALUE);
            assert_eq!(
                gemv(handle, 111, 2, 2, factors, short.0, 1, short.0, 1, factors, short.0, 1),
                INVALID_VALUE
            );
            assert_eq!(
                gemv(handle, 111, 2, 2, factors, short.0, 2, short.0, 1, factors, short.0, 1),
                INVALID_VALUE
            );
            assert_eq!(dots(handle, -1, std::ptr::null(), 1, std::ptr::null(), 1, to), SUCCESS);
            assert_eq!(number[..element.size()], [0; 8][..element.size()]);
            assert_eq!(values(element, &short, 3, 1), x);
        }
    }

    #[test]
    fn vectors_are_computed_by_the_definition_in_both_pointer_modes() {
        check(
            Element::F32,
            hipblasSaxpy,
            hipblasSdot,
            hipblasSscal,
            hipblasSnrm2,
            hipblasSgemv,
        );
        check(
            Element::F64,
            hipblasDaxpy,
            hipblasDdot,
            hipblasDscal,
            hipblasDnrm2,
            hipblasDgemv,
        );
    }
}
