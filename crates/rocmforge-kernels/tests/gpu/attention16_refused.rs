//! Operands that attention over 16-bit floats refuses before the launch.

use crate::attention16::{CAUSAL, up, window};
use crate::support::{device, refused};
use rocmforge_kernels::{
    Attention16Operands, Attention16Options, Attention16Shape, Half, Operand, SequenceLengths, Strides,
};

#[test]
fn what_does_not_fit_is_refused() {
    let d = device();
    let n = 4 * 16 * 16;
    let (q, k, v, out) = (
        up(&d, &vec![0; n]),
        up(&d, &vec![0; n]),
        up(&d, &vec![0; n]),
        up(&d, &vec![0; n]),
    );
    let strides = Strides::heads_first(4, 16, 16);
    let good = Attention16Shape {
        batch: 1,
        heads: 4,
        kv_heads: 4,
        seq_q: 16,
        seq_k: 16,
        width_k: 16,
        width_v: 16,
    };
    let operands = Attention16Operands {
        ty: Half::F16,
        q: Operand::new(&q, strides),
        k: Operand::new(&k, strides),
        v: Operand::new(&v, strides),
        out: Operand::new(&out, strides),
        lse: None,
        lengths: None,
    };
    let options = Attention16Options::new(16, CAUSAL);
    let lengths = |lengths: &[[usize; 2]]| SequenceLengths::new(d.stream(), lengths);
    refused(lengths(&[]), "batch is 0");
    refused(lengths(&[[1, 1 << 31]]), "keys is 2147483648");
    let refused = |o: Attention16Operands<'_>, s: Attention16Shape, x: Attention16Options<'_>, text: &str| {
        refused(d.kernels.attention16(d.stream(), o, s, x), text);
    };
    for (shape, text) in [
        (Attention16Shape { batch: 0, ..good }, "batch is 0"),
        (
            Attention16Shape { batch: 65_536, ..good },
            "batch is 65536; it must be 1 to 65535",
        ),
        (Attention16Shape { seq_q: 0, ..good }, "seq_q is 0"),
        (Attention16Shape { seq_k: 0, ..good }, "seq_k is 0"),
        (Attention16Shape { width_k: 0, ..good }, "width_k is 0"),
        (
            Attention16Shape { width_v: 264, ..good },
            "width_v is 264; it must be 1 to 256",
        ),
        (Attention16Shape { width_k: 12, ..good }, "multiple of 8 (12 and 8)"),
        (Attention16Shape { kv_heads: 3, ..good }, "4 heads cannot share 3"),
        (Attention16Shape { seq_k: 17, ..good }, "k has 1024 elements"),
        (Attention16Shape { seq_q: 17, ..good }, "q has 1024 elements"),
    ] {
        refused(operands, shape, options, text);
    }
    let odd = Strides { row: 20, ..strides };
    let few = Attention16Shape { seq_q: 4, ..good };
    refused(
        Attention16Operands {
            q: Operand::new(&q, odd),
            ..operands
        },
        few,
        options,
        "multiples of 8",
    );
    let at_one = q.view(1..n).unwrap();
    let one_head = Attention16Shape {
        heads: 1,
        kv_heads: 1,
        ..good
    };
    refused(
        Attention16Operands {
            q: Operand::new(&at_one, strides),
            ..operands
        },
        one_head,
        options,
        "16",
    );
    let same_rows = Strides { row: 0, ..strides };
    refused(
        Attention16Operands {
            out: Operand::new(&out, same_rows),
            ..operands
        },
        good,
        options,
        "out",
    );
    refused(
        Attention16Operands {
            out: operands.v,
            ..operands
        },
        good,
        options,
        "out",
    );
    let few_sums = d.out(63);
    refused(
        Attention16Operands {
            lse: Some(&few_sums),
            ..operands
        },
        good,
        options,
        "lse has 63 elements",
    );
    let (few_slopes, mask) = (d.out(3), d.out(255));
    refused(
        operands,
        good,
        Attention16Options {
            slopes: Some(&few_slopes),
            ..options
        },
        "slopes has 3 elements",
    );
    refused(
        operands,
        good,
        Attention16Options {
            sinks: Some(&few_slopes),
            ..options
        },
        "sinks has 3 elements",
    );
    let mask = Some(Operand::new(&mask, Strides::per_row(16)));
    refused(
        operands,
        good,
        Attention16Options { mask, ..options },
        "mask has 255 elements",
    );
    refused(
        operands,
        good,
        Attention16Options {
            scale: f32::NAN,
            ..options
        },
        "scale is NaN",
    );
    refused(
        operands,
        good,
        Attention16Options {
            softcap: Some(0.0),
            ..options
        },
        "softcap is 0",
    );
    refused(
        operands,
        good,
        Attention16Options {
            visible: window(0),
            ..options
        },
        "window is 0",
    );
    for (lengths, text) in [
        (vec![[16, 16]; 2], "as many sequences as the batch has (2 and 1)"),
        (vec![[17, 16]], "within seq_q (17 and 16)"),
        (vec![[16, 17]], "within seq_k (17 and 16)"),
    ] {
        let lengths = SequenceLengths::new(d.stream(), &lengths).unwrap();
        refused(
            Attention16Operands {
                lengths: Some(&lengths),
                ..operands
            },
            good,
            options,
            text,
        );
    }
}
