//! Escaping for HTML, as Python's `markupsafe` does it.

use super::error::Error;
use super::value::TextBuilder;

/// Writes a text with `& < > ' "` escaped.
pub(super) fn write(text: &str, out: &mut TextBuilder) -> Result<(), Error> {
    for character in text.chars() {
        match character {
            '&' => out.push("&amp;")?,
            '<' => out.push("&lt;")?,
            '>' => out.push("&gt;")?,
            '\'' => out.push("&#39;")?,
            '"' => out.push("&#34;")?,
            _ => out.push_char(character)?,
        }
    }
    Ok(())
}
