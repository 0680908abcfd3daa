// Written by `cargo xtask kernels build`.

/// Every embedded pack, by architecture.
pub(crate) static PACKS: &[(&str, &[u8])] = &[
    ("gfx1100", include_bytes!("gfx1100.pack.zst")),
];
