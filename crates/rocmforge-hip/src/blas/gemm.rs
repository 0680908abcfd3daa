//! Products of matrices: C = alpha * op(A) * op(B) + beta * C, one or many.

use super::element::Element;
use super::handle::Handle;
use super::memory::{Matrix, Memory};
use super::status::{INVALID_ENUM, INVALID_VALUE, NOT_SUPPORTED, Status};
use super::work;
use crate::state::Process;
use std::ffi::{c_int, c_void};

/// Where the matrices of one operand are.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    /// At an address, and from there so many elements apart.
    Strided(usize, i64),
    /// Where the addresses at an address say.
    Listed(usize),
}

/// One of the three operands. None as the element: a type that is not supported.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operand {
    pub(crate) place: Place,
    pub(crate) element: Option<Element>,
    pub(crate) ld: c_int,
}

/// A call, as the program has made it.
pub(crate) struct Gemm {
    pub(crate) name: &'static str,
    pub(crate) ops: [c_int; 2],
    /// m, n, k.
    pub(crate) sizes: [c_int; 3],
    pub(crate) count: c_int,
    pub(crate) alpha: *const c_void,
    pub(crate) beta: *const c_void,
    /// The type of alpha and beta.
    pub(crate) factors: Option<Element>,
    pub(crate) a: Operand,
    pub(crate) b: Operand,
    pub(crate) c: Operand,
}

/// Whether an operation of `hipblasOperation_t` transposes.
pub(crate) fn transposes(op: c_int) -> Result<bool, Status> {
    match op {
        111 => Ok(false),
        // Of real numbers the conjugate is the number.
        112 | 113 => Ok(true),
        _ => Err(INVALID_ENUM),
    }
}

/// A size that is not negative.
pub(crate) fn size(value: c_int) -> Result<usize, Status> {
    usize::try_from(value).map_err(|_| INVALID_VALUE)
}

/// A factor of a call, alpha or beta.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Factor {
    /// Its value, read when the call was made.
    Value(f64),
    /// Its address in device memory, read when the work is done.
    Device(usize, Element),
}

impl Factor {
    /// # Safety
    /// `pointer` is null or, where factors are on the host, a factor of type `element`.
    pub(crate) unsafe fn of(handle: &Handle, pointer: *const c_void, element: Element) -> Result<Self, Status> {
        if pointer.is_null() {
            return Err(INVALID_VALUE);
        }
        if handle.factors_on_device {
            return Ok(Self::Device(pointer.addr(), element));
        }
        // SAFETY: promised by the caller; not null.
        let bytes = unsafe { std::slice::from_raw_parts(pointer.cast::<u8>(), element.size()) };
        element.decode(bytes).next().map(Self::Value).ok_or(INVALID_VALUE)
    }

    pub(crate) fn value(self, memory: &Memory<'_>) -> Result<f64, Status> {
        match self {
            Self::Value(value) => Ok(value),
            Self::Device(address, element) => {
                let bytes = memory.read_bytes(address, element.size())?;
                element.decode(&bytes).next().ok_or(INVALID_VALUE)
            }
        }
    }
}

impl Operand {
    /// One of its matrices, at no address yet.
    fn matrix(&self, rows: usize, columns: usize) -> Result<Matrix, Status> {
        let ld = size(self.ld)?;
        if ld < rows.max(1) {
            return Err(INVALID_VALUE);
        }
        Ok(Matrix {
            address: 0,
            rows,
            columns,
            ld,
            element: self.element.ok_or(NOT_SUPPORTED)?,
        })
    }

    /// Its matrix of a number, or none where the address does not exist.
    fn address(&self, listed: &[usize], index: usize, element: Element) -> Option<usize> {
        match self.place {
            Place::Strided(first, stride) => {
                let bytes = stride.checked_mul(index as i64)?.checked_mul(element.size() as i64)?;
                first.checked_add_signed(isize::try_from(bytes).ok()?)
            }
            Place::Listed(_) => listed.get(index).copied(),
        }
    }

    fn listed(&self, memory: &Memory<'_>, count: usize) -> Result<Vec<usize>, Status> {
        match self.place {
            Place::Strided(..) => Ok(Vec::new()),
            Place::Listed(address) => memory.addresses(address, count),
        }
    }
}

/// A product whose arguments make sense.
struct Product {
    transposed: [bool; 2],
    /// m, n, k.
    sizes: [usize; 3],
    count: usize,
    alpha: Factor,
    beta: Factor,
    operands: [Operand; 3],
    /// The shape of each operand's matrices.
    matrices: [Matrix; 3],
}

impl Gemm {
    /// Computes it, or captures it.
    ///
    /// # Safety
    /// `alpha` and `beta` are null or, where factors are on the host, factors of the type `factors`.
    pub(crate) unsafe fn run(&self, process: &Process, handle: &Handle) -> Result<(), Status> {
        let transposed = [transposes(self.ops[0])?, transposes(self.ops[1])?];
        let [m, n, k] = [size(self.sizes[0])?, size(self.sizes[1])?, size(self.sizes[2])?];
        let count = size(self.count)?;
        let swapped = |swap: bool, rows, columns| if swap { (columns, rows) } else { (rows, columns) };
        let (rows_a, columns_a) = swapped(transposed[0], m, k);
        let (rows_b, columns_b) = swapped(transposed[1], k, n);
        let matrices = [
            self.a.matrix(rows_a, columns_a)?,
            self.b.matrix(rows_b, columns_b)?,
            self.c.matrix(m, n)?,
        ];
        let factors = self.factors.ok_or(NOT_SUPPORTED)?;
        if m == 0 || n == 0 || count == 0 {
            return Ok(());
        }
        let product = Product {
            transposed,
            sizes: [m, n, k],
            count,
            // SAFETY: promised by the caller.
            alpha: unsafe { Factor::of(handle, self.alpha, factors) }?,
            // SAFETY: as above.
            beta: unsafe { Factor::of(handle, self.beta, factors) }?,
            operands: [self.a, self.b, self.c],
            matrices,
        };
        work::run(process, handle, self.name, move |memory| product.compute(memory))
    }
}

impl Product {
    fn compute(&self, memory: &Memory<'_>) -> Result<(), Status> {
        let &Self {
            transposed: [transposed_a, transposed_b],
            sizes: [m, n, k],
            count,
            operands: [operand_a, operand_b, operand_c],
            matrices: [a, b, c],
            ..
        } = self;
        let (alpha, beta) = (self.alpha.value(memory)?, self.beta.value(memory)?);
        let multiplies = k > 0 && alpha != 0.0;
        // Results that overlap have no defined value; without them the allocation bounds their number.
        if let Place::Strided(_, stride) = operand_c.place
            && count > 1
        {
            let apart = usize::try_from(stride.unsigned_abs()).ok();
            let bytes = apart.and_then(|apart| apart.checked_mul(c.element.size()));
            if bytes < c.span() {
                return Err(INVALID_VALUE);
            }
        }
        let lists = if multiplies {
            [operand_a.listed(memory, count)?, operand_b.listed(memory, count)?]
        } else {
            [Vec::new(), Vec::new()]
        };
        let list_c = operand_c.listed(memory, count)?;
        let at = |operand: &Operand, list: &[usize], matrix: &Matrix, index| -> Result<Matrix, Status> {
            let address = operand.address(list, index, matrix.element).ok_or(INVALID_VALUE)?;
            memory.check(address, matrix.span())?;
            Ok(Matrix { address, ..*matrix })
        };
        let places = |index| -> Result<(Option<[Matrix; 2]>, Matrix), Status> {
            let inputs = if multiplies {
                Some([
                    at(&operand_a, &lists[0], &a, index)?,
                    at(&operand_b, &lists[1], &b, index)?,
                ])
            } else {
                None
            };
            Ok((inputs, at(&operand_c, &list_c, &c, index)?))
        };
        // Nothing is written unless all of it can be.
        for index in 0..count {
            places(index)?;
        }
        for index in 0..count {
            let (inputs, c) = places(index)?;
            let product = match inputs {
                Some([a, b]) => {
                    let a = rows(&memory.read(&a)?, a.element, transposed_a, m, k);
                    let b = rows(&memory.read(&b)?, b.element, !transposed_b, n, k);
                    Some((a, b))
                }
                None => None,
            };
            // What C held is not read where beta is zero: it may be NaN.
            let old = if beta == 0.0 { Vec::new() } else { memory.read(&c)? };
            let mut old = c.element.decode(&old);
            let mut bytes = Vec::with_capacity(m * n * c.element.size());
            for column in 0..n {
                for row in 0..m {
                    let mut value = 0.0;
                    if let Some((a, b)) = &product {
                        value = alpha * dot(&a[row * k..][..k], &b[column * k..][..k]);
                    }
                    if let Some(old) = old.next() {
                        value += beta * old;
                    }
                    c.element.encode(value, &mut bytes);
                }
            }
            memory.write(&c, &bytes)?;
        }
        Ok(())
    }
}

/// A matrix as `count` lists of `k` values: its columns where `by_column`, else its rows.
fn rows(bytes: &[u8], element: Element, by_column: bool, count: usize, k: usize) -> Vec<f64> {
    if by_column {
        return element.decode(bytes).collect();
    }
    let mut values = vec![0.0; count * k];
    for (at, value) in element.decode(bytes).enumerate() {
        values[at % count * k + at / count] = value;
    }
    values
}

/// The sum of products, in 16 parts, which the compiler makes vectors of.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0_f64; 16];
    let (chunks_a, chunks_b) = (a.chunks_exact(16), b.chunks_exact(16));
    let rest: f64 = chunks_a
        .remainder()
        .iter()
        .zip(chunks_b.remainder())
        .map(|(a, b)| a * b)
        .sum();
    for (a, b) in chunks_a.zip(chunks_b) {
        for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
            *sum += a * b;
        }
    }
    sums.iter().sum::<f64>() + rest
}
