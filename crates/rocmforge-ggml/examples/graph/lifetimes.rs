//! Lives of the tensors: a rectangle for each, from its first node to its last, at its place in the buffer.

use std::fmt::Write;

use rocmforge_ggml::graph_file::{GraphFile, PlannedFile};
use rocmforge_ggml::planner::Plan;

use crate::svg::{bytes_text, colour, escape, fit, text};

const HEIGHT: f64 = 720.0;
const AXIS: f64 = 96.0;
const SIZE: f64 = 10.0;

/// Draws them, and gives the height of this part.
pub(crate) fn draw(
    out: &mut String,
    file: &GraphFile,
    planned: &PlannedFile,
    plan: &Plan,
    [left, top]: [f64; 2],
    width: f64,
) -> f64 {
    text(
        out,
        [left, top + 16.0],
        16.0,
        "#111111",
        "Lives of the tensors: node order to the right, offset in the buffer downwards",
    );
    let (x0, y0) = (left + AXIS, top + 52.0);
    let (across, nodes) = ((width - AXIS).max(1.0), f64::from(planned.problem.nodes));
    let scale = HEIGHT / plan.peak_bytes.max(1) as f64;
    // Buffers one below the other.
    let mut starts = Vec::new();
    let mut sum = 0usize;
    for buffer in &plan.buffers {
        starts.push(sum);
        sum += buffer.bytes;
    }
    let _ = writeln!(
        out,
        "<rect x=\"{x0:.1}\" y=\"{y0:.1}\" width=\"{across:.1}\" height=\"{HEIGHT}\" fill=\"#fbfbfc\" stroke=\"#8b94a1\"/>"
    );
    for tick in 0..=8 {
        let (bytes, y) = (
            plan.peak_bytes as f64 * f64::from(tick) / 8.0,
            y0 + HEIGHT * f64::from(tick) / 8.0,
        );
        let _ = writeln!(out, "<path d=\"M{:.1} {y:.1}H{x0:.1}\" stroke=\"#8b94a1\"/>", x0 - 6.0);
        text(out, [left, y + 4.0], 11.0, "#444444", &bytes_text(bytes));
    }
    let every = (nodes / (across / 90.0)).max(1.0);
    let every = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0]
        .into_iter()
        .find(|&step| step >= every)
        .unwrap_or(5000.0);
    let mut at = 0.0;
    while at < nodes {
        let x = x0 + across * at / nodes;
        let _ = writeln!(out, "<path d=\"M{x:.1} {y0:.1}v-6\" stroke=\"#8b94a1\"/>");
        text(out, [x, y0 - 9.0], 11.0, "#444444", &format!("{at}"));
        at += every;
    }
    let mut overwritten = vec![false; plan.places.len()];
    for over in plan.places.iter().filter_map(|place| place.over) {
        overwritten[over as usize] = true;
    }
    for (index, (item, place)) in planned.problem.items.iter().zip(&plan.places).enumerate() {
        let entry = &file.entries()[planned.entries[index] as usize];
        // At the node where another overwrites it, the place is drawn as the other's.
        let end = f64::from(item.last) + f64::from(u8::from(!overwritten[index]));
        let first = f64::from(item.first);
        let (x, w) = (x0 + across * first / nodes, across * (end - first).max(0.2) / nodes);
        let offset = starts[place.buffer as usize] + place.offset;
        let (y, h) = (y0 + offset as f64 * scale, (item.bytes as f64 * scale).max(0.4));
        let _ = writeln!(
            out,
            "<g><title>{}</title><rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{w:.2}\" height=\"{h:.2}\" fill=\"{}\" \
             stroke=\"#5b6573\" stroke-width=\"0.4\"/>",
            escape(&format!(
                "{} {}: {} at {}, nodes {} to {}",
                entry.op,
                entry.name,
                bytes_text(item.bytes as f64),
                bytes_text(place.offset as f64),
                item.first,
                item.last
            )),
            colour(&entry.op)
        );
        let label = if entry.name.is_empty() { &entry.op } else { &entry.name };
        if h >= SIZE + 4.0 && w >= 34.0 {
            text(
                out,
                [x + 3.0, y + h / 2.0 + SIZE * 0.35],
                SIZE,
                "#111111",
                &fit(label, w - 6.0, SIZE),
            );
        }
        out.push_str("</g>\n");
    }
    52.0 + HEIGHT + 12.0
}
