//! Conversion between float types.

use crate::support::{SIZES, device, refused};
use rocmforge_kernels::{FloatType, reference};
use rocmforge_runtime::HipBuffer;
use rocmforge_testkit::data::rng;

const TYPES: [FloatType; 3] = [FloatType::F32, FloatType::F16, FloatType::Bf16];

#[test]
fn any_bits_become_the_nearest_value() {
    let d = device();
    for n in SIZES.into_iter().chain([2, 3, 1023, 1025, 5000]) {
        let mut random = rng(n as u64);
        let any: Vec<u8> = (0..n).flat_map(|_| (random.next_u64() as u32).to_le_bytes()).collect();
        // Also numbers that the small types have between their largest and smallest.
        let usual: Vec<u8> = random
            .vec_in(n, -70_000.0, 70_000.0)
            .iter()
            .flat_map(|x| x.to_le_bytes())
            .collect();
        for (from, to) in TYPES.iter().flat_map(|&from| TYPES.map(|to| (from, to))) {
            for bytes in [&any, &usual] {
                // The upper half of an f32 is a bf16; for f16 any two bytes do.
                let bytes: Vec<u8> = match from {
                    FloatType::F32 => bytes.clone(),
                    _ => bytes.chunks(4).flat_map(|b| [b[2], b[3]]).collect(),
                };
                let x = HipBuffer::from_slice(d.stream(), &bytes, "x").expect("upload");
                let y = HipBuffer::from_slice(d.stream(), &vec![0xA5u8; n * to.bytes()], "y").expect("upload");
                let result = d.kernels.cast(d.stream(), (from, &x), (to, &y), n);
                if from == to {
                    refused(result, "the types must differ");
                    continue;
                }
                result.unwrap();
                let actual = reference::float_values(to, &y.to_vec(d.stream()).expect("download"));
                for (x, y) in reference::float_values(from, &bytes).into_iter().zip(actual) {
                    let want = reference::round_to(to, x);
                    assert!(
                        y == want || y.is_nan() && want.is_nan(),
                        "{from:?} {x:e} to {to:?}: {y:e}, not {want:e}"
                    );
                }
            }
        }
    }
}

#[test]
fn wrong_lengths_and_addresses_are_refused() {
    let d = device();
    let bytes = HipBuffer::from_slice(d.stream(), &[0u8; 41], "bytes").expect("upload");
    let part = |range| bytes.view(range).expect("inside");
    let refused = |x, y, n, text| {
        let (x, y) = ((FloatType::F32, &x), (FloatType::F16, &y));
        refused(d.kernels.cast(d.stream(), x, y, n), text);
    };
    refused(
        part(0..16),
        part(16..24),
        5,
        "x has 16 elements; its shape [5, 4] needs 20",
    );
    refused(
        part(0..16),
        part(16..26),
        4,
        "y has 10 elements; its shape [4, 2] needs 8",
    );
    refused(part(2..18), part(20..28), 4, "the address of x is");
    refused(part(0..16), part(17..25), 4, "the address of y is");
    refused(part(0..0), part(0..0), 0, "elements is 0");
}
