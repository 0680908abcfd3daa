//! Validation and choice of kernel: no device is needed.

use rocmforge_attention::{
    Algorithm, AttentionBuilder, AttentionConfig, AttentionError, FLASH_MAX_HEAD_DIM, FloatType, Layout, MaskShape,
};
use rocmforge_kernels::KernelError;
use rocmforge_runtime::Bytes;

const MASKS: [MaskShape; 5] = [
    MaskShape::None,
    MaskShape::PerQuery,
    MaskShape::KeyPadding,
    MaskShape::PerSequence,
    MaskShape::Full,
];

fn config(heads: usize, head_dim: usize) -> AttentionConfig {
    AttentionConfig::builder(heads, head_dim).build().unwrap()
}

#[test]
fn defaults_are_plain_multi_head_attention() {
    let config = config(12, 64);
    assert_eq!((config.heads(), config.kv_heads(), config.head_dim()), (12, 12, 64));
    assert_eq!(config.scale(), 0.125);
    assert!(!config.causal() && !config.separate_kernels());
    assert_eq!((config.mask(), config.layout()), (MaskShape::None, Layout::HeadsFirst));
}

#[test]
fn kv_heads_must_divide_heads() {
    for (heads, kv_heads) in [(8, 3), (8, 16), (7, 2), (1, 2)] {
        match AttentionConfig::builder(heads, 64).kv_heads(kv_heads).build() {
            Err(AttentionError::Kernel(KernelError::Heads {
                heads: h, kv_heads: kv, ..
            })) => assert_eq!((h, kv), (heads, kv_heads)),
            other => panic!("{heads} heads, {kv_heads} kv_heads: {other:?}"),
        }
    }
    for kv_heads in [1, 2, 4, 8] {
        assert!(AttentionConfig::builder(8, 64).kv_heads(kv_heads).build().is_ok());
    }
}

#[track_caller]
fn assert_dimension<T: std::fmt::Debug>(result: Result<T, AttentionError>, name: &str, bad: usize) {
    match result {
        Err(AttentionError::Kernel(KernelError::Dimension { dim, value, limit, .. })) => {
            assert_eq!((dim, value), (name, bad));
            assert!(value == 0 || value > limit, "{value} against {limit}");
        }
        other => panic!("{name} = {bad}: {other:?}"),
    }
}

#[test]
fn dimensions_out_of_range_are_named() {
    assert_dimension(AttentionConfig::builder(0, 64).build(), "heads", 0);
    assert_dimension(AttentionConfig::builder(8, 0).build(), "head_dim", 0);
    assert_dimension(AttentionConfig::builder(8, 64).kv_heads(0).build(), "kv_heads", 0);
    assert_dimension(AttentionConfig::builder(8, 1 << 24).build(), "head_dim", 1 << 24);
    assert_dimension(AttentionConfig::builder(usize::MAX, 1).build(), "heads", usize::MAX);
    assert_dimension(
        AttentionConfig::builder(1 << 14, 1 << 10)
            .layout(Layout::TokensFirst)
            .build(),
        "heads * head_dim",
        1 << 24,
    );
    let config = config(8, 64);
    assert_dimension(config.plan(0, 1, 1), "batch", 0);
    assert_dimension(config.plan(1, 0, 1), "seq_q", 0);
    assert_dimension(config.plan(1, 1, 0), "seq_k", 0);
    assert_dimension(config.plan(1, usize::MAX, 1), "seq_q", usize::MAX);
    assert_dimension(
        config.plan(u32::MAX as usize / 8, 1, 1),
        "batch * heads",
        u32::MAX as usize / 8 * 8,
    );
    let causal = AttentionConfig::builder(1, 1).causal(true).build().unwrap();
    assert!(causal.plan(1, 1, i32::MAX as usize).is_ok());
    assert_dimension(causal.plan(1, 1, 1 << 31), "seq_k", 1 << 31);
}

#[test]
fn the_scale_must_be_finite() {
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let error = AttentionConfig::builder(1, 1).scale(bad).build().unwrap_err();
        assert!(
            matches!(error, AttentionError::Kernel(KernelError::Value { name: "scale", .. })),
            "{error:?}"
        );
    }
    assert_eq!(
        AttentionConfig::builder(1, 64).scale(-2.0).build().unwrap().scale(),
        -2.0
    );
}

#[test]
fn sizes_that_overflow_are_errors_and_not_small_numbers() {
    let long = 1 << 31;
    // 2^31 queries of 2^14 heads times 2^23 elements: 2^68.
    let error = config(1 << 14, 1 << 23).plan(1, long, 1).unwrap_err();
    match error {
        AttentionError::Kernel(KernelError::TooLarge {
            operand: "q", shape, ..
        }) => assert_eq!(shape, [1, 1 << 14, long, 1 << 23]),
        other => panic!("{other:?}"),
    }
    // A mask of 2^31 x 2^24 fits an address, but one for each of 2^10 sequences and heads does not.
    let masked = AttentionConfig::builder(1 << 10, 1)
        .mask(MaskShape::Full)
        .build()
        .unwrap();
    let error = masked.plan(1 << 10, long, (1 << 24) - 1).unwrap_err();
    assert!(
        matches!(
            error,
            AttentionError::Kernel(KernelError::TooLarge { operand: "mask", .. })
        ),
        "{error:?}"
    );
}

#[test]
fn flash_goes_where_the_weights_cannot_be_stored() {
    let plan = config(1, 64).plan(1, 1, 1 << 24).unwrap();
    assert_eq!((plan.algorithm(), plan.scratch_bytes()), (Algorithm::Flash, Bytes(0)));
    assert_dimension(plan.weights_elements(), "seq_k", 1 << 24);
    let separate = AttentionConfig::builder(1, 64).separate_kernels(true).build().unwrap();
    assert_dimension(separate.plan(1, 1, 1 << 24), "seq_k", 1 << 24);
}

#[test]
fn the_algorithm_follows_mask_causality_and_head_dim() {
    for head_dim in [1, 40, 64, 80, 96, 128, 255, 256, 257, 512] {
        for causal in [false, true] {
            for mask in MASKS {
                for separate in [false, true] {
                    let plan = AttentionConfig::builder(4, head_dim)
                        .causal(causal)
                        .mask(mask)
                        .separate_kernels(separate)
                        .build()
                        .and_then(|config| config.plan(2, 3, 5))
                        .unwrap();
                    let expected = match (separate || head_dim > FLASH_MAX_HEAD_DIM, mask, causal) {
                        (true, ..) => Algorithm::Separate,
                        (false, MaskShape::None, false) => Algorithm::Flash,
                        (false, MaskShape::None, true) => Algorithm::FlashCausal,
                        (false, ..) => Algorithm::FlashMasked,
                    };
                    assert_eq!(plan.algorithm(), expected, "{plan:?}");
                    let scratch = if expected == Algorithm::Separate {
                        2 * 4 * 3 * 5 * 4
                    } else {
                        0
                    };
                    assert_eq!(plan.scratch_bytes(), Bytes(scratch), "{plan:?}");
                }
            }
        }
    }
}

#[test]
fn shapes_follow_layout_and_mask() {
    let builder = AttentionConfig::builder(6, 16).kv_heads(2);
    let plan = builder.build().unwrap().plan(3, 5, 7).unwrap();
    assert_eq!((plan.q_shape(), plan.kv_shape()), ([3, 6, 5, 16], [3, 2, 7, 16]));
    let plan = builder
        .layout(Layout::TokensFirst)
        .build()
        .unwrap()
        .plan(3, 5, 7)
        .unwrap();
    assert_eq!((plan.q_shape(), plan.kv_shape()), ([3, 5, 6, 16], [3, 7, 2, 16]));
    assert_eq!(
        (plan.q_elements(), plan.kv_elements()),
        (3 * 6 * 5 * 16, 3 * 2 * 7 * 16)
    );
    assert_eq!(plan.weights_shape(), [3, 6, 5, 7]);
    assert_eq!(plan.weights_elements().unwrap(), 3 * 6 * 5 * 7);

    let shapes = [
        None,
        Some([1, 1, 5, 7]),
        Some([3, 1, 1, 7]),
        Some([3, 1, 5, 7]),
        Some([3, 6, 5, 7]),
    ];
    for (mask, shape) in MASKS.into_iter().zip(shapes) {
        let plan = builder.mask(mask).build().unwrap().plan(3, 5, 7).unwrap();
        assert_eq!(plan.mask_shape(), shape);
        assert_eq!(plan.mask_elements(), shape.map_or(0, |s| s.iter().product()));
    }
    let per_head = MaskShape::Along {
        batch: false,
        heads: true,
        queries: false,
    };
    let plan = builder.mask(per_head).build().unwrap().plan(3, 5, 7).unwrap();
    assert_eq!(plan.mask_shape(), Some([1, 6, 1, 7]));
}

#[test]
fn options_that_a_type_does_not_go_with_are_refused() {
    let f32 = || AttentionConfig::builder(4, 64).causal(true);
    let f16 = || f32().elements(FloatType::F16);
    for (builder, text) in [
        (f32().window(5), "attention in f32 does not go with a window"),
        (f32().softcap(5.0), "attention in f32 does not go with a soft cap"),
        (
            f16().separate_kernels(true),
            "attention in f16 does not go with separate kernels",
        ),
        (
            f16().causal(false).window(5),
            "does not go with a window without causality",
        ),
        (f16().window(0), "window is 0"),
        (f16().softcap(0.0), "softcap is 0"),
        (f16().softcap(f32::NAN), "softcap is NaN"),
        (f16().softcap(-1.0), "softcap is -1"),
        (
            AttentionConfig::builder(4, 60).elements(FloatType::Bf16),
            "attention in bf16 does not go with a head_dim that is no multiple of 8",
        ),
        (
            AttentionConfig::builder(4, 264).elements(FloatType::F16),
            "head_dim is 264; it must be 1 to 256",
        ),
    ] {
        let error = builder.build().unwrap_err().to_string();
        assert!(error.contains(text), "{error:?} does not say {text:?}");
    }
    let config = f16().window(usize::MAX).softcap(50.0).build().unwrap();
    let found = (config.elements(), config.window(), config.softcap());
    assert_eq!(found, (FloatType::F16, Some(usize::MAX), Some(50.0)));
}

#[test]
fn a_plan_says_why() {
    let plan = |builder: AttentionBuilder| builder.build().unwrap().plan(1, 8, 8).unwrap();
    let usual = || AttentionConfig::builder(4, 64);
    for (plan, algorithm, reason) in [
        (plan(usual()), Algorithm::Flash, "every query sees every key"),
        (
            plan(usual().causal(true)),
            Algorithm::FlashCausal,
            "causal without a mask",
        ),
        (
            plan(usual().mask(MaskShape::Full)),
            Algorithm::FlashMasked,
            "with a mask",
        ),
        (
            plan(usual().separate_kernels(true)),
            Algorithm::Separate,
            "asks for separate kernels",
        ),
        (
            plan(AttentionConfig::builder(4, 264)),
            Algorithm::Separate,
            "so large a head_dim",
        ),
        (
            plan(usual().elements(FloatType::Bf16)),
            Algorithm::MatrixUnit,
            "16-bit floats",
        ),
        (
            plan(usual().elements(FloatType::F16).mask(MaskShape::Full)),
            Algorithm::MatrixUnit,
            "16-bit floats",
        ),
    ] {
        let explain = plan.explain();
        assert_eq!((explain.algorithm, plan.algorithm()), (algorithm, algorithm));
        let text = explain.to_string();
        assert!(
            text.starts_with(&algorithm.to_string()) && text.contains(reason),
            "{text}"
        );
        assert_eq!(plan.scratch_bytes() == Bytes(0), algorithm != Algorithm::Separate);
    }
}
