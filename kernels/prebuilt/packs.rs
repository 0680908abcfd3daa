// Written by `cargo xtask kernels build`.

/// Every embedded pack.
pub(crate) static PACKS: &[Embedded] = &[
    Embedded {
        arch: "gfx1030",
        fallback: None,
        near: None,
        packed: include_bytes!("gfx1030.pack.zst"),
    },
    Embedded {
        arch: "gfx1100",
        fallback: None,
        near: None,
        packed: include_bytes!("gfx1100.pack.zst"),
    },
    Embedded {
        arch: "gfx1101",
        fallback: None,
        near: Some("gfx1100"),
        packed: include_bytes!("gfx1101.pack.zst"),
    },
    Embedded {
        arch: "gfx1102",
        fallback: None,
        near: Some("gfx1100"),
        packed: include_bytes!("gfx1102.pack.zst"),
    },
    Embedded {
        arch: "gfx1150",
        fallback: None,
        near: Some("gfx1100"),
        packed: include_bytes!("gfx1150.pack.zst"),
    },
    Embedded {
        arch: "gfx1151",
        fallback: None,
        near: Some("gfx1100"),
        packed: include_bytes!("gfx1151.pack.zst"),
    },
    Embedded {
        arch: "gfx1200",
        fallback: None,
        near: Some("gfx1201"),
        packed: include_bytes!("gfx1200.pack.zst"),
    },
    Embedded {
        arch: "gfx1201",
        fallback: None,
        near: None,
        packed: include_bytes!("gfx1201.pack.zst"),
    },
    Embedded {
        arch: "gfx90a",
        fallback: None,
        near: None,
        packed: include_bytes!("gfx90a.pack.zst"),
    },
    Embedded {
        arch: "gfx942",
        fallback: None,
        near: Some("gfx90a"),
        packed: include_bytes!("gfx942.pack.zst"),
    },
    Embedded {
        arch: "sm_75",
        fallback: None,
        near: None,
        packed: include_bytes!("sm_75.pack.zst"),
    },
    Embedded {
        arch: "sm_80",
        fallback: Some("sm_75"),
        near: None,
        packed: include_bytes!("sm_80.pack.zst"),
    },
    Embedded {
        arch: "sm_90a",
        fallback: Some("sm_80"),
        near: None,
        packed: include_bytes!("sm_90a.pack.zst"),
    },
];
