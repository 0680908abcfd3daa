//! C functions of products: each puts its arguments together and computes.

use super::element::Element;
use super::gemm::{Gemm, Operand, Place};
use super::handle;
use super::status::Status;
use std::ffi::{c_int, c_void};

/// A matrix at an address, or several that are so many elements apart.
fn strided(address: *const c_void, stride: i64, element: Option<Element>, ld: c_int) -> Operand {
    Operand {
        place: Place::Strided(address.addr(), stride),
        element,
        ld,
    }
}

/// Matrices where the addresses at an address say.
fn listed(addresses: *const c_void, element: Option<Element>, ld: c_int) -> Operand {
    Operand {
        place: Place::Listed(addresses.addr()),
        element,
        ld,
    }
}

impl Gemm {
    /// # Safety
    /// As for [`Gemm::run`].
    unsafe fn answer(self, handle: *mut c_void) -> Status {
        // SAFETY: promised by the caller.
        handle::with(handle, |process, handle| unsafe { self.run(process, handle) })
    }
}

/// Functions whose name says the type.
macro_rules! typed {
    ($($one:ident $batched:ident $strided:ident: $element:ident;)*) => {$(
        pub(crate) unsafe extern "C" fn $one(
            handle: *mut c_void, op_a: c_int, op_b: c_int, m: c_int, n: c_int, k: c_int,
            alpha: *const c_void, a: *const c_void, lda: c_int, b: *const c_void, ldb: c_int,
            beta: *const c_void, c: *mut c_void, ldc: c_int,
        ) -> Status {
            let element = Some(Element::$element);
            let call = Gemm {
                name: stringify!($one), ops: [op_a, op_b], sizes: [m, n, k], count: 1, alpha, beta, factors: element,
                a: strided(a, 0, element, lda), b: strided(b, 0, element, ldb), c: strided(c, 0, element, ldc),
            };
            // SAFETY: promised by the program.
            unsafe { call.answer(handle) }
        }

        pub(crate) unsafe extern "C" fn $batched(
            handle: *mut c_void, op_a: c_int, op_b: c_int, m: c_int, n: c_int, k: c_int,
            alpha: *const c_void, a: *const c_void, lda: c_int, b: *const c_void, ldb: c_int,
            beta: *const c_void, c: *const c_void, ldc: c_int, count: c_int,
        ) -> Status {
            let element = Some(Element::$element);
            let call = Gemm {
                name: stringify!($batched), ops: [op_a, op_b], sizes: [m, n, k], count, alpha, beta, factors: element,
                a: listed(a, element, lda), b: listed(b, element, ldb), c: listed(c, element, ldc),
            };
            // SAFETY: promised by the program.
            unsafe { call.answer(handle) }
        }

        pub(crate) unsafe extern "C" fn $strided(
            handle: *mut c_void, op_a: c_int, op_b: c_int, m: c_int, n: c_int, k: c_int,
            alpha: *const c_void, a: *const c_void, lda: c_int, stride_a: i64, b: *const c_void, ldb: c_int, stride_b: i64,
            beta: *const c_void, c: *mut c_void, ldc: c_int, stride_c: i64, count: c_int,
        ) -> Status {
            let element = Some(Element::$element);
            let call = Gemm {
                name: stringify!($strided), ops: [op_a, op_b], sizes: [m, n, k], count, alpha, beta, factors: element,
                a: strided(a, stride_a, element, lda), b: strided(b, stride_b, element, ldb), c: strided(c, stride_c, element, ldc),
            };
            // SAFETY: promised by the program.
            unsafe { call.answer(handle) }
        }
    )*};
}

typed! {
    hipblasSgemm hipblasSgemmBatched hipblasSgemmStridedBatched: F32;
    hipblasDgemm hipblasDgemmBatched hipblasDgemmStridedBatched: F64;
    hipblasHgemm hipblasHgemmBatched hipblasHgemmStridedBatched: F16;
}

/// Functions with the types as arguments. Those of hipBLAS 2 and their `_v2` twins differ in the numbers of types alone.
macro_rules! mixed {
    ($($one:ident $batched:ident $strided:ident;)*) => {$(
        pub(crate) unsafe extern "C" fn $one(
            handle: *mut c_void, op_a: c_int, op_b: c_int, m: c_int, n: c_int, k: c_int,
            alpha: *const c_void, a: *const c_void, type_a: c_int, lda: c_int, b: *const c_void, type_b: c_int, ldb: c_int,
            beta: *const c_void, c: *mut c_void, type_c: c_int, ldc: c_int, compute: c_int, _algorithm: c_int,
        ) -> Status {
            let of = Element::of_data_type;
            let call = Gemm {
                name: stringify!($one), ops: [op_a, op_b], sizes: [m, n, k], count: 1, alpha, beta,
                factors: Element::of_compute_type(compute),
                a: strided(a, 0, of(type_a), lda), b: strided(b, 0, of(type_b), ldb), c: strided(c, 0, of(type_c), ldc),
            };
            // SAFETY: promised by the program.
            unsafe { call.answer(handle) }
        }

        pub(crate) unsafe extern "C" fn $batched(
            handle: *mut c_void, op_a: c_int, op_b: c_int, m: c_int, n: c_int, k: c_int,
            alpha: *const c_void, a: *const c_void, type_a: c_int, lda: c_int, b: *const c_void, type_b: c_int, ldb: c_int,
            beta: *const c_void, c: *const c_void, type_c: c_int, ldc: c_int, count: c_int, compute: c_int, _algorithm: c_int,
        ) -> Status {
            let of = Element::of_data_type;
            let call = Gemm {
                name: stringify!($batched), ops: [op_a, op_b], sizes: [m, n, k], count, alpha, beta,
                factors: Element::of_compute_type(compute),
                a: listed(a, of(type_a), lda), b: listed(b, of(type_b), ldb), c: listed(c, of(type_c), ldc),
            };
            // SAFETY: promised by the program.
            unsafe { call.answer(handle) }
        }

        pub(crate) unsafe extern "C" fn $strided(
            handle: *mut c_void, op_a: c_int, op_b: c_int, m: c_int, n: c_int, k: c_int,
            alpha: *const c_void, a: *const c_void, type_a: c_int, lda: c_int, stride_a: i64,
            b: *const c_void, type_b: c_int, ldb: c_int, stride_b: i64,
            beta: *const c_void, c: *mut c_void, type_c: c_int, ldc: c_int, stride_c: i64,
            count: c_int, compute: c_int, _algorithm: c_int,
        ) -> Status {
            let of = Element::of_data_type;
            let call = Gemm {
                name: stringify!($strided), ops: [op_a, op_b], sizes: [m, n, k], count, alpha, beta,
                factors: Element::of_compute_type(compute),
                a: strided(a, stride_a, of(type_a), lda), b: strided(b, stride_b, of(type_b), ldb),
                c: strided(c, stride_c, of(type_c), ldc),
            };
            // SAFETY: promised by the program.
            unsafe { call.answer(handle) }
        }
    )*};
}

mixed! {
    hipblasGemmEx hipblasGemmBatchedEx hipblasGemmStridedBatchedEx;
    hipblasGemmEx_v2 hipblasGemmBatchedEx_v2 hipblasGemmStridedBatchedEx_v2;
}
