//! Options of the command line: those that compute-sanitizer has too, and what contradicts what.

use crate::common::{Folder, refused, run};
use clap::Parser;
use rocmforge_sanitize::{Cli, Exit};

/// Two kernels of one object, three launches; each reads what nobody has written, at its own line.
const THREE: &str = r#"
    object = "basic.co"
    seeds = 2
    [[launch]]
    kernel = "copy"
    block = 32
    args = ["f32[32]", "f32[32]", 32]
    [[launch]]
    kernel = "fill"
    block = 32
    args = ["f32[16]", 1.0, 32]
    [[launch]]
    kernel = "copy"
    block = 32
    args = ["f32[32]", "f32[32]", 32]
"#;

/// The same without what stops the card.
fn two_copies() -> String {
    THREE.replace("f32[16]", "f32[32]")
}

const REVERSE: &str = r#"
    object = "reverse.co"
    seeds = 2
    [[launch]]
    kernel = "reverse"
    block = 64
    args = ["f32[64] iota", "f32[64]"]
"#;

#[test]
fn one_tool_or_several_by_either_name() {
    for (args, kinds) in [
        (&["--tool", "racecheck"][..], &["lds_race"][..]),
        (&["--tools", "racecheck"], &["lds_race"]),
        (&["--tool", "initcheck"], &["uninitialised_lds"]),
        (&["--tool", "initcheck,racecheck"], &["uninitialised_lds", "lds_race"]),
        (
            &["--tool", "initcheck", "--tool", "racecheck"],
            &["uninitialised_lds", "lds_race"],
        ),
        (&["--tool", "memcheck"], &[]),
        (&["--tool", "synccheck"], &[]),
    ] {
        let page = run(REVERSE, &[args, &["--format", "json"]].concat()).json();
        let found: Vec<&str> = page["findings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|finding| finding["report"]["kind"].as_str().unwrap())
            .collect();
        assert_eq!(found, kinds, "{args:?}");
    }
    refused(REVERSE, &["--tool", "leakcheck"], &["--tool", "leakcheck", "racecheck"]);
}

#[test]
fn kernels_are_chosen_by_name_or_a_part_of_it() {
    let text = two_copies();
    for (filter, checked) in [
        ("copy", [true, false, true]),
        ("kernel_name=copy", [true, false, true]),
        ("kne=fill", [false, true, false]),
        ("kns=op", [true, false, true]),
        ("kernel_substring=il", [false, true, false]),
        ("kns=il,copy", [true, true, true]),
    ] {
        let ran = run(&text, &["--kernel-name", filter, "--format", "json"]);
        let page = ran.json();
        assert_eq!(page["checked_launches"], serde_json::json!(checked), "{filter}");
        let copies = if checked[0] { 1 } else { 0 };
        assert_eq!(
            page["findings"].as_array().unwrap().len(),
            copies,
            "{filter}: one of both copies"
        );
        let unchecked = if checked[0] { 0 } else { 4 };
        assert_eq!(
            page["unchecked_findings"], unchecked,
            "{filter}: two in each of two seeds"
        );
        let clean = if checked[0] { Exit::Found } else { Exit::Clean };
        assert_eq!(ran.exit, clean, "{filter}");
    }
    let ran = run(&text, &["--kernel-name", "fill"]);
    assert!(
        ran.out.contains("1 of 3 launches checked; 4 findings in the others"),
        "{}",
        ran.out
    );
    refused(
        &text,
        &["--kernel-name", "opy"],
        &["--kernel-name", "fits no launch", "copy, fill"],
    );
    refused(
        &text,
        &["--kernel-name", "knss=copy"],
        &["unknown key `knss`", "did you mean `kns`"],
    );
    refused(
        &text,
        &["--kernel-name", "regex=copy"],
        &["unknown key `regex`", "kernel_substring"],
    );
    refused(&text, &["--kernel-name", "kns="], &["names no kernel"]);
}

#[test]
fn launches_are_skipped_and_counted_among_those_that_fit() {
    let text = two_copies();
    for (args, checked) in [
        (&["--launch-skip", "1"][..], [false, true, true]),
        (&["--launch-count", "2"], [true, true, false]),
        (&["--launch-skip", "1", "--launch-count", "1"], [false, true, false]),
        (&["--kernel-name", "copy", "--launch-skip", "1"], [false, false, true]),
        (&["--kernel-name", "copy", "--launch-count", "1"], [true, false, false]),
        (&["--launch-skip", "2", "--launch-count", "0"], [false, false, true]),
    ] {
        let page = run(&text, &[args, &["--format", "json"]].concat()).json();
        assert_eq!(page["checked_launches"], serde_json::json!(checked), "{args:?}");
    }
    refused(&text, &["--launch-skip", "3"], &["--launch-skip", "leaves no launch"]);
    refused(
        &text,
        &["--kernel-name", "copy", "--launch-skip", "2"],
        &["leaves no launch", "2 fit"],
    );
}

#[test]
fn faults_that_stop_the_card_are_reported_of_launches_that_are_not_checked_too() {
    let ran = run(THREE, &["--launch-skip", "2"]);
    assert_eq!(ran.exit, Exit::Found);
    assert!(
        ran.out.contains("out of bounds"),
        "nothing after it has run: {}",
        ran.out
    );
}

#[test]
fn findings_beyond_the_limit_are_counted() {
    let ran = run(REVERSE, &["--print-limit", "1"]);
    assert_eq!(ran.exit, Exit::Found);
    assert!(
        ran.out.contains("read of LDS") && !ran.out.contains("race in LDS"),
        "{}",
        ran.out
    );
    assert!(ran.out.contains("1 more fault not printed"), "{}", ran.out);
    assert!(ran.out.contains(": 2 faults in 1 launch"), "{}", ran.out);
    let page = run(REVERSE, &["--print-limit", "1", "--format", "json"]).json();
    assert_eq!(page["findings"].as_array().unwrap().len(), 1);
    assert_eq!(page["findings_in_all"], 2);
    assert!(run(REVERSE, &["--print-limit", "0"]).out.contains("race in LDS"));
}

#[test]
fn padding_keeps_a_write_off_the_next_buffer() {
    let text = r#"
        object = "basic.co"
        seeds = 1
        [buffers]
        y = "f32[1024]"
        z = "f32[8192]"
        [[launch]]
        kernel = "fill"
        block = 32
        grid = 128
        args = ["y", 1.0, 4096]
    "#;
    for (args, lanes) in [
        // 1 KiB behind 4 KiB; what lies beyond that is written to `z`.
        (&[][..], 256),
        (&["--padding", "0"], 64),
        (&["--padding", "8000"], 2048),
        (&["--padding", "1000000"], 3072),
        (&["--padding", "8KiB"], 2048),
        (&["--padding", "1MiB"], 3072),
    ] {
        let page = run(text, &[args, &["--format", "json"]].concat()).json();
        let report = &page["findings"][0]["report"];
        assert_eq!(report["kind"], "out_of_bounds", "{args:?}");
        assert_eq!(report["count"], lanes, "{args:?}");
        assert_eq!(report["allocation"]["label"], "y", "{args:?}");
    }
    refused(
        REVERSE,
        &["--tool", "synccheck", "--padding", "512"],
        &["--padding", "memcheck"],
    );
}

#[test]
fn leaks_are_found_where_they_are_asked_for() {
    let text = r#"
        object = "basic.co"
        seeds = 3
        [buffers]
        x = "f32[32] iota"
        y = "f32[32]"
        z = "f32[32]"
        [[step]]
        alloc = "y"
        [[step]]
        launch = "copy"
        block = 32
        args = ["x", "y", 32]
        [[step]]
        alloc = "z"
        [[step]]
        free = "z"
    "#;
    for args in [&[][..], &["--leak-check", "no"]] {
        let ran = run(text, args);
        assert_eq!(ran.exit, Exit::Clean, "{}{}", ran.out, ran.err);
    }
    let ran = run(text, &["--leak-check", "full"]);
    assert_eq!(ran.exit, Exit::Found, "{}", ran.err);
    assert!(
        ran.out.contains("leak: hipMalloc") && ran.out.contains("\"y\""),
        "{}",
        ran.out
    );
    assert!(
        ran.out.contains("step 0 at ") && ran.out.contains("launch.toml:8"),
        "{}",
        ran.out
    );
    assert!(
        ran.out.contains(": 1 fault in 1 launch"),
        "z is freed, x is the sanitizer's own: {}",
        ran.out
    );
    refused(
        text,
        &["--leak-check", "full", "--tool", "racecheck"],
        &["--leak-check", "memcheck"],
    );
}

#[test]
fn suppressions_leave_findings_out_and_say_so() {
    let folder = Folder::new();
    let with = |text: &str, args: &[&str]| {
        let path = folder.write("known.toml", text);
        folder.run(REVERSE, &[&["--suppressions", path.as_str()], args].concat())
    };
    let both =
        "[[suppress]]\nkind = \"lds_race\"\nreason = \"known\"\n[[suppress]]\nfile = \"reverse.hip\"\nline = 6\n";
    let ran = with(both, &[]);
    assert_eq!(ran.exit, Exit::Clean, "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("2 faults suppressed"), "{}", ran.out);
    assert!(ran.out.contains("nothing found"), "{}", ran.out);
    for (text, left) in [
        ("[[suppress]]\nkind = \"lds_race\"\n", 1),
        ("[[suppress]]\ntool = \"initcheck\"\n", 1),
        ("[[suppress]]\nkernel = \"reverse\"\n", 0),
        ("[[suppress]]\nkernel_substring = \"rev\"\ntool = \"racecheck\"\n", 1),
        ("[[suppress]]\nkernel = \"rev\"\n", 2),
        ("[[suppress]]\nfile = \"examples/reverse.hip\"\n", 0),
        ("[[suppress]]\nfile = \"verse.hip\"\n", 2),
        ("[[suppress]]\nfile = \"reverse.hip\"\nline = 5\n", 1),
        ("[[suppress]]\nfunction = \"other\"\n", 2),
    ] {
        let ran = with(text, &["--format", "json"]);
        let page = ran.json();
        assert_eq!(page["findings"].as_array().unwrap().len(), left, "{text}");
        assert_eq!(page["suppressed"], 2 - left, "{text}");
        assert_eq!(ran.exit == Exit::Clean, left == 0, "{text}");
        assert_eq!(
            page["unused_suppressions"].as_array().unwrap().len(),
            usize::from(left == 2),
            "{text}"
        );
    }
    let ran = with("[[suppress]]\nkernel = \"other\"\n", &[]);
    assert!(
        ran.out.contains("known.toml:1: this suppression fits nothing"),
        "{}",
        ran.out
    );
    for (text, words) in [
        (
            "[[suppress]]\nkinds = \"lds_race\"\n",
            &["known.toml:2", "unknown key `kinds`", "did you mean `kind`"][..],
        ),
        ("[[suppress]]\nkind = \"ldsrace\"\n", &["known.toml:2", "lds_race"]),
        ("[[suppress]]\nkind = \"everything\"\n", &["out_of_bounds"]),
        ("[[suppress]]\ntool = \"memchek\"\n", &["memcheck"]),
        ("[[suppress]]\nreason = \"tired\"\n", &["every finding"]),
        ("[[suppress]]\nline = 5\n", &["`file`"]),
        ("[[suppress]]\nkernel_substring = \"\"\n", &["known.toml:2", "is empty"]),
        ("[[suppress]]\nfile = \"\"\n", &["known.toml:2", "is empty"]),
        ("[[suppres]]\nline = 5\n", &["did you mean `suppress`"]),
        ("", &["needs `suppress`"]),
        ("[[suppress", &["known.toml:1"]),
    ] {
        let ran = with(text, &[]);
        assert_eq!(ran.exit, Exit::CannotRun, "{text}");
        for word in words {
            assert!(ran.err.contains(word), "{word:?} is not said of {text}: {}", ran.err);
        }
    }
    let ran = folder.run(REVERSE, &["--suppressions", "/nowhere/known.toml"]);
    assert_eq!(ran.exit, Exit::CannotRun);
}

#[test]
fn the_exit_status_of_findings_can_be_chosen() {
    for (args, status) in [
        (&[][..], 1),
        (&["--error-exitcode", "7"], 7),
        (&["--error-exitcode", "0"], 0),
        (&["--error-exitcode", "7", "--tool", "memcheck"], 0),
    ] {
        assert_eq!(run(REVERSE, args).status, status, "{args:?}");
    }
    refused(
        REVERSE,
        &["--error-exitcode", "2"],
        &["--error-exitcode", "could be run"],
    );
    assert_eq!(run("objekt = 1", &["--error-exitcode", "7"]).status, 2);
}

#[test]
fn the_report_is_saved_as_it_is_printed() {
    let folder = Folder::new();
    for format in ["text", "json"] {
        let path = folder.path("report").display().to_string();
        let ran = folder.run(REVERSE, &["--save", &path, "--format", format]);
        assert_eq!(ran.exit, Exit::Found, "{}", ran.err);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), ran.out);
    }
    let absent = folder.path("absent/report").display().to_string();
    let ran = folder.run(REVERSE, &["--save", &absent]);
    assert_eq!(ran.exit, Exit::CannotRun);
    assert!(
        ran.out.contains("race in LDS") && ran.err.contains("cannot write"),
        "{}",
        ran.err
    );
    let text = REVERSE.replace("f32[64]\"]", "f32[64] -> y\"]");
    for name in ["launch.toml", "reverse.co", "y"] {
        let path = folder.path(name).display().to_string();
        let ran = folder.run(&text, &["--save", &path]);
        assert_eq!(ran.exit, Exit::CannotRun, "{name}");
        assert!(
            ran.err.contains("--save") && ran.out.is_empty(),
            "{name}: {}{}",
            ran.err,
            ran.out
        );
    }
}

#[test]
fn a_log_file_has_the_report_in_place_of_standard_output() {
    let folder = Folder::new();
    let path = folder.path("log").display().to_string();
    let ran = folder.run(REVERSE, &["--log-file", &path]);
    assert_eq!((ran.exit, ran.out.as_str()), (Exit::Found, ""), "{}", ran.err);
    let log = std::fs::read_to_string(&path).unwrap();
    assert!(log.contains("race in LDS"), "{log}");
    let path = folder.path("reverse.co").display().to_string();
    let ran = folder.run(REVERSE, &["--log-file", &path]);
    assert_eq!(ran.exit, Exit::CannotRun);
    assert!(ran.err.contains("--log-file"), "{}", ran.err);
}

#[test]
fn a_program_is_not_started_with_options_that_contradict_each_other() {
    let folder = Folder::new();
    let wrong = folder.write("wrong.toml", "[[suppress]]\nkinds = \"lds_race\"\n");
    let known = folder.write("known.toml", "[[suppress]]\nkind = \"lds_race\"\n");
    let one = format!("[[suppress]]\nkernel = \"{}\"\n", "k".repeat(200));
    let many = folder.write("many.toml", &one.repeat(600));
    let records = folder.path("records");
    for (options, words) in [
        (&["--suppressions", &many][..], &["--suppressions", "at most"][..]),
        (&["--tool", "leakcheck"][..], &["--tool", "racecheck"][..]),
        (&["--tool", "racecheck", "--padding", "512"], &["--padding", "memcheck"]),
        (
            &["--tool", "racecheck", "--leak-check", "full"],
            &["--leak-check", "memcheck"],
        ),
        (
            &["--kernel-name", "knss=copy"],
            &["--kernel-name", "did you mean `kns`"],
        ),
        (&["--kernel-name", "kns="], &["names no kernel"]),
        (&["--error-exitcode", "2"], &["--error-exitcode", "could be run"]),
        (&["--suppressions", &wrong], &["wrong.toml:2", "did you mean `kind`"]),
        (&["--suppressions", "/nowhere/known.toml"], &["cannot read"]),
        (
            &["--suppressions", &known, "--log-file", &known],
            &["--log-file", "--suppressions"],
        ),
    ] {
        let save = ["--save", records.to_str().unwrap(), "--", "false"];
        let args = [&["rocmforge-sanitize", "run"], options, &save].concat();
        let cli = Cli::try_parse_from(&args).unwrap();
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let exit = rocmforge_sanitize::main(&cli, &mut out, &mut err);
        let err = String::from_utf8(err).unwrap();
        assert_eq!(exit, Exit::CannotRun, "{options:?}: {err}");
        for word in words {
            assert!(err.contains(word), "{word:?} is not said of {options:?}: {err}");
        }
        assert!(!records.exists(), "{options:?}");
    }
}

#[test]
fn options_of_a_run_need_a_launch_file() {
    for option in [
        &["--tool", "memcheck"][..],
        &["--kernel-name", "x"],
        &["--launch-skip", "1"],
        &["--launch-count", "1"],
        &["--padding", "1"],
        &["--suppressions", "x"],
        &["--error-exitcode", "3"],
        &["--save", "x"],
        &["--log-file", "x"],
        &["--print-limit", "1"],
    ] {
        let args = [&["rocmforge-sanitize", "--kernels", "x.co"], option].concat();
        assert!(Cli::try_parse_from(&args).is_err(), "{args:?}");
    }
    for wrong in [
        ["--launch-skip", "-1"],
        ["--print-limit", "many"],
        ["--error-exitcode", "256"],
        ["--leak-check", "yes"],
        ["--padding", "1.5"],
    ] {
        let args = [&["rocmforge-sanitize", "x.toml"], &wrong[..]].concat();
        assert!(Cli::try_parse_from(&args).is_err(), "{args:?}");
    }
}
