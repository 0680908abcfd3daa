//! The nodes: a column for each layer, a box for each node, and edges in the gaps between.

use std::fmt::Write;

use rocmforge_ggml::graph_file::{Entry, GraphFile};

use crate::layers::Layer;
use crate::svg::{colour, escape, fit, text};

const BOX: [f64; 2] = [236.0, 46.0];
const STEP: f64 = 62.0;
/// Left of the boxes of a column: room for the edges that skip nodes.
const GUTTER: f64 = 74.0;
const COLUMN: f64 = GUTTER + BOX[0] + 34.0;
const TITLE: f64 = 30.0;
const SIZE: f64 = 10.5;

/// Draws them at a place, and gives the drawing's width and the height of this part.
pub(crate) fn draw(out: &mut String, file: &GraphFile, layers: &[Layer], left: f64, top: f64) -> (f64, f64) {
    // Column and row of each node.
    let mut place = vec![None; file.entries().len()];
    for (column, layer) in layers.iter().enumerate() {
        for (row, &id) in layer.nodes.iter().enumerate() {
            place[id] = Some((column, row));
        }
    }
    let corner =
        |(column, row): (usize, usize)| [left + column as f64 * COLUMN + GUTTER, top + TITLE + row as f64 * STEP];
    let rows = layers.iter().map(|layer| layer.nodes.len()).max().unwrap_or(0);
    let height = TITLE + rows as f64 * STEP;
    for (column, layer) in layers.iter().enumerate() {
        let (x, h) = (left + column as f64 * COLUMN, TITLE + layer.nodes.len() as f64 * STEP);
        let _ = writeln!(
            out,
            "<rect x=\"{x:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{h:.1}\" rx=\"8\" fill=\"#f6f7f9\" stroke=\"#c3c9d1\"/>",
            COLUMN - 12.0
        );
        text(out, [x + 12.0, top + 20.0], 14.0, "#333333", &layer.title);
    }
    let _ = writeln!(
        out,
        "<marker id=\"head\" viewBox=\"0 0 8 8\" refX=\"7.5\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\">\
         <path d=\"M0 1L8 4L0 7Z\" fill=\"#7a8699\"/></marker>\n\
         <g fill=\"none\" stroke=\"#7a8699\" stroke-width=\"1.1\" marker-end=\"url(#head)\">"
    );
    for layer in layers {
        for &id in &layer.nodes {
            let Some(to) = place[id] else { continue };
            for &src in &file.entries()[id].srcs {
                if let Some(from) = place[src as usize] {
                    edge(out, from, to, corner(from), corner(to));
                }
            }
        }
    }
    out.push_str("</g>\n");
    for layer in layers {
        for &id in &layer.nodes {
            if let Some(at) = place[id] {
                node(out, file, id, corner(at));
            }
        }
    }
    (left * 2.0 + layers.len() as f64 * COLUMN - 12.0, height)
}

/// To the next row straight down, to later rows of the column through its gutter, to another column through the gap before it.
fn edge(out: &mut String, from: (usize, usize), to: (usize, usize), a: [f64; 2], b: [f64; 2]) {
    let half = BOX[0] / 2.0;
    let path = if from.0 == to.0 && from.1 + 1 == to.1 {
        format!("M{:.1} {:.1}V{:.1}", a[0] + half, a[1] + BOX[1], b[1])
    } else if from.0 == to.0 {
        let skipped = (to.1 as f64 - from.1 as f64).abs();
        let bend = a[0] - (12.0 + 3.2 * skipped).min(GUTTER - 14.0);
        let (y, z) = (a[1] + BOX[1] * 0.7, b[1] + BOX[1] * 0.3);
        format!(
            "M{:.1} {y:.1}C{bend:.1} {y:.1} {bend:.1} {z:.1} {:.1} {z:.1}",
            a[0], b[0]
        )
    } else {
        let (x, y, z) = (a[0] + BOX[0], a[1] + BOX[1] / 2.0, b[1] + BOX[1] * 0.5);
        let near = b[0] - GUTTER / 2.0;
        format!(
            "M{x:.1} {y:.1}H{:.1}C{near:.1} {y:.1} {near:.1} {z:.1} {:.1} {z:.1}",
            b[0] - GUTTER,
            b[0]
        )
    };
    let _ = writeln!(out, "<path d=\"{path}\"/>");
}

fn node(out: &mut String, file: &GraphFile, id: usize, [x, y]: [f64; 2]) {
    let entry = &file.entries()[id];
    let (fill, dash) = if entry.view_of.is_some() {
        ("#ffffff".to_owned(), " stroke-dasharray=\"4 3\"")
    } else {
        (colour(&entry.op), "")
    };
    let leafs: Vec<&str> = entry
        .srcs
        .iter()
        .map(|&src| src as usize)
        .filter(|&src| src < file.leafs())
        .map(|src| file.entries()[src].name.as_str())
        .collect();
    let _ = writeln!(
        out,
        "<g><title>{}</title><rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{}\" height=\"{}\" rx=\"4\" fill=\"{fill}\" \
         stroke=\"#5b6573\"{dash}/>",
        escape(&format!(
            "{id} {} {}: {}, {} B, of {:?}",
            entry.op,
            entry.name,
            shape(entry),
            entry.nbytes,
            entry.srcs
        )),
        BOX[0],
        BOX[1]
    );
    let room = BOX[0] - 12.0;
    let op = fit(&entry.op, room, SIZE);
    let used = (op.chars().count() + 2) as f64 * SIZE * 0.605;
    text(out, [x + 6.0, y + 13.0], SIZE, "#000000", &op);
    text(
        out,
        [x + 6.0 + used, y + 13.0],
        SIZE,
        "#4a5260",
        &fit(&entry.name, room - used, SIZE),
    );
    text(
        out,
        [x + 6.0, y + 27.0],
        SIZE,
        "#222222",
        &fit(&shape(entry), room, SIZE),
    );
    text(
        out,
        [x + 6.0, y + 41.0],
        SIZE,
        "#6b4a00",
        &fit(&leafs.join(", "), room, SIZE),
    );
    out.push_str("</g>\n");
}

/// `f32 [4096, 512]`, fastest dimension first, without the ones at the end.
fn shape(entry: &Entry) -> String {
    let used = entry.shape.iter().rposition(|&dim| dim != 1).map_or(1, |last| last + 1);
    format!("{} {:?}", entry.dtype, &entry.shape[..used])
}
