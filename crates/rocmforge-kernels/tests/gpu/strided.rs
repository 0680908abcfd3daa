//! Copies with strides, rows written where indices say.

use crate::support::{Device, device, refused};
use rocmforge_kernels::{Element, FloatType, KvType, RowIds, RowLists, StridedCopy, reference};
use rocmforge_runtime::HipBuffer;
use rocmforge_testkit::data::{Rng, rng};

fn bytes(d: &Device, values: &[u8]) -> HipBuffer<u8> {
    HipBuffer::from_slice(d.stream(), values, "bytes").expect("upload")
}

/// Strides without gaps of dimensions that lie in this order, outermost first.
fn lying(shape: [usize; 4], order: [usize; 4]) -> [usize; 4] {
    let (mut strides, mut step) = ([0; 4], 1);
    for &d in order.iter().rev() {
        strides[d] = step;
        step *= shape[d];
    }
    strides
}

fn any_order(random: &mut Rng) -> [usize; 4] {
    let mut order = [0, 1, 2, 3];
    for i in 0..4 {
        order.swap(i, i + random.below(4 - i));
    }
    order
}

#[test]
fn any_strides_in_every_type() {
    let d = device();
    let floats = [FloatType::F32, FloatType::F16, FloatType::Bf16].map(Element::Float);
    let moves = [1, 2, 4, 8].map(Element::Bytes);
    let casts = floats.into_iter().flat_map(|from| floats.map(|to| (from, to)));
    for (seed, (from, to)) in casts.chain(moves.map(|size| (size, size))).enumerate() {
        for round in 0..6 {
            let mut random = rng((seed * 100 + round) as u64);
            let shape = [0; 4].map(|_| [1, 2, 3, 5, 33][random.below(5)]);
            let source = shape.map(|n| {
                if random.below(3) == 0 {
                    [1, n][random.below(2)]
                } else {
                    n
                }
            });
            let copy = StridedCopy {
                shape,
                source,
                from: lying(source, any_order(&mut random)).map(|stride| 2 * stride),
                to: lying(shape, any_order(&mut random)),
            };
            let (n, all) = (shape.iter().product::<usize>(), 2 * source.iter().product::<usize>());
            // Halves of moderate size in all float types: the exponent's bits neither 0 nor 1 all through.
            let x: Vec<u8> = (0..all * from.bytes())
                .map(|_| random.next_u64() as u8 & 0xBF | 0x20)
                .collect();
            let (input, y) = (bytes(&d, &x), bytes(&d, &vec![0xA5; n * to.bytes()]));
            d.kernels
                .copy_strided(d.stream(), (from, &input), (to, &y), copy)
                .unwrap();
            let found = y.to_vec(d.stream()).expect("download");
            for [a, b] in reference::strided_places(copy) {
                let (a, b) = (
                    &x[a * from.bytes()..][..from.bytes()],
                    &found[b * to.bytes()..][..to.bytes()],
                );
                if from == to {
                    assert_eq!(a, b, "{from:?}, {copy:?}");
                } else if let (Element::Float(from), Element::Float(to)) = (from, to) {
                    let want = reference::round_to(to, reference::float_values(from, a)[0]);
                    assert_eq!(reference::float_values(to, b)[0], want, "{from:?} to {to:?}, {copy:?}");
                }
            }
        }
    }
}

#[test]
fn what_lies_between_is_not_touched_and_what_does_not_fit_is_refused() {
    let d = device();
    let (x, y) = (bytes(&d, &[7; 48]), bytes(&d, &[1; 80]));
    let copy = StridedCopy {
        shape: [1, 1, 4, 3],
        source: [1, 1, 4, 3],
        from: [12, 12, 3, 1],
        to: [20, 20, 5, 1],
    };
    let word = Element::Bytes(4);
    d.kernels
        .copy_strided(d.stream(), (word, &x), (word, &y), copy)
        .unwrap();
    let found = y.to_vec(d.stream()).expect("download");
    for (at, row) in found.chunks(20).enumerate() {
        assert_eq!(row, [[7; 12].as_slice(), &[1; 8]].concat(), "row {at}");
    }
    let refused = |copy, from, to, text| refused(d.kernels.copy_strided(d.stream(), from, to, copy), text);
    let of = |change: &dyn Fn(&mut StridedCopy)| {
        let mut copy = copy;
        change(&mut copy);
        copy
    };
    refused(
        of(&|c| c.from[2] = 4),
        (word, &x),
        (word, &y),
        "x has 12 elements; its strides [12, 12, 4, 1]",
    );
    refused(of(&|c| c.to[2] = 7), (word, &x), (word, &y), "y has 20 elements");
    refused(of(&|c| c.to[2] = 2), (word, &x), (word, &y), "write y more than once");
    refused(
        of(&|c| c.source[2] = 3),
        (word, &x),
        (word, &y),
        "must divide the destination's (3 and 4)",
    );
    refused(of(&|c| c.shape[0] = 0), (word, &x), (word, &y), "elements is 0");
    refused(copy, (word, &x), (Element::Bytes(2), &y), "no kernel copies");
    refused(copy, (word, &x), (word, &x), "y has 12");
    let part = y.view(2..80).unwrap();
    refused(of(&|c| c.to[2] = 4), (word, &x), (word, &part), "the address of y is");
}

#[test]
fn rows_of_matrices_are_written_where_their_lists_say() {
    let d = device();
    for (matrices, lists, per, rows, cols) in [
        ([1, 1], [1, 1], 3, 7, 33),
        ([2, 4], [1, 2], 5, 9, 65),
        ([3, 1], [3, 1], 1, 2, 1),
        ([4, 2], [2, 1], 4, 4, 1030),
        ([2, 1], [1, 1], 3, 5, 1120),
    ] {
        let shape = RowLists {
            matrices,
            lists,
            per,
            rows,
            cols,
        };
        let all = matrices[0] * matrices[1];
        let mut random = rng((all * rows * cols) as u64);
        let src = random.vec(all * per * cols);
        // Each list has each row at most once.
        let mut ids: Vec<u64> = Vec::new();
        for _ in 0..lists[0] * lists[1] {
            let first = random.below(rows);
            ids.extend((0..per).map(|i| ((first + i) % rows) as u64));
        }
        for ty in KvType::ALL {
            let Some(row_bytes) = ty.byte_len(cols) else { continue };
            for wide in [false, true] {
                let before = vec![0xA5; all * rows * row_bytes];
                let (input, dst, word) = (d.up(&src), bytes(&d, &before), d.no_fault());
                let short = d.ids(&ids.iter().map(|&id| id as u32).collect::<Vec<_>>());
                let long = HipBuffer::from_slice(d.stream(), &ids, "ids").expect("upload");
                let list = if wide { RowIds::I64(&long) } else { RowIds::U32(&short) };
                let faults = d.faults(&word, 3);
                d.kernels
                    .set_rows(d.stream(), ty, &input, list, &dst, shape, faults)
                    .unwrap();
                assert_eq!(d.fault(&word), None);
                let mut want: Vec<Vec<f64>> = before
                    .chunks(row_bytes)
                    .map(|row| reference::kv_values(ty, row))
                    .collect();
                for [from, to] in reference::set_rows_places(shape, &ids).into_iter().flatten() {
                    let row = &src[from * cols..][..cols];
                    want[to] = reference::kv_rounded(ty, row);
                }
                let found = dst.to_vec(d.stream()).expect("download");
                assert_eq!(reference::kv_values(ty, &found), want.concat(), "{ty:?} {shape:?}");
            }
        }
    }
}

#[test]
fn a_row_id_out_of_range_is_a_fault_and_writes_nothing() {
    let d = device();
    let shape = RowLists {
        matrices: [1, 2],
        lists: [1, 1],
        per: 2,
        rows: 4,
        cols: 3,
    };
    for bad in [4, u64::from(u32::MAX), 1 << 32, u64::MAX] {
        let (src, dst, word) = (d.up(&[1.0; 12]), bytes(&d, &[0; 96]), d.no_fault());
        let ids = HipBuffer::from_slice(d.stream(), &[2, bad], "ids").expect("upload");
        let faults = d.faults(&word, 5);
        d.kernels
            .set_rows(d.stream(), KvType::F32, &src, RowIds::I64(&ids), &dst, shape, faults)
            .unwrap();
        let index = u32::try_from(bad).unwrap_or(u32::MAX);
        assert_eq!(d.fault(&word), Some((5, 1, index)));
        let found = reference::float_values(FloatType::F32, &dst.to_vec(d.stream()).expect("download"));
        let want: Vec<f64> = (0..24).map(|at| f64::from(u8::from(at / 3 % 4 == 2))).collect();
        assert_eq!(found, want);
    }
}
