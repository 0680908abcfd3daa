//! `kernels new NAME`: a kernel to start from, with a formula that works: its source and its declaration.
//!
//! The templates in `skeleton/` become files, and `ops/mod.rs` names the new module and its declarations. Tests, bounds, the benchmark and the table of kernels
//! follow from the declaration. Everything is made in memory first, so that a name which is taken or a list that cannot be found changes nothing.

use crate::{KernelsError, read, workspace_root, write};
use rocmforge_gpu_test::say;
use std::path::{Path, PathBuf};

const CRATE: &str = "crates/rocmforge-kernels";

/// New files: where, and the template.
const FILES: [(&str, &str); 2] = [
    ("kernels/NAME.hip", include_str!("skeleton/kernel.hip")),
    (
        "crates/rocmforge-kernels/src/ops/NAME.rs",
        include_str!("skeleton/declaration.rs"),
    ),
];

/// The lines for lists, each in the order of names among the lines with a beginning and an end: the file, the line, the beginning and the end.
#[rustfmt::skip]
const ENTRIES: [(&str, &str, &str, &str); 2] = [
    ("crates/rocmforge-kernels/src/ops/mod.rs", "mod NAME;", "mod ", ";"),
    ("crates/rocmforge-kernels/src/ops/mod.rs", "    NAME::DECLARED,", "    ", "::DECLARED,"),
];

/// Makes the files and the lines.
pub(crate) fn make(name: &str) -> Result<(), KernelsError> {
    let changes = plan(workspace_root(), name)?;
    for (path, text) in &changes {
        write(path, text.as_bytes())?;
        let shown = path.strip_prefix(workspace_root()).unwrap_or(path);
        say!("{}", shown.display());
    }
    say!("");
    say!("The kernel multiplies by a factor: put yours in its place, the definition first. Then:");
    say!("  cargo fmt --all                        breaks lines that the name has made long");
    say!(
        "  cargo xtask kernels build {name} --arch gfx1100 --arch gfx1201   compiles it for the simulated cards (clang {})",
        crate::compile::PINNED
    );
    say!("  cargo xtask kernels test {name}        compares it with its definition on both simulated cards");
    say!("  cargo xtask kernels build              compiles it for all targets");
    say!("  cargo xtask kernels counters {name} --bless   writes its bounds and its row in kernels/README.md");
    say!("A kernel that is not for all targets is stated in tools/kernels/src/families.rs.");
    Ok(())
}

/// The files of a new kernel, and those of the lists as they will be.
fn plan(root: &Path, name: &str) -> Result<Vec<(PathBuf, String)>, KernelsError> {
    let refused = |why: String| KernelsError::New {
        name: name.to_owned(),
        why,
    };
    let starts = name.starts_with(|c: char| c.is_ascii_lowercase());
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if !starts || name.len() > 40 || !name.chars().all(plain) {
        return Err(refused(
            "a name is up to 40 lower-case letters, digits and `_`, a letter first".to_owned(),
        ));
    }
    let launchers = launchers(&root.join(CRATE).join("src/ops"))?;
    if launchers.contains(&format!("fn {name}(")) || launchers.contains(&format!(": {name} in \"")) {
        return Err(refused(format!("`Kernels::{name}` exists")));
    }
    let mut changes: Vec<(PathBuf, String)> = Vec::new();
    for (path, template) in FILES {
        let path = root.join(path.replace("NAME", name));
        if path.exists() {
            return Err(refused(format!("{} exists", path.display())));
        }
        changes.push((path, template.replace("NAME", name)));
    }
    for (file, line, beginning, end) in ENTRIES {
        let path = root.join(file);
        let known = changes.iter().position(|(other, _)| *other == path);
        let text = match known {
            Some(at) => changes[at].1.clone(),
            None => String::from_utf8_lossy(&read(&path)?).into_owned(),
        };
        let line = line.replace("NAME", name);
        let new = insert(&text, &line, [beginning, end])
            .ok_or_else(|| refused(format!("{} has no place for `{}`", path.display(), line.trim())))?;
        match known {
            Some(at) => changes[at].1 = new,
            None => changes.push((path, new)),
        }
    }
    Ok(changes)
}

/// The text of all launchers.
fn launchers(folder: &Path) -> Result<String, KernelsError> {
    let mut text = String::new();
    for name in crate::compile::sorted(folder, "rs")? {
        text += &String::from_utf8_lossy(&read(&folder.join(name))?);
    }
    Ok(text)
}

/// The text with one more line; `None` if it has no list of such lines, or the line already.
fn insert(text: &str, line: &str, [beginning, end]: [&str; 2]) -> Option<String> {
    let mut lines: Vec<&str> = text.lines().collect();
    if lines.contains(&line) {
        return None;
    }
    // The last list without an empty line in it.
    let listed = |l: &&str| l.starts_with(beginning) && l.ends_with(end);
    let last = lines.iter().rposition(listed)?;
    let list = lines[..=last].iter().rev().take_while(|l| listed(l)).count();
    let first = last + 1 - list;
    let at = first + lines[first..=last].iter().filter(|l| **l < line).count();
    lines.insert(at, line);
    Some(lines.join("\n") + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_of_this_workspace_is_found() {
        let changes = plan(workspace_root(), "zz_new").unwrap();
        assert_eq!(changes.len(), FILES.len() + 1);
        for (path, text) in &changes {
            assert!(text.contains("zz_new") && !text.contains("NAME"), "{}", path.display());
            let mut without: Vec<&str> = text.lines().filter(|line| !line.contains("zz_new")).collect();
            if let Ok(before) = std::fs::read_to_string(path) {
                assert_eq!(without.join("\n"), before.trim_end(), "{}", path.display());
                without.clear();
            }
        }
    }

    #[test]
    fn names_that_are_taken_or_are_none_are_refused() {
        for (name, why) in [
            ("", "a letter first"),
            ("Add", "lower-case"),
            ("a-b", "lower-case"),
            ("../x", "lower-case"),
            ("1x", "a letter first"),
            ("softcap", "exists"),
            ("geglu", "`Kernels::geglu` exists"),
        ] {
            let error = plan(workspace_root(), name).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn a_line_comes_in_the_order_of_names() {
        let text = "mod support;\n\nmod b;\nmod d;\n\nfn f() {}\n";
        let sorted = |line| insert(text, line, ["mod ", ";"]);
        assert_eq!(sorted("mod c;").unwrap(), text.replace("mod d;", "mod c;\nmod d;"));
        assert_eq!(sorted("mod a;").unwrap(), text.replace("mod b;", "mod a;\nmod b;"));
        assert_eq!(sorted("mod e;").unwrap(), text.replace("mod d;", "mod d;\nmod e;"));
        assert_eq!(sorted("mod b;"), None);
        assert_eq!(insert(text, "    x::DECLARED,", ["    ", "::DECLARED,"]), None);
    }
}
