//! Cases as graph files: the graph by [`GraphFile::from_graph`], with a rule for the data of each leaf and the seed.

use rocmforge_ggml::TensorId;
use rocmforge_ggml::graph_file::{Entry, GraphFile, Kind};
use serde_json::json;

use super::data::Data;
use super::{Case, Leaf};

/// Fields that the schema does not have.
const DATA: &str = "data";
const SALT: &str = "data_salt";
const SEED: &str = "seed";

/// A case as one line of JSON.
pub(crate) fn to_json(case: &Case) -> String {
    let inputs: Vec<TensorId> = case
        .leafs
        .iter()
        .filter(|(_, leaf)| !leaf.is_weight)
        .map(|leaf| *leaf.0)
        .collect();
    let file = GraphFile::from_graph(&case.graph, &inputs).expect("a graph that can be written");
    let with_data = |entry: &Entry| {
        let mut entry = entry.clone();
        if entry.kind == Kind::Leaf {
            let id = entry.descriptor.as_ref().expect("a file of a graph").tensor as usize;
            let leaf = &case.leafs[&TensorId(id)];
            entry.other.insert(DATA.to_owned(), json!(leaf.data));
            entry.other.insert(SALT.to_owned(), json!(leaf.salt));
        }
        entry
    };
    let mut file = GraphFile::from_entries(file.entries().iter().map(with_data).collect()).expect("the same entries");
    file.other.insert(SEED.to_owned(), json!(case.seed));
    String::from_utf8(file.to_json().expect("finite numbers")).expect("JSON is UTF-8")
}

/// The case of a line of JSON.
pub(crate) fn from_json(text: &str) -> Case {
    let file = GraphFile::from_bytes(text.as_bytes()).expect("a graph file");
    let (graph, inputs) = file.to_graph().expect("a file of a graph");
    let leaf = |entry: &Entry| {
        let id = TensorId(entry.descriptor.as_ref().expect("a file of a graph").tensor as usize);
        let data: Data = serde_json::from_value(entry.other[DATA].clone()).expect("a rule for the data");
        let is_weight = !inputs.contains(&id);
        let salt = entry.other[SALT].as_u64().expect("a salt");
        (id, Leaf { data, salt, is_weight })
    };
    let leafs = file.entries().iter().filter(|entry| entry.kind == Kind::Leaf);
    Case {
        leafs: leafs.map(leaf).collect(),
        graph,
        seed: file.other[SEED].as_u64().expect("a seed"),
    }
}
