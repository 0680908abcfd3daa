//! Floating-point modes: denormals, rounding, IEEE rules, output modifiers. Changed inside the kernel, so that the same
//! code object runs in several.

use crate::harness::{Lane, lanes, run, vop3};

const DENORM_MODE: u32 = 0xbf92_0000;
const ROUND_MODE: u32 = 0xbf91_0000;

/// `s_setreg_imm32_b32 hwreg(HW_REG_MODE, 8, 2), bits`: NaN clamps to 0 (bit 0), IEEE rules (bit 1).
fn nan_mode(bits: u32) -> [u32; 2] {
    [0xb980_0a01, bits]
}

fn f32s(lane: &Lane) -> [f32; 3] {
    [lane.a, lane.b, lane.c].map(|bits| f32::from_bits(bits as u32))
}

fn flush(x: f32) -> f32 {
    if x.is_subnormal() { 0f32.copysign(x) } else { x }
}

#[track_caller]
fn same32(ours: u64, model: f32, what: &str) {
    let ours = f32::from_bits(ours as u32);
    assert!(
        ours.to_bits() == model.to_bits() || ours.is_nan() && model.is_nan(),
        "{what}: {ours:e}, the model says {model:e}"
    );
}

/// Runs one instruction after others that set the mode.
fn after(mode: &[u32], op: &[u32], lanes: &[Lane]) -> Vec<u64> {
    let words: Vec<u32> = mode.iter().chain(op).copied().collect();
    run("template_kernel", &words, lanes)
}

type Op32 = fn(f32, f32, f32) -> f32;

#[rustfmt::skip]
const OPS32: &[(&str, u32, usize, Op32)] = &[
    ("v_add_f32", 0x103, 2, |a, b, _| a + b),
    ("v_mul_f32", 0x108, 2, |a, b, _| a * b),
    ("v_fma_f32", 0x213, 3, |a, b, c| a.mul_add(b, c)),
    ("v_max_f32", 0x110, 2, |a, b, _| if a.is_nan() || b > a || (b == a && a.is_sign_negative()) { b } else { a }),
];

#[test]
fn denormals_of_operands_and_results_are_flushed_when_asked() {
    let lanes = lanes(false);
    for &(name, code, sources, model) in OPS32 {
        // Bit 0: operands keep denormals; bit 1: results do.
        for mode in 0..4 {
            let (input, output) = (mode & 1 != 0, mode & 2 != 0);
            let ours = after(&[DENORM_MODE | 12 | mode], &vop3(code, sources), &lanes);
            for (lane, ours) in lanes.iter().zip(ours) {
                let values = f32s(lane);
                if values.iter().any(|x| x.is_nan()) {
                    continue;
                }
                let [a, b, c] = values.map(|x| if input { x } else { flush(x) });
                let result = model(a, b, c);
                let result = if output { result } else { flush(result) };
                same32(ours, result, &format!("{name} of {lane:x?} in denormal mode {mode}"));
            }
        }
    }
}

#[test]
fn compares_and_moves_see_what_the_mode_says() {
    let lanes = lanes(false);
    // v_cmp_lt_f32 vcc, v2, v4; v_cndmask_b32 v8, v2, v4, vcc: the move keeps denormals.
    let words = [0x7c22_0902, 0x0210_0902];
    let ours = after(&[DENORM_MODE | 12], &words, &lanes);
    for (lane, ours) in lanes.iter().zip(ours) {
        let [a, b, _] = f32s(lane);
        let expected = if flush(a) < flush(b) { lane.b } else { lane.a };
        assert_eq!(ours as u32, expected as u32, "{lane:x?}");
    }
}

/// The neighbour of the nearest value that a direction (field of the mode) asks for.
fn directed(near: f32, error: f64, direction: u32) -> f32 {
    // `error` is exact minus near.
    match direction {
        1 if error > 0.0 => near.next_up(),
        2 if error < 0.0 => near.next_down(),
        3 if error > 0.0 && near < 0.0 => near.next_up(),
        3 if error < 0.0 && near > 0.0 => near.next_down(),
        _ => near,
    }
}

#[test]
fn rounding_goes_the_way_the_mode_says() {
    let lanes = lanes(false);
    for direction in 0..4 {
        let products = after(&[ROUND_MODE | direction], &vop3(0x108, 2), &lanes);
        let narrowed = after(&[ROUND_MODE | direction], &vop3(0x18f, 1), &lanes);
        for ((lane, product), narrow) in lanes.iter().zip(products).zip(narrowed) {
            let [a, b, _] = f32s(lane);
            // Exact in double precision.
            let exact = f64::from(a) * f64::from(b);
            let near = exact as f32;
            if near.is_finite() && !near.is_subnormal() && near != 0.0 {
                let expected = directed(near, exact - f64::from(near), direction);
                same32(product, expected, &format!("{a:e} * {b:e}, direction {direction}"));
            }
            let wide = f64::from_bits(lane.a);
            let near = wide as f32;
            if near.is_finite() {
                let expected = directed(near, wide - f64::from(near), direction);
                same32(narrow, expected, &format!("{wide:e} narrowed, direction {direction}"));
            }
        }
        // v_add_f64 v[8:9], v[2:3], v[4:5]: the error of a sum is a double itself.
        let lanes = crate::harness::lanes(true);
        let sums = after(&[ROUND_MODE | direction << 2], &vop3(0x327, 2), &lanes);
        for (lane, sum) in lanes.iter().zip(sums) {
            let (a, b) = (f64::from_bits(lane.a), f64::from_bits(lane.b));
            let near = a + b;
            let part = near - a;
            let error = (a - (near - part)) + (b - part);
            if !near.is_finite() || !error.is_finite() || near == 0.0 {
                continue;
            }
            let expected = match direction {
                1 if error > 0.0 => near.next_up(),
                2 if error < 0.0 => near.next_down(),
                3 if error > 0.0 && near < 0.0 => near.next_up(),
                3 if error < 0.0 && near > 0.0 => near.next_down(),
                _ => near,
            };
            assert_eq!(f64::from_bits(sum), expected, "{a:e} + {b:e}, direction {direction}");
        }
    }
}

#[test]
fn signalling_nan_wins_a_minimum_only_under_ieee_rules() {
    const QUIET: u32 = 1 << 22;
    let nan = |x: u32| f32::from_bits(x).is_nan();
    let signals = |x: u32| nan(x) && x & QUIET == 0;
    let mut lanes = lanes(false);
    for (n, lane) in lanes.iter_mut().enumerate() {
        // Signalling and quiet NaN against anything.
        match n % 7 {
            0 => lane.a = 0x7f80_0001,
            1 => lane.b = 0xff81_2345,
            2 => lane.a = 0x7fc0_0777,
            _ => {}
        }
    }
    for ieee in [false, true] {
        let mode = nan_mode(1 | u32::from(ieee) << 1);
        let minima = after(&mode, &vop3(0x10f, 2), &lanes);
        for (lane, ours) in lanes.iter().zip(minima) {
            let (a, b) = (lane.a as u32, lane.b as u32);
            let expected = if ieee && signals(a) {
                a | QUIET
            } else if ieee && signals(b) {
                b | QUIET
            } else if nan(b) {
                a
            } else if nan(a) {
                b
            } else {
                continue;
            };
            assert_eq!(ours as u32, expected, "min of {a:#x}, {b:#x}, IEEE rules: {ieee}");
        }
    }
    // The default is the former.
    let minima = run("template_kernel", &vop3(0x10f, 2), &lanes);
    assert_eq!(minima, after(&nan_mode(3), &vop3(0x10f, 2), &lanes));
}

#[test]
fn output_modifiers_work_without_denormals_and_ieee_rules_only() {
    let [first, second] = vop3(0x108, 2);
    let lanes = lanes(false);
    for omod in 1..4 {
        let factor = [1.0, 2.0, 4.0, 0.5][omod as usize];
        let op = [first, second | omod << 27];
        for (denormals, ieee) in [(0, 0), (0, 1), (3, 0), (3, 1)] {
            let mode = [nan_mode(1 | ieee << 1).to_vec(), vec![DENORM_MODE | 12 | denormals]].concat();
            let works = denormals == 0 && ieee == 0;
            for (lane, ours) in lanes.iter().zip(after(&mode, &op, &lanes)) {
                let [a, b, _] = f32s(lane);
                let (a, b) = if denormals == 0 { (flush(a), flush(b)) } else { (a, b) };
                let product = if works { a * b * factor } else { a * b };
                let expected = if denormals == 0 { flush(product) } else { product };
                same32(
                    ours,
                    expected,
                    &format!("{a:e} * {b:e}, omod {omod}, denormals {denormals}, IEEE {ieee}"),
                );
            }
        }
        // In a program that stays in the default mode too.
        for (lane, ours) in lanes.iter().zip(run("template_kernel", &op, &lanes)) {
            let [a, b, _] = f32s(lane);
            same32(ours, a * b, "ignored");
        }
    }
}

#[test]
fn clamping_nan_depends_on_the_mode() {
    let [first, second] = vop3(0x103, 2);
    let op = [first | 1 << 15, second];
    let lanes = lanes(false);
    for to_zero in [false, true] {
        for (lane, ours) in lanes.iter().zip(after(&nan_mode(2 | u32::from(to_zero)), &op, &lanes)) {
            let [a, b, _] = f32s(lane);
            let sum = a + b;
            let expected = if sum.is_nan() && !to_zero {
                sum
            } else if sum > 0.0 {
                sum.min(1.0)
            } else {
                0.0
            };
            same32(ours, expected, &format!("clamp {a:e} + {b:e}"));
        }
    }
}

#[test]
fn the_mode_reads_as_it_was_written() {
    let lanes = lanes(false);
    // s_getreg_b32 s20, hwreg(HW_REG_MODE); v_mov_b32 v8, s20
    let read = [0xb894_f801, 0x7e10_0214];
    for (mode, expected) in [
        (vec![], 0x3f0),
        (vec![DENORM_MODE], 0x300),
        (vec![ROUND_MODE | 6], 0x3f6),
        (nan_mode(1).to_vec(), 0x1f0),
        // s_mov_b32 s20, 0xa5; s_setreg_b32 hwreg(HW_REG_MODE, 0, 8), s20
        (vec![0xbe94_00ff, 0xa5, 0xb914_3801], 0x3a5),
    ] {
        let ours = after(&mode, &read, &lanes[..32]);
        assert!(ours.iter().all(|&x| x as u32 == expected), "{mode:x?}: {:#x}", ours[0]);
    }
}

#[test]
fn halves_round_and_flush_by_their_own_bits() {
    let mut lanes = lanes(false);
    for (n, lane) in lanes.iter_mut().enumerate() {
        lane.a = u64::from((n as f32 * 1.000_37e-6).to_bits());
    }
    // v_cvt_f16_f32 v8, v2
    for direction in 0..4 {
        for (lane, ours) in lanes
            .iter()
            .zip(after(&[ROUND_MODE | direction << 2], &vop3(0x18a, 1), &lanes))
        {
            let x = f32s(lane)[0];
            let near = half::f16::from_f32(x);
            let error = x - near.to_f32();
            let bits = match direction {
                1 if error > 0.0 => near.to_bits() + 1,
                2 | 3 if error < 0.0 => near.to_bits() - 1,
                _ => near.to_bits(),
            };
            assert_eq!(ours as u16, bits, "{x:e}, direction {direction}");
        }
    }
    for (lane, ours) in lanes.iter().zip(after(&[DENORM_MODE | 3], &vop3(0x18a, 1), &lanes)) {
        let near = half::f16::from_f32(f32s(lane)[0]);
        let expected = if near.to_bits() < 0x400 { 0 } else { near.to_bits() };
        assert_eq!(ours as u16, expected);
    }
}
