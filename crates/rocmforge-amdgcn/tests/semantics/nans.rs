//! NaN operands: the first decides, and hosts with wide vectors and hosts without give the same bits.

use crate::enc;
use crate::harness::{Lane, Random};
use crate::rig::word;
use crate::valu::{Form, forms, run_forms};
use rocmforge_isa::Ty;
use std::collections::BTreeMap;

/// Names the file that a run of this binary without wide vectors writes its results to.
const FILE: &str = "ROCMFORGE_TEST_NANS";

/// NaN of both kinds and signs with different payloads, and what meets them.
fn lanes() -> Vec<Lane> {
    let mut random = Random(0x7a7);
    let mut word = |wide: bool| {
        let payload = random.next();
        let (quiet, sign) = (random.next() & 1, random.next() & 1);
        let edges = [
            0u32,
            0x3f80_0000,
            0xff80_0000,
            0x7f80_0000,
            0x3c00_3c00,
            0x7c00_fc00,
            0x8000_0000,
            0x4120_1234,
        ];
        let kind = random.next() % 8;
        match kind {
            0..4 if wide => sign << 63 | 0x7ff << 52 | quiet << 51 | payload & 0x7_ffff_ffff_ffff | 1,
            // A NaN as a single; with one in each half, as pairs of halves.
            0 | 1 => sign << 31 | 0xff << 23 | quiet << 22 | payload & 0x3f_ffff | 1,
            2 | 3 => {
                let half = |bits: u64| (bits & 0x8000) | 0x7c00 | (bits & 0x3ff).max(1);
                half(payload) | half(payload >> 16) << 16
            }
            _ if wide => f64::from(f32::from_bits(edges[payload as usize % 8])).to_bits(),
            _ => edges[payload as usize % 8].into(),
        }
    };
    let mut lanes = Vec::new();
    for n in 0..256 {
        // Half of the waves have operands of 64 bits.
        let wide = n % 64 >= 32;
        lanes.push(Lane {
            a: word(wide),
            b: word(wide),
            c: word(wide),
            d: word(wide),
        });
    }
    lanes
}

/// What every floating-point operation gives, by the text of the form.
fn results() -> BTreeMap<String, Vec<u8>> {
    let lanes = lanes();
    let is_float = |ty: Ty| matches!(ty, Ty::F16 | Ty::F32 | Ty::F64 | Ty::PkF16);
    let names: std::collections::BTreeSet<&str> = enc::all()
        .iter()
        .filter(|(e, words)| {
            let inst = enc::decode(words, 0).expect("an instruction");
            e.name.starts_with("v_") && (is_float(inst.ty.dst) || inst.ty.src.into_iter().any(is_float))
        })
        .map(|(e, _)| e.name)
        .collect();
    let mut all = BTreeMap::new();
    // A bare kernel has room for the forms of one operation.
    for name in names {
        let forms: Vec<Form> = forms(name);
        for (form, bytes) in run_forms(forms, &lanes) {
            all.insert(format!("{} {:#x}", form.inst, form.exec), bytes);
        }
    }
    all
}

#[test]
fn results_do_not_depend_on_the_host() {
    let ours = results();
    assert!(ours.len() > 1000, "{} forms", ours.len());
    let text = |all: &BTreeMap<String, Vec<u8>>| -> String {
        let line = |(form, bytes): (&String, &Vec<u8>)| {
            let hex: Vec<String> = bytes
                .chunks(16)
                .map(|lane| lane.iter().rev().map(|byte| format!("{byte:02x}")).collect::<String>())
                .collect();
            format!("{form}\t{}", hex.join(" "))
        };
        all.iter().map(line).collect::<Vec<_>>().join("\n")
    };
    let ours = text(&ours);
    if let Ok(file) = std::env::var(FILE) {
        return std::fs::write(file, ours).expect("the parent's file");
    }
    let file = std::env::temp_dir().join(format!("rocmforge-nans-{}-{}", crate::ARCH, std::process::id()));
    let output = std::process::Command::new(std::env::current_exe().expect("its path"))
        .args(["--exact", "nans::results_do_not_depend_on_the_host"])
        .env("ROCMFORGE_SIMD", "off")
        .env(FILE, &file)
        .output()
        .expect("a test binary can be run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let theirs = std::fs::read_to_string(&file).expect("written");
    std::fs::remove_file(&file).expect("removable");
    let mut different = Vec::new();
    for (ours, theirs) in ours.lines().zip(theirs.lines()) {
        if ours != theirs {
            let (form, ours) = ours.split_once('\t').expect("a tab");
            let theirs = theirs.split_once('\t').expect("a tab").1;
            let at = ours
                .split(' ')
                .zip(theirs.split(' '))
                .position(|(a, b)| a != b)
                .unwrap_or(0);
            let lane = |text: &str| text.split(' ').nth(at).unwrap_or_default().to_owned();
            different.push(format!(
                "{form}, lane {at}: {} with wide vectors, {} without",
                lane(ours),
                lane(theirs)
            ));
        }
    }
    assert!(
        different.is_empty(),
        "{} differ:\n{}",
        different.len(),
        different.join("\n")
    );
}

/// Sums and products: bits of the float, and how many operands.
const SUMS: [(&str, u32, usize); 13] = [
    ("v_add_f16", 16, 2),
    ("v_sub_f16", 16, 2),
    ("v_mul_f16", 16, 2),
    ("v_fma_f16", 16, 3),
    ("v_add_f32", 32, 2),
    ("v_sub_f32", 32, 2),
    ("v_subrev_f32", 32, 2),
    ("v_mul_f32", 32, 2),
    ("v_fma_f32", 32, 3),
    ("v_div_fmas_f32", 32, 3),
    ("v_add_f64", 64, 2),
    ("v_mul_f64", 64, 2),
    ("v_fma_f64", 64, 3),
];

/// The first NaN operand, made quiet, with the modifiers of the source.
fn first_nan(sources: [u64; 3], bits: u32, count: usize) -> Option<u64> {
    let fraction = match bits {
        16 => 10,
        32 => 23,
        _ => 52,
    };
    let exponent = ((1u64 << (bits - 1)) - 1) >> fraction << fraction;
    let is_nan = |x: u64| x & exponent == exponent && x & ((1 << fraction) - 1) != 0;
    let nan = sources[..count].iter().find(|&&x| is_nan(x))?;
    Some(nan | 1 << (fraction - 1))
}

#[test]
fn the_first_nan_decides() {
    let lanes = lanes();
    for (name, bits, count) in SUMS {
        let mut seen = 0;
        for (form, output) in run_forms(forms(name), &lanes) {
            if form.inst.mods.clamp {
                continue;
            }
            for (n, wave) in lanes.chunks(32).enumerate() {
                for lane in (0..32).filter(|lane| form.exec >> lane & 1 != 0) {
                    let Some(model) = first_nan(form.args(wave, lane).s, bits, count) else {
                        continue;
                    };
                    let (reg, hi) = form.dst();
                    let output = &output[16 * (32 * n + lane as usize)..];
                    // The pair of registers that holds the destination.
                    let pair = u64::from(word(output, 0)) | u64::from(word(output, 4)) << 32;
                    let shift = 32 * u32::from(reg & 1) + if hi { 16 } else { 0 };
                    let ours = pair >> shift & (u64::MAX >> (64 - bits));
                    assert_eq!(ours, model, "`{}`, lane {lane}: {ours:#x}, not {model:#x}", form.inst);
                    seen += 1;
                }
            }
        }
        assert!(seen > 500, "{name}: {seen} results");
    }
}
