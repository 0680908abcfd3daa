// Written by `cargo xtask kernels build`.

/// Every embedded pack, by architecture.
pub(crate) static PACKS: &[(&str, &[u8])] = &[
    ("gfx1030", include_bytes!("gfx1030.pack.zst")),
    ("gfx1100", include_bytes!("gfx1100.pack.zst")),
    ("gfx1101", include_bytes!("gfx1101.pack.zst")),
    ("gfx1102", include_bytes!("gfx1102.pack.zst")),
    ("gfx1150", include_bytes!("gfx1150.pack.zst")),
    ("gfx1151", include_bytes!("gfx1151.pack.zst")),
    ("gfx1200", include_bytes!("gfx1200.pack.zst")),
    ("gfx1201", include_bytes!("gfx1201.pack.zst")),
    ("gfx90a", include_bytes!("gfx90a.pack.zst")),
    ("gfx942", include_bytes!("gfx942.pack.zst")),
    ("sm_75", include_bytes!("sm_75.pack.zst")),
];
