//! Largest values of rows, penalties, and the draw of a token.

use crate::support::{Device, SIZES, device};
use rocmforge_kernels::{Draw, KernelError, Kernels, Penalties, reference};
use rocmforge_runtime::HipBuffer;
use rocmforge_testkit::compare::{Tolerance, assert_close};
use rocmforge_testkit::data::{Rng, rng};

const POISON: u32 = 0xDEAD_BEEF;

fn ids_out(d: &Device, n: usize) -> HipBuffer<u32> {
    d.ids(&vec![POISON; n])
}

fn get_ids(d: &Device, buffer: &HipBuffer<u32>) -> Vec<u32> {
    buffer.to_vec(d.stream()).expect("download")
}

/// Rows of few values: many are equal. One in eight is NaN, infinite or a zero.
fn ties(random: &mut Rng, n: usize) -> Vec<f32> {
    let odd = [
        f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        0.0,
        -0.0,
        -f32::NAN,
        1e-40,
        -1e-40,
    ];
    let mut value = || match random.below(8) {
        0 => odd[random.below(odd.len())],
        _ => random.below(7) as f32 - 3.0,
    };
    (0..n).map(|_| value()).collect()
}

fn check_argmax(d: &Device, x: &[f32], cols: usize) {
    let (input, y) = (d.up(x), ids_out(d, x.len() / cols));
    d.kernels.argmax(d.stream(), &input, &y, x.len() / cols, cols).unwrap();
    let expected: Vec<u32> = x.chunks(cols).map(reference::arg_max).collect();
    assert_eq!(get_ids(d, &y), expected, "{cols} columns");
}

fn check_top_k(d: &Device, x: &[f32], cols: usize, k: usize) {
    let rows = x.len() / cols;
    let (input, values, ids) = (d.up(x), d.out(rows * k), ids_out(d, rows * k));
    let bytes = Kernels::top_k_scratch_of([rows, cols], k);
    let scratch = (bytes > 0).then(|| d.ids(&vec![POISON; bytes / 4]).cast::<u64>().expect("whole words"));
    let scratch = scratch.as_ref();
    d.kernels
        .top_k(d.stream(), &input, Some(&values), &ids, rows, cols, k, scratch)
        .unwrap();
    let expected: Vec<u32> = x.chunks(cols).flat_map(|row| reference::top_k(row, k)).collect();
    assert_eq!(get_ids(d, &ids), expected, "{k} of {cols} columns");
    let at = |(n, &id): (usize, &u32)| x[n / k * cols + id as usize].to_bits();
    let expected: Vec<u32> = expected.iter().enumerate().map(at).collect();
    let found: Vec<u32> = d.get(&values).iter().map(|v| v.to_bits()).collect();
    assert_eq!(found, expected, "values of {k} of {cols} columns");
    let again = ids_out(d, rows * k);
    // In one launch, and without values.
    d.kernels
        .top_k(d.stream(), &input, None, &again, rows, cols, k, None)
        .unwrap();
    assert_eq!(get_ids(d, &again), get_ids(d, &ids));
}

#[test]
fn argmax_at_odd_shapes_and_with_ties() {
    let d = device();
    for cols in SIZES.into_iter().chain([255, 256, 257, 1000]) {
        let mut random = rng(cols as u64);
        check_argmax(&d, &random.vec(3 * cols), cols);
        check_argmax(&d, &ties(&mut random, 5 * cols), cols);
    }
    check_argmax(&d, &[f32::NAN; 300], 100);
    check_argmax(&d, &[f32::NEG_INFINITY; 300], 100);
    check_argmax(&d, &[f32::NAN, f32::NEG_INFINITY, f32::NAN], 3);
}

#[test]
fn top_k_at_odd_shapes_and_with_ties() {
    let d = device();
    for cols in SIZES.into_iter().chain([255, 256, 257, 1000]) {
        let mut random = rng(cols as u64);
        for k in [1, 2, 3, 33, cols / 2, cols] {
            if k == 0 || k > cols {
                continue;
            }
            check_top_k(&d, &random.vec(2 * cols), cols, k);
            check_top_k(&d, &ties(&mut random, 3 * cols), cols, k);
        }
    }
    check_top_k(&d, &[0.25; 2 * 700], 700, 65);
    check_top_k(&d, &[f32::NAN; 300], 300, 257);
}

#[test]
fn top_k_of_vocabularies() {
    let d = device();
    let x = rng(1).vec(2 * 5003);
    for k in [1023, 1024, 1025, Kernels::MAX_TOP_K] {
        check_top_k(&d, &x, 5003, k);
    }
    let x = rng(2).vec(300_000);
    check_top_k(&d, &x, 300_000, 1024);
    // In parts: whole ones, a last one of fewer columns than candidates, equal numbers in several.
    for (cols, k) in [(8192 + 5, 40), (3 * 4096, 512), (40_000, 1), (70_001, 128)] {
        assert!(Kernels::top_k_scratch_of([2, cols], k) > 0);
        let mut random = rng(cols as u64);
        check_top_k(&d, &random.vec(2 * cols), cols, k);
        check_top_k(&d, &ties(&mut random, 2 * cols), cols, k);
    }
    check_top_k(&d, &[f32::NAN; 9000], 9000, 300);
    assert_eq!(Kernels::top_k_scratch_of([2, 8192], 40), 0);
    check_argmax(&d, &x, 300_000);
}

#[test]
fn penalties_as_of_the_definition() {
    let d = device();
    for (rows, cols, m) in [(1, 1, 1), (3, 33, 5), (2, 1000, 257), (5, 129, 64)] {
        let mut random = rng((rows * cols) as u64);
        let mut x = random.vec_in(rows * cols, -8.0, 8.0);
        let special = [
            f32::NAN,
            f32::NEG_INFINITY,
            f32::INFINITY,
            f32::MAX,
            -f32::MAX,
            0.0,
            -0.0,
        ];
        for (n, value) in x.iter_mut().enumerate().filter(|(n, _)| n % 5 == 3) {
            *value = special[n / 5 % special.len()];
        }
        // Distinct ids in each row, some with a count of 0, some beyond the columns.
        let ids: Vec<u32> = (0..rows * m).map(|i| (i % m * 3 + i / m) as u32).collect();
        let counts: Vec<u32> = (0..rows * m).map(|_| random.below(4) as u32).collect();
        for (repeat, frequency, presence) in [
            (1.3, 0.25, -0.5),
            (0.5, -1.0, 0.75),
            (1e-30, 3e38, 3e38),
            (1.0, 0.0, 0.0),
        ] {
            let penalties = Penalties {
                repeat,
                frequency,
                presence,
            };
            let (logits, listed, times) = (d.up(&x), d.ids(&ids), d.ids(&counts));
            d.kernels
                .penalties(d.stream(), &logits, &listed, &times, [rows, cols, m], penalties)
                .unwrap();
            let mut expected: Vec<f64> = x.iter().map(|&v| f64::from(v)).collect();
            let mut touched = 0;
            for (n, (&id, &count)) in ids.iter().zip(&counts).enumerate() {
                if (id as usize) < cols {
                    let at = n / m * cols + id as usize;
                    expected[at] = reference::lowered(x[at], count, penalties);
                    touched += usize::from(count > 0);
                }
            }
            assert!(touched > 0 || cols == 1, "the test lowers something");
            for (n, (found, expected)) in d.get(&logits).into_iter().zip(expected).enumerate() {
                let found = f64::from(found);
                let same = found == expected || (found.is_nan() && expected.is_nan());
                let near = (found - expected).abs() <= 1e-6 * expected.abs().max(8.0);
                assert!(
                    same || near,
                    "{penalties:?}, logit {n}, {}: {found}, not {expected}",
                    x[n]
                );
            }
        }
    }
}

/// Draws with numbers in the middle of the candidates' intervals, so that rounding cannot decide.
fn check_draw(d: &Device, k: usize, draw: Draw) -> usize {
    let mut random = rng(k as u64);
    let mut values = random.vec_in(k, -4.0, 4.0);
    values.sort_by(|a, b| b.total_cmp(a));
    if k > 3 {
        values[k - 1] = f32::NEG_INFINITY;
    }
    let intervals = reference::draw_intervals(&values, draw);
    let places: Vec<usize> = (0..k)
        .filter(|&i| intervals[i].end - intervals[i].start > 1e-4)
        .collect();
    let mut rows: Vec<(f32, usize)> = (places.iter())
        .map(|&i| (f64::midpoint(intervals[i].start, intervals[i].end) as f32, i))
        .collect();
    rows.push((0.0, 0));
    let last = intervals
        .iter()
        .rposition(|i| i.end > i.start)
        .expect("something is kept");
    if intervals[last].end - intervals[last].start > 1e-4 {
        rows.push((1.0 - f32::EPSILON / 2.0, last));
    }
    let ids: Vec<u32> = (0..rows.len() * k).map(|n| (n * 7919 % 100_000) as u32).collect();
    let (uniform, expected): (Vec<f32>, Vec<u32>) = rows
        .iter()
        .enumerate()
        .map(|(row, &(u, place))| (u, ids[row * k + place]))
        .unzip();
    let (v, i, u) = (d.up(&values.repeat(rows.len())), d.ids(&ids), d.up(&uniform));
    let y = ids_out(d, rows.len());
    d.kernels.draw(d.stream(), &v, &i, &u, &y, rows.len(), k, draw).unwrap();
    assert_eq!(get_ids(d, &y), expected, "{k} candidates, {draw:?}");
    places.len()
}

#[test]
fn a_draw_is_that_of_the_definition() {
    let d = device();
    let mut places = 0;
    for k in SIZES.into_iter().chain([2, 3, 40, 255, 256, 257, 1025]) {
        for (temperature, top_p, min_p) in [
            (1.0, 1.0, 0.0),
            (0.7, 0.9, 0.0),
            (1.5, 1.0, 0.05),
            (0.8, 0.8, 0.1),
            (0.0, 0.5, 0.5),
            (2.0, 0.0, 0.0),
            (1.0, 1.0, 1.0),
        ] {
            for temperature_first in [false, true] {
                let draw = Draw {
                    temperature,
                    top_p,
                    min_p,
                    temperature_first,
                };
                places += check_draw(&d, k, draw);
            }
        }
    }
    assert!(places > 2000, "{places} candidates were drawn");
}

#[test]
fn a_row_without_candidates_gives_the_mark() {
    let d = device();
    let draw = Draw {
        temperature: 1.0,
        top_p: 0.9,
        min_p: 0.1,
        temperature_first: false,
    };
    let values = [
        f32::NEG_INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        0.0,
        f32::INFINITY,
        1.0,
        1.0,
        f32::NAN,
    ];
    let (v, i) = (d.up(&values), d.ids(&[1, 2, 3, 4, 5, 6, 7, 8]));
    // No number in [0, 1) is no draw outside of the candidates.
    let (u, y) = (d.up(&[0.5, 0.5, 0.5, f32::NAN]), ids_out(&d, 4));
    d.kernels.draw(d.stream(), &v, &i, &u, &y, 4, 2, draw).unwrap();
    assert_eq!(get_ids(&d, &y), [u32::MAX, u32::MAX, u32::MAX, 7]);
}

#[test]
fn a_chain_of_all_four() {
    let d = device();
    let cols = 777;
    let x = rng(5).vec_in(cols, -3.0, 3.0);
    let best = reference::arg_max(&x);
    let (logits, ids, counts) = (d.up(&x), d.ids(&[best]), d.ids(&[1]));
    let off = Penalties {
        repeat: 1.0,
        frequency: 0.0,
        presence: 100.0,
    };
    d.kernels
        .penalties(d.stream(), &logits, &ids, &counts, [1, cols, 1], off)
        .unwrap();
    let (values, ids, u, y) = (d.out(9), ids_out(&d, 9), d.up(&[0.999]), ids_out(&d, 1));
    d.kernels
        .top_k(d.stream(), &logits, Some(&values), &ids, 1, cols, 9, None)
        .unwrap();
    let greedy = Draw {
        temperature: 0.0,
        top_p: 1.0,
        min_p: 0.0,
        temperature_first: false,
    };
    d.kernels.draw(d.stream(), &values, &ids, &u, &y, 1, 9, greedy).unwrap();
    let second = reference::top_k(&x, 2)[1];
    assert_eq!(get_ids(&d, &y), [second]);
    assert_close(
        &d.get(&values)[..1],
        &[f64::from(x[second as usize])],
        &[1],
        Tolerance::Exact,
    );
}

#[test]
fn what_makes_no_sense_is_refused() {
    let d = device();
    let (k, s) = (&d.kernels, d.stream());
    let (x, ids, one) = (d.up(&[1.0; 12]), d.ids(&[0; 12]), d.up(&[0.5; 3]));
    let (three, values) = (d.ids(&[0; 3]), d.out(12));
    assert!(matches!(
        k.argmax(s, &x, &three, 4, 3),
        Err(KernelError::Length {
            operand: "y",
            got: 3,
            expected: 4,
            ..
        })
    ));
    assert!(matches!(
        k.argmax(s, &x, &three, 0, 3),
        Err(KernelError::Dimension { dim: "rows", .. })
    ));
    let over = k.top_k(s, &x, None, &ids, 3, 4, 5, None);
    assert!(
        matches!(
            over,
            Err(KernelError::Dimension {
                dim: "k",
                value: 5,
                limit: 4,
                ..
            })
        ),
        "{over:?}"
    );
    assert!(matches!(
        k.top_k(s, &x, Some(&x), &ids, 3, 4, 4, None),
        Err(KernelError::Overlap { .. })
    ));
    let good = Penalties {
        repeat: 1.1,
        frequency: 0.0,
        presence: 0.0,
    };
    for bad in [
        Penalties { repeat: 0.0, ..good },
        Penalties {
            presence: f32::NAN,
            ..good
        },
        Penalties {
            frequency: f32::INFINITY,
            ..good
        },
    ] {
        assert!(
            matches!(
                k.penalties(s, &x, &ids, &ids, [3, 4, 4], bad),
                Err(KernelError::Value { .. })
            ),
            "{bad:?}"
        );
    }
    let good = Draw {
        temperature: 1.0,
        top_p: 0.9,
        min_p: 0.1,
        temperature_first: true,
    };
    for bad in [
        Draw {
            temperature: -1.0,
            ..good
        },
        Draw { top_p: 1.1, ..good },
        Draw {
            min_p: f32::NAN,
            ..good
        },
    ] {
        assert!(
            matches!(
                k.draw(s, &values, &ids, &one, &three, 3, 4, bad),
                Err(KernelError::Value { .. })
            ),
            "{bad:?}"
        );
    }
}
