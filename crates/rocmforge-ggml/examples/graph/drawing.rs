//! Drawing of a graph: a heading, its nodes, and the lives of its tensors.

use rocmforge_ggml::graph_file::{GraphFile, PlannedFile};
use rocmforge_ggml::planner::Plan;

use crate::svg::{bytes_text, text};
use crate::{layers, lifetimes, nodes};

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
