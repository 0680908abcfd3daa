//! Drawing of a graph: its parts, and text that fits.

use std::fmt::Write;

use rocmforge_ggml::graph_file::{GraphFile, PlannedFile};
use rocmforge_ggml::planner::Plan;

use crate::{layers, lifetimes, nodes};

/// Width of a character of the font, of its size: that of DejaVu Sans Mono, the widest in use.
const CHARACTER: f64 = 0.605;
const MARGIN: f64 = 24.0;
const HEADER: f64 = 64.0;

/// The whole drawing.
pub(crate) fn draw(file: &GraphFile, planned: &PlannedFile, plan: &Plan, align: usize) -> String {
    let layers = layers::layers(file);
    let mut body = String::new();
    let (width, height) = nodes::draw(&mut body, file, &layers, MARGIN, MARGIN + HEADER);
    let width = width.max(1200.0);
    let below = MARGIN + HEADER + height + 40.0;
    let lives = lifetimes::draw(&mut body, file, planned, plan, [MARGIN, below], width - 2.0 * MARGIN);
    let total = below + lives + MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{total:.0}\" \
         viewBox=\"0 0 {width:.0} {total:.0}\" font-family=\"DejaVu Sans Mono, Menlo, Consolas, monospace\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
    );
    let name = file.model.as_deref().unwrap_or("graph");
    text(&mut svg, [MARGIN, MARGIN + 22.0], 22.0, "#111111", name);
    let ggml = file
        .ggml_peak(align)
        .map_or(String::new(), |bytes| format!(", ggml {}", bytes_text(bytes as f64)));
    let summary = format!(
        "{} nodes, {} tensors planned, {} of them over an operand; peak {}, lower bound {}{ggml}; alignment {align} B",
        file.entries().len() - file.leafs(),
        plan.places.len(),
        plan.places.iter().filter(|place| place.over.is_some()).count(),
        bytes_text(plan.peak_bytes as f64),
        bytes_text(plan.bound_bytes as f64),
    );
    text(&mut svg, [MARGIN, MARGIN + 46.0], 13.0, "#444444", &summary);
    svg += &body;
    svg += "</svg>\n";
    svg
}

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
