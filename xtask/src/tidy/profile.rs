//! Profile advice: each page that says what to optimise in a debug build has the sections of `Cargo.toml`.

use super::Broken;
use std::path::Path;

/// Crates with advice, in the order of the pages: those of the simulated card, and those that compute on the CPU.
const CRATES: [&str; 6] = [
    "rocmforge-isa",
    "rocmforge-amdgcn",
    "rocmforge-sim",
    "rocmforge-ggml",
    "rocmforge-models",
    "rocmforge-gguf",
];

/// Pages with the advice, and how many of the crates each names: `rocmforge-amdgcn` does not need the simulator.
const PAGES: &[(&str, usize)] = &[
    ("README.md", 6),
    ("crates/rocmforge/README.md", 6),
    ("crates/rocmforge/src/lib.rs", 6),
    ("crates/rocmforge-amdgcn/README.md", 2),
    ("crates/rocmforge-sim/README.md", 3),
    ("crates/rocmforge-sim/src/lib.rs", 3),
];

/// The advice that programs print, and the crates that it names.
const PRINTED: &[(&str, std::ops::Range<usize>)] = &[
    ("crates/rocmforge-sim/src/machine/unoptimised.rs", 0..3),
    ("crates/rocmforge-models/src/unoptimised.rs", 3..6),
];

/// Compares the pages with `Cargo.toml`.
pub(super) fn check(root: &Path, broken: &mut Vec<Broken>) -> std::io::Result<()> {
    let manifest = std::fs::read_to_string(root.join("Cargo.toml"))?;
    let sections = CRATES.map(|name| section(&manifest, name));
    let mut report = |path: &str, rule: String| {
        broken.push(Broken {
            path: path.into(),
            line: None,
            rule,
        });
    };
    if let Some(n) = sections.iter().position(String::is_empty) {
        report(
            "Cargo.toml",
            format!(
                "it has no section [profile.dev.package.{}], which pages advise",
                CRATES[n]
            ),
        );
        return Ok(());
    }
    for (page, crates) in PAGES {
        let text = std::fs::read_to_string(root.join(page))?.replace("//! ", "");
        let advice = sections[..*crates].concat();
        if !text.contains(&format!("\n{advice}```\n")) {
            report(page, format!("its profile is not that of Cargo.toml:\n{advice}"));
        }
    }
    for (path, crates) in PRINTED {
        let printed = std::fs::read_to_string(root.join(path))?;
        let all = CRATES[crates.clone()].iter().zip(&sections[crates.clone()]);
        for key in all.flat_map(|(name, section)| keys(name, section)) {
            if !printed.contains(&key) {
                report(path, format!("it does not say `{key}`, as Cargo.toml does"));
            }
        }
    }
    Ok(())
}

/// The section of a crate's profile, without comments and without `debug`, which does not make the card faster.
fn section(manifest: &str, name: &str) -> String {
    let header = format!("[profile.dev.package.{name}]");
    let lines = manifest.lines().skip_while(|line| *line != header);
    let body = lines.clone().skip(1).take_while(|line| !line.starts_with('['));
    lines
        .take(1)
        .chain(body.filter(|line| !line.is_empty() && !line.starts_with('#') && !line.starts_with("debug")))
        .map(|line| format!("{line}\n"))
        .collect()
}

/// The settings of a section as dotted keys.
fn keys(name: &str, section: &str) -> Vec<String> {
    let settings = section.lines().skip(1);
    settings
        .map(|setting| format!("profile.dev.package.{name}.{setting}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_ends_at_the_next_one_and_has_what_makes_the_card_faster() {
        let manifest =
            "[profile.dev.package.a]\nopt-level = 2\n# b\ndebug = false\n\n[profile.dev.package.b]\nopt-level = 3\n";
        assert_eq!(section(manifest, "a"), "[profile.dev.package.a]\nopt-level = 2\n");
        assert_eq!(
            keys("a", &section(manifest, "a")),
            ["profile.dev.package.a.opt-level = 2"]
        );
        assert_eq!(section(manifest, "c"), "");
    }
}
