//! Layers of a graph, from the names of its tensors.

use rocmforge_ggml::graph_file::{Entry, GraphFile};

/// Nodes in a column of a graph whose names say no layers.
const COLUMN: usize = 32;

/// Consecutive nodes that are drawn in one column.
pub(crate) struct Layer {
    pub(crate) title: String,
    /// Entries.
    pub(crate) nodes: Vec<usize>,
}

/// The layers in the order they run. A node whose name says nothing belongs to the layer of the node before it.
pub(crate) fn layers(file: &GraphFile) -> Vec<Layer> {
    let mut layers: Vec<Layer> = Vec::new();
    let nodes = file.entries().iter().enumerate().skip(file.leafs());
    let numbered = nodes.clone().any(|(_, entry)| number(&entry.name).is_some());
    for (index, (id, entry)) in nodes.enumerate() {
        let title = if numbered {
            title(entry, layers.is_empty())
        } else {
            Some(format!(
                "nodes {} to {}",
                index / COLUMN * COLUMN,
                index / COLUMN * COLUMN + COLUMN - 1
            ))
        };
        match (title, layers.last_mut()) {
            (Some(title), Some(last)) if last.title == title => last.nodes.push(id),
            (None, Some(last)) => last.nodes.push(id),
            (title, _) => layers.push(Layer {
                title: title.unwrap_or_else(|| "input".to_owned()),
                nodes: vec![id],
            }),
        }
    }
    layers
}

fn title(entry: &Entry, first: bool) -> Option<String> {
    if let Some(number) = number(&entry.name) {
        return Some(format!("layer {number}"));
    }
    if entry.name.starts_with("result") || entry.name == "norm" {
        return Some("output".to_owned());
    }
    first.then(|| "input".to_owned())
}

/// The number in `attn_norm-3`, `Kcur-3 (view)` or `cache_k_l3 (view)`.
fn number(name: &str) -> Option<u32> {
    let name = name.split(' ').next()?;
    let digits = name.len() - name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let (stem, digits) = name.split_at(name.len() - digits);
    if stem.ends_with('-') || (stem.starts_with("cache_") && stem.ends_with("_l")) {
        return digits.parse().ok();
    }
    None
}
