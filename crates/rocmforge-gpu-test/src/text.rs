//! Text of others as people see it: control characters are made visible, and lines are cut.
//!
//! What a test prints or is called may hold sequences that a terminal obeys. All of it goes through here on its way to a terminal,
//! a page or JUnit; `report.json` has it as it was.

use std::borrow::Borrow;

/// The longest line shown, in characters.
pub(crate) const LONGEST_LINE: usize = 2000;

/// `text` in one line: ends of lines are made visible too.
pub(crate) fn line(text: &str) -> String {
    let mut shown = String::with_capacity(text.len().min(4 * LONGEST_LINE));
    for c in text.chars().take(LONGEST_LINE) {
        match c {
            '\t' => shown.push(' '),
            c => push(&mut shown, c),
        }
    }
    match text.chars().skip(LONGEST_LINE).count() {
        0 => shown,
        more => format!("{shown} … ({more} more characters)"),
    }
}

/// `text` in the lines that it has, each cut.
pub(crate) fn lines(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for (number, part) in text.split('\n').enumerate() {
        if number > 0 {
            shown.push('\n');
        }
        // A line may end as it does elsewhere.
        shown += &line(part.strip_suffix('\r').unwrap_or(part));
    }
    shown
}

/// `text` with its lines and tabs as they are and nothing cut.
pub(crate) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => shown.push(c),
            c => push(&mut shown, c),
        }
    }
    shown
}

/// Names with commas between them; `none` where there are none.
pub(crate) fn none_or(names: &[impl Borrow<str>]) -> String {
    match names {
        [] => "none".to_owned(),
        names => names.join(", "),
    }
}

/// Whether a name can be shown as it is.
pub(crate) fn is_printable(text: &str) -> bool {
    !text.chars().any(is_hidden)
}

/// What a terminal or a page obeys, or shows as nothing: control characters, and those that change the order of others.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}' | '\u{fffe}' | '\u{ffff}' | '\u{e0000}'..='\u{e007f}')
}

fn push(shown: &mut String, c: char) {
    match c {
        // Unicode has pictures of these.
        '\0'..='\u{1f}' => shown.extend(char::from_u32(0x2400 + u32::from(c))),
        '\u{7f}' => shown.push('\u{2421}'),
        c if is_hidden(c) => shown.extend(c.escape_unicode()),
        c => shown.push(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_shown_instead() {
        let hostile = "a\u{1b}[2J\u{1b}]0;x\u{7}\r\u{8}\u{9b}31m\u{7f}\u{202e}z\u{200b}\n9 passed\tb";
        let one = line(hostile);
        assert_eq!(one, "a␛[2J␛]0;x␇␍␈\\u{9b}31m␡\\u{202e}z\\u{200b}␊9 passed b");
        assert!(is_printable(&one) && !is_printable(hostile));
        assert_eq!(lines("a\r\nb\u{1b}\n"), "a\nb␛\n");
        assert_eq!(visible("a\tb\n\u{1b}c\r"), "a\tb\n␛c␍");
        assert_eq!(line("größer 例 🦀"), "größer 例 🦀");
    }

    #[test]
    fn a_long_line_is_cut_and_says_by_how_much() {
        let most = "é".repeat(LONGEST_LINE);
        assert_eq!(line(&most), most);
        let cut = line(&format!("{most}xyz"));
        assert_eq!(cut, format!("{most} … (3 more characters)"));
        assert_eq!(
            lines(&format!("{most}\n{most}x")),
            format!("{most}\n{most} … (1 more characters)")
        );
    }
}
