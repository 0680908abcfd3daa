//! Triangular systems: `hipblasStrsmBatched` solves op(A) * X = alpha * B or X * op(A) = alpha * B, and X takes the place of B.

use super::element::Element;
use super::gemm::{Factor, size, transposes};
use super::handle;
use super::memory::{Matrix, Memory};
use super::status::{INVALID_ENUM, INVALID_VALUE, Status};
use super::work;
use std::ffi::{c_int, c_void};

/// One of two values of an enumeration: whether it is the second.
fn second(value: c_int, first: c_int) -> Result<bool, Status> {
    match value.checked_sub(first) {
        Some(0) => Ok(false),
        Some(1) => Ok(true),
        _ => Err(INVALID_ENUM),
    }
}

/// A triangle of d rows.
struct Triangle {
    values: Vec<f64>,
    d: usize,
    lower: bool,
    unit: bool,
    transposed: bool,
}

impl Triangle {
    /// Reads it. The other half of the square need not have been written.
    fn read(memory: &Memory<'_>, square: &Matrix, lower: bool, unit: bool, transposed: bool) -> Result<Self, Status> {
        let d = square.rows;
        let mut values = vec![0.0; d * d];
        for column in 0..d {
            let range = match (lower, unit) {
                (true, false) => column..d,
                (true, true) => column + 1..d,
                (false, false) => 0..column + 1,
                (false, true) => 0..column,
            };
            let part = Matrix {
                address: square.address + (column * square.ld + range.start) * 4,
                rows: range.len(),
                columns: 1,
                ..*square
            };
            let bytes = memory.read(&part)?;
            for (row, value) in range.zip(square.element.decode(&bytes)) {
                values[column * d + row] = value;
            }
        }
        Ok(Self {
            values,
            d,
            lower,
            unit,
            transposed,
        })
    }

    /// An element of op(A).
    fn at(&self, row: usize, column: usize) -> f64 {
        let (row, column) = if self.transposed { (column, row) } else { (row, column) };
        self.values[column * self.d + row]
    }

    /// Solves op(A) * x = b in place.
    fn solve(&self, x: &mut [f64]) {
        let forward = self.lower != self.transposed;
        for step in 0..self.d {
            let row = if forward { step } else { self.d - 1 - step };
            let known = if forward { 0..row } else { row + 1..self.d };
            let sum: f64 = known.map(|column| self.at(row, column) * x[column]).sum();
            x[row] -= sum;
            if !self.unit {
                x[row] /= self.at(row, row);
            }
        }
    }
}

pub(crate) unsafe extern "C" fn hipblasStrsmBatched(
    handle: *mut c_void,
    side: c_int,
    fill: c_int,
    op: c_int,
    diagonal: c_int,
    m: c_int,
    n: c_int,
    alpha: *const f32,
    a: *const c_void,
    lda: c_int,
    b: *const c_void,
    ldb: c_int,
    count: c_int,
) -> Status {
    handle::with(handle, |process, handle| {
        let (right, lower, unit) = (second(side, 141)?, second(fill, 121)?, second(diagonal, 131)?);
        let transposed = transposes(op)?;
        let (m, n, count) = (size(m)?, size(n)?, size(count)?);
        let (lda, ldb) = (size(lda)?, size(ldb)?);
        let d = if right { n } else { m };
        if lda < d.max(1) || ldb < m.max(1) {
            return Err(INVALID_VALUE);
        }
        if m == 0 || n == 0 || count == 0 {
            return Ok(());
        }
        // SAFETY: promised by the program.
        let alpha = unsafe { Factor::of(handle, alpha.cast(), Element::F32) }?;
        let system = System {
            right,
            lower,
            unit,
            transposed,
            sizes: [m, n],
            count,
            alpha,
            lists: [a.addr(), b.addr()],
            lds: [lda, ldb],
        };
        work::run(process, handle, "hipblasStrsmBatched", move |memory| {
            system.solve(memory)
        })
    })
}

/// A call whose arguments make sense.
struct System {
    right: bool,
    lower: bool,
    unit: bool,
    transposed: bool,
    /// m, n.
    sizes: [usize; 2],
    count: usize,
    alpha: Factor,
    /// Where the addresses of A and of B are.
    lists: [usize; 2],
    lds: [usize; 2],
}

impl System {
    fn solve(&self, memory: &Memory<'_>) -> Result<(), Status> {
        let &Self {
            right,
            lower,
            unit,
            transposed,
            sizes: [m, n],
            count,
            lists: [a, b],
            lds: [lda, ldb],
            ..
        } = self;
        let d = if right { n } else { m };
        let alpha = self.alpha.value(memory)?;
        let matrix = |address, rows, columns, ld| Matrix {
            address,
            rows,
            columns,
            ld,
            element: Element::F32,
        };
        let pairs: Vec<_> = {
            let (a, b) = (memory.addresses(a, count)?, memory.addresses(b, count)?);
            let pair = |(a, b)| (matrix(a, d, d, lda), matrix(b, m, n, ldb));
            a.into_iter().zip(b).map(pair).collect()
        };
        for (a, b) in &pairs {
            memory.check(a.address, a.span())?;
            memory.check(b.address, b.span())?;
        }
        for (a, b) in &pairs {
            // X * op(A) = B is op(A) transposed * X transposed = B transposed.
            let triangle = Triangle::read(memory, a, lower, unit, transposed != right)?;
            let bytes = memory.read(b)?;
            let mut values: Vec<f64> = b.element.decode(&bytes).map(|value| alpha * value).collect();
            let lines = if right { m } else { n };
            for line in 0..lines {
                let place = |at: usize| if right { at * m + line } else { line * m + at };
                let mut x: Vec<f64> = (0..d).map(|at| values[place(at)]).collect();
                triangle.solve(&mut x);
                for (at, value) in x.into_iter().enumerate() {
                    values[place(at)] = value;
                }
            }
            let mut bytes = Vec::with_capacity(bytes.len());
            for value in values {
                b.element.encode(value, &mut bytes);
            }
            memory.write(b, &bytes)?;
        }
        Ok(())
    }
}
