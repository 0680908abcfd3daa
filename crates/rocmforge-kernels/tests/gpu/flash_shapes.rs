//! Flash attention with layouts, masks and numbers of its own.

use crate::support::{Device, as_kv, as_q, device, usual_scale};
use rocmforge_kernels::{AttentionShape, FlashOptions, KernelError, Operand, Strides, reference};
use rocmforge_runtime::HipBuffer;
use rocmforge_testkit::data::rng;

/// What a mask adds for batch, head, query and key.
type MaskAt<'a> = &'a dyn Fn(usize, usize, usize, usize) -> f64;

struct Case {
    host: [Vec<f32>; 3],
    device: [HipBuffer<f32>; 3],
    shape: AttentionShape,
}

fn case(d: &Device, shape: AttentionShape) -> Case {
    let mut random = rng((shape.seq_k * 1000 + shape.head_dim) as u64);
    let host = [
        shape.q_elements().unwrap(),
        shape.kv_elements().unwrap(),
        shape.kv_elements().unwrap(),
    ]
    .map(|n| random.vec_in(n, -2.0, 2.0));
    let device = host.each_ref().map(|x| d.up(x));
    Case { host, device, shape }
}

impl Case {
    fn check(&self, d: &Device, causal: bool, mask: Option<(Operand<'_>, MaskAt<'_>)>) {
        let s = &self.shape;
        let y = d.out(s.q_elements().unwrap());
        let [q, k, v] = &self.device;
        let options = FlashOptions {
            scale: usual_scale(s.head_dim),
            causal,
            mask: mask.map(|m| m.0),
        };
        let (q, k, v, out) = (as_q(q, s), as_kv(k, s), as_kv(v, s), as_q(&y, s));
        d.kernels
            .flash_attention(d.stream(), q, k, v, out, *s, options)
            .unwrap();
        let add = |b: usize, h: usize, i: usize, j: usize| {
            if causal && !reference::causal_visible(i, j, s.seq_q, s.seq_k) {
                return f64::NEG_INFINITY;
            }
            mask.map_or(0.0, |m| m.1(b, h, i, j))
        };
        let [q, k, v] = &self.host;
        let expected = reference::attention(q, k, v, *s, options.scale, add);
        d.close(&y, &expected, &[s.batch, s.heads, s.seq_q, s.head_dim], 1e-5);
    }
}

#[test]
fn key_padding_and_full_masks() {
    let d = device();
    for head_dim in [32, 40, 80, 200] {
        let s = AttentionShape::square(3, 2, 37, head_dim);
        let case = case(&d, s);
        // Sentences of different length: 37, 20 and 1 tokens.
        let mut padding = vec![0.0f32; 3 * 37];
        padding[37 + 20..2 * 37].fill(f32::NEG_INFINITY);
        padding[2 * 37 + 1..].fill(f32::NEG_INFINITY);
        let m = d.up(&padding);
        let at = |b: usize, _, _, j: usize| f64::from(padding[b * 37 + j]);
        case.check(&d, false, Some((Operand::new(&m, Strides::per_batch(37)), &at)));
        case.check(&d, true, Some((Operand::new(&m, Strides::per_batch(37)), &at)));

        let mut bias = rng(1).vec_in(s.score_elements().unwrap(), -1.0, 1.0);
        for b in bias.iter_mut().step_by(7) {
            *b = f32::NEG_INFINITY;
        }
        let m = d.up(&bias);
        let at = |b: usize, h: usize, i: usize, j: usize| f64::from(bias[((b * 2 + h) * 37 + i) * 37 + j]);
        let operand = Operand::new(&m, Strides::heads_first(2, 37, 37));
        case.check(&d, false, Some((operand, &at)));
    }
}

#[test]
fn a_query_that_sees_nothing_gives_zeros() {
    let d = device();
    let s = AttentionShape::square(2, 1, 40, 16);
    let case = case(&d, s);
    let mask = vec![f32::NEG_INFINITY; 2 * 40];
    let m = d.up(&mask);
    let nothing = |_, _, _, _| f64::NEG_INFINITY;
    case.check(&d, false, Some((Operand::new(&m, Strides::per_batch(40)), &nothing)));
}

/// Hugging Face hides keys with the smallest finite f32 instead of -inf: a row of nothing else is then a plain mean.
#[test]
fn masks_of_the_smallest_number_do_not_overflow() {
    let d = device();
    let s = AttentionShape::square(2, 1, 34, 16);
    let case = case(&d, s);
    let mut mask = vec![f32::MIN; 2 * 34];
    mask[..20].fill(0.0);
    let m = d.up(&mask);
    let at = |b: usize, _, _, j: usize| match mask[b * 34 + j] {
        0.0 => 0.0,
        // In f32 a score added to it changes nothing.
        _ => f64::from(f32::MIN),
    };
    let y = d.out(s.q_elements().unwrap());
    let [q, k, v] = &case.device;
    let options = FlashOptions {
        scale: 0.25,
        causal: false,
        mask: Some(Operand::new(&m, Strides::per_batch(34))),
    };
    let (q, k, v, out) = (as_q(q, &s), as_kv(k, &s), as_kv(v, &s), as_q(&y, &s));
    d.kernels.flash_attention(d.stream(), q, k, v, out, s, options).unwrap();
    let [q, k, v] = &case.host;
    let mut expected = reference::attention(q, k, v, s, 0.25, at);
    // The second sequence is hidden whole.
    for column in 0..16 {
        let mean = (0..34).map(|j| f64::from(v[(34 + j) * 16 + column])).sum::<f64>() / 34.0;
        expected
            .iter_mut()
            .skip(34 * 16 + column)
            .step_by(16)
            .for_each(|e| *e = mean);
    }
    d.close(&y, &expected, &[2, 1, 34, 16], 1e-5);
}

#[test]
fn large_scores_do_not_overflow() {
    let d = device();
    let s = AttentionShape::square(1, 1, 40, 16);
    let mut case = case(&d, s);
    case.host[0].iter_mut().for_each(|q| *q *= 100.0);
    case.host[1].iter_mut().for_each(|k| *k *= 100.0);
    case.device[0] = d.up(&case.host[0]);
    case.device[1] = d.up(&case.host[1]);
    // Scores of tens of thousands are known to a few thousandths in f32: compare what does not depend on that.
    let y = d.out(s.q_elements().unwrap());
    let [q, k, _] = &case.device;
    let ones = d.up(&vec![1.0; s.kv_elements().unwrap()]);
    let options = FlashOptions {
        scale: usual_scale(16),
        causal: true,
        mask: None,
    };
    let (q, k, v, out) = (as_q(q, &s), as_kv(k, &s), as_kv(&ones, &s), as_q(&y, &s));
    d.kernels.flash_attention(d.stream(), q, k, v, out, s, options).unwrap();
    d.close(&y, &vec![1.0; s.q_elements().unwrap()], &[1, 1, 40, 16], 1e-5);
}

#[test]
fn heads_inside_of_tokens_need_no_transposition() {
    let d = device();
    let s = AttentionShape::square(2, 3, 35, 40);
    let mut random = rng(12);
    let tokens_first: [Vec<f32>; 3] = [0; 3].map(|_| random.vec(s.q_elements().unwrap()));
    let [q, k, v] = tokens_first.each_ref().map(|x| d.up(x));
    let y = d.out(s.q_elements().unwrap());
    let strides = Strides::tokens_first(3, 35, 40);
    let [oq, ok, ov, oy] = [&q, &k, &v, &y].map(|b| Operand::new(b, strides));
    let options = FlashOptions {
        scale: 0.2,
        causal: false,
        mask: None,
    };
    d.kernels
        .flash_attention(d.stream(), oq, ok, ov, oy, s, options)
        .unwrap();
    let [q, k, v] = tokens_first
        .each_ref()
        .map(|x| reference::swap_middle(x, [2, 35, 3, 40]));
    let expected = reference::attention(&q, &k, &v, s, 0.2, |_, _, _, _| 0.0);
    let heads_first = d.up(&reference::swap_middle(&d.get(&y), [2, 35, 3, 40]));
    d.close(&heads_first, &expected, &[2, 3, 35, 40], 1e-5);
}

#[test]
fn a_head_dim_over_256_is_refused() {
    let d = device();
    let s = AttentionShape::square(1, 1, 2, 257);
    let case = case(&d, s);
    let [q, k, v] = &case.device;
    let y = d.out(s.q_elements().unwrap());
    let options = FlashOptions {
        scale: 1.0,
        causal: false,
        mask: None,
    };
    let (q, k, v, out) = (as_q(q, &s), as_kv(k, &s), as_kv(v, &s), as_q(&y, &s));
    let error = d
        .kernels
        .flash_attention(d.stream(), q, k, v, out, s, options)
        .unwrap_err();
    assert!(
        matches!(
            error,
            KernelError::Dimension {
                dim: "head_dim",
                value: 257,
                limit: 256,
                ..
            }
        ),
        "{error}"
    );
}
