//! Front pages of the crates: each library's documentation has an example that compiles, and its README shows the same one.

use super::Broken;
use std::path::Path;

/// Checks the front page and the README of every crate.
pub(super) fn check(root: &Path, broken: &mut Vec<Broken>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(root.join("crates"))? {
        let folder = entry?.path();
        let source = folder.join("src/lib.rs");
        let Ok(text) = std::fs::read_to_string(&source) else {
            continue;
        };
        let mut report = |path: &Path, rule: &str| {
            broken.push(Broken {
                path: path.strip_prefix(root).unwrap_or(path).to_owned(),
                line: None,
                rule: rule.to_owned(),
            });
        };
        let Some(example) = example(&text) else {
            report(&source, "the front page has no example that compiles");
            continue;
        };
        let page = folder.join("README.md");
        match std::fs::read_to_string(&page) {
            Ok(text) if text.contains(&format!("```rust\n{example}\n```\n")) => {}
            Ok(_) => report(
                &page,
                "its example is not the first one of src/lib.rs, without the hidden lines",
            ),
            Err(_) => report(&page, "a crate has a README"),
        }
    }
    Ok(())
}

/// The first example of a front page that compiles, without the lines that rustdoc hides.
fn example(source: &str) -> Option<String> {
    let page = source.lines().map_while(|line| line.strip_prefix("//!"));
    let mut lines = page.map(|line| line.strip_prefix(' ').unwrap_or(line));
    loop {
        let opening = lines.find(|line| line.starts_with("```"))?;
        if ["```", "```no_run"].contains(&opening) {
            break;
        }
        lines.find(|line| *line == "```")?;
    }
    let shown: Vec<&str> = lines
        .take_while(|line| *line != "```")
        .filter(|line| *line != "#" && !line.starts_with("# "))
        .collect();
    Some(shown.join("\n").trim_matches('\n').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_example_that_compiles_is_taken_without_hidden_lines() {
        let page = "//! A crate.\n//!\n//! ```text\n//! no\n//! ```\n//!\n//! ```\n//! # fn main() {\n//! let x = 1;\n//! # }\n//! ```\n";
        assert_eq!(example(page).as_deref(), Some("let x = 1;"));
        assert_eq!(example("//! A crate.\n"), None);
    }
}
