//! Products beside an f64 reference, and calls that must be refused.

use super::element::Element;
use super::gemm_calls::*;
use super::handle::*;
use super::status::*;
use super::trsm::hipblasStrsmBatched;
use crate::process::process;
use rocmforge_hip_sys::*;
use std::ffi::{c_int, c_void};

const N: c_int = 111;
const T: c_int = 112;
/// What results hold before: it must not come through where beta is zero.
const POISON: f32 = f32::NAN;

/// An allocation of the simulated card.
pub(super) struct Device(pub(super) *mut c_void, usize);

impl Device {
    pub(super) fn of(bytes: &[u8]) -> Self {
        let sim = &process().unwrap().sim;
        let mut address = std::ptr::null_mut();
        // SAFETY: a live out-pointer.
        assert!(unsafe { sim.hipMalloc(&raw mut address, bytes.len()) }.is_success());
        // SAFETY: both have as many bytes.
        let copied = unsafe { sim.hipMemcpy(address, bytes.as_ptr().cast(), bytes.len(), hipMemcpyHostToDevice) };
        assert!(copied.is_success());
        Self(address, bytes.len())
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.1];
        let sim = &process().unwrap().sim;
        // SAFETY: both have as many bytes.
        let copied = unsafe { sim.hipMemcpy(bytes.as_mut_ptr().cast(), self.0, self.1, hipMemcpyDeviceToHost) };
        assert!(copied.is_success());
        bytes
    }

    /// Its address; it is never freed.
    fn keep(self) -> *mut c_void {
        let address = self.0;
        std::mem::forget(self);
        address
    }

    fn addresses(list: &[&Device]) -> Self {
        let bytes: Vec<u8> = list
            .iter()
            .flat_map(|device| (device.0.addr() as u64).to_le_bytes())
            .collect();
        Self::of(&bytes)
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: it was allocated, and is freed once.
        let _ = unsafe { process().unwrap().sim.hipFree(self.0) };
    }
}

pub(super) fn handle() -> *mut c_void {
    let mut handle = std::ptr::null_mut();
    // SAFETY: a live out-pointer.
    assert_eq!(unsafe { hipblasCreate(&raw mut handle) }, SUCCESS);
    handle
}

/// Small numbers with a fraction, exact in every type.
fn numbers(seed: usize, count: usize) -> Vec<f32> {
    (0..count)
        .map(|at| ((at * 37 + seed * 11) % 33) as f32 / 8.0 - 2.0)
        .collect()
}

fn encode(element: Element, values: &[f32]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for value in values {
        element.encode((*value).into(), &mut bytes);
    }
    bytes
}

fn decode(element: Element, bytes: &[u8]) -> Vec<f32> {
    element.decode(bytes).map(|value| value as f32).collect()
}

#[derive(Clone, Copy)]
struct Case {
    ops: [c_int; 2],
    sizes: [usize; 3],
    pad: usize,
    alpha: f32,
    beta: f32,
}

impl Case {
    fn lds(&self) -> [usize; 3] {
        let [m, n, k] = self.sizes;
        let rows = [
            if self.ops[0] == N { m } else { k },
            if self.ops[1] == N { k } else { n },
            m,
        ];
        rows.map(|rows| rows.max(1) + self.pad)
    }

    /// Elements of the three operands, gaps included.
    fn lengths(&self) -> [usize; 3] {
        let ([m, n, k], [lda, ldb, ldc]) = (self.sizes, self.lds());
        [
            lda * if self.ops[0] == N { k } else { m },
            ldb * if self.ops[1] == N { n } else { k },
            ldc * n,
        ]
    }

    /// The definition, in f64. Elements between the columns stay.
    fn reference(&self, a: &[f32], b: &[f32], c: &[f32]) -> Vec<f64> {
        let ([m, n, k], [lda, ldb, ldc]) = (self.sizes, self.lds());
        let mut result: Vec<f64> = c.iter().map(|value| (*value).into()).collect();
        for row in 0..m {
            for column in 0..n {
                let mut sum = 0.0;
                for at in 0..k {
                    let a = a[if self.ops[0] == N {
                        at * lda + row
                    } else {
                        row * lda + at
                    }];
                    let b = b[if self.ops[1] == N {
                        column * ldb + at
                    } else {
                        at * ldb + column
                    }];
                    sum += f64::from(a) * f64::from(b);
                }
                let place = &mut result[column * ldc + row];
                let old = if self.beta == 0.0 {
                    0.0
                } else {
                    f64::from(self.beta) * *place
                };
                *place = f64::from(self.alpha) * sum + old;
            }
        }
        result
    }

    fn c(&self, seed: usize) -> Vec<f32> {
        if self.beta == 0.0 {
            vec![POISON; self.lengths()[2]]
        } else {
            numbers(seed, self.lengths()[2])
        }
    }
}

#[track_caller]
fn compare(found: &[f32], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len());
    for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
        let same = (found.is_nan() && expected.is_nan())
            || (f64::from(*found) - expected).abs() <= tolerance * expected.abs().max(1.0);
        assert!(same, "element {at}: {found}, not {expected}");
    }
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for ops in [[N, N], [T, N], [N, T], [T, 113]] {
        for sizes in [[1, 1, 1], [3, 5, 7], [17, 2, 33], [8, 9, 64], [4, 3, 0], [0, 3, 2]] {
            for (pad, alpha, beta) in [(0, 1.0, 0.0), (3, 0.5, 2.0), (1, 0.0, 0.5), (2, -1.0, 0.0)] {
                cases.push(Case {
                    ops,
                    sizes,
                    pad,
                    alpha,
                    beta,
                });
            }
        }
    }
    cases
}

#[test]
fn products_of_every_shape_are_those_of_the_definition() {
    let handle = handle();
    for case in cases() {
        let lengths = case.lengths().map(|length| length.max(1));
        let (a, b) = (numbers(1, lengths[0]), numbers(2, lengths[1]));
        let c = case.c(3);
        let devices = [&a, &b].map(|values| Device::of(&encode(Element::F32, values)));
        let mut result = encode(Element::F32, &c);
        result.extend([0; 4]);
        let result = Device::of(&result);
        let ([m, n, k], [lda, ldb, ldc]) = (case.sizes.map(|s| s as c_int), case.lds().map(|s| s as c_int));
        // SAFETY: the factors live, and the rest is checked.
        let status = unsafe {
            hipblasSgemm(
                handle,
                case.ops[0],
                case.ops[1],
                m,
                n,
                k,
                (&raw const case.alpha).cast(),
                devices[0].0,
                lda,
                devices[1].0,
                ldb,
                (&raw const case.beta).cast(),
                result.0,
                ldc,
            )
        };
        assert_eq!(status, SUCCESS);
        let found = decode(Element::F32, &result.bytes());
        compare(&found[..c.len()], &case.reference(&a, &b, &c), 1e-5);
    }
}

#[test]
fn products_in_double_keep_what_f32_would_lose() {
    let (a, b, c) = (1.0 + 2.0_f64.powi(-40), 3.0_f64, 2.0_f64.powi(-30));
    let [a_, b_, c_] = [a, b, c].map(|value| Device::of(&value.to_le_bytes()));
    let (alpha, beta) = (1.0 / 3.0_f64, 1.0_f64);
    // SAFETY: the factors live, and the rest is checked.
    let status = unsafe {
        let (alpha, beta) = ((&raw const alpha).cast(), (&raw const beta).cast());
        hipblasDgemm(handle(), N, N, 1, 1, 1, alpha, a_.0, 1, b_.0, 1, beta, c_.0, 1)
    };
    assert_eq!(status, SUCCESS);
    assert_eq!(c_.bytes(), (alpha * (a * b) + c).to_le_bytes());
}

#[test]
fn products_of_every_type() {
    let handle = handle();
    // Types of A and B and of C, of the factors, by the numbers of hipBLAS 2 and of HIP.
    let types = [
        ([150, 150, 150], Element::F16, Element::F16, Element::F16),
        ([150, 151, 151], Element::F16, Element::F32, Element::F32),
        ([168, 168, 151], Element::Bf16, Element::Bf16, Element::F32),
        ([168, 151, 151], Element::Bf16, Element::F32, Element::F32),
        ([2, 2, 0], Element::F16, Element::F16, Element::F16),
        ([14, 0, 2], Element::Bf16, Element::F32, Element::F32),
        ([0, 0, 2], Element::F32, Element::F32, Element::F32),
        ([152, 152, 152], Element::F64, Element::F64, Element::F64),
        ([1, 1, 7], Element::F64, Element::F64, Element::F64),
    ];
    for ([input, output, compute], from, to, factors) in types {
        for case in cases() {
            let lengths = case.lengths().map(|length| length.max(1));
            let (a, b) = (numbers(1, lengths[0]), numbers(2, lengths[1]));
            let mut c = case.c(3);
            c.push(1.0);
            let [a_, b_] = [&a, &b].map(|values| Device::of(&encode(from, values)));
            let c_ = Device::of(&encode(to, &c));
            let ([m, n, k], [lda, ldb, ldc]) = (case.sizes.map(|s| s as c_int), case.lds().map(|s| s as c_int));
            let (alpha, beta) = (encode(factors, &[case.alpha]), encode(factors, &[case.beta]));
            let (alpha, beta) = (alpha.as_ptr().cast(), beta.as_ptr().cast());
            // SAFETY: the factors live, and the rest is checked.
            let status = unsafe {
                hipblasGemmEx(
                    handle,
                    case.ops[0],
                    case.ops[1],
                    m,
                    n,
                    k,
                    alpha,
                    a_.0,
                    input,
                    lda,
                    b_.0,
                    input,
                    ldb,
                    beta,
                    c_.0,
                    output,
                    ldc,
                    compute,
                    160,
                )
            };
            assert_eq!(status, SUCCESS);
            let tolerance = match to {
                Element::F16 => 1e-3,
                Element::Bf16 => 8e-3,
                Element::F32 => 1e-5,
                Element::F64 => 1e-12,
            };
            compare(&decode(to, &c_.bytes()), &case.reference(&a, &b, &c), tolerance);
        }
    }
}

#[test]
fn several_products_by_strides_and_by_addresses() {
    let handle = handle();
    let case = Case {
        ops: [T, N],
        sizes: [5, 3, 6],
        pad: 1,
        alpha: 2.0,
        beta: 1.0,
    };
    let [m, n, k] = case.sizes.map(|s| s as c_int);
    let [lda, ldb, ldc] = case.lds().map(|s| s as c_int);
    let lengths = case.lengths();
    let count = 4;
    let (alpha, beta) = ((&raw const case.alpha).cast(), (&raw const case.beta).cast());
    // One B for all: a stride of zero.
    let a = numbers(1, lengths[0] * count);
    let b = numbers(2, lengths[1]);
    let c = numbers(3, lengths[2] * count);
    let expected: Vec<f64> = (0..count)
        .flat_map(|at| case.reference(&a[at * lengths[0]..], &b, &c[at * lengths[2]..][..lengths[2]]))
        .collect();
    let [a_, b_, c_] = [&a, &b, &c].map(|values| Device::of(&encode(Element::F32, values)));
    let strides = [lengths[0] as i64, 0, lengths[2] as i64];
    let strided = |count, stride_c| {
        // SAFETY: the factors live, and the rest is checked.
        unsafe {
            hipblasSgemmStridedBatched(
                handle, T, N, m, n, k, alpha, a_.0, lda, strides[0], b_.0, ldb, strides[1], beta, c_.0, ldc, stride_c,
                count,
            )
        }
    };
    assert_eq!(strided(count as c_int + 1, strides[2]), INVALID_VALUE);
    assert_eq!(strided(c_int::MAX, 0), INVALID_VALUE);
    assert_eq!(strided(2, i64::MAX), INVALID_VALUE);
    assert_eq!(strided(2, i64::MIN), INVALID_VALUE);
    assert_eq!(decode(Element::F32, &c_.bytes()), c);
    assert_eq!(strided(count as c_int, strides[2]), SUCCESS);
    compare(&decode(Element::F32, &c_.bytes()), &expected, 1e-5);

    let part = |values: &[f32], length: usize| -> Vec<Device> {
        values
            .chunks(length)
            .map(|part| Device::of(&encode(Element::F32, part)))
            .collect()
    };
    let (a_, b_, c_) = (part(&a, lengths[0]), part(&b, lengths[1]), part(&c, lengths[2]));
    let lists = [
        Device::addresses(&a_.iter().collect::<Vec<_>>()),
        Device::addresses(&[&b_[0]; 4]),
        Device::addresses(&c_.iter().collect::<Vec<_>>()),
    ];
    let listed = |count| {
        // SAFETY: the factors live, and the rest is checked.
        unsafe {
            hipblasGemmBatchedEx(
                handle, T, N, m, n, k, alpha, lists[0].0, 151, lda, lists[1].0, 151, ldb, beta, lists[2].0, 151, ldc,
                count, 151, 160,
            )
        }
    };
    assert_eq!(listed(5), INVALID_VALUE);
    assert_eq!(listed(c_int::MAX), INVALID_VALUE);
    assert_eq!(listed(4), SUCCESS);
    let found: Vec<f32> = c_.iter().flat_map(|c| decode(Element::F32, &c.bytes())).collect();
    compare(&found, &expected, 1e-5);
}

#[test]
fn triangular_systems_are_solved() {
    let handle = handle();
    let (m, n, lda, ldb, alpha) = (5_usize, 4_usize, 6_usize, 7_usize, 1.5_f32);
    for side in [141, 142] {
        for fill in [121, 122] {
            for op in [N, T] {
                for diagonal in [131, 132] {
                    let d = if side == 141 { m } else { n };
                    let mut square = numbers(side as usize, lda * d);
                    for at in 0..d {
                        square[at * lda + at] = 4.0;
                    }
                    let right = numbers(7, ldb * n);
                    let (a, b) = (
                        Device::of(&encode(Element::F32, &square)),
                        Device::of(&encode(Element::F32, &right)),
                    );
                    let (list_a, list_b) = (Device::addresses(&[&a]), Device::addresses(&[&b]));
                    // SAFETY: the factor lives, and the rest is checked.
                    let status = unsafe {
                        hipblasStrsmBatched(
                            handle,
                            side,
                            fill,
                            op,
                            diagonal,
                            m as c_int,
                            n as c_int,
                            &raw const alpha,
                            list_a.0,
                            lda as c_int,
                            list_b.0,
                            ldb as c_int,
                            1,
                        )
                    };
                    assert_eq!(status, SUCCESS);
                    let x = decode(Element::F32, &b.bytes());
                    // The triangle times X gives alpha times what was there.
                    let element = |row: usize, column: usize| -> f64 {
                        let (row, column) = if op == N { (row, column) } else { (column, row) };
                        match (row == column, (row > column) == (fill == 122)) {
                            (true, _) if diagonal == 132 => 1.0,
                            (true, _) | (false, true) => square[column * lda + row].into(),
                            _ => 0.0,
                        }
                    };
                    for row in 0..m {
                        for column in 0..n {
                            let sum: f64 = (0..d)
                                .map(|at| match side {
                                    141 => element(row, at) * f64::from(x[column * ldb + at]),
                                    _ => f64::from(x[at * ldb + row]) * element(at, column),
                                })
                                .sum();
                            let expected = f64::from(alpha * right[column * ldb + row]);
                            let size: f64 = x.iter().map(|x| f64::from(x.abs())).fold(1.0, f64::max);
                            assert!(
                                (sum - expected).abs() < 1e-5 * size,
                                "{side} {fill} {op} {diagonal}: {sum}, not {expected}"
                            );
                        }
                    }
                    // Between the columns nothing has changed.
                    assert!(
                        (0..n).all(|column| x[column * ldb + m..][..ldb - m] == right[column * ldb + m..][..ldb - m])
                    );
                }
            }
        }
    }
}

#[test]
fn hostile_arguments_have_a_status() {
    let handle = handle();
    let device = Device::of(&encode(Element::F32, &numbers(1, 64)));
    let one = 1.0_f32;
    let (null, factor) = (std::ptr::null(), (&raw const one).cast::<c_void>());
    let call = |handle, op, [m, n, k]: [c_int; 3], ld, factor, a: *const c_void, c: *mut c_void| {
        // SAFETY: the factor is null or lives, and the rest is checked.
        unsafe { hipblasSgemm(handle, op, N, m, n, k, factor, a, ld, a, ld, factor, c, ld) }
    };
    let (a, c, most) = (device.0, device.0, c_int::MAX);
    assert_eq!(call(handle, N, [8, 8, 8], 8, factor, a, c), SUCCESS);
    for (sizes, ld) in [
        ([8, 9, 8], 8),
        ([8, 8, 9], 8),
        ([8, 8, 8], 7),
        ([8, 8, 8], 9),
        ([-1, 8, 8], 8),
        ([8, -1, 8], 8),
        ([8, 8, c_int::MIN], 8),
        ([8, 8, 8], -8),
        ([most, most, most], most),
        ([1, most, 1], most),
        ([most, 1, 0], most),
    ] {
        assert_eq!(
            call(handle, N, sizes, ld, factor, a, c),
            INVALID_VALUE,
            "{sizes:?} {ld}"
        );
    }
    assert_eq!(call(handle, 110, [8, 8, 8], 8, factor, a, c), INVALID_ENUM);
    assert_eq!(call(handle, N, [8, 8, 8], 8, null, a, c), INVALID_VALUE);
    assert_eq!(call(handle, N, [8, 8, 8], 8, factor, null, c), INVALID_VALUE);
    assert_eq!(
        call(handle, N, [8, 8, 8], 8, factor, a, std::ptr::null_mut()),
        INVALID_VALUE
    );
    let wild = std::ptr::without_provenance_mut(usize::MAX - 3);
    assert_eq!(call(handle, N, [8, 8, 8], 8, factor, wild, c), INVALID_VALUE);
    assert_eq!(
        call(std::ptr::null_mut(), N, [8, 8, 8], 8, factor, a, c),
        NOT_INITIALIZED
    );
    assert_eq!(call(a, N, [8, 8, 8], 8, factor, a, c), NOT_INITIALIZED);
    // Types that are not simulated: complex numbers.
    // SAFETY: the factors live, and the rest is checked.
    let complex = unsafe {
        hipblasGemmEx(
            handle, N, N, 2, 2, 2, factor, a, 154, 2, a, 154, 2, factor, c, 154, 2, 154, 160,
        )
    };
    assert_eq!(complex, NOT_SUPPORTED);
    // SAFETY: a null pointer is refused.
    assert_eq!(unsafe { hipblasCreate(std::ptr::null_mut()) }, HANDLE_IS_NULLPTR);
    // SAFETY: a handle of this test.
    assert_eq!(unsafe { hipblasDestroy(handle) }, SUCCESS);
    // SAFETY: handles are numbers.
    assert_eq!(unsafe { hipblasDestroy(handle) }, NOT_INITIALIZED);
}

#[test]
fn factors_may_be_in_device_memory_and_products_keep_the_order_of_their_stream() {
    let handle = handle();
    let sim = &process().unwrap().sim;
    let mut stream = std::ptr::null_mut();
    // SAFETY: a live out-pointer.
    assert!(unsafe { sim.hipStreamCreateWithFlags(&raw mut stream, 1) }.is_success());
    let (a, c) = (
        Device::of(&encode(Element::F32, &[0.0])),
        Device::of(&encode(Element::F32, &[5.0])),
    );
    let factors = Device::of(&encode(Element::F32, &[3.0]));
    // SAFETY: a handle of this test, and numbers.
    assert_eq!(unsafe { hipblasSetStream(handle, stream) }, SUCCESS);
    // SAFETY: as above.
    assert_eq!(unsafe { hipblasSetPointerMode(handle, 1) }, SUCCESS);
    // SAFETY: the machine checks the address. 1.0 is 0x3F800000: it is queued, and the product must wait for it.
    assert!(unsafe { sim.hipMemsetD32Async(a.0, 0x3F80_0000, 1, stream) }.is_success());
    // SAFETY: the factors are on the device, which is checked.
    let status = unsafe { hipblasSgemm(handle, N, N, 1, 1, 1, factors.0, a.0, 1, a.0, 1, factors.0, c.0, 1) };
    assert_eq!(status, SUCCESS);
    assert_eq!(decode(Element::F32, &c.bytes()), [18.0]);
}

/// The graph that `calls` make of a captured stream, ready to run.
fn captured(stream: hipStream_t, calls: impl FnOnce()) -> hipGraphExec_t {
    let sim = &process().unwrap().sim;
    let (mut graph, mut ready) = (std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: a stream of the test.
    assert!(unsafe { sim.hipStreamBeginCapture(stream, hipStreamCaptureModeRelaxed) }.is_success());
    calls();
    // SAFETY: as above; live out-pointers here and below.
    assert!(unsafe { sim.hipStreamEndCapture(stream, &raw mut graph) }.is_success());
    // SAFETY: the graph that was just captured.
    let made = unsafe { sim.hipGraphInstantiate(&raw mut ready, graph, std::ptr::null_mut(), std::ptr::null_mut(), 0) };
    assert!(made.is_success());
    // SAFETY: as above. What is made of the graph keeps what its host functions are given.
    assert!(unsafe { sim.hipGraphDestroy(graph) }.is_success());
    ready
}

#[test]
fn a_captured_product_is_computed_each_time_its_graph_runs() {
    let handle = handle();
    let sim = &process().unwrap().sim;
    let mut stream = std::ptr::null_mut();
    // SAFETY: a live out-pointer.
    assert!(unsafe { sim.hipStreamCreateWithFlags(&raw mut stream, 1) }.is_success());
    // SAFETY: a handle and a stream of this test.
    assert_eq!(unsafe { hipblasSetStream(handle, stream) }, SUCCESS);
    let case = Case {
        ops: [T, N],
        sizes: [5, 3, 7],
        pad: 2,
        alpha: 0.5,
        beta: -1.0,
    };
    let element = Element::F32;
    let ([m, n, k], [lda, ldb, ldc]) = (case.sizes.map(|size| size as c_int), case.lds().map(|ld| ld as c_int));
    let lengths = case.lengths();
    let [a, b, mut c] = [1, 2, 3].map(|seed| numbers(seed, lengths[seed - 1]));
    let device_a = Device::of(&encode(element, &a));
    let device_b = Device::of(&encode(element, &b));
    let device_c = Device::of(&encode(element, &c));
    // The list is not there yet when the call is made.
    let list = Device::of(&[0; 8]);
    let list_c = Device::addresses(&[&device_c]);
    let graph = captured(stream, || {
        // Host factors have their value at the call.
        let (alpha, beta) = (case.alpha, case.beta);
        // SAFETY: factors of this test; the machine checks the rest.
        let status = unsafe {
            hipblasSgemmBatched(
                handle,
                case.ops[0],
                case.ops[1],
                m,
                n,
                k,
                (&raw const alpha).cast(),
                list.0,
                lda,
                Device::addresses(&[&device_b]).keep(),
                ldb,
                (&raw const beta).cast(),
                list_c.0,
                ldc,
                1,
            )
        };
        assert_eq!(status, SUCCESS);
    });
    assert_eq!(decode(element, &device_c.bytes()), c, "captured, not computed");
    let address = (device_a.0.addr() as u64).to_le_bytes();
    // SAFETY: both have eight bytes.
    assert!(unsafe { sim.hipMemcpy(list.0, address.as_ptr().cast(), 8, hipMemcpyHostToDevice) }.is_success());
    for _ in 0..2 {
        // SAFETY: the machine checks both handles.
        assert!(unsafe { sim.hipGraphLaunch(graph, stream) }.is_success());
        // SAFETY: as above.
        assert!(unsafe { sim.hipStreamSynchronize(stream) }.is_success());
        let wanted = case.reference(&a, &b, &c);
        c = decode(element, &device_c.bytes());
        for (found, wanted) in c.iter().zip(wanted) {
            assert!((f64::from(*found) - wanted).abs() < 1e-4, "{found} for {wanted}");
        }
    }
    // A list that names no memory any more is reported when the graph runs, and nothing is written.
    let nowhere = [0_u8; 8];
    // SAFETY: both have eight bytes.
    assert!(unsafe { sim.hipMemcpy(list.0, nowhere.as_ptr().cast(), 8, hipMemcpyHostToDevice) }.is_success());
    let before = sim.reported();
    // SAFETY: as above.
    assert!(unsafe { sim.hipGraphLaunch(graph, stream) }.is_success());
    // SAFETY: as above.
    assert!(unsafe { sim.hipStreamSynchronize(stream) }.is_success());
    assert!(sim.reported() > before);
    assert_eq!(decode(element, &device_c.bytes()), c);
    // SAFETY: as above.
    assert!(unsafe { sim.hipGraphExecDestroy(graph) }.is_success());
}
