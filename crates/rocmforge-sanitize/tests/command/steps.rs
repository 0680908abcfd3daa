//! Steps: allocations, frees and copies between launches, and the faults that only they can show.

use crate::common::{Folder, refused, run};
use rocmforge_sanitize::Exit;

/// A launch file with buffers `x`, which is written, and `y` and `z`, which are not.
fn with_steps(steps: &str) -> String {
    format!(
        "object = \"basic.co\"\nseeds = 4\n[buffers]\nx = \"f32[32] iota\"\ny = \"f32[32] -> y.bin\"\nz = \"f32[32] 7 -> z.bin\"\n{steps}"
    )
}

fn copy_kernel(from: &str, to: &str) -> String {
    format!("[[step]]\nlaunch = \"copy\"\nblock = 32\nargs = [\"{from}\", \"{to}\", 32]\n")
}

/// The kinds of what is found, in order, and the page.
#[track_caller]
fn kinds(text: &str) -> (Vec<String>, serde_json::Value) {
    let page = run(text, &["--format", "json"]).json();
    let findings = page["findings"].as_array().unwrap().clone();
    let kind = |finding: &serde_json::Value| finding["report"]["kind"].as_str().unwrap().to_owned();
    (findings.iter().map(kind).collect(), page)
}

#[test]
fn steps_run_in_order_and_copies_copy() {
    let folder = Folder::new();
    let steps = with_steps(
        "[[step]]\nalloc = \"y\"\n[[step]]\ncopy = \"x\"\nto = \"y\"\n[[step]]\ncopy = \"z\"\nto = \"y\"\nfrom_offset = 4\n\
         to_offset = 64\nbytes = 8\n",
    );
    let ran = folder.run(&(steps + &copy_kernel("y", "z")), &[]);
    assert_eq!(ran.exit, Exit::Clean, "{}{}", ran.out, ran.err);
    let bytes = std::fs::read(folder.path("z.bin")).unwrap();
    let got: Vec<f32> = bytes
        .as_chunks::<4>()
        .0
        .iter()
        .map(|b| f32::from_le_bytes(*b))
        .collect();
    let mut wanted: Vec<f32> = (0..32).map(|i| i as f32).collect();
    wanted[16..18].fill(7.0);
    assert_eq!(got, wanted);
}

#[test]
fn use_after_free_double_free_and_stale_pointers_are_found() {
    let free = "[[step]]\nfree = \"y\"\n";
    let wait = "[[step]]\nwait = \"all\"\n";
    let uses = copy_kernel("x", "y");
    let (found, page) = kinds(&with_steps(&format!("{uses}{wait}{free}{uses}")));
    assert_eq!(found, ["use_after_free"]);
    let finding = &page["findings"][0];
    assert_eq!(
        (&finding["launch"], &finding["step"]),
        (&1.into(), &3.into()),
        "{finding:#}"
    );
    let (found, page) = kinds(&with_steps(&format!("{uses}{wait}{free}{free}")));
    assert_eq!(found, ["double_free"]);
    assert_eq!(page["findings"][0]["step"], 3);
    assert_eq!(
        page["findings"][0]["seeds"], 4,
        "the same step in each seed is one fault"
    );
    // `z` is allocated after `y` is freed, and must not be taken for it.
    let (found, page) = kinds(&with_steps(&format!(
        "{uses}{wait}{free}[[step]]\nalloc = \"z\"\n{uses}"
    )));
    assert_eq!(found, ["use_after_free"]);
    let allocation = &page["findings"][0]["report"]["allocation"];
    assert_eq!(allocation["label"], "y", "{allocation:#}");
    assert!(!allocation["freed_by"].is_null());
    // A copy from freed memory.
    let (found, _) = kinds(&with_steps(&format!(
        "{uses}{wait}{free}[[step]]\ncopy = \"y\"\nto = \"z\"\n"
    )));
    assert_eq!(found, ["use_after_free"]);
}

#[test]
fn a_buffer_that_is_allocated_again_is_new() {
    let uses = copy_kernel("x", "y");
    let again = "[[step]]\nfree = \"y\"\n[[step]]\nalloc = \"y\"\n";
    let first = format!("[[step]]\nalloc = \"y\"\n{uses}");
    let (found, _) = kinds(&with_steps(&format!("{first}{again}{uses}")));
    assert!(found.is_empty(), "{found:?}");
    // What was written before is not there any more.
    let text = with_steps(&format!("{first}{again}{}", copy_kernel("y", "z")));
    let (found, page) = kinds(&text.replace(" -> y.bin", ""));
    assert_eq!(found, ["uninitialised"]);
    let site = page["findings"][0]["report"]["allocation"]["site"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(site.ends_with("launch.toml:15"), "the step that made it: {site}");
}

#[test]
fn a_free_under_a_launch_is_found_in_a_strict_simulation() {
    let steps = format!("strict = true\n{}", with_steps(&copy_kernel("x", "y")));
    let (found, page) = kinds(&format!("{steps}[[step]]\nfree = \"y\"\n"));
    assert_eq!(found, ["use_after_free"], "{page:#}");
    let (found, _) = kinds(&format!("{steps}[[step]]\nwait = \"main\"\n[[step]]\nfree = \"y\"\n"));
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn a_copy_in_another_stream_races_with_a_launch() {
    let launch = copy_kernel("x", "y");
    let copy = "[[step]]\ncopy = \"y\"\nto = \"z\"\nstream = \"other\"\n";
    let (found, page) = kinds(&with_steps(&format!("{launch}[[step]]\nwait = \"other\"\n{copy}")));
    assert!(found.contains(&"race".to_owned()), "{found:?}");
    let race = page["findings"]
        .as_array()
        .unwrap()
        .iter()
        .find(|f| f["report"]["kind"] == "race")
        .unwrap();
    let mut steps = [&race["step"], &race["other_step"]].map(|step| step.as_u64().unwrap());
    steps.sort_unstable();
    assert_eq!(steps, [0, 2]);
    let (found, _) = kinds(&with_steps(&format!("{launch}{copy}after = [\"copy\"]\n")));
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn a_freed_output_is_not_written_and_that_is_said() {
    let steps = format!("{}[[step]]\nfree = \"y\"\n", copy_kernel("x", "y"));
    let ran = run(&with_steps(&steps), &[]);
    assert_eq!(ran.exit, Exit::Clean, "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("y: not written, it has been freed"), "{}", ran.out);
    assert!(ran.out.contains("z: 128 B written"), "{}", ran.out);
}

#[test]
fn steps_that_cannot_be_are_refused() {
    let uses = copy_kernel("x", "y");
    for (steps, words) in [
        ("[[step]]\nalloc = \"y\"\nfree = \"y\"\n", &["`alloc` and `free`"][..]),
        ("[[step]]\nblock = 3\n", &["unknown key `block`"]),
        ("[[step]]\n", &["needs one of"]),
        ("[[step]]\nfre = \"y\"\n", &["unknown key `fre`", "did you mean `free`"]),
        ("[[step]]\nfree = \"yy\"\n", &["no buffer `yy`", "did you mean `y`"]),
        ("[[step]]\nfree = \"y\"\nstream = \"main\"\n", &["unknown key `stream`"]),
        (
            "[[step]]\nalloc = \"y\"\n[[step]]\nalloc = \"y\"\n",
            &["allocated already"],
        ),
        (
            "[[step]]\nfree = \"y\"\n[[step]]\nalloc = \"y\"\n",
            &["before the step that allocates it"],
        ),
        ("[[step]]\ncopy = \"x\"\n", &["needs `to`"]),
        (
            "[[step]]\ncopy = \"x\"\nto = \"y\"\nbytes = 129\n",
            &["copies 129 B", "has 128 B"],
        ),
        (
            "[[step]]\ncopy = \"x\"\nto = \"y\"\nto_offset = 1\n",
            &["copies 128 B to byte 1"],
        ),
        (
            "[[step]]\ncopy = \"x\"\nto = \"y\"\nfrom_offset = 18446744073709551615\n",
            &["has 128 B"],
        ),
        (
            "[[step]]\ncopy = \"x\"\nto = \"y\"\nafter = [\"later\"]\n",
            &["no launch or copy before"],
        ),
        (
            "[[launch]]\nkernel = \"copy\"\nblock = 1\n",
            &["stands beside `launch`"],
        ),
        ("step = 3\n", &["launch.toml"]),
    ] {
        refused(&with_steps(&format!("{steps}{uses}")), &[], words);
    }
    let early = with_steps(&format!("{uses}[[step]]\nalloc = \"y\"\n"));
    refused(&early, &[], &["`y` is used before the step that allocates it"]);
    refused(&with_steps("[[step]]\nfree = \"y\"\n"), &[], &["needs `launch`"]);
    let pointers = early.replace(
        "y = \"f32[32] -> y.bin\"",
        "y = \"f32[32]\"\np = { pointers = [\"y\"] }",
    );
    refused(
        &pointers,
        &[],
        &["`p` holds the address of a buffer that a step allocates later"],
    );
}

#[test]
fn no_launch_file_with_steps_makes_it_panic() {
    const PARTS: &[&str] = &[
        "step",
        "alloc",
        "free",
        "copy",
        "wait",
        "to",
        "bytes",
        "pointers",
        "values",
        "range",
        "written",
        "objects",
        "\"0..8\"",
        "-1",
        "[",
        "]",
        "{",
        "}",
        "=",
        "\"",
        "\n",
        "1e400",
        "99999999999999999999",
        "x",
        "offset",
    ];
    let good = with_steps(&format!(
        "p = {{ pointers = [\"x\", {{ buffer = \"z\", offset = 4 }}, 0] }}\nq = {{ dtype = \"i8\", range = {{ start = 1, end = 9, step = 2 }} }}\n\
         r = {{ dtype = \"u8\", shape = 9, values = [1, [2, 3]], written = [\"0..1\"] }}\n[[step]]\nalloc = \"y\"\n{}\
         [[step]]\ncopy = \"x\"\nto = \"y\"\nbytes = 4\n[[step]]\nfree = \"y\"\n[[step]]\nwait = \"all\"\n",
        copy_kernel("x", "y")
    ));
    let path = std::path::Path::new("launch.toml");
    rocmforge_sanitize::LaunchFile::parse(path, &good).unwrap();
    let mut state = 1u64;
    let mut below = |n: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % n
    };
    for _ in 0..10_000 {
        let mut text: Vec<char> = good.chars().collect();
        for _ in 0..=below(4) {
            let at = below(text.len() + 1);
            let end = (at + below(6)).min(text.len());
            text.splice(at..end, PARTS[below(PARTS.len())].chars());
        }
        // Whatever it says, it says it without a panic.
        let _ = rocmforge_sanitize::LaunchFile::parse(path, &text.into_iter().collect::<String>());
    }
}
