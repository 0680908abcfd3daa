//! Texts of files and libraries, as errors show them: on one line, with a bound.

/// Most characters of a value that an error shows.
const SHOWN: usize = 80;

/// Most characters of another library's message that an error shows.
const BRIEF: usize = 400;

/// Text on one line, with its end left out where it is long.
pub(crate) fn shortened(text: &str) -> String {
    at_most(SHOWN, text)
}

/// What another library says, which may hold text of a file, on one line.
pub(crate) fn brief(said: &impl std::fmt::Display) -> String {
    at_most(BRIEF, &said.to_string())
}

fn at_most(most: usize, text: &str) -> String {
    let mut shown = String::new();
    for (count, character) in text.chars().filter(|c| !c.is_whitespace() || *c == ' ').enumerate() {
        if count == most {
            shown.push_str("...");
            break;
        }
        match character.is_control() {
            true => shown.extend(character.escape_default()),
            false => shown.push(character),
        }
    }
    shown
}
