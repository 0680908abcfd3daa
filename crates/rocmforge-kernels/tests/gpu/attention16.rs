//! Attention over 16-bit floats, against its definition in f64.

use crate::support::{Device, device_with, half_bits as bits, half_values as values};
use rocmforge_kernels::reference::{self, Attention16Scores};
use rocmforge_kernels::{
    Attention16Operands, Attention16Options, Attention16Shape, Half, Kernels, Operand, SequenceLengths, Strides,
    Visible,
};
use rocmforge_runtime::HipBuffer;
use rocmforge_testkit::compare::{Tolerance, assert_close};
use rocmforge_testkit::data::rng;

/// A NaN of either type that no kernel computes.
const POISON: u16 = 0x7fde;
const ALL: Visible = Visible::All;
pub(crate) const CAUSAL: Visible = Visible::Causal { window: None };

pub(crate) const fn window(keys: usize) -> Visible {
    Visible::Causal { window: Some(keys) }
}

/// How the elements of q, k, v and the output lie.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Layout {
    HeadsFirst,
    TokensFirst,
    /// Heads first, with 8 elements behind each row and 24 behind each head.
    Gaps,
}

impl Layout {
    fn strides(self, heads: usize, rows: usize, width: usize) -> Strides {
        match self {
            Self::HeadsFirst => Strides::heads_first(heads, rows, width),
            Self::TokensFirst => Strides::tokens_first(heads, rows, width),
            Self::Gaps => {
                let head = (rows * (width + 8) + 24) as u64;
                Strides {
                    batch: heads as u64 * head,
                    head,
                    row: width as u64 + 8,
                }
            }
        }
    }

    /// Where the elements of `[batch, heads, rows, width]` without gaps lie, and how many elements a buffer has.
    fn places(self, [batch, heads, rows, width]: [usize; 4]) -> (Vec<usize>, usize) {
        let s = self.strides(heads, rows, width);
        let place = |at: usize| {
            let (row, e) = (at / width, at % width);
            let (b, h, i) = (row / rows / heads, row / rows % heads, row % rows);
            b * s.batch as usize + h * s.head as usize + i * s.row as usize + e
        };
        (
            (0..batch * heads * rows * width).map(place).collect(),
            batch * s.batch as usize,
        )
    }
}

/// What a mask adds: so many batches, heads and queries have masks of their own. Some of it is -inf, and all of what the first query sees.
type MaskDims = [usize; 3];

#[derive(Clone, Debug)]
struct Case {
    shape: Attention16Shape,
    visible: Visible,
    scale: Option<f32>,
    softcap: Option<f32>,
    mask: Option<MaskDims>,
    slopes: bool,
    sinks: bool,
    lengths: Option<Vec<[usize; 2]>>,
    layout: Layout,
    /// The largest query, key and value.
    magnitude: f32,
    /// Parts of the keys, if they are computed in parts.
    parts: Option<usize>,
}

/// One batch of `heads[0]` query heads and `heads[1]` of keys, `seq` queries and keys, `widths` elements of a key and a value.
fn case(heads: [usize; 2], seq: [usize; 2], widths: [usize; 2], visible: Visible) -> Case {
    Case {
        shape: Attention16Shape {
            batch: 1,
            heads: heads[0],
            kv_heads: heads[1],
            seq_q: seq[0],
            seq_k: seq[1],
            width_k: widths[0],
            width_v: widths[1],
        },
        visible,
        scale: None,
        softcap: None,
        mask: None,
        slopes: false,
        sinks: false,
        lengths: None,
        layout: Layout::HeadsFirst,
        magnitude: 2.0,
        parts: None,
    }
}

pub(crate) fn up(d: &Device, bits: &[u16]) -> HipBuffer<u16> {
    HipBuffer::from_slice(d.stream(), bits, "halves").expect("upload")
}

/// What a case gave, without gaps.
struct Results {
    out: Vec<u16>,
    lse: Vec<f32>,
}

/// Runs a case and checks all of it.
fn check(d: &Device, ty: Half, case: &Case) -> Results {
    let (s, what) = (case.shape, format!("{ty:?} {case:?}"));
    let mut random = rng((s.seq_q * 1000 + s.seq_k * 10 + s.width_k) as u64);
    let lengths = case
        .lengths
        .clone()
        .unwrap_or_else(|| vec![[s.seq_q, s.seq_k]; s.batch]);
    // An operand without gaps, and as it lies in memory: rows behind a length and gaps are NaN there.
    let mut operand = |heads: usize, rows: usize, width: usize, side: usize| {
        let dims = [s.batch, heads, rows, width];
        let mut plain: Vec<u16> = Vec::new();
        for x in random.vec_in(dims.iter().product(), -case.magnitude, case.magnitude) {
            plain.push(bits(ty, x));
        }
        for (row, values) in plain.chunks_mut(width).enumerate() {
            if row % rows >= lengths[row / rows / heads][side] {
                values.fill(POISON);
            }
        }
        let (places, len) = case.layout.places(dims);
        let mut memory = vec![POISON; len];
        places.iter().zip(&plain).for_each(|(&place, &x)| memory[place] = x);
        (plain, memory)
    };
    let q = operand(s.heads, s.seq_q, s.width_k, 0);
    let k = operand(s.kv_heads, s.seq_k, s.width_k, 1);
    let v = operand(s.kv_heads, s.seq_k, s.width_v, 1);

    let [batches, heads, queries] = case.mask.unwrap_or([1, 1, s.seq_q]);
    let mut mask: Vec<f32> = (0..batches * heads * queries * s.seq_k)
        .map(|_| match random.below(3) {
            0 => f32::NEG_INFINITY,
            _ => random.below(64) as f32 / 16.0 - 2.0,
        })
        .collect();
    mask[..s.seq_k].fill(f32::NEG_INFINITY);
    let (slopes, sinks) = (random.vec_in(s.heads, 0.01, 0.3), random.vec(s.heads));
    let mask_strides = Strides {
        batch: if batches > 1 {
            (heads * queries * s.seq_k) as u64
        } else {
            0
        },
        head: if heads > 1 { (queries * s.seq_k) as u64 } else { 0 },
        row: if queries > 1 { s.seq_k as u64 } else { 0 },
    };
    let mask_at = |b: usize, h: usize, i: usize, j: usize| match case.mask {
        None => 0.0,
        Some(_) => {
            let at =
                mask_strides.batch as usize * b + mask_strides.head as usize * h + mask_strides.row as usize * i + j;
            f64::from(mask[at])
        }
    };

    let options = Attention16Options::new(s.width_k, case.visible);
    let scale = case.scale.unwrap_or(options.scale);
    let scores = Attention16Scores {
        scale: f64::from(scale),
        softcap: case.softcap.map(f64::from),
        mask: &mask_at,
        slopes: case.slopes.then_some(slopes.as_slice()),
        sinks: case.sinks.then_some(sinks.as_slice()),
        visible: case.visible,
    };
    let host = [&q.0, &k.0, &v.0].map(|plain| values(ty, plain));
    let (want, want_lse) = reference::attention16([&host[0], &host[1], &host[2]], s, &lengths, &scores);

    let (dq, dk, dv) = (up(d, &q.1), up(d, &k.1), up(d, &v.1));
    let (dm, dl, ds) = (d.up(&mask), d.up(&slopes), d.up(&sinks));
    let (out_places, out_len) = case.layout.places([s.batch, s.heads, s.seq_q, s.width_v]);
    let (out, lse) = (up(d, &vec![POISON; out_len]), d.out(want_lse.len()));
    let device_lengths = case
        .lengths
        .as_ref()
        .map(|lengths| SequenceLengths::new(d.stream(), lengths).expect("lengths"));
    let strides = |heads, rows, width| case.layout.strides(heads, rows, width);
    let operands = Attention16Operands {
        ty,
        q: Operand::new(&dq, strides(s.heads, s.seq_q, s.width_k)),
        k: Operand::new(&dk, strides(s.kv_heads, s.seq_k, s.width_k)),
        v: Operand::new(&dv, strides(s.kv_heads, s.seq_k, s.width_v)),
        out: Operand::new(&out, strides(s.heads, s.seq_q, s.width_v)),
        lse: Some(&lse),
        lengths: device_lengths.as_ref(),
    };
    let options = Attention16Options {
        scale,
        softcap: case.softcap,
        mask: case.mask.map(|_| Operand::new(&dm, mask_strides)),
        slopes: case.slopes.then_some(&dl),
        sinks: case.sinks.then_some(&ds),
        ..options
    };
    match case.parts {
        None => d.kernels.attention16(d.stream(), operands, s, options),
        Some(parts) => {
            let partial = d.out(Kernels::attention16_partial_len(s, parts).expect("fits"));
            (d.kernels).attention16_split(d.stream(), operands, s, options, parts, &partial)
        }
    }
    .unwrap();

    let mut memory = out.to_vec(d.stream()).expect("download");
    let out: Vec<u16> = out_places
        .iter()
        .map(|&place| std::mem::replace(&mut memory[place], POISON))
        .collect();
    assert!(memory.iter().all(|&bits| bits == POISON), "{what}: a gap was written");
    let lse = d.get(&lse);
    close(ty, &what, case.magnitude, s.width_v, (&out, &lse), (&want, &want_lse));
    Results { out, lse }
}

/// Holds results to the reference: each element, the mean square of each row's errors, and rows without a reference to what was there before.
fn close(ty: Half, what: &str, magnitude: f32, width: usize, got: (&[u16], &[f32]), want: (&[f64], &[f64])) {
    // ggml asks for 5e-4. Weights and results of 11 bits make about 2e-7, of 8 bits about 2e-5.
    let (limit, element) = match ty {
        Half::F16 => (4e-6, 1.5e-3),
        Half::Bf16 => (2.5e-4, 1.2e-2),
    };
    let floats = values(ty, got.0);
    let (mut actual, mut expected) = (Vec::new(), Vec::new());
    for (row, &want_lse) in want.1.iter().enumerate() {
        let (bits, found) = (&got.0[row * width..][..width], &floats[row * width..][..width]);
        let wanted = &want.0[row * width..][..width];
        if want_lse.is_nan() {
            assert!(bits.iter().all(|&bits| bits == POISON), "{what}: row {row} was written");
            continue;
        }
        let errors: f64 = found.iter().zip(wanted).map(|(f, w)| (f - w).powi(2)).sum();
        let whole: f64 = wanted.iter().map(|w| w * w).sum();
        assert!(
            errors <= limit * whole,
            "{what}: row {row}: NMSE {:.1e}",
            errors / whole
        );
        actual.extend(found.iter().map(|&x| x as f32));
        expected.extend(wanted);
    }
    let n = actual.len();
    if n > 0 {
        assert_close(
            &actual,
            &expected,
            &[n],
            Tolerance::Absolute(element * f64::from(magnitude)),
        );
    }
    let (lse, want_lse): (Vec<f32>, Vec<f64>) = got.1.iter().zip(want.1).filter(|(_, want)| !want.is_nan()).unzip();
    let kept = got.1.iter().zip(want.1).filter(|(_, want)| want.is_nan());
    assert!(
        kept.clone().all(|(lse, _)| lse.is_nan()),
        "{what}: lse of a row behind the lengths was written"
    );
    if !lse.is_empty() {
        let largest = want_lse
            .iter()
            .filter(|x| x.is_finite())
            .fold(1.0, |most: f64, x| most.max(x.abs()));
        assert_close(&lse, &want_lse, &[lse.len()], Tolerance::Absolute(2e-6 * largest));
    }
}

/// Both types.
fn both(d: &Device, case: &Case) {
    for ty in [Half::F16, Half::Bf16] {
        check(d, ty, case);
    }
}

#[test]
fn every_width_of_heads() {
    let d = device_with!("attention16_f16", "attention16_f16_d64");
    for width in [8, 40, 64, 80, 96, 128, 192, 256] {
        both(&d, &case([2, 1], [19, 35], [width, width], CAUSAL));
    }
    for widths in [[40, 96], [192, 128], [64, 8], [8, 256]] {
        both(&d, &case([1, 1], [17, 33], widths, ALL));
    }
}

#[test]
fn lengths_around_the_tiles() {
    let d = device_with!("attention16_f16", "attention16_f16_d64");
    for seq in [
        [1, 1],
        [1, 33],
        [1, 129],
        [15, 31],
        [16, 32],
        [33, 65],
        [65, 64],
        [70, 100],
        [129, 130],
    ] {
        for visible in [ALL, CAUSAL] {
            check(&d, Half::F16, &case([1, 1], seq, [64, 64], visible));
        }
    }
    both(&d, &case([1, 1], [131, 131], [128, 128], CAUSAL));
    both(&d, &case([1, 1], [40, 70], [256, 256], ALL));
    // With more queries than keys the first ones see nothing.
    both(&d, &case([1, 1], [70, 7], [40, 40], CAUSAL));
}

#[test]
fn windows_of_keys() {
    let d = device_with!("attention16_f16", "attention16_f16_d64");
    for (seq, keys) in [
        ([40, 40], 1),
        ([100, 100], 33),
        ([33, 200], 64),
        ([70, 40], 20),
        ([9, 9], usize::MAX),
    ] {
        both(&d, &case([1, 1], seq, [64, 64], window(keys)));
    }
    check(&d, Half::F16, &case([1, 1], [50, 90], [256, 256], window(20)));
}

#[test]
fn heads_share_keys_and_values() {
    let d = device_with!("attention16_f16", "attention16_f16_d64");
    for heads in [[4, 4], [4, 2], [6, 2], [4, 1]] {
        let shared = case(heads, [18, 21], [64, 64], CAUSAL);
        both(
            &d,
            &Case {
                shape: Attention16Shape {
                    batch: 2,
                    ..shared.shape
                },
                ..shared
            },
        );
    }
}

#[test]
fn layouts_need_no_transposition() {
    let d = device_with!("attention16_f16", "attention16_f16_d64");
    for layout in [Layout::TokensFirst, Layout::Gaps] {
        let strided = case([4, 2], [21, 37], [40, 72], CAUSAL);
        both(
            &d,
            &Case {
                shape: Attention16Shape {
                    batch: 2,
                    ..strided.shape
                },
                layout,
                ..strided
            },
        );
    }
}

#[test]
fn masks_slopes_caps_and_sinks() {
    let d = device_with!("attention16_f16", "attention16_f16_d64");
    let plain = case([4, 2], [18, 50], [64, 64], ALL);
    let plain = Case {
        shape: Attention16Shape {
            batch: 2,
            ..plain.shape
        },
        ..plain
    };
    for mask in [[2, 1, 1], [1, 1, 18], [1, 4, 18], [2, 4, 18]] {
        both(
            &d,
            &Case {
                mask: Some(mask),
                ..plain.clone()
            },
        );
    }
    both(
        &d,
        &Case {
            slopes: true,
            ..plain.clone()
        },
    );
    both(
        &d,
        &Case {
            slopes: true,
            visible: CAUSAL,
            ..plain.clone()
        },
    );
    both(
        &d,
        &Case {
            softcap: Some(1.5),
            ..plain.clone()
        },
    );
    both(
        &d,
        &Case {
            sinks: true,
            visible: window(5),
            ..plain.clone()
        },
    );
    for width in [40, 128, 256] {
        let all = case([2, 1], [35, 35], [width, width], CAUSAL);
        let all = Case {
            mask: Some([1, 2, 35]),
            slopes: true,
            softcap: Some(3.0),
            sinks: true,
            ..all
        };
        both(&d, &all);
        both(&d, &Case { sinks: false, ..all });
    }
}

#[test]
fn sequences_of_different_lengths() {
    let d = device_with!("attention16_f16", "attention16_f16_d64");
    let lengths = vec![[70, 70], [1, 33], [0, 12], [17, 0], [40, 9], [1, 1]];
    for visible in [ALL, CAUSAL, window(10)] {
        let mixed = case([2, 1], [70, 80], [64, 40], visible);
        let mixed = Case {
            shape: Attention16Shape {
                batch: lengths.len(),
                ..mixed.shape
            },
            lengths: Some(lengths.clone()),
            layout: Layout::TokensFirst,
            ..mixed
        };
        both(&d, &mixed);
        both(
            &d,
            &Case {
                slopes: true,
                sinks: true,
                ..mixed
            },
        );
    }
}

/// Products of such queries and keys are far beyond the largest f16, 65,504.
#[test]
fn magnitudes_that_overflow_f16() {
    let d = device_with!("attention16_f16", "attention16_f16_d64");
    for width in [64, 128, 256] {
        let large = Case {
            magnitude: 60_000.0,
            scale: Some(1.5e-9 / (width as f32).sqrt()),
            ..case([1, 1], [20, 40], [width, width], CAUSAL)
        };
        both(&d, &large);
        both(&d, &Case { slopes: true, ..large });
    }
}

/// Largest and smallest products change places, or all are alike.
#[test]
fn scales_below_and_at_zero() {
    let d = device_with!("attention16_f16", "attention16_f16_d64");
    for scale in [-0.1, 0.0, 1e-39] {
        both(
            &d,
            &Case {
                scale: Some(scale),
                ..case([1, 1], [20, 40], [64, 64], CAUSAL)
            },
        );
    }
}

/// Hugging Face hides keys with the smallest finite f32 instead of -inf: a row of nothing else is then a plain mean.
#[test]
fn masks_of_the_smallest_number_do_not_overflow() {
    let d = device_with!("attention16_f16", "attention16_f16_d64");
    let s = case([1, 1], [3, 70], [64, 64], ALL).shape;
    let mut random = rng(5);
    let [q, k, v] = [s.seq_q, s.seq_k, s.seq_k].map(|rows| {
        let x = random.vec(rows * 64);
        x.into_iter().map(|x| bits(Half::F16, x)).collect::<Vec<_>>()
    });
    // All is hidden from the first query, the first 40 keys, more than a tile, from the second, and nothing from the third.
    let hidden = |i: usize, j: usize| i == 0 || (i == 1 && j < 40);
    let mask: Vec<f32> = (0..3 * 70)
        .map(|at| if hidden(at / 70, at % 70) { f32::MIN } else { 0.0 })
        .collect();
    let (dq, dk, dv, dm) = (up(&d, &q), up(&d, &k), up(&d, &v), d.up(&mask));
    let (out, lse) = (up(&d, &[POISON; 3 * 64]), d.out(3));
    let of = |buffer, rows| Operand::new(buffer, Strides::heads_first(1, rows, 64));
    let operands = Attention16Operands {
        ty: Half::F16,
        q: of(&dq, 3),
        k: of(&dk, 70),
        v: of(&dv, 70),
        out: of(&out, 3),
        lse: Some(&lse),
        lengths: None,
    };
    let options = Attention16Options {
        mask: Some(Operand::new(&dm, Strides::per_row(70))),
        ..Attention16Options::new(64, ALL)
    };
    d.kernels.attention16(d.stream(), operands, s, options).unwrap();
    // In f32 a score added to the smallest number changes nothing.
    let equal = vec![0.0; q.len()];
    let host = [&q, &k, &v].map(|bits| values(Half::F16, bits));
    let want = |q: &[f64], mask: &dyn Fn(usize, usize, usize, usize) -> f64| {
        let scores = Attention16Scores {
            scale: 0.125,
            softcap: None,
            mask,
            slopes: None,
            sinks: None,
            visible: ALL,
        };
        reference::attention16([q, &host[1], &host[2]], s, &[[3, 70]], &scores).0
    };
    let mean = want(&equal, &|_, _, _, _| 0.0);
    let rest = want(&host[0], &|_, _, i, j| {
        if hidden(i, j) { f64::NEG_INFINITY } else { 0.0 }
    });
    let expected: Vec<f64> = mean[..64].iter().chain(&rest[64..]).copied().collect();
    let actual: Vec<f32> = values(Half::F16, &out.to_vec(d.stream()).unwrap())
        .iter()
        .map(|&x| x as f32)
        .collect();
    assert_close(&actual, &expected, &[3, 64], Tolerance::Absolute(1e-3));
}

/// A head computes the same whether it shares keys or has copies of them, and a sequence the same alone and among others.
#[test]
fn sharing_and_batching_change_no_bit() {
    let d = device_with!("attention16_f16", "attention16_f16_d64");
    for ty in [Half::F16, Half::Bf16] {
        // Batches of one head each, whose keys are read through strides of 0 or from copies.
        let (heads, rows, keys, width) = (3, 19, 45, 64);
        let mut random = rng(77);
        let mut make = |n: usize| random.vec(n).into_iter().map(|x| bits(ty, x)).collect::<Vec<u16>>();
        let (q, k, v) = (make(heads * rows * width), make(keys * width), make(keys * width));
        let run = |k: &[u16], v: &[u16], kv_heads: usize| {
            let (dq, dk, dv) = (up(&d, &q), up(&d, k), up(&d, v));
            let (out, lse) = (up(&d, &vec![POISON; q.len()]), d.out(heads * rows));
            let of = |buffer, heads, rows| Operand::new(buffer, Strides::heads_first(heads, rows, width));
            let operands = Attention16Operands {
                ty,
                q: of(&dq, heads, rows),
                k: of(&dk, kv_heads, keys),
                v: of(&dv, kv_heads, keys),
                out: of(&out, heads, rows),
                lse: Some(&lse),
                lengths: None,
            };
            let shape = Attention16Shape {
                batch: 1,
                heads,
                kv_heads,
                seq_q: rows,
                seq_k: keys,
                width_k: width,
                width_v: width,
            };
            d.kernels
                .attention16(d.stream(), operands, shape, Attention16Options::new(width, CAUSAL))
                .unwrap();
            (out.to_vec(d.stream()).unwrap(), d.get(&lse))
        };
        assert_eq!(run(&k, &v, 1), run(&k.repeat(heads), &v.repeat(heads), heads), "{ty:?}");
    }
    // The same inputs: their seed depends on the shape, which is the same except for the batch.
    let alone = case([2, 1], [20, 50], [64, 64], CAUSAL);
    let first = check(&d, Half::F16, &alone);
    let long = check(
        &d,
        Half::F16,
        &Case {
            lengths: Some(vec![[20, 50]]),
            ..alone
        },
    );
    assert_eq!((first.out, first.lse), (long.out, long.lse));
}

/// Causality as a mask of -inf goes through the kernels that change scores.
#[test]
fn causal_is_a_mask() {
    let d = device_with!("attention16_f16", "attention16_f16_d64");
    let (rows, keys, width) = (37, 50, 64);
    let s = case([1, 1], [rows, keys], [width, width], CAUSAL).shape;
    let mut random = rng(9);
    let [q, k, v] = [rows, keys, keys].map(|rows| {
        let x = random.vec(rows * width);
        x.into_iter().map(|x| bits(Half::F16, x)).collect::<Vec<u16>>()
    });
    let visible = |i: usize, j: usize| reference::causal_visible(i, j, rows, keys);
    let hide = |at: usize| {
        if visible(at / keys, at % keys) {
            0.0
        } else {
            f32::NEG_INFINITY
        }
    };
    let mask = d.up(&(0..rows * keys).map(hide).collect::<Vec<_>>());
    let (dq, dk, dv) = (up(&d, &q), up(&d, &k), up(&d, &v));
    let run = |visible, mask| {
        let out = up(&d, &vec![POISON; rows * width]);
        let of = |buffer, rows| Operand::new(buffer, Strides::heads_first(1, rows, width));
        let operands = Attention16Operands {
            ty: Half::F16,
            q: of(&dq, rows),
            k: of(&dk, keys),
            v: of(&dv, keys),
            out: of(&out, rows),
            lse: None,
            lengths: None,
        };
        let options = Attention16Options {
            mask,
            ..Attention16Options::new(width, visible)
        };
        d.kernels.attention16(d.stream(), operands, s, options).unwrap();
        values(Half::F16, &out.to_vec(d.stream()).unwrap())
    };
    let causal = run(CAUSAL, None);
    let masked: Vec<f32> = run(ALL, Some(Operand::new(&mask, Strides::per_row(keys))))
        .iter()
        .map(|&x| x as f32)
        .collect();
    // A unit in the last place of f16 at 1.
    assert_close(&masked, &causal, &[rows, width], Tolerance::Absolute(1e-3));
}

#[test]
fn keys_in_parts_are_the_definition_too() {
    let d = device_with!("attention16_split", "attention16_split_f16_d64");
    // One to eight heads to a head of keys, one to five queries; a second tile of rows on every card.
    for (heads, seq, width) in [
        ([4, 1], [1, 300], 128),
        ([2, 2], [1, 65], 64),
        ([6, 2], [5, 130], 80),
        ([16, 2], [3, 100], 40),
    ] {
        for visible in [ALL, CAUSAL, window(50)] {
            for parts in [1, 3, 8] {
                let parts = Some(parts);
                let case = case(heads, seq, [width, width], visible);
                both(&d, &Case { parts, ..case });
            }
        }
    }
    let lengths = Some(vec![[1, 1], [0, 0], [2, 200], [2, 1], [0, 90]]);
    for layout in [Layout::TokensFirst, Layout::Gaps] {
        let mut case = case([4, 2], [2, 200], [64, 64], CAUSAL);
        (case.shape.batch, case.parts, case.layout) = (5, Some(4), layout);
        case.lengths.clone_from(&lengths);
        check(&d, Half::F16, &case);
    }
    let large = Case {
        magnitude: 300.0,
        scale: Some(1e-4),
        parts: Some(5),
        ..case([4, 2], [1, 200], [128, 128], ALL)
    };
    check(&d, Half::F16, &large);
}

/// A part for all keys, several heads to a tile: the same bits as a tile for each head.
#[test]
fn one_part_is_the_whole() {
    let d = device_with!("attention16_split", "attention16_split_f16_d64");
    for ty in [Half::F16, Half::Bf16] {
        let whole = case([4, 1], [2, 150], [64, 64], CAUSAL);
        let part = Case {
            parts: Some(1),
            ..whole.clone()
        };
        let [whole, part] = [whole, part].map(|case| check(&d, ty, &case));
        let differ = whole.out.iter().zip(&part.out).filter(|(a, b)| a != b).count();
        // The output of a part is rounded to f32 once more.
        assert!(differ * 50 <= whole.out.len(), "{differ} of {}", whole.out.len());
        let largest = (whole.lse.iter().zip(&part.lse)).fold(0.0f32, |most, (a, b)| most.max((a - b).abs()));
        assert!(largest < 2e-6, "{largest}");
    }
}

#[test]
fn parts_of_a_decoding_step_follow_from_the_shape_and_the_card() {
    let d = device_with!("attention16_split", "attention16_split_f16_d64");
    let shape = |batch, heads: [usize; 2], seq, width| {
        let case = case(heads, seq, [width, width], ALL);
        Attention16Shape { batch, ..case.shape }
    };
    let options = Attention16Options::new(128, CAUSAL);
    let parts = |shape| d.kernels.attention16_parts(Half::F16, shape, options).unwrap();
    let long = parts(shape(1, [32, 8], [1, 8192], 128)).expect("few queries");
    assert!(long > 1 && 8192 / long >= 256, "{long}");
    assert!(parts(shape(16, [32, 8], [1, 8192], 128)).expect("shared heads") <= long);
    assert_eq!(
        parts(shape(1, [32, 8], [1, 200], 128)),
        Some(1),
        "one part, and shared heads"
    );
    assert_eq!(parts(shape(1, [8, 8], [1, 200], 128)), None);
    assert_eq!(parts(shape(1, [32, 8], [17, 8192], 128)), None, "many queries");
    assert_eq!(parts(shape(1, [32, 8], [1, 8192], 256)), None);
    let capped = Attention16Options {
        softcap: Some(1.0),
        ..options
    };
    let shape = shape(1, [32, 8], [1, 8192], 128);
    assert_eq!(d.kernels.attention16_parts(Half::F16, shape, capped).unwrap(), None);
}
