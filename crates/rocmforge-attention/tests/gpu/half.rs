//! Attention in f16 and bf16.

use rocmforge_attention::{
    Algorithm, Attention, AttentionConfig, AttentionError, FloatType, HalfOperands, Layout, MaskShape, SequenceLengths,
};
use rocmforge_kernels::reference::{self, Attention16Scores};
use rocmforge_kernels::{Attention16Shape, KernelError, Kernels, Visible};
use rocmforge_runtime::HipBuffer;
use rocmforge_testkit::compare::{Tolerance, assert_close};
use rocmforge_testkit::data::{poison, rng};

/// Eighths from -2 to 2, which both types have, and their bits.
fn eighth(ty: FloatType, n: i32) -> (f64, u16) {
    let x = n as f32 / 8.0;
    let bits = (x.to_bits() >> 16) as u16;
    if ty == FloatType::Bf16 || n == 0 {
        return (f64::from(x), bits);
    }
    // Sign, exponent with another bias, and the first bits of the fraction.
    let (sign, exponent, fraction) = (x.to_bits() >> 31, (x.to_bits() >> 23) & 255, (x.to_bits() >> 13) & 1023);
    (f64::from(x), (sign << 15 | (exponent - 112) << 10 | fraction) as u16)
}

fn values(ty: FloatType, bits: &[u16]) -> Vec<f32> {
    let bytes: Vec<u8> = bits.iter().flat_map(|bits| bits.to_le_bytes()).collect();
    reference::float_values(ty, &bytes)
        .into_iter()
        .map(|x| x as f32)
        .collect()
}

#[test]
fn half_attention_is_its_definition_in_every_layout() {
    let gpu = rocmforge_testkit::gpu();
    let (kernels, stream) = (Kernels::load(gpu.backend()).unwrap(), gpu.backend().stream());
    if let Err(error @ KernelError::NotForDevice { .. }) = kernels.kernel("attention16_f16", "attention16_f16_d64") {
        rocmforge_testkit::skip!("{error}");
    }
    let (batch, heads, kv_heads, seq_q, seq_k, head_dim) = (2, 4, 2, 19, 37, 40);
    for ty in [FloatType::F16, FloatType::Bf16] {
        for layout in [Layout::HeadsFirst, Layout::TokensFirst] {
            let config = AttentionConfig::builder(heads, head_dim)
                .kv_heads(kv_heads)
                .causal(true)
                .elements(ty)
                .window(20)
                .softcap(4.0)
                .mask(MaskShape::PerSequence)
                .layout(layout)
                .build()
                .unwrap();
            let plan = config.plan(batch, seq_q, seq_k).unwrap();
            assert_eq!(plan.algorithm(), Algorithm::MatrixUnit);
            let mut random = rng(3);
            let mut operand = |heads: usize, rows: usize| {
                let n = batch * heads * rows * head_dim;
                let pairs: Vec<(f64, u16)> = (0..n).map(|_| eighth(ty, random.below(33) as i32 - 16)).collect();
                let heads_first: Vec<f64> = pairs.iter().map(|pair| pair.0).collect();
                let bits: Vec<u16> = (0..n)
                    .map(|at| match layout {
                        Layout::HeadsFirst => pairs[at].1,
                        Layout::TokensFirst => {
                            let (e, h) = (at % head_dim, at / head_dim % heads);
                            let (i, b) = (at / head_dim / heads % rows, at / head_dim / heads / rows);
                            pairs[((b * heads + h) * rows + i) * head_dim + e].1
                        }
                    })
                    .collect();
                let buffer = HipBuffer::from_slice(stream, &bits, "halves").unwrap();
                (heads_first, buffer)
            };
            let (q, k, v) = (
                operand(heads, seq_q),
                operand(kv_heads, seq_k),
                operand(kv_heads, seq_k),
            );
            let mask: Vec<f32> = (0..plan.mask_elements()).map(|_| random.uniform(-1.0, 1.0)).collect();
            let dm = HipBuffer::from_slice(stream, &mask, "mask").unwrap();
            let (slopes, sinks) = ([0.1, 0.2, 0.0, 0.5], [0.0, 1.0, -1.0, 2.0]);
            let slopes_there = HipBuffer::from_slice(stream, &slopes, "slopes").unwrap();
            let sinks_there = HipBuffer::from_slice(stream, &sinks, "sinks").unwrap();
            let out = HipBuffer::from_slice(stream, &vec![0x7fdeu16; plan.q_elements()], "out").unwrap();
            let lse = HipBuffer::from_slice(stream, &poison(batch * heads * seq_q), "lse").unwrap();
            let lengths = SequenceLengths::new(stream, &[[seq_q, seq_k]; 2]).unwrap();
            let operands = HalfOperands {
                mask: Some(&dm),
                slopes: Some(&slopes_there),
                sinks: Some(&sinks_there),
                lengths: Some(&lengths),
                lse: Some(&lse),
                ..HalfOperands::new(&q.1, &k.1, &v.1, &out)
            };
            let attention = Attention::new(&kernels, plan).unwrap();
            attention.forward16(stream, operands).unwrap();

            let shape = Attention16Shape {
                batch,
                heads,
                kv_heads,
                seq_q,
                seq_k,
                width_k: head_dim,
                width_v: head_dim,
            };
            let scores = Attention16Scores {
                scale: f64::from(config.scale()),
                softcap: Some(4.0),
                mask: &|b, _, i, j| f64::from(mask[(b * seq_q + i) * seq_k + j]),
                slopes: Some(&slopes),
                sinks: Some(&sinks),
                visible: Visible::Causal { window: Some(20) },
            };
            let (want, want_lse) = reference::attention16([&q.0, &k.0, &v.0], shape, &[[seq_q, seq_k]; 2], &scores);
            let found = values(ty, &out.to_vec(stream).unwrap());
            let found = match layout {
                Layout::HeadsFirst => found,
                Layout::TokensFirst => reference::swap_middle(&found, [batch, seq_q, heads, head_dim]),
            };
            let limit = if ty == FloatType::F16 { 3e-3 } else { 2.4e-2 };
            let dims = [batch, heads, seq_q, head_dim];
            assert_close(&found, &want, &dims, Tolerance::Absolute(limit));
            let found = lse.to_vec(stream).unwrap();
            assert_close(&found, &want_lse, &dims[..3], Tolerance::Absolute(1e-5));
        }
    }
}

/// A decoding step: its keys are computed in parts, or at once where a call has what the parts have not.
#[test]
fn few_queries_are_computed_in_parts() {
    let gpu = rocmforge_testkit::gpu();
    let (kernels, stream) = (Kernels::load(gpu.backend()).unwrap(), gpu.backend().stream());
    let (heads, kv_heads, seq_k, head_dim) = (4, 1, 600, 64);
    let config = AttentionConfig::builder(heads, head_dim)
        .kv_heads(kv_heads)
        .causal(true);
    let config = config.elements(FloatType::F16).build().unwrap();
    let attention = |seq_q| Attention::new(&kernels, config.plan(1, seq_q, seq_k).unwrap()).unwrap();
    let (step, prompt) = (attention(1), attention(40));
    assert!(step.parts().is_some_and(|parts| parts > 1), "{:?}", step.parts());
    assert_eq!(prompt.parts(), None);
    let mut random = rng(5);
    let mut operand = |n: usize| {
        let pairs: Vec<(f64, u16)> = (0..n)
            .map(|_| eighth(FloatType::F16, random.below(33) as i32 - 16))
            .collect();
        let bits: Vec<u16> = pairs.iter().map(|pair| pair.1).collect();
        let plain: Vec<f64> = pairs.iter().map(|pair| pair.0).collect();
        (plain, HipBuffer::from_slice(stream, &bits, "halves").unwrap())
    };
    let (q, k, v) = (
        operand(heads * head_dim),
        operand(seq_k * head_dim),
        operand(seq_k * head_dim),
    );
    let sinks = [0.0, 1.0, -1.0, 2.0];
    let sinks_there = HipBuffer::from_slice(stream, &sinks, "sinks").unwrap();
    for with_sinks in [false, true] {
        let out = HipBuffer::from_slice(stream, &vec![0x7fdeu16; heads * head_dim], "out").unwrap();
        let operands = HalfOperands {
            sinks: with_sinks.then_some(&sinks_there),
            ..HalfOperands::new(&q.1, &k.1, &v.1, &out)
        };
        step.forward16(stream, operands).unwrap();
        let shape = Attention16Shape {
            batch: 1,
            heads,
            kv_heads,
            seq_q: 1,
            seq_k,
            width_k: head_dim,
            width_v: head_dim,
        };
        let scores = Attention16Scores {
            scale: f64::from(config.scale()),
            softcap: None,
            mask: &|_, _, _, _| 0.0,
            slopes: None,
            sinks: with_sinks.then_some(&sinks),
            visible: Visible::Causal { window: None },
        };
        let (want, _) = reference::attention16([&q.0, &k.0, &v.0], shape, &[[1, seq_k]], &scores);
        let found = values(FloatType::F16, &out.to_vec(stream).unwrap());
        assert_close(&found, &want, &[heads, head_dim], Tolerance::Absolute(1e-3));
    }
}

#[test]
fn calls_that_do_not_fit_the_plan_are_refused() {
    let gpu = rocmforge_testkit::gpu();
    let (kernels, stream) = (Kernels::load(gpu.backend()).unwrap(), gpu.backend().stream());
    let half = |n: usize| HipBuffer::from_slice(stream, &vec![0u16; n], "halves").unwrap();
    let whole = HipBuffer::from_slice(stream, &[0.0f32; 32], "floats").unwrap();
    let plan = |elements, mask| {
        let config = AttentionConfig::builder(2, 8).elements(elements).mask(mask);
        config.build().unwrap().plan(1, 2, 2).unwrap()
    };
    let of = |plan| Attention::new(&kernels, plan).unwrap();
    let (q, k, v, out) = (half(32), half(32), half(32), half(32));
    let good = HalfOperands::new(&q, &k, &v, &out);
    let f16 = of(plan(FloatType::F16, MaskShape::None));
    let error = f16.forward(stream, &whole, &whole, &whole, None, &whole).unwrap_err();
    assert!(
        matches!(error, AttentionError::Elements { plan: FloatType::F16 }),
        "{error}"
    );
    let error = of(plan(FloatType::F32, MaskShape::None))
        .forward16(stream, good)
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "the plan is for f32 and the call is not; forward takes f32, forward16 the others"
    );
    let short = half(31);
    for (operands, name) in [
        (HalfOperands { q: &short, ..good }, "q"),
        (HalfOperands { k: &short, ..good }, "k"),
        (HalfOperands { v: &short, ..good }, "v"),
        (HalfOperands { out: &short, ..good }, "out"),
    ] {
        let error = f16.forward16(stream, operands).unwrap_err();
        assert!(
            matches!(error, AttentionError::Kernel(KernelError::Length { operand, got: 31, .. }) if operand == name),
            "{error}"
        );
    }
    let error = f16
        .forward16(
            stream,
            HalfOperands {
                mask: Some(&whole),
                ..good
            },
        )
        .unwrap_err();
    assert!(
        matches!(error, AttentionError::MaskUnexpected { elements: 32 }),
        "{error}"
    );
    let masked = of(plan(FloatType::Bf16, MaskShape::PerQuery));
    assert!(matches!(
        masked.forward16(stream, good),
        Err(AttentionError::MaskMissing { .. })
    ));
    let error = f16.forward16(stream, HalfOperands { out: &q, ..good }).unwrap_err();
    assert!(matches!(error, AttentionError::Kernel(_)), "{error}");
}
