//! Results of all seeds together: one finding for each pair of instructions, launches that do not end, launches that are stopped.

use crate::common::{Folder, run};
use rocmforge_sanitize::Exit;

/// A kernel that waits for a flag that nobody sets, another launch in its stream, and one in another stream.
const SPIN: &str = r#"
    object = "basic.co"
    seeds = 12
    budget = 3_000_000
    [buffers]
    flag = "u32[1] zeros"
    x = "f32[32] -> x.bin"
    [[launch]]
    kernel = "wait_for"
    block = 32
    args = ["flag"]
    [[launch]]
    kernel = "fill"
    block = 32
    args = ["x", 1.0, 32]
    [[launch]]
    kernel = "copy"
    block = 32
    stream = "other"
    args = ["f32[32]", "f32[32]", 32]
"#;

#[test]
fn a_launch_that_does_not_end_is_judged_once() {
    let ran = run(SPIN, &["--format", "json"]);
    let page = ran.json();
    assert_eq!(ran.exit, Exit::Found);
    let findings = page["findings"].as_array().unwrap();
    let endless: Vec<_> = findings
        .iter()
        .filter(|f| f["report"]["kind"] == "endless_kernel")
        .collect();
    assert_eq!(endless.len(), 1, "{page:#}");
    assert_eq!(
        (&endless[0]["seeds"], &endless[0]["first_seed"]),
        (&1.into(), &0.into())
    );
    let judged = serde_json::json!([{ "launch": 0, "seed": 0, "left_out": 11 }]);
    assert_eq!(page["endless_launches"], judged);
    // What does not wait for it is looked at in every seed.
    let read = findings
        .iter()
        .find(|f| f["report"]["kind"] == "uninitialised")
        .unwrap();
    assert_eq!((&read["seeds"], &read["launch"]), (&12.into(), &2.into()));
    assert_eq!(
        (&page["incomplete_seeds"], &page["differing_outputs"]),
        (&12.into(), &0.into())
    );
    let folder = Folder::new();
    let text = folder.run(SPIN, &[]).out;
    assert!(text.contains("launch 0 at "), "{text}");
    assert!(
        text.contains("does not end: judged in seed 0; 11 later seeds left it out"),
        "{text}"
    );
    assert!(text.contains("x: not written"), "{text}");
    assert_eq!(
        folder.run(SPIN, &[]).out,
        text,
        "as often as it is run, on as many processors as there are"
    );
}

/// A kernel with 80 reads of what nobody has written, of which 64 are kept, and one that reads its result.
const MANY: &str = r#"
    object = "params.co"
    seeds = 3
    tools = ["memcheck", "initcheck"]
    [buffers]
    x = "f32[1024]"
    y = "f32[32] -> y.bin"
    z = "f32[32] -> z.bin"
    [[launch]]
    kernel = "_Z4manyPVKfPf"
    block = 32
    args = ["x", "y"]
    [[launch]]
    kernel = "_Z4manyPVKfPf"
    block = 32
    args = ["x", "z"]
"#;

#[test]
fn a_launch_that_is_stopped_says_so_and_its_results_are_none() {
    let folder = Folder::new();
    let ran = folder.run(MANY, &["--print-limit", "0"]);
    assert_eq!(ran.exit, Exit::Found, "{}", ran.err);
    assert!(ran.out.contains("the launch was stopped here"), "{}", ran.out);
    assert!(
        ran.out.contains("launch 0 at ") && ran.out.contains("was stopped in 3 seeds"),
        "{}",
        ran.out
    );
    assert!(!ran.out.contains("launch 1 at "), "the second did not run: {}", ran.out);
    assert!(
        ran.out.contains("y: not written") && ran.out.contains("z: not written"),
        "{}",
        ran.out
    );
    assert!(!ran.out.contains("outputs:"), "no results are compared: {}", ran.out);
    assert!(!folder.path("y.bin").exists() && !folder.path("z.bin").exists());
    let page = folder.run(MANY, &["--format", "json", "--print-limit", "0"]).json();
    let stopped = serde_json::json!([{ "launch": 0, "seeds": 3, "first_seed": 0 }]);
    assert_eq!(page["stopped_launches"], stopped);
    assert_eq!(
        (&page["incomplete_seeds"], &page["differing_outputs"]),
        (&3.into(), &0.into())
    );
    let marked = page["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|f| f["report"]["stopped"] == true);
    assert_eq!(marked.count(), 1);
    let whole = folder.run(&MANY.replace("f32[1024]\"", "f32[1024] iota\""), &[]);
    assert_eq!(whole.exit, Exit::Clean, "{}{}", whole.out, whole.err);
    assert!(folder.path("z.bin").exists());
}

#[test]
fn a_pair_of_instructions_is_one_finding_with_a_count() {
    // Five launches of one kernel with one race, in 8 seeds: whichever wave comes first.
    let launch = "[[launch]]\nkernel = \"reverse\"\nblock = 64\nargs = [\"f32[64] iota\", \"f32[64]\"]\n";
    let text = format!("object = \"reverse.co\"\nseeds = 8\n{}", launch.repeat(5));
    let page = run(&text, &["--format", "json", "--tool", "racecheck"]).json();
    let findings = page["findings"].as_array().unwrap();
    assert_eq!(findings.len(), 1, "{page:#}");
    assert_eq!(findings[0]["seeds"], 8);
    let count = findings[0]["count"].as_u64().unwrap();
    let once = run(
        &text.replace(&launch.repeat(4), ""),
        &["--format", "json", "--tool", "racecheck"],
    )
    .json();
    assert_eq!(count, 5 * once["findings"][0]["count"].as_u64().unwrap());
    let ran = run(&text, &["--tool", "racecheck"]);
    assert!(ran.out.contains(&format!("; {count} times in all")), "{}", ran.out);
}

#[test]
fn one_race_between_launches_is_one_finding_for_all_buffers() {
    let mut text = "object = \"basic.co\"\nseeds = 2\n[buffers]\nx = \"f32[32] iota\"\n".to_owned();
    for n in 0..6 {
        text += &format!("y{n} = \"f32[32]\"\n");
    }
    for n in 0..6 {
        for stream in ["one", "two"] {
            text += &format!(
                "[[launch]]\nkernel = \"copy\"\nblock = 32\nstream = \"{stream}{n}\"\nargs = [\"x\", \"y{n}\", 32]\n"
            );
        }
    }
    let page = run(&text, &["--format", "json", "--tool", "racecheck"]).json();
    let findings = page["findings"].as_array().unwrap();
    assert_eq!(findings.len(), 1, "{page:#}");
    assert_eq!(findings[0]["count"], 12, "six pairs in two seeds");
}

#[test]
fn seeds_vary_the_order_of_workgroups() {
    let text = r#"
        object = "params.co"
        [buffers]
        next = "u32[1] zeros"
        order = "u32[8] -> order.bin"
        [[launch]]
        kernel = "_Z7ticketsPjS_"
        grid = 8
        block = 32
        args = ["next", "order"]
    "#;
    let folder = Folder::new();
    let mut orders = std::collections::BTreeSet::new();
    for seed in 0..16 {
        let ran = folder.run(text, &["--seeds", &format!("{seed}..{}", seed + 1)]);
        assert_eq!(ran.exit, Exit::Clean, "{}{}", ran.out, ran.err);
        let order = std::fs::read(folder.path("order.bin")).unwrap();
        let mut groups: Vec<u8> = order.iter().step_by(4).copied().collect();
        orders.insert(groups.clone());
        groups.sort_unstable();
        assert_eq!(groups, [0, 1, 2, 3, 4, 5, 6, 7], "each group runs once");
    }
    assert!(orders.len() >= 8, "{orders:?}");
    let page = folder.run(text, &["--format", "json"]).json();
    assert!(page["differing_outputs"].as_u64() >= Some(8), "{page:#}");
}
