//! Parts of an SVG: text that fits, bytes, colours.

use std::fmt::Write;

/// Width of a character of the font, of its size: that of DejaVu Sans Mono, the widest in use.
const CHARACTER: f64 = 0.605;

/// Text whose baseline starts at a point.
pub(crate) fn text(out: &mut String, [x, y]: [f64; 2], size: f64, fill: &str, text: &str) {
    let text = escape(text);
    let _ = writeln!(
        out,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" fill=\"{fill}\">{text}</text>"
    );
}

/// As much of a text as fits into a width, with an ellipsis where it was cut.
pub(crate) fn fit(text: &str, width: f64, size: f64) -> String {
    let most = (width / (size * CHARACTER)) as usize;
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let kept = text.chars().take(most.saturating_sub(1));
    kept.chain(['…']).collect()
}

pub(crate) fn escape(text: &str) -> String {
    let printable = text.chars().filter(|c| !c.is_control());
    printable.fold(String::new(), |mut out, c| {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            c => out.push(c),
        }
        out
    })
}

/// Bytes in the largest unit in which they are at least 1.
pub(crate) fn bytes_text(bytes: f64) -> String {
    match bytes {
        b if b >= 1048576.0 => format!("{:.2} MiB", b / 1048576.0),
        b if b >= 1024.0 => format!("{:.1} KiB", b / 1024.0),
        b => format!("{b:.0} B"),
    }
}

/// A light colour for an op.
pub(crate) fn colour(op: &str) -> String {
    let hash = op
        .bytes()
        .fold(7u32, |hash, byte| hash.wrapping_mul(31).wrapping_add(u32::from(byte)));
    format!(
        "hsl({},{}%,{}%)",
        hash % 360,
        45 + hash / 360 % 25,
        78 + hash / 9000 % 10
    )
}
