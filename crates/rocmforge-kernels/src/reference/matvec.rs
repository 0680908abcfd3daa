/// w x for `rows` rows of ggml's Q4_0 blocks: each block of 18 bytes holds 32 weights, a scale in f16 (little endian) followed by 16
/// bytes whose low nibbles are weights 0 to 15 and whose high nibbles are weights 16 to 31, all less 8.
pub fn matvec_q4_0(w: &[u8], x: &[f32], rows: usize) -> Vec<f64> {
    let weights: Vec<f64> = w.as_chunks::<18>().0.iter().flat_map(block).collect();
    weights
        .chunks(weights.len() / rows)
        .map(|row| row.iter().zip(x).map(|(w, x)| w * f64::from(*x)).sum())
        .collect()
}

fn block(bytes: &[u8; 18]) -> [f64; 32] {
    let scale = half(u16::from_le_bytes([bytes[0], bytes[1]]));
    std::array::from_fn(|j| {
        let pair = bytes[2 + j % 16];
        let nibble = if j < 16 { pair & 15 } else { pair >> 4 };
        scale * (f64::from(nibble) - 8.0)
    })
}

/// The value of an IEEE 754 binary16.
fn half(bits: u16) -> f64 {
    let sign = if bits >> 15 == 0 { 1.0 } else { -1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 0x3FF) / 1024.0);
    sign * match exponent {
        0 => fraction * 2f64.powi(-14),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1.0 + fraction) * 2f64.powi(exponent - 15),
    }
}
