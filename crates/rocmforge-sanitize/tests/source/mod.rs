//! Sources of the faulty kernels: how each is launched, and its faulty lines.

use include_dir::{Dir, include_dir};

/// The sources, a folder for each tool.
const SOURCES: [(&str, Dir<'_>); 4] = [
    ("memcheck", include_dir!("$CARGO_MANIFEST_DIR/tests/kernels/memcheck")),
    ("initcheck", include_dir!("$CARGO_MANIFEST_DIR/tests/kernels/initcheck")),
    ("racecheck", include_dir!("$CARGO_MANIFEST_DIR/tests/kernels/racecheck")),
    ("synccheck", include_dir!("$CARGO_MANIFEST_DIR/tests/kernels/synccheck")),
];

/// A marked line.
#[derive(Debug)]
pub(crate) struct Marker {
    pub(crate) line: u32,
    pub(crate) kind: String,
    /// It must be reported, rather than may.
    pub(crate) must: bool,
}

/// A source with a faulty and a corrected kernel.
#[derive(Debug)]
pub(crate) struct Source {
    /// `memcheck/read_past_end`
    pub(crate) name: String,
    pub(crate) markers: Vec<Marker>,
    /// The launch file of the faulty kernel, without its first line.
    pub(crate) faulty: String,
    /// The launch file of the corrected one.
    pub(crate) correct: String,
}

impl Source {
    pub(crate) fn read(name: String, text: &str) -> Self {
        let mut source = Self {
            name,
            markers: Vec::new(),
            faulty: String::new(),
            correct: String::new(),
        };
        for (index, line) in text.lines().enumerate() {
            if let Some(rest) = line.strip_prefix("//#") {
                let (only, rest) = match rest.chars().next() {
                    Some(sign @ ('-' | '+')) => (Some(sign), &rest[1..]),
                    _ => (None, rest),
                };
                if only != Some('+') {
                    source.faulty.push_str(&format!("{rest}\n"));
                }
                if only != Some('-') {
                    source
                        .correct
                        .push_str(&format!("{}\n", rest.replace("faulty", "correct")));
                }
                continue;
            }
            let words: Vec<&str> = line.split_whitespace().collect();
            for pair in words.windows(2) {
                if matches!(pair[0], "FAULT:" | "ALSO:") {
                    source.markers.push(Marker {
                        line: index as u32 + 1,
                        kind: pair[1].to_owned(),
                        must: pair[0] == "FAULT:",
                    });
                }
            }
        }
        assert!(source.markers.iter().any(|m| m.must), "{}: marks no fault", source.name);
        assert!(source.faulty.contains("launch"), "{}: no launch", source.name);
        source
    }
}

/// Every source, by name.
pub(crate) fn sources() -> Vec<Source> {
    let mut found = Vec::new();
    for (tool, folder) in &SOURCES {
        for file in folder.files() {
            let stem = file.path().file_stem().expect("a file").to_string_lossy();
            let text = file.contents_utf8().expect("a readable source");
            found.push(Source::read(format!("{tool}/{stem}"), text));
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    // `ROCMFORGE_SANITIZE_ONLY=racecheck/scan` runs one of them.
    if let Ok(only) = std::env::var("ROCMFORGE_SANITIZE_ONLY") {
        found.retain(|source| source.name.contains(&only));
    }
    found
}
