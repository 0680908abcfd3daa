//! ggml's attention: heads outermost, keys and values of any type, mask, ALiBi, sinks, softcap.

use super::dot::{add_rows, dots};
use super::operand::Operand;
use super::path::Path;
use super::soft_max::{Added, row};
use super::threads::Threads;
use crate::FlashAttnExt;

pub(super) fn attention(inputs: &[Operand<'_>], a: FlashAttnExt, out: &mut [f32], threads: &Threads) {
    let &[batch, heads, n, hsk] = inputs[0].shape else {
        return;
    };
    let (&[kv_batch, kv_heads, kv, _], &[.., hsv]) = (inputs[1].shape, inputs[2].shape) else {
        return;
    };
    if kv == 0 {
        return out.fill(0.0);
    }
    let (q, k, v) = (inputs[0].f32(), inputs[1].f32(), inputs[2].f32());
    let mask = a.mask.then(|| Added::new(&inputs[3], a.max_bias));
    let sinks = if a.sinks { inputs.last().map(Operand::f32) } else { None };
    let width = heads * hsv;
    let path = Path::best();
    let cost = heads.saturating_mul(kv).saturating_mul(hsk + hsv) / 8;
    let all_scores = inputs[0].scratch().take::<f32>(kv * threads.count());
    threads.by_rows_with(out, width, cost, all_scores.chunks_mut(kv), |scores, first, piece| {
        for (index, out) in piece.chunks_mut(width).enumerate() {
            let (b, i) = ((first + index) / n, (first + index) % n);
            for (head, out) in out.chunks_mut(hsv).enumerate() {
                let matrix = b * heads + head;
                let shared = (b / (batch / kv_batch)) * kv_heads + head / (heads / kv_heads);
                let query = (matrix * n + i) * hsk;
                let query = &q[query..query + hsk];
                dots(path, query, &k[shared * kv * hsk..(shared + 1) * kv * hsk], scores);
                for score in scores.iter_mut() {
                    let scaled = *score * a.scale;
                    *score = if a.softcap > 0.0 {
                        a.softcap * (scaled / a.softcap).tanh()
                    } else {
                        scaled
                    };
                }
                if let Some(mask) = &mask {
                    let slope = mask.slope(heads, head);
                    for (score, m) in scores.iter_mut().zip(mask.row(&[batch, heads], matrix, i, kv)) {
                        *score += slope * m;
                    }
                }
                row(scores, sinks.as_ref().map(|sinks| sinks[head]));
                out.fill(0.0);
                // Values of hidden keys are not read: they may be anything.
                let mut value = shared * kv * hsv;
                for weights in scores.chunk_by(|a, b| (*a == 0.0) == (*b == 0.0)) {
                    let values = value..value + weights.len() * hsv;
                    value = values.end;
                    if weights[0] != 0.0 {
                        add_rows(path, weights, &v[values], out);
                    }
                }
            }
        }
    });
}
