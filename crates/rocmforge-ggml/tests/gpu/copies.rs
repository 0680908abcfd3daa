//! Ops that move elements, on a device against the CPU backend: bit for bit.

use super::case::{Case, Input, bytes_of, floats_in, indices_below, random};
use crate::common::weights::weight;
use rocmforge_ggml::{DType, Layout, Op, TensorDesc};
use rocmforge_testkit::data::rng;

/// A tensor of any type with random bytes.
fn any(dtype: DType, shape: &[usize], seed: u64) -> Input {
    let desc = TensorDesc::new(shape, dtype, Layout::RowMajor);
    let mut random = rng(seed);
    let bytes = (0..desc.byte_size()).map(|_| random.next_u64() as u8).collect();
    (desc, bytes)
}

const TYPES: [DType; 8] = [
    DType::F32,
    DType::F16,
    DType::Bf16,
    DType::F64,
    DType::I8,
    DType::I32,
    DType::I64,
    DType::U32,
];

#[test]
fn permuted_and_transposed_in_every_type() {
    for dtype in TYPES {
        for axes in [[0, 2, 1, 3], [3, 2, 1, 0], [1, 0, 3, 2]] {
            Case::with(vec![any(dtype, &[2, 3, 5, 33], 1)], |graph, ids| {
                let view = graph.permute(ids[0], &axes)?;
                graph.push(Op::Cont, &[view])
            })
            .same_bytes();
            // With memory of its own.
            Case::of(Op::Permute { axes }, vec![any(dtype, &[2, 3, 5, 33], 1)]).same_bytes();
        }
        Case::of(Op::Transpose, vec![any(dtype, &[2, 33, 65], 2)]).same_bytes();
    }
    // Blocks that stay whole.
    for dtype in [DType::Q4_0, DType::Q6K, DType::Mxfp4] {
        let cols = 2 * dtype.block_len();
        let (bytes, _) = weight(dtype, 2 * 3 * 5, cols, 1);
        let input = (TensorDesc::new([2, 3, 5, cols], dtype, Layout::RowMajor), bytes);
        Case::with(vec![input], |graph, ids| {
            let view = graph.permute(ids[0], &[1, 0, 2, 3])?;
            graph.push(Op::Cont, &[view])
        })
        .same_bytes();
    }
}

#[test]
fn converted_on_the_way() {
    let floats = [DType::F32, DType::F16, DType::Bf16];
    for (from, to) in floats.into_iter().flat_map(|from| floats.map(|to| (from, to))) {
        let op = Op::Cpy { to: Some(to) };
        let input = || floats_in(from, &[3, 4, 33], &mut rng(1), [-9.0, 9.0]);
        Case::of(op, vec![input()]).same_bytes();
        Case::with(vec![input()], |graph, ids| {
            let view = graph.permute(ids[0], &[1, 0, 2])?;
            graph.push(op, &[view])
        })
        .same_bytes();
    }
}

/// The write of a cache without row indices: into a view, in its type and shape.
#[test]
fn into_a_part_of_another_tensor() {
    for dtype in [DType::F32, DType::F16] {
        let cache = (
            TensorDesc::new([6, 40], dtype, Layout::RowMajor),
            vec![0x11; 240 * dtype.block_bytes()],
        );
        let mut case = Case::with(vec![random([2, 4, 5], 1), cache], |graph, ids| {
            let base = graph.tensor(ids[1]).expect("there").clone();
            // Columns 3 to 23 of rows 2 and 3.
            let mut part = TensorDesc::view_of(&base, 83 * base.element_size());
            part.shape = vec![2, 20];
            part.layout = Layout::Strided;
            let part = graph.view(ids[1], part)?;
            graph.cpy(ids[0], part)
        });
        case.output = case.inputs[1].0;
        case.same_bytes();
    }
}

#[test]
fn repeated_padded_and_joined() {
    for dtype in [DType::F32, DType::F16, DType::U32, DType::I8] {
        for (shape, whole) in [
            (vec![2, 3, 33], vec![2, 6, 33]),
            (vec![1, 3, 1], vec![4, 3, 5]),
            (vec![2, 3, 2, 5], vec![4, 3, 6, 10]),
        ] {
            let repeat = |input| Case::with(vec![input], |graph, ids| graph.repeat(ids[0], whole.clone()));
            repeat(any(dtype, &shape, 1)).same_bytes();
        }
        let pad = Op::Pad {
            left: [1, 0, 2, 3],
            right: [0, 2, 1, 4],
        };
        Case::of(pad, vec![any(dtype, &[2, 3, 4, 5], 1)]).same_bytes();
        for axis in 0..3 {
            let mut other = [2, 3, 33];
            other[axis] = 4;
            let inputs = vec![any(dtype, &[2, 3, 33], 1), any(dtype, &other, 2)];
            Case::of(Op::Concat { axis }, inputs).same_bytes();
        }
    }
    // Of a view, and of blocks.
    Case::with(vec![random([4, 3, 5], 1), random([3, 4, 2], 2)], |graph, ids| {
        let view = graph.permute(ids[0], &[1, 0, 2])?;
        graph.push(Op::Concat { axis: 2 }, &[view, ids[1]])
    })
    .same_bytes();
    let (bytes, _) = weight(DType::Q8_0, 6, 64, 1);
    let blocks = || {
        (
            TensorDesc::new([2, 3, 64], DType::Q8_0, Layout::RowMajor),
            bytes.clone(),
        )
    };
    for axis in 0..3 {
        Case::of(Op::Concat { axis }, vec![blocks(), blocks()]).same_bytes();
    }
}

#[test]
fn rows_of_several_tables_and_of_integers() {
    for dtype in [DType::F32, DType::F16, DType::Q8_0] {
        let cols = 33 * usize::from(dtype != DType::Q8_0) + 64 * usize::from(dtype == DType::Q8_0);
        let (bytes, _) = weight(dtype, 2 * 3 * 7, cols, 1);
        let table = || (TensorDesc::new([2, 3, 7, cols], dtype, Layout::RowMajor), bytes.clone());
        Case::of(Op::GetRows, vec![table(), indices_below(&[2, 3, 5], 7, 2)]).close(0.0);
        let mut ids: Vec<u32> = vec![0; 30];
        ids[17] = 7;
        let bad = (TensorDesc::u32([2, 3, 5]), bytes_of(&ids));
        Case::of(Op::GetRows, vec![table(), bad]).same_error();
    }
    // The router of a mixture of experts: one number of each row.
    let picked = vec![random([6, 8, 1], 1), indices_below(&[6, 2], 8, 2)];
    Case::of(Op::GetRows, picked).close(0.0);
    for dtype in [DType::I32, DType::U32] {
        Case::of(Op::GetRows, vec![any(dtype, &[4, 32], 1), indices_below(&[3], 4, 2)]).same_bytes();
    }
}

#[test]
fn writing_no_rows_changes_nothing() {
    let ids: Input = (TensorDesc::u32([0]), Vec::new());
    let cache = random([4, 8], 3);
    let case = Case::with(vec![random([0, 8], 1), cache.clone(), ids], |graph, ids| {
        graph.set_rows(ids[0], ids[1], ids[2])
    });
    case.same_bytes();
}

/// Rows written into matrices, the ids of a list for every head.
fn set_rows(dtype: DType, ids: Input, src: Input) -> Case {
    let shape = [2, 4, 9, src.0.shape[3]];
    let target = TensorDesc::new(shape, dtype, Layout::RowMajor);
    let before = vec![0x11; target.byte_size()];
    let mut case = Case::with(vec![src, (target, before), ids], |graph, ids| {
        graph.set_rows(ids[0], ids[1], ids[2])
    });
    case.output = case.inputs[1].0;
    case
}

#[test]
fn rows_are_written_into_matrices() {
    for dtype in [DType::F32, DType::F16, DType::Bf16] {
        let src = || random([2, 4, 3, 33], 1);
        let short = |ids: &[u32], lists: &[usize]| (TensorDesc::u32(lists), bytes_of(ids));
        set_rows(dtype, short(&[8, 0, 3], &[1, 1, 3]), src()).same_bytes();
        set_rows(dtype, short(&[8, 0, 3, 1, 2, 4, 5, 6, 7, 0, 1, 2], &[2, 2, 3]), src()).same_bytes();
        set_rows(dtype, short(&[8, 0, 9], &[1, 1, 3]), src()).same_error();
        let long = |ids: &[i64]| (TensorDesc::new([1, 1, 3], DType::I64, Layout::RowMajor), bytes_of(ids));
        set_rows(dtype, long(&[8, 0, 3]), src()).same_bytes();
        for bad in [9, -1, 1 << 32, i64::MAX] {
            set_rows(dtype, long(&[8, bad, 3]), src()).same_error();
        }
        let half = floats_in(DType::F16, &[2, 4, 3, 33], &mut rng(1), [-1.0, 1.0]);
        set_rows(dtype, short(&[8, 0, 3], &[1, 1, 3]), half).same_bytes();
    }
    // Blocks of ggml.
    let ids = |ids: &[u32]| (TensorDesc::u32([2, 2, 3]), bytes_of(ids));
    let src = || random([2, 4, 3, 96], 1);
    set_rows(DType::Q8_0, ids(&[8, 0, 3, 1, 2, 4, 5, 6, 7, 0, 1, 2]), src()).same_bytes();
    set_rows(DType::Q8_0, ids(&[8, 0, 3, 1, 2, 4, 5, 6, 7, 0, 9, 2]), src()).same_error();
}
