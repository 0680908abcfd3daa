//! Prose rules: first lines of modules, and words that are not used.

use std::path::Path;

/// A first line that starts so is a question in the place of a noun.
const QUESTION_WORDS: &[&str] = &["What", "Who", "Where", "How", "Whether", "Which", "Why", "When"];

/// Metaphors, each with the field's word. Written in pieces, so that this file does not break its own rule.
const METAPHORS: &[(&str, &str)] = &[
    (concat!("he", "ir"), "successor"),
    (concat!("bu", "ry"), "defer the free"),
    (concat!("bu", "ried"), "freed later"),
    (concat!("gra", "ve"), "deferred free"),
    (concat!("gra", "ves"), "deferred frees"),
    (concat!("she", "lf"), "free list"),
    (concat!("par", "ked"), "idle"),
    (concat!("le", "nt"), "in use"),
    (concat!("le", "nds"), "gives"),
    (concat!("house", "hold"), "process tree"),
    (concat!("ta", "med"), "contained"),
    (concat!("do", "or"), "access"),
    (concat!("lad", "der"), "escalation"),
    (concat!("cor", "pse"), "ended process"),
    (concat!("under", "taker"), "deferred free"),
    (concat!("good", "bye"), "release of a claim"),
];

/// What is wrong with the first line of a module; `None` for a file that is no module of a crate, and for tests.
pub(super) fn first_line(path: &Path, text: &str) -> Option<String> {
    let in_source = path.components().any(|part| part.as_os_str() == "src");
    let rust = path.extension().is_some_and(|extension| extension == "rs");
    let tests = path.ends_with("tests.rs") || path.components().any(|part| part.as_os_str() == "tests");
    // Templates of new files are no modules.
    let template = path.components().any(|part| part.as_os_str() == "skeleton");
    let generated = path.starts_with("crates/rocmforge-isa/src/tables");
    if !in_source || !rust || tests || template || generated {
        return None;
    }
    let first = text.lines().next().unwrap_or_default();
    let Some(sentence) = first.strip_prefix("//! ") else {
        return Some("a module starts with `//!`, a noun and its job".to_owned());
    };
    let word = sentence.split(' ').next().unwrap_or_default();
    QUESTION_WORDS
        .contains(&word)
        .then(|| format!("a module starts with a noun and its job, not with `{word}`"))
}

/// Metaphors in a line, each with the word to use.
pub(super) fn metaphors(path: &Path, line: &str) -> Vec<String> {
    // The changelog names what it was called then.
    let prose = path
        .extension()
        .is_some_and(|extension| extension == "rs" || extension == "md");
    if !prose || path == Path::new("CHANGELOG.md") {
        return Vec::new();
    }
    // In a document, back quotes hold names of code, which have the rule where they are defined.
    let markdown = path.extension().is_some_and(|extension| extension == "md");
    let text: String = line
        .split('`')
        .step_by(if markdown { 2 } else { 1 })
        .collect::<Vec<_>>()
        .join(" ");
    let words = text.split(|letter: char| !letter.is_ascii_alphabetic());
    let lower: Vec<String> = words.map(str::to_ascii_lowercase).collect();
    let used = METAPHORS
        .iter()
        .filter(|(word, _)| lower.iter().any(|used| used == word));
    used.map(|(word, instead)| format!("`{word}` is a metaphor; the field says `{instead}`"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_starts_with_a_noun() {
        let module = Path::new("crates/rocmforge-gguf/src/reader.rs");
        assert_eq!(first_line(module, "//! Reader of files.\n"), None);
        assert!(first_line(module, "//! What files hold.\n").is_some());
        assert!(first_line(module, "use std::io;\n").is_some());
        assert_eq!(
            first_line(Path::new("crates/x/src/a/tests.rs"), "use super::*;\n"),
            None
        );
        assert_eq!(first_line(Path::new("crates/x/benches/a.rs"), "fn main() {}\n"), None);
    }

    #[test]
    fn a_metaphor_is_found_as_a_whole_word_only() {
        let line = format!("the {}{} of a buffer", "he", "ir");
        assert_eq!(metaphors(Path::new("docs/memory.md"), &line).len(), 1);
        assert!(metaphors(Path::new("docs/memory.md"), "their buffers, indoors").is_empty());
        assert!(metaphors(Path::new("kernels/a.hip"), &line).is_empty());
    }
}
