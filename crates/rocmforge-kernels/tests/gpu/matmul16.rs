//! Products of 16-bit floats.

use crate::support::{Device, device, device_with, float_type, half_bits as bits, half_values as values, refused};
use rocmforge_kernels::{
    FloatType, Half, KernelResult, Matmul16Activation, Matmul16Operands, Matmul16Output, Matmul16Shape, Operand,
    Strides, reference,
};
use rocmforge_runtime::HipBuffer;
use rocmforge_testkit::data::{POISON, Rng, rng};

const TYPES: [Half; 2] = [Half::F16, Half::Bf16];
/// A NaN of either type: in outputs before a launch, and in inputs where nobody may read.
const POISON16: u16 = 0xFFFF;

/// Bits of numbers with a magnitude of 2^-8 to 2, of either sign.
fn numbers(ty: Half, random: &mut Rng, n: usize) -> Vec<u16> {
    let one = |random: &mut Rng| {
        let (sign, exponent, fraction) = (random.below(2), random.below(9), random.next_u64() as u16);
        let sign = (sign as u16) << 15;
        match ty {
            Half::F16 => sign | (7 + exponent as u16) << 10 | fraction & 0x3FF,
            Half::Bf16 => sign | (119 + exponent as u16) << 7 | fraction & 0x7F,
        }
    };
    (0..n).map(|_| one(random)).collect()
}

/// Rows of an operand in a buffer: how far apart, and what lies before the first.
#[derive(Clone, Copy)]
struct Layout {
    row: usize,
    batch: usize,
    first: usize,
}

impl Layout {
    fn contiguous(rows: usize, columns: usize) -> Self {
        Self {
            row: columns,
            batch: rows * columns,
            first: 0,
        }
    }

    fn strides(self) -> Strides {
        Strides {
            batch: self.batch as u64,
            head: 0,
            row: self.row as u64,
        }
    }

    /// Where the elements of `[batch, rows, columns]` lie.
    fn places(self, [batch, rows, columns]: [usize; 3]) -> Vec<usize> {
        let place = move |z, r, c| self.first + z * self.batch + r * self.row + c;
        (0..batch)
            .flat_map(|z| (0..rows).flat_map(move |r| (0..columns).map(move |c| place(z, r, c))))
            .collect()
    }
}

/// One product.
#[derive(Clone)]
struct Case {
    ty: Half,
    shape: Matmul16Shape,
    f32_out: bool,
    bias: bool,
    alpha: f32,
    activation: Matmul16Activation,
    a: Layout,
    b: Layout,
    y: Layout,
}

impl Case {
    fn new(ty: Half, [batch, m, n, k]: [usize; 4]) -> Self {
        Self {
            ty,
            shape: Matmul16Shape { batch, m, n, k },
            f32_out: false,
            bias: false,
            alpha: 1.0,
            activation: Matmul16Activation::None,
            a: Layout::contiguous(m, k),
            b: Layout::contiguous(n, k),
            y: Layout::contiguous(m, n),
        }
    }

    fn f32(self) -> Self {
        Self { f32_out: true, ..self }
    }

    fn biased(self) -> Self {
        Self { bias: true, ..self }
    }

    fn dims(&self) -> [[usize; 3]; 3] {
        let Matmul16Shape { batch, m, n, k } = self.shape;
        [[batch, m, k], [batch, n, k], [batch, m, n]]
    }

    /// The elements of y in order, as the bits that are there; nothing beside them is written.
    fn run(&self, d: &Device, a: &[u16], b: &[u16], bias: &[f32]) -> Vec<u32> {
        let [a_dims, b_dims, y_dims] = self.dims();
        let up = |layout: Layout, dims, elements: &[u16]| {
            let places = layout.places(dims);
            let mut all = vec![POISON16; places.iter().max().unwrap() + 1];
            for (place, element) in places.into_iter().zip(elements) {
                all[place] = *element;
            }
            let buffer = HipBuffer::from_slice(d.stream(), &all, "input").expect("upload");
            buffer.view(layout.first..all.len()).expect("inside")
        };
        let (da, db) = (up(self.a, a_dims, a), up(self.b, b_dims, b));
        let dbias = self.bias.then(|| d.up(bias));
        let places = self.y.places(y_dims);
        let (first, end) = (self.y.first, places.iter().max().unwrap() + 1);
        let operands = |y| Matmul16Operands {
            ty: self.ty,
            a: Operand::new(&da, self.a.strides()),
            b: Operand::new(&db, self.b.strides()),
            bias: dbias.as_ref(),
            y,
        };
        let launch = |y| {
            d.kernels
                .matmul16(d.stream(), operands(y), self.shape, self.alpha, self.activation)
                .unwrap();
        };
        let (all, untouched): (Vec<u32>, u32) = if self.f32_out {
            let y = d.out(end + 3);
            launch(Matmul16Output::F32(Operand::new(
                &y.view(first..end).expect("inside"),
                self.y.strides(),
            )));
            (d.get(&y).into_iter().map(f32::to_bits).collect(), POISON.to_bits())
        } else {
            let y = HipBuffer::from_slice(d.stream(), &vec![POISON16; end + 3], "output").expect("upload");
            launch(Matmul16Output::Half(Operand::new(
                &y.view(first..end).expect("inside"),
                self.y.strides(),
            )));
            let all = y.to_vec(d.stream()).expect("download");
            (all.into_iter().map(u32::from).collect(), POISON16.into())
        };
        let mut beside = vec![true; all.len()];
        places.iter().for_each(|&place| beside[place] = false);
        for (at, bits) in all.iter().enumerate().filter(|(at, _)| beside[*at]) {
            assert_eq!(*bits, untouched, "element {at}, beside the output, was written");
        }
        places.into_iter().map(|place| all[place]).collect()
    }

    fn out_values(&self, y: &[u32]) -> Vec<f64> {
        if self.f32_out {
            return y.iter().map(|&bits| f64::from(f32::from_bits(bits))).collect();
        }
        values(self.ty, &y.iter().map(|&bits| bits as u16).collect::<Vec<_>>())
    }

    /// Holds `y` to the definition: each element is the rounded value of something within the error of f32 sums.
    #[track_caller]
    fn hold(&self, y: &[u32], a: &[f64], b: &[f64], bias: Option<&[f32]>) {
        let expected = reference::matmul16(a, b, bias, self.shape, self.alpha, self.activation);
        // Rounding errors grow with the sum of the products' sizes.
        let sizes = |x: &[f64]| x.iter().map(|x| x.abs()).collect::<Vec<_>>();
        let no_activation = Matmul16Activation::None;
        let sums = reference::matmul16(&sizes(a), &sizes(b), None, self.shape, self.alpha.abs(), no_activation);
        let to = if self.f32_out {
            FloatType::F32
        } else {
            float_type(self.ty)
        };
        for (i, ((y, e), sum)) in self.out_values(y).into_iter().zip(expected).zip(sums).enumerate() {
            let n = i % self.shape.n;
            let error = 5e-7 * (sum + bias.map_or(0.0, |bias| f64::from(bias[n].abs()))) + 1e-6 * e.abs();
            let [low, high] = [e - error, e + error].map(|x| reference::round_to(to, x));
            let m = i / self.shape.n % self.shape.m;
            assert!(
                low <= y && y <= high || y.is_nan() && e.is_nan(),
                "{:?}, {:?}, element [{}, {m}, {n}]: {y:e} where {e:e} was expected, give or take {error:.1e}",
                self.ty,
                self.shape,
                i / self.shape.n / self.shape.m,
            );
        }
    }

    /// Random operands, against the definition.
    #[track_caller]
    fn check(&self, d: &Device) {
        let Matmul16Shape { batch, m, n, k } = self.shape;
        let mut random = rng((batch * 1_000_000_000 + m * 1_000_000 + n * 1000 + k) as u64);
        let (a, b) = (
            numbers(self.ty, &mut random, batch * m * k),
            numbers(self.ty, &mut random, batch * n * k),
        );
        let bias = random.vec(n);
        let y = self.run(d, &a, &b, &bias);
        self.hold(
            &y,
            &values(self.ty, &a),
            &values(self.ty, &b),
            self.bias.then_some(bias.as_slice()),
        );
    }
}

#[test]
fn every_edge_of_a_tile() {
    let d = device_with!("matmul16", "matmul16_f16");
    let shapes = [
        [9, 1, 8],
        [15, 63, 16],
        [16, 64, 32],
        [17, 65, 40],
        [127, 33, 24],
        [128, 64, 64],
        [129, 129, 72],
        [31, 130, 264],
        [255, 3, 48],
        [10, 7, 1000],
    ];
    for ty in TYPES {
        for (i, [m, n, k]) in shapes.into_iter().enumerate() {
            let case = Case::new(ty, [1, m, n, k]);
            let case = if i % 2 == 0 { case.f32() } else { case };
            if i % 3 == 0 { case.biased() } else { case }.check(&d);
        }
    }
}

#[test]
fn few_rows_of_every_number_and_depth() {
    let d = device();
    let depths = [8, 248, 256, 264, 1024, 1032, 2312, 4104];
    for ty in TYPES {
        for (m, k) in (1..=8).zip(depths) {
            for n in [1, 15, 33] {
                let case = Case::new(ty, [1, m, n, k]);
                let case = if (m + n) % 2 == 0 { case.f32() } else { case };
                if n == 15 { case.biased() } else { case }.check(&d);
            }
        }
    }
}

#[test]
fn tiles_are_done_once_each_in_any_grouping() {
    let d = device_with!("matmul16", "matmul16_f16");
    // More rows of tiles than a group has, and a last group of fewer.
    Case::new(Half::F16, [1, 8 * 128 + 130, 70, 8]).f32().check(&d);
    Case::new(Half::Bf16, [2, 20, 5 * 64 + 1, 16]).check(&d);
}

#[test]
fn factor_bias_and_activation() {
    let d = device_with!("matmul16", "matmul16_f16");
    use Matmul16Activation::{GeluErf, GeluTanh, None, Relu, Silu};
    for ty in TYPES {
        for activation in [None, Silu, GeluTanh, GeluErf, Relu] {
            for (m, alpha) in [(3, 1.0), (20, -0.37), (8, 0.0)] {
                let case = Case {
                    activation,
                    alpha,
                    ..Case::new(ty, [1, m, 21, 56])
                };
                case.clone().check(&d);
                case.biased().f32().check(&d);
            }
        }
    }
}

#[test]
fn operands_with_gaps_that_are_no_numbers() {
    let d = device_with!("matmul16", "matmul16_f16");
    for ty in TYPES {
        for m in [5, 37] {
            // Rows, matrices and the first element lie where they may; y begins anywhere.
            let case = Case {
                a: Layout {
                    row: 48,
                    batch: 50 * 48,
                    first: 8,
                },
                b: Layout {
                    row: 40,
                    batch: 72 * 40,
                    first: 16,
                },
                y: Layout {
                    row: 75,
                    batch: 40 * 75,
                    first: 1,
                },
                ..Case::new(ty, [2, m, 70, 40])
            };
            case.clone().check(&d);
            case.biased().f32().check(&d);
        }
    }
}

#[test]
fn one_matrix_for_a_whole_batch() {
    let d = device_with!("matmul16", "matmul16_f16");
    for (m, f32_out) in [(4, false), (33, true)] {
        let [n, k] = [40, 24];
        let mut case = Case::new(Half::F16, [3, m, n, k]);
        case.f32_out = f32_out;
        let mut random = rng(m as u64);
        let (a, b) = (
            numbers(case.ty, &mut random, 3 * m * k),
            numbers(case.ty, &mut random, n * k),
        );
        let apart = case.run(&d, &a, &[&b[..], &b[..], &b[..]].concat(), &[]);
        case.b.batch = 0;
        let shared = case.run(&d, &a, &[&b[..], &b[..], &b[..]].concat(), &[]);
        assert_eq!(apart, shared);
    }
}

#[test]
fn a_batch_is_its_products_and_strides_change_no_bit() {
    let d = device_with!("matmul16", "matmul16_f16");
    let mut random = rng(77);
    for round in 0..6 {
        let ty = TYPES[round % 2];
        let [batch, m, n, k] = [
            1 + random.below(3),
            1 + random.below(40),
            1 + random.below(90),
            8 * (1 + random.below(20)),
        ];
        let mut case = Case::new(ty, [batch, m, n, k]).biased();
        case.f32_out = round % 3 == 0;
        let (a, b) = (
            numbers(ty, &mut random, batch * m * k),
            numbers(ty, &mut random, batch * n * k),
        );
        let bias = random.vec(n);
        let whole = case.run(&d, &a, &b, &bias);
        let mut one = case.clone();
        one.shape.batch = 1;
        for z in 0..batch {
            let single = one.run(&d, &a[z * m * k..][..m * k], &b[z * n * k..][..n * k], &bias);
            assert_eq!(single, whole[z * m * n..][..m * n], "{:?}, matrix {z}", case.shape);
        }
        let gap = 8 * (1 + random.below(3));
        let strided = Case {
            a: Layout {
                row: k + gap,
                batch: m * (k + gap) + 8,
                first: gap,
            },
            b: Layout {
                row: k + 8,
                batch: n * (k + 8),
                first: 0,
            },
            y: Layout {
                row: n + gap + 1,
                batch: m * (n + gap + 1),
                first: 3,
            },
            ..case.clone()
        };
        assert_eq!(strided.run(&d, &a, &b, &bias), whole, "{:?}", case.shape);
    }
}

#[test]
fn sums_beyond_the_largest_f16() {
    let d = device_with!("matmul16", "matmul16_f16");
    let (n, k) = (17, 96);
    for (ty, large) in [(Half::F16, 60_000.0), (Half::Bf16, 2f64.powi(60))] {
        let large = reference::round_to(float_type(ty), large);
        let [plus, minus, one] = [large, -large, 1.0].map(|x| bits(ty, x as f32));
        for m in [2, 19] {
            // Each sum rises to 48 large numbers, falls back to 0 and ends at 1.
            let mut row = vec![plus; k];
            row[k / 2..].fill(minus);
            let (a, mut b) = (row.repeat(m), vec![one; n * k]);
            let case = Case::new(ty, [1, m, n, k]);
            let zero = case.run(&d, &a, &b, &[]);
            assert!(case.out_values(&zero).iter().all(|&y| y == 0.0), "{ty:?} {m}");
            // Half of them: too large for f16, and exact in f32.
            for row in b.chunks_mut(k) {
                row[k / 2..].fill(0);
            }
            let sum = large * (k / 2) as f64;
            let full = case.clone().f32();
            let y = full.run(&d, &a, &b, &[]);
            assert!(full.out_values(&y).iter().all(|&y| y == sum), "{ty:?} {m}");
            let y = case.out_values(&case.run(&d, &a, &b, &[]));
            let rounded = reference::round_to(float_type(ty), sum);
            assert!(y.iter().all(|&y| y == rounded), "{ty:?} {m}: {y:?}");
            assert_eq!(rounded.is_infinite(), ty == Half::F16);
        }
    }
}

#[test]
fn no_number_stays_in_its_row_and_column() {
    let d = device_with!("matmul16", "matmul16_f16");
    for ty in TYPES {
        for m in [6, 35] {
            let [n, k] = [67, 40];
            let mut case = Case::new(ty, [1, m, n, k]).f32();
            case.activation = Matmul16Activation::Relu;
            let mut random = rng(m as u64);
            let (mut a, mut b) = (numbers(ty, &mut random, m * k), numbers(ty, &mut random, n * k));
            a[2 * k + 39] = POISON16;
            b[66 * k] = bits(ty, f32::INFINITY);
            let y = case.run(&d, &a, &b, &[]);
            case.hold_or_infinite(&y, &values(ty, &a), &values(ty, &b));
        }
    }
}

impl Case {
    /// Sums of finite numbers as [`hold`](Self::hold) has them; the others are the same infinity, or NaN.
    fn hold_or_infinite(&self, y: &[u32], a: &[f64], b: &[f64]) {
        let expected = reference::matmul16(a, b, None, self.shape, self.alpha, self.activation);
        let mut kinds = [0; 3];
        for (i, (y, e)) in self.out_values(y).into_iter().zip(expected).enumerate() {
            let fits = match e {
                e if e.is_nan() => y.is_nan(),
                e if e.is_infinite() => y == e,
                e => (y - e).abs() <= 1e-4,
            };
            kinds[usize::from(e.is_nan()) + 2 * usize::from(e.is_infinite())] += 1;
            assert!(fits, "{:?}, element {i}: {y:e} where {e:e} was expected", self.shape);
        }
        assert!(kinds.iter().all(|&kind| kind > 0), "{kinds:?}");
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let d = device();
    let s = d.stream();
    let halves = |n: usize| HipBuffer::from_slice(s, &vec![0u16; n], "halves").expect("upload");
    let (a, b, y, bias) = (halves(4 * 16), halves(3 * 16), halves(4 * 3), d.up(&[0.0; 3]));
    let shape = Matmul16Shape {
        batch: 1,
        m: 4,
        n: 3,
        k: 16,
    };
    let of = |row: u64| Strides { batch: 0, head: 0, row };
    let operands = Matmul16Operands {
        ty: Half::F16,
        a: Operand::new(&a, of(16)),
        b: Operand::new(&b, of(16)),
        bias: Some(&bias),
        y: Matmul16Output::Half(Operand::new(&y, of(3))),
    };
    let run = |operands, shape, alpha| -> KernelResult<()> {
        d.kernels.matmul16(s, operands, shape, alpha, Matmul16Activation::None)
    };
    run(operands, shape, 1.0).unwrap();
    for (text, shape) in [
        ("batch is 0", Matmul16Shape { batch: 0, ..shape }),
        ("batch is 65536", Matmul16Shape { batch: 65_536, ..shape }),
        ("k must be a multiple of 8 (12 and 8)", Matmul16Shape { k: 12, ..shape }),
        ("a has 64 elements; its strides", Matmul16Shape { m: 5, ..shape }),
        ("b has 48 elements; its strides", Matmul16Shape { n: 4, ..shape }),
        ("write y more than once", Matmul16Shape { batch: 2, ..shape }),
    ] {
        refused(run(operands, shape, 1.0), text);
    }
    let short = d.up(&[0.0; 2]);
    let narrow = halves(11);
    let odd = halves(65).view(1..65).expect("inside");
    let inside = a.view(8..20).expect("inside");
    let half = |y| Matmul16Output::Half(Operand::new(y, of(3)));
    for (text, operands) in [
        (
            "bias has 2 elements",
            Matmul16Operands {
                bias: Some(&short),
                ..operands
            },
        ),
        (
            "y has 11 elements; its strides",
            Matmul16Operands {
                y: half(&narrow),
                ..operands
            },
        ),
        (
            "y and a overlap",
            Matmul16Operands {
                y: half(&inside),
                ..operands
            },
        ),
        (
            "it must be a multiple of 16",
            Matmul16Operands {
                a: Operand::new(&odd, of(16)),
                ..operands
            },
        ),
        (
            "must be multiples of 8 elements (12 and 8)",
            Matmul16Operands {
                a: Operand::new(&a, of(12)),
                ..operands
            },
        ),
        (
            "row stride is 16777216",
            Matmul16Operands {
                a: Operand::new(&a, of(1 << 24)),
                ..operands
            },
        ),
    ] {
        // A buffer that rows with a stride of 2^24 stay in is not made here: the stride of a single row reaches nothing.
        let m = if text.starts_with("row stride") { 1 } else { shape.m };
        refused(run(operands, Matmul16Shape { m, ..shape }, 1.0), text);
    }
    for alpha in [f32::NAN, f32::INFINITY] {
        refused(run(operands, shape, alpha), "matmul16: alpha is");
    }
}
