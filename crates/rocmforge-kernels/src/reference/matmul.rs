use crate::MatmulShape;

/// a b (+ bias), batched, as [`MatmulShape`] describes the operands.
pub fn matmul(a: &[f32], b: &[f32], bias: Option<&[f32]>, s: MatmulShape) -> Vec<f64> {
    let mut out = Vec::with_capacity(s.batch * s.m * s.n);
    for z in 0..s.batch {
        let a = &a[z * s.m * s.k..];
        let b = if s.b_shared { b } else { &b[z * s.k * s.n..] };
        for i in 0..s.m {
            for j in 0..s.n {
                let b_at = |k: usize| if s.b_transposed { b[j * s.k + k] } else { b[k * s.n + j] };
                let sum: f64 = (0..s.k).map(|k| f64::from(a[i * s.k + k]) * f64::from(b_at(k))).sum();
                out.push(sum + bias.map_or(0.0, |bias| f64::from(bias[j])));
            }
        }
    }
    out
}
