//! `plan`: a table of peaks and bounds, or JSON.

use std::path::{Path, PathBuf};
use std::time::Instant;

use rocmforge_ggml::graph_file::{FoundOrder, GraphFile, search_order};
use rocmforge_ggml::planner::{BufferKind, InPlace, Plan};
use serde_json::{Value, json};

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
        let row = row(path, args)?;
        if args.json {
            println!("{}", row.json());
        } else {
            println!("{}", row.line());
        }
    }
    Ok(())
}

fn row(path: &Path, args: &Args) -> Result<Row, Failure> {
    let file = GraphFile::read(path)?;
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
        let found = search_order(&file, kind)?;
        Some((found, start.elapsed().as_secs_f64()))
    } else {
        None
    };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Ok(Row {
        name: name.trim_end_matches(".gz").trim_end_matches(".json").to_owned(),
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
}
