//! Recurrent ops: each sequence by itself, its tokens in their order.

use super::Values;

/// The results of the tokens, then the new states. `step` changes the state of a token's sequence and gives its result.
fn run(x: &[Values], mut step: impl FnMut(usize, &mut Vec<f64>) -> Vec<f64>) -> Vec<f64> {
    let (state, sequence, ids) = (&x[0], &x[x.len() - 2], &x[x.len() - 1]);
    let tokens = sequence.data.len();
    let len: usize = state.shape[1..].iter().product();
    let mut results = vec![Vec::new(); tokens];
    let mut states = Vec::new();
    for row in 0..ids.data.len() {
        let mut own = state.data[ids.index(row) * len..][..len].to_vec();
        for token in (0..tokens).filter(|&token| sequence.index(token) == row) {
            results[token] = step(token, &mut own);
        }
        states.extend(own);
    }
    let mut out = results.concat();
    out.extend(states);
    out
}

/// The inputs before and the token's make a window of each channel, which goes on by one.
pub(super) fn conv(x: &[Values]) -> Vec<f64> {
    let [channels, taps] = [x[2].shape[0], x[2].shape[1]];
    run(x, |token, state| {
        let windows: Vec<Vec<f64>> = (0..channels)
            .map(|c| {
                [
                    &state[c * (taps - 1)..(c + 1) * (taps - 1)],
                    &[x[1].data[token * channels + c]],
                ]
                .concat()
            })
            .collect();
        *state = windows.iter().flat_map(|window| window[1..].to_vec()).collect();
        let weights = x[2].data.chunks(taps);
        let sum = |(window, weight): (&Vec<f64>, &[f64])| window.iter().zip(weight).map(|(x, w)| x * w).sum();
        windows.iter().zip(weights).map(sum).collect()
    })
}

/// `h = exp(d a) h + d b x`, `y = c h` with `d = ln(1 + exp(dt))` (Gu and Dao 2023, Dao and Gu 2024).
pub(super) fn scan(x: &[Values]) -> Vec<f64> {
    let &[_, heads, dim, n] = x[0].shape.as_slice() else {
        unreachable!("four dimensions")
    };
    let (decays, groups) = (x[3].shape[1], x[4].shape[1]);
    run(x, |token, h| {
        let mut y = vec![0.0; heads * dim];
        for (at, h) in h.iter_mut().enumerate() {
            let (j, i, head) = (at % n, at / n % dim, at / n / dim);
            let group = (token * groups + head * groups / heads) * n + j;
            let d = x[2].data[token * heads + head].exp().ln_1p();
            let a = x[3].data[head * decays + j % decays];
            let input = x[1].data[(token * heads + head) * dim + i];
            *h = (d * a).exp() * *h + d * x[4].data[group] * input;
            y[head * dim + i] += x[5].data[group] * *h;
        }
        y
    })
}

/// `S = S diag(exp(g)) (1 - beta k k^T) + beta v k^T`, `o = S q / sqrt(n)` (Yang et al. 2024), `S` with a row for each element of `v`.
pub(super) fn delta_net(x: &[Values]) -> Vec<f64> {
    let &[_, heads, dim, n] = x[0].shape.as_slice() else {
        unreachable!("four dimensions")
    };
    let (k_heads, gates) = (x[1].shape[1], x[4].shape[2]);
    run(x, |token, s| {
        let mut out = Vec::new();
        let before = s.clone();
        for head in 0..heads {
            let row = token * heads + head;
            let key = |operand: usize, i: usize| x[operand].data[(token * k_heads + head % k_heads) * n + i];
            let gate = |i: usize| x[4].data[row * gates + i % gates].exp();
            let beta = x[5].data[row];
            for value in 0..dim {
                let at = (head * dim + value) * n;
                let v = x[3].data[row * dim + value];
                for j in 0..n {
                    let moved: f64 = (0..n)
                        .map(|i| {
                            before[at + i] * gate(i) * (f64::from(u8::from(i == j)) - beta * key(2, i) * key(2, j))
                        })
                        .sum();
                    s[at + j] = moved + beta * v * key(2, j);
                }
                let product: f64 = (0..n).map(|j| s[at + j] * key(1, j)).sum();
                out.push(product / (n as f64).sqrt());
            }
        }
        out
    })
}

/// The same rule, whose queries, keys, values and gates follow from rows of a convolution.
pub(super) fn delta_net_rows(x: &[Values], eps: f64, neighbours: bool) -> Vec<f64> {
    let &[_, heads, dim, n] = x[0].shape.as_slice() else {
        unreachable!("four dimensions")
    };
    let channels = x[1].shape[1];
    let values = channels - heads * dim;
    let k_heads = values / n / 2;
    let silu = |at: usize| x[1].data[at] / (1.0 + (-x[1].data[at]).exp());
    run(x, |token, s| {
        let mut out = Vec::new();
        for head in 0..heads {
            let key_head = if neighbours {
                head * k_heads / heads
            } else {
                head % k_heads
            };
            let unit = |first: usize| {
                let v: Vec<f64> = (0..n)
                    .map(|i| silu(token * channels + first + key_head * n + i))
                    .collect();
                let length = (v.iter().map(|x| x * x).sum::<f64>() + eps).sqrt();
                v.into_iter().map(|x| x / length).collect::<Vec<f64>>()
            };
            let (q, k, row) = (unit(0), unit(values / 2), token * heads + head);
            let beta = 1.0 / (1.0 + (-x[2].data[row]).exp());
            let decay = (x[5].data[head] * (x[3].data[row] + x[4].data[head]).exp().ln_1p()).exp();
            for value in 0..dim {
                let own = &mut s[(head * dim + value) * n..][..n];
                let seen: f64 = own.iter().zip(&k).map(|(s, k)| decay * s * k).sum();
                let v = silu(token * channels + values + head * dim + value);
                for (s, k) in own.iter_mut().zip(&k) {
                    *s = decay * *s + beta * (v - seen) * k;
                }
                let product: f64 = own.iter().zip(&q).map(|(s, q)| s * q).sum();
                out.push(product / (n as f64).sqrt());
            }
        }
        out
    })
}
