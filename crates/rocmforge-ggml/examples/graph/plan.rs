//! `plan`: a table of peaks and bounds, or JSON.

use std::path::{Path, PathBuf};
use std::time::Instant;

use rocmforge_ggml::graph_file::{FoundOrder, GraphFile, GraphFileError, OptimizedFile, search_order};
use rocmforge_ggml::optimizer::{GraphOptimizer, Pass};
use rocmforge_ggml::planner::{BufferKind, InPlace, Plan};
use serde_json::{Map, Value, json};

use crate::Failure;

/// Times a plan is made; the shortest counts.
const RUNS: usize = 20;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The graphs.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Prints one JSON object a file.
    #[arg(long)]
    json: bool,
    /// Looks for an order of the nodes that needs less memory, too.
    #[arg(long)]
    search: bool,
    /// Runs the optimizer on each graph first, and plans what it leaves: for files that were made of graphs of ours.
    #[arg(long)]
    optimize: bool,
    /// Alignment of every tensor in bytes.
    #[arg(long, default_value_t = 128)]
    align: usize,
}

struct Row {
    name: String,
    nodes: usize,
    plan: Plan,
    /// The bound with what ggml may overwrite.
    ggml_bound: usize,
    ggml_peak: Option<u64>,
    ggml_microseconds: Option<f64>,
    microseconds: f64,
    searched: Option<(FoundOrder, f64)>,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    if !args.json {
        println!(
            "{:<24} {:>6} {:>12} {:>12} {:>12} {:>12} {:>6} {:>9} {:>9}{}",
            "graph",
            "nodes",
            "peak B",
            "bound B",
            "ggml's bound",
            "ggml B",
            "ratio",
            "time us",
            "ggml us",
            if args.search {
                "  other order B   less  any order B"
            } else {
                ""
            }
        );
    }
    for path in &args.files {
        println!("{}", report(path, args)?);
    }
    Ok(())
}

/// What is printed of one file.
fn report(path: &Path, args: &Args) -> Result<String, Failure> {
    let file = GraphFile::read(path)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.trim_end_matches(".gz").trim_end_matches(".json");
    let before = row(name, &file, args)?;
    if !args.optimize {
        return Ok(if args.json {
            before.json().to_string()
        } else {
            before.line()
        });
    }
    let optimized = file.optimized(&GraphOptimizer::new()).map_err(|error| Refused {
        file: path.to_owned(),
        error,
    })?;
    let after = row(name, &optimized.file, args)?;
    if args.json {
        return Ok(after.optimized_json(&before, &optimized).to_string());
    }
    let mut text = before.line();
    text += &format!(
        "\n  {} nodes, {} after the optimizer",
        optimized.nodes_before, optimized.nodes_after
    );
    let counts = optimized.stats.counts;
    for pass in Pass::ALL.into_iter().filter(|&pass| counts.of(pass) > 0) {
        text += &format!("\n  {:>6} {:<22} {}", counts.of(pass), pass.name(), pass.summary());
    }
    Ok(format!("{text}\n{}", after.line()))
}

/// A file that the optimizer cannot take.
#[derive(Debug, thiserror::Error)]
#[error(
    "--optimize takes files that were made of graphs of ours (GraphFile::from_graph), with every parameter of their ops; {} is none",
    file.display()
)]
struct Refused {
    file: PathBuf,
    #[source]
    error: GraphFileError,
}

fn row(name: &str, file: &GraphFile, args: &Args) -> Result<Row, Failure> {
    let kind = BufferKind::unlimited(args.align);
    let mut best = None;
    for _ in 0..RUNS {
        let start = Instant::now();
        let plan = Plan::new(&file.problem(kind, InPlace::Full).problem)?;
        let time = start.elapsed();
        if best.as_ref().is_none_or(|&(_, shortest)| time < shortest) {
            best = Some((plan, time));
        }
    }
    let (plan, time) = best.ok_or("no run")?;
    let searched = if args.search {
        let start = Instant::now();
        let found = search_order(file, kind)?;
        Some((found, start.elapsed().as_secs_f64()))
    } else {
        None
    };
    Ok(Row {
        name: name.to_owned(),
        nodes: file.entries().len() - file.leafs(),
        ggml_bound: Plan::new(&file.problem(kind, InPlace::Ggml).problem)?.bound_bytes,
        ggml_peak: file.ggml_peak(args.align),
        ggml_microseconds: file.ggml_plan_us,
        microseconds: time.as_secs_f64() * 1e6,
        plan,
        searched,
    })
}

impl Row {
    fn ratio(&self) -> Option<f64> {
        Some(self.ggml_peak? as f64 / self.plan.peak_bytes as f64)
    }

    fn line(&self) -> String {
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let mut line = format!(
            "{:<24} {:>6} {:>12} {:>12} {:>12} {:>12} {:>6} {:>9.1} {:>9}",
            self.name,
            self.nodes,
            self.plan.peak_bytes,
            self.plan.bound_bytes,
            self.ggml_bound,
            or_dash(self.ggml_peak.map(|bytes| bytes.to_string())),
            or_dash(self.ratio().map(|ratio| format!("{ratio:.3}"))),
            self.microseconds,
            or_dash(self.ggml_microseconds.map(|us| format!("{us:.1}"))),
        );
        if let Some((found, _)) = &self.searched {
            let peak = found.plan.peak_bytes;
            let less = 1.0 - peak as f64 / self.plan.peak_bytes.max(1) as f64;
            line += &format!(" {peak:>14} {:>5.1}% {:>12}", less * 100.0, found.any_order_bytes);
        }
        line
    }

    fn json(&self) -> Value {
        let mut value = json!({
            "graph": self.name,
            "nodes": self.nodes,
            "peak_bytes": self.plan.peak_bytes,
            "bound_bytes": self.plan.bound_bytes,
            "ggml_rules_bound_bytes": self.ggml_bound,
            "buffers": self.plan.buffers.len(),
            "tensors": self.plan.places.len(),
            "in_place": self.plan.places.iter().filter(|place| place.over.is_some()).count(),
            "microseconds": self.microseconds,
            "ggml_peak_bytes": self.ggml_peak,
            "ggml_ratio": self.ratio(),
            "ggml_microseconds": self.ggml_microseconds,
        });
        if let Some((found, seconds)) = &self.searched {
            value["search_peak_bytes"] = json!(found.plan.peak_bytes);
            value["any_order_bound_bytes"] = json!(found.any_order_bytes);
            value["search_seconds"] = json!(seconds);
        }
        value
    }

    /// The plan of an optimized graph, with what the passes did and what the plan took before.
    fn optimized_json(&self, before: &Self, optimized: &OptimizedFile) -> Value {
        let mut value = self.json();
        let counts = Pass::ALL.map(|pass| (pass.name().to_owned(), json!(optimized.stats.counts.of(pass))));
        value["passes"] = Value::Object(Map::from_iter(counts));
        value["graph_nodes_before"] = json!(optimized.nodes_before);
        value["graph_nodes_after"] = json!(optimized.nodes_after);
        value["peak_bytes_before"] = json!(before.plan.peak_bytes);
        value
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use rocmforge_ggml::{DType, Graph, Layout, Op, TensorDesc};

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: Args,
    }

    fn args(file: &Path, options: &[&str]) -> Args {
        let file = file.to_str().expect("text");
        let all = ["plan", file].into_iter().chain(options.iter().copied());
        Cli::try_parse_from(all).expect("arguments").args
    }

    /// A norm times its weight, two products of it, their sum with a bias, and a node that no output needs.
    fn own_file(folder: &Path) -> PathBuf {
        let mut graph = Graph::new();
        let x = graph.add_tensor(TensorDesc::f32([3, 32]));
        let weight = graph.add_tensor(TensorDesc::f32([32]));
        let [a, b] = [(); 2].map(|()| graph.add_tensor(TensorDesc::new([32, 16], DType::F32, Layout::ColMajor)));
        let normed = graph.push(Op::RmsNorm { eps: 1e-5 }, &[x]).expect("fits");
        let scaled = graph.push(Op::Mul, &[normed, weight]).expect("fits");
        let products = [a, b].map(|matrix| graph.push(Op::MulMat, &[scaled, matrix]).expect("fits"));
        graph.push(Op::Scale { factor: 2.0 }, &[products[0]]).expect("fits");
        let sum = graph.push(Op::Add, &products).expect("fits");
        graph.mark_output(sum);
        let path = folder.join("own.json");
        GraphFile::from_graph(&graph, &[x])
            .expect("a file")
            .write(&path)
            .expect("written");
        path
    }

    #[test]
    fn an_optimized_plan_has_the_fields_of_a_plan_and_what_the_passes_did() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = own_file(folder.path());
        let of = |options: &[&str]| -> Value {
            let text = report(&path, &args(&path, options)).expect("a plan");
            serde_json::from_str(&text).expect("JSON")
        };
        let (plain, optimized) = (of(&["--json"]), of(&["--json", "--optimize"]));
        for field in plain.as_object().expect("an object").keys() {
            assert!(optimized.get(field).is_some(), "{field}");
        }
        assert_eq!(plain["nodes"], 6);
        assert_eq!(
            (&optimized["graph_nodes_before"], &optimized["graph_nodes_after"]),
            (&json!(6), &json!(4))
        );
        assert_eq!(optimized["peak_bytes_before"], plain["peak_bytes"]);
        assert!(optimized["peak_bytes"].as_u64() <= plain["peak_bytes"].as_u64());
        let passes = optimized["passes"].as_object().expect("an object");
        assert_eq!(passes.len(), Pass::ALL.len());
        let done: Vec<&String> = passes
            .iter()
            .filter(|(_, count)| **count != 0)
            .map(|(name, _)| name)
            .collect();
        assert_eq!(done, ["dead-code", "norm-weight"]);
    }

    #[test]
    fn an_optimized_plan_as_text_says_before_passes_and_after() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = own_file(folder.path());
        let text = report(&path, &args(&path, &["--optimize"])).expect("a plan");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 5, "{text}");
        assert!(lines[0].starts_with("own ") && lines[4].starts_with("own "), "{text}");
        assert_eq!(lines[1].trim(), "6 nodes, 4 after the optimizer");
        assert!(lines[3].contains("norm-weight"), "{text}");
    }

    #[test]
    fn a_file_without_parameters_is_refused() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("graphs/llama7b_tg1.json.gz");
        let error = report(&path, &args(&path, &["--optimize"])).expect_err("llama.cpp's");
        assert!(error.to_string().contains("llama7b_tg1.json.gz is none"), "{error}");
        let cause = error.source().expect("the entry").to_string();
        assert!(cause.contains("it has no descriptor"), "{cause}");
        assert!(report(&path, &args(&path, &[])).is_ok());
    }
}
