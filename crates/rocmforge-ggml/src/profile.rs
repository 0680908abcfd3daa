//! Profile: how long each node of a graph takes, as a table and as a Chrome trace.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::{GgmlBackend, GgmlResult, Graph, executor};

/// One node's time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeTime {
    /// Name of the op.
    pub op: &'static str,
    /// Its output, for people: id, type, shape.
    pub output: String,
    /// When it began, counted from the first node's beginning.
    pub start: Duration,
    /// How long it took, with the wait for it.
    pub time: Duration,
}

/// Times of a graph's nodes, in the order they ran. `Display` prints a table by op, the longest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// The nodes.
    pub nodes: Vec<NodeTime>,
}

/// All nodes of one op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpTime {
    /// Name of the op.
    pub op: &'static str,
    /// Nodes.
    pub nodes: usize,
    /// Their times in sum.
    pub time: Duration,
}

/// Runs a graph and waits after each node, to see how long it takes. On a device the sum is more than a run without waits takes.
///
/// # Errors
/// As [`executor::execute_graph`].
pub fn profile<B: GgmlBackend>(backend: &mut B, graph: &Graph) -> GgmlResult<Profile> {
    executor::prepare(backend, graph)?;
    backend.synchronize()?;
    let begin = Instant::now();
    let mut nodes = Vec::new();
    for node in graph.launches().iter() {
        let start = begin.elapsed();
        backend.execute_launch(node)?;
        backend.synchronize()?;
        let time = begin.elapsed().saturating_sub(start);
        let outputs = node.outputs.iter().filter_map(|&id| graph.tensor(id));
        let output: Vec<String> = outputs.map(|desc| format!("{} {}", desc.id, desc.summary())).collect();
        nodes.push(NodeTime {
            op: node.kernel.name(),
            output: output.join(", "),
            start,
            time,
        });
    }
    Ok(Profile { nodes })
}

impl Profile {
    /// Times by op, the longest first.
    #[must_use]
    pub fn by_op(&self) -> Vec<OpTime> {
        let mut ops: BTreeMap<&'static str, OpTime> = BTreeMap::new();
        for node in &self.nodes {
            let sum = ops.entry(node.op).or_insert(OpTime {
                op: node.op,
                nodes: 0,
                time: Duration::ZERO,
            });
            sum.nodes += 1;
            sum.time += node.time;
        }
        let mut ops: Vec<OpTime> = ops.into_values().collect();
        ops.sort_by_key(|op| std::cmp::Reverse(op.time));
        ops
    }

    /// All times in sum.
    #[must_use]
    pub fn total(&self) -> Duration {
        self.nodes.iter().map(|node| node.time).sum()
    }

    /// The nodes as complete events of Chrome's trace format (JSON), which `chrome://tracing` and Perfetto open.
    #[must_use]
    pub fn chrome_trace(&self) -> String {
        let micros = |time: Duration| time.as_secs_f64() * 1e6;
        let event = |node: &NodeTime| {
            json!({
                "name": node.op, "cat": "node", "ph": "X", "pid": 0, "tid": 0,
                "ts": micros(node.start), "dur": micros(node.time), "args": { "output": node.output },
            })
        };
        let events: Vec<serde_json::Value> = self.nodes.iter().map(event).collect();
        json!({ "traceEvents": events, "displayTimeUnit": "ms" }).to_string()
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.total().as_secs_f64();
        writeln!(f, "{:<20} {:>6} {:>10} {:>7}", "op", "nodes", "ms", "share")?;
        for op in self.by_op() {
            let time = op.time.as_secs_f64();
            let share = if total > 0.0 { time / total * 100.0 } else { 0.0 };
            writeln!(f, "{:<20} {:>6} {:>10.3} {:>6.1}%", op.op, op.nodes, time * 1e3, share)?;
        }
        write!(f, "{:<20} {:>6} {:>10.3}", "all", self.nodes.len(), total * 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CpuBackend, Op, TensorDesc};

    #[test]
    fn each_node_has_a_time_after_the_one_before() {
        let mut graph = Graph::new();
        let x = graph.add_tensor(TensorDesc::f32([7, 33]));
        let scaled = graph.push(Op::Scale { factor: 2.0 }, &[x]).unwrap();
        let other = graph.push(Op::Scale { factor: 3.0 }, &[scaled]).unwrap();
        let flat = graph.reshape(other, [231]).unwrap();
        let sum = graph.push(Op::Add, &[flat, flat]).unwrap();
        graph.mark_output(sum);
        let profile = profile(&mut CpuBackend::new(), &graph).unwrap();
        let ops: Vec<&str> = profile.nodes.iter().map(|node| node.op).collect();
        assert_eq!(ops, ["SCALE", "SCALE", "ADD"], "a reshape has nothing to run");
        assert!(profile.nodes.is_sorted_by(|a, b| a.start + a.time <= b.start));
        assert!(profile.nodes[0].output.contains("[7, 33]"), "{profile:?}");

        let trace: serde_json::Value = serde_json::from_str(&profile.chrome_trace()).unwrap();
        let events = trace["traceEvents"].as_array().unwrap();
        assert_eq!(events.len(), 3);
        assert!(
            events
                .iter()
                .all(|event| event["ph"] == "X" && event["dur"].as_f64().unwrap() >= 0.0)
        );
    }

    #[test]
    fn the_table_has_a_row_for_each_op_the_longest_first() {
        let node = |op, micros| NodeTime {
            op,
            output: String::new(),
            start: Duration::ZERO,
            time: Duration::from_micros(micros),
        };
        let profile = Profile {
            nodes: vec![node("ADD", 100), node("MUL_MAT", 700), node("ADD", 200)],
        };
        let text = profile.to_string();
        let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[1], ["MUL_MAT", "1", "0.700", "70.0%"]);
        assert_eq!(rows[2], ["ADD", "2", "0.300", "30.0%"]);
        assert_eq!(rows[3], ["all", "3", "1.000"]);
        assert_eq!(Profile::default().to_string().lines().count(), 2);
    }
}
