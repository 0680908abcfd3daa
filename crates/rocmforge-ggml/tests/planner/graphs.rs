//! The planner on the committed graphs: peak, bounds and ggml's figures.

use std::path::PathBuf;

use rocmforge_ggml::graph_file::GraphFile;
use rocmforge_ggml::planner::{BufferKind, InPlace, Plan, Planner};

/// Name, and for an alignment of 128: bytes of ggml's allocator, and the lower bounds without overwriting, with ggml's, with ours.
const GRAPHS: [(&str, u64, [usize; 3]); 13] = [
    ("gemma3_4b_pp512", 552_732_672, [542_244_864, 542_244_864, 542_244_864]),
    ("llama3_8b_pp512", 279_447_552, [271_056_896, 271_056_896, 271_056_896]),
    ("llama3_8b_tg1", 545_920, [529_408, 529_408, 529_408]),
    ("llama7b_pp512", 105_396_224, [80_228_352, 80_228_352, 73_924_608]),
    (
        "llama7b_pp512_nofa",
        335_554_560,
        [570_433_536, 310_386_688, 310_386_688],
    ),
    ("llama7b_pp512_out1", 105_394_304, [80_226_432, 80_226_432, 66_070_656]),
    ("llama7b_tg1", 206_464, [157_184, 157_184, 144_384]),
    ("llama7b_tg1_nofa", 655_872, [1_114_496, 606_592, 606_592]),
    ("qwen25_7b_pp512", 326_109_184, [318_767_104, 318_767_104, 318_767_104]),
    (
        "qwen25_7b_pp512_out1",
        149_958_784,
        [127_936_640, 127_936_640, 96_479_360],
    ),
    (
        "qwen3_30b_a3b_pp512",
        319_555_584,
        [315_359_232, 315_359_232, 315_359_232],
    ),
    ("qwen3_8b_pp512", 327_944_192, [319_553_536, 319_553_536, 319_553_536]),
    ("qwen3_8b_tg1", 640_640, [624_128, 624_128, 624_128]),
];

fn read(name: &str) -> GraphFile {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("graphs/{name}.json.gz"));
    GraphFile::read(path).unwrap()
}

#[test]
fn every_graph_takes_exactly_its_lower_bound() {
    for (name, ggml, bounds) in GRAPHS {
        let file = read(name);
        assert_eq!(file.ggml_peak(128), Some(ggml), "{name}");
        for (in_place, bound) in [InPlace::No, InPlace::Ggml, InPlace::Full].into_iter().zip(bounds) {
            let planned = file.problem(BufferKind::unlimited(128), in_place);
            let plan = Plan::new(&planned.problem).unwrap();
            assert_eq!(
                (plan.bound_bytes, plan.peak_bytes, plan.buffers.len()),
                (bound, bound, 1),
                "{name} {in_place:?}"
            );
        }
    }
}

#[test]
fn every_graph_takes_its_lower_bound_at_other_alignments() {
    for (name, ..) in GRAPHS {
        let file = read(name);
        for alignment in [1, 32, 256, 4096] {
            let planned = file.problem(BufferKind::unlimited(alignment), InPlace::Full);
            let plan = Plan::new(&planned.problem).unwrap();
            assert_eq!(plan.peak_bytes, plan.bound_bytes, "{name} aligned to {alignment}");
            assert!(plan.peak_bytes as u64 <= file.ggml_peak(alignment).unwrap(), "{name}");
        }
    }
}

#[test]
fn small_buffers_cost_little_more() {
    for (name, ..) in GRAPHS {
        let file = read(name);
        let whole = Plan::new(&file.problem(BufferKind::unlimited(128), InPlace::Full).problem).unwrap();
        // A third of the peak, or the largest tensor, whichever is more.
        let kind = BufferKind {
            alignment: 128,
            max_bytes: Some(whole.peak_bytes / 3),
        };
        let planned = file.problem(kind, InPlace::Full);
        let plan = Plan::new(&planned.problem).unwrap();
        let more = plan.peak_bytes as f64 / plan.bound_bytes as f64;
        assert!(plan.buffers.len() > 1 && more < 1.5, "{name}: {more}");
    }
}

#[test]
fn a_plan_is_used_again_until_a_tensor_grows() {
    let file = read("llama7b_pp512");
    let first = file.problem(BufferKind::unlimited(128), InPlace::Full).problem;
    let mut planner = Planner::new();
    let peak = planner.plan(&first).unwrap().peak_bytes;
    let mut smaller = first.clone();
    smaller
        .items
        .iter_mut()
        .for_each(|item| item.bytes = item.bytes.div_ceil(2));
    assert_eq!(planner.plan(&smaller).unwrap().peak_bytes, peak);
    assert_eq!(planner.planned(), 1);
    let mut larger = first.clone();
    larger.items[0].bytes += 1;
    planner.plan(&larger).unwrap();
    assert_eq!(planner.planned(), 2);
    // A problem that contradicts itself costs the planner nothing it has.
    let mut wrong = larger.clone();
    wrong.items[0].last = wrong.nodes;
    planner.plan(&wrong).unwrap_err();
    planner.plan(&larger).unwrap();
    assert_eq!(planner.planned(), 2);
}
