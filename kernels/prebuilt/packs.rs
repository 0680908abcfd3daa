// Written by `cargo xtask kernels build`.

/// Every embedded pack.
pub(crate) static PACKS: &[Embedded] = &[
    Embedded {
        arch: "gfx1030",
        fallback: None,
        packed: include_bytes!("gfx1030.pack.zst"),
    },
    Embedded {
        arch: "gfx1100",
        fallback: None,
        packed: include_bytes!("gfx1100.pack.zst"),
    },
    Embedded {
        arch: "gfx1101",
        fallback: None,
        packed: include_bytes!("gfx1101.pack.zst"),
    },
    Embedded {
        arch: "gfx1102",
        fallback: None,
        packed: include_bytes!("gfx1102.pack.zst"),
    },
    Embedded {
        arch: "gfx1150",
        fallback: None,
        packed: include_bytes!("gfx1150.pack.zst"),
    },
    Embedded {
        arch: "gfx1151",
        fallback: None,
        packed: include_bytes!("gfx1151.pack.zst"),
    },
    Embedded {
        arch: "gfx1200",
        fallback: None,
        packed: include_bytes!("gfx1200.pack.zst"),
    },
    Embedded {
        arch: "gfx1201",
        fallback: None,
        packed: include_bytes!("gfx1201.pack.zst"),
    },
    Embedded {
        arch: "gfx90a",
        fallback: None,
        packed: include_bytes!("gfx90a.pack.zst"),
    },
    Embedded {
        arch: "gfx942",
        fallback: None,
        packed: include_bytes!("gfx942.pack.zst"),
    },
    Embedded {
        arch: "sm_75",
        fallback: None,
        packed: include_bytes!("sm_75.pack.zst"),
    },
    Embedded {
        arch: "sm_80",
        fallback: Some("sm_75"),
        packed: include_bytes!("sm_80.pack.zst"),
    },
    Embedded {
        arch: "sm_90a",
        fallback: Some("sm_80"),
        packed: include_bytes!("sm_90a.pack.zst"),
    },
];
