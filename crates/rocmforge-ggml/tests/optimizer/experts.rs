//! Experts: their products, unit and sum become two launches, with what is added to the sum of one token.

use rocmforge_ggml::optimizer::Pass;
use rocmforge_ggml::{DType, ExpertUnit, GluKind, Kernel, Launch, Layout, Op, SumOf, TensorDesc, TensorId, Unary};

use super::patterns::Builder;

/// Gate and up of two of six experts for each row, their unit, and the sum of the last products times factors. `miss` names what is otherwise.
/// In the form "bounded" each product has a bias, and gate and up are bounded.
fn experts(rows: usize, form: &str, miss: &str) -> Builder {
    let mut b = Builder::default();
    let stack = |b: &mut Builder, k, n| b.0.add_tensor(TensorDesc::new([6, k, n], DType::F32, Layout::ColMajor));
    let ids = |b: &mut Builder| b.0.add_tensor(TensorDesc::u32([rows, 2]));
    let (x, chosen, factors) = (b.f32(&[rows, 1, 16]), ids(&mut b), b.f32(&[rows, 1, 2]));
    let biased = |b: &mut Builder, product, n, ids| match form {
        "bounded" => {
            let bias = b.f32(&[if miss == "more biases than experts" { 7 } else { 6 }, n]);
            b.push(Op::AddId, &[product, bias, ids])
        }
        _ => product,
    };
    let others = if miss == "other ids" { ids(&mut b) } else { chosen };
    let input = if miss == "other input" {
        b.f32(&[rows, 1, 16])
    } else {
        x
    };
    let [gate, up] = [(x, chosen), (input, others)].map(|(x, ids)| {
        let weights = stack(&mut b, 16, 24);
        let product = b.push(Op::MulMatId, &[x, weights, ids]);
        biased(&mut b, product, 24, ids)
    });
    if miss == "gate is read again" {
        b.out(Op::Unary(Unary::Relu), &[gate]);
    }
    let inner = match form {
        "bounded" => {
            let most = if miss == "other bound" { 8.0 } else { 7.0 };
            let (min, max) = (f32::NEG_INFINITY, 7.0);
            let gate = b.push(Op::Clamp { min, max }, &[gate]);
            let up = b.push(Op::Clamp { min: -7.0, max: most }, &[up]);
            let (factor, bias) = (1.0, 1.0);
            let up = b.push(Op::ScaleBias { factor, bias }, &[up]);
            let kind = GluKind::GegluQuick;
            b.push(Op::Glu { kind, swapped: false }, &[gate, up])
        }
        _ => {
            let kind = GluKind::Swiglu;
            b.push(Op::Glu { kind, swapped: false }, &[gate, up])
        }
    };
    let down = stack(&mut b, 24, 8);
    let results = b.push(Op::MulMatId, &[inner, down, chosen]);
    let of_bias = if miss == "bias of other ids" {
        ids(&mut b)
    } else {
        chosen
    };
    let results = biased(&mut b, results, 8, of_bias);
    if miss == "results are marked" {
        b.0.mark_output(results);
    }
    added(&mut b, rows, factors, results, miss);
    b
}

/// The sum of results times factors, and what `miss` adds to it.
fn added(b: &mut Builder, rows: usize, factors: TensorId, results: TensorId, miss: &str) {
    if !miss.starts_with('+') {
        b.out(Op::MulMat, &[factors, results]);
        return;
    }
    let sum = b.push(Op::MulMat, &[factors, results]);
    let [rows, columns] = if miss.contains("one row") {
        [1, rows * 8]
    } else {
        [rows, 8]
    };
    let mut sum = b.0.reshape(sum, [rows, columns]).expect("contiguous");
    let (beside, gate, residual) = (b.f32(&[rows, columns]), b.f32(&[rows, 1]), b.f32(&[rows, columns]));
    if miss.contains("gated") {
        let factor = b.push(Op::Unary(Unary::Sigmoid), &[gate]);
        let gated = b.push(Op::Mul, &[beside, factor]);
        sum = b.push(Op::Add, &[sum, gated]);
        if miss.contains("read again") {
            b.out(Op::Unary(Unary::Relu), &[gated]);
        }
    } else if miss.contains("beside") {
        sum = b.push(Op::Add, &[beside, sum]);
    }
    if miss.contains("residual") {
        sum = b.push(Op::Add, &[residual, sum]);
    }
    b.out(Op::Scale { factor: 2.0 }, &[sum]);
}

#[test]
fn experts_become_two_launches() {
    let bounded = ExpertUnit::Bounded { bound: 7.0 };
    for (form, unit) in [("plain", ExpertUnit::Glu(GluKind::Swiglu)), ("bounded", bounded)] {
        let sum = SumOf {
            bias: form == "bounded",
            ..SumOf::default()
        };
        for rows in [1, 3] {
            let b = experts(rows, form, "nothing");
            let (graph, launches) = b.launches_after(Pass::Experts);
            let kernels: Vec<Kernel> = launches.iter().map(Launch::kernel).collect();
            assert_eq!(
                kernels,
                [Kernel::MulMatIdGlu(unit), Kernel::MulMatIdSum(sum)],
                "{form}, {rows} rows"
            );
            assert_eq!(b.run(&graph), b.run(&b.0), "{form}, {rows} rows");
        }
    }
    for (form, miss, launches) in [
        ("plain", "other ids", 4),
        ("plain", "other input", 4),
        ("plain", "gate is read again", 5),
        ("plain", "results are marked", 3),
        ("bounded", "other ids", 9),
        ("bounded", "other bound", 9),
        ("bounded", "bias of other ids", 4),
        ("bounded", "more biases than experts", 11),
    ] {
        let b = experts(3, form, miss);
        let (graph, found) = b.launches_after(Pass::Experts);
        assert_eq!(found.len(), launches, "{form}, {miss}");
        assert_eq!(b.run(&graph), b.run(&b.0), "{form}, {miss}");
    }
}

#[test]
fn what_is_added_to_the_sum_of_one_token_is_in_its_launch() {
    let kernels = |rows, form, miss| {
        let b = experts(rows, form, miss);
        let (graph, launches) = b.launches_after(Pass::Experts);
        assert_eq!(b.run(&graph), b.run(&b.0), "{form}, {miss}");
        launches.iter().map(Launch::kernel).collect::<Vec<Kernel>>()
    };
    for form in ["plain", "bounded"] {
        for (miss, beside, gate, residual) in [
            ("+ residual", false, false, true),
            ("+ gated", true, true, false),
            ("+ gated, residual", true, true, true),
            ("+ beside, residual", true, false, true),
        ] {
            let of = SumOf {
                bias: form == "bounded",
                beside,
                gate,
                residual,
            };
            let found = kernels(1, form, miss);
            assert_eq!(found.len(), 3, "{form}, {miss}: {found:?}");
            assert_eq!(found[1], Kernel::MulMatIdSum(of), "{form}, {miss}");
        }
        // Several tokens: what is added has launches of its own.
        for miss in ["+ gated, residual", "+ gated, residual, in one row"] {
            let found = kernels(2, form, miss);
            assert_eq!(found.len(), 7, "{form}, {miss}: {found:?}");
        }
        // The product with the sigmoid is needed by itself.
        let found = kernels(1, form, "+ gated, read again, residual");
        let of = SumOf {
            bias: form == "bounded",
            beside: true,
            gate: false,
            residual: true,
        };
        assert!(found.contains(&Kernel::MulMatIdSum(of)), "{form}: {found:?}");
        assert_eq!(found.len(), 6, "{form}: {found:?}");
    }
}
