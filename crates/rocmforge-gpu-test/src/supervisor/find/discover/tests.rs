//! Commands that end, that do not, and that the user has enough of.

use super::*;
use std::sync::mpsc;

type Ran = Result<Said, DiscoverError>;

const LONG: Duration = Duration::from_secs(60);

/// What discovery borrows.
struct Parts {
    workspace: crate::workspace::CurrentWorkspace,
    process_tree: Arc<ProcessTree>,
    interrupt: Interrupt,
}

impl Parts {
    fn new() -> Self {
        Self {
            workspace: crate::workspace::CurrentWorkspace::here(),
            process_tree: Arc::default(),
            interrupt: Interrupt::new().unwrap(),
        }
    }

    fn discovery(&self) -> Discovery<'_> {
        Discovery {
            workspace: &self.workspace,
            process_tree: &self.process_tree,
            interrupt: &self.interrupt,
        }
    }
}

/// What becomes of a shell script; `meanwhile` runs beside it once it has made a file `up` in its folder.
fn run(script: &str, limit: Duration, meanwhile: impl FnOnce(&Interrupt) + Send) -> (Ran, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let parts = Parts::new();
    let discovery = parts.discovery();
    let mut command = Command::new("sh");
    command.args(["-c", script]).current_dir(folder.path());
    let (ended, has_ended) = mpsc::channel::<()>();
    let result = std::thread::scope(|scope| {
        let (up, interrupt) = (folder.path().join("up"), &parts.interrupt);
        scope.spawn(move || {
            while has_ended.try_recv() == Err(mpsc::TryRecvError::Empty) {
                if up.exists() {
                    return meanwhile(interrupt);
                }
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        let result = discovery.output(&mut command, Bounds { time: limit, ..LISTING });
        drop(ended);
        result
    });
    (result, folder)
}

#[test]
fn all_output_of_a_command_is_taken_and_its_end_reported() {
    // More than a pipe holds, and slowly.
    let (result, _) = run("head -c 200000 /dev/zero; sleep 0.3; printf end; exit 7", LONG, |_| ());
    let said = result.unwrap();
    assert_eq!(said.status.and_then(|status| status.code()), Some(7));
    assert_eq!((said.text.len(), said.flooded), (200_003, false));
    assert!(said.text.ends_with(b"\0end"));
}

#[test]
fn a_command_has_its_time_and_no_more() {
    // A loaded machine takes its time to start a shell, which then has said nothing.
    for limit in [Duration::from_millis(700), Duration::from_secs(7), LONG] {
        let start = Instant::now();
        let (result, _) = run("printf so far; exec sleep 1000", limit, |_| ());
        let said = result.unwrap();
        assert!(said.status.is_none() && start.elapsed() >= limit);
        if !said.text.is_empty() {
            assert_eq!(said.text, b"so");
            return;
        }
    }
    panic!("a shell took longer than {LONG:?} to start");
}

#[test]
fn the_user_is_heard_while_a_command_runs() {
    let ends = |result: Ran| assert!(matches!(result, Err(DiscoverError::Interrupted)));
    // Once: it is asked to end.
    let script = "trap 'touch asked; exit' TERM; touch up; while :; do sleep 0.05; done";
    let (result, folder) = run(script, LONG, |interrupt| interrupt.raise(2));
    ends(result);
    assert!(folder.path().join("asked").exists());
    // Twice: it is ended, whatever it ignores.
    let script = "trap '' TERM; touch up; while :; do sleep 0.05; done";
    let (result, _) = run(script, LONG, |interrupt| {
        interrupt.raise(2);
        std::thread::sleep(Duration::from_millis(100));
        interrupt.raise(2);
    });
    ends(result);
}

#[test]
fn a_listing_is_one_test_a_line_and_benches_are_not_tests() {
    let listing = b"softmax::row_of_33: test\nrope::small: test\nspeed: benchmark\n\n2 tests, 1 benchmark\n";
    assert_eq!(
        parse_listing(listing, "gpu").unwrap(),
        ["softmax::row_of_33", "rope::small"]
    );
}

/// What a script in the place of a test binary is said to be.
fn listing(script: &str) -> Result<Vec<Test>, String> {
    let folder = tempfile::tempdir().unwrap();
    let test = crate::supervisor::run::supervise::tests::test(folder.path(), "binary", script);
    let parts = Parts::new();
    let discovery = parts.discovery();
    let listed = discovery.list(&[test.binary]);
    listed.map_err(|error| error.to_string().replace(&format!("{}/", folder.path().display()), ""))
}

#[test]
fn a_binary_that_floods_is_stopped_and_named() {
    // By its amount, and not because its time was over.
    let flood = "fake-binary writes too much where it should list its tests: more than 16777216 bytes";
    // Endless lines, one endless line, endless names, and one that heeds nothing.
    for script in [
        "exec yes x",
        "exec cat /dev/zero",
        "exec yes 'a: test'",
        "trap '' TERM INT PIPE; while :; do head -c 9999999 /dev/zero; done",
    ] {
        assert_eq!(listing(script).unwrap_err(), flood, "{script}");
    }
    // Errors may be endless too, and are nobody's.
    let tests = listing("head -c 30000000 /dev/zero >&2; echo 'a::b: test'").unwrap();
    assert_eq!(tests[0].name, "a::b");
}

#[test]
fn too_many_tests_and_names_that_nobody_can_read_are_refused() {
    let many = |count: usize| listing(&format!("yes 'a: test' | head -n {count}"));
    assert_eq!(many(MOST_TESTS).map(|tests| tests.len()), Ok(MOST_TESTS));
    assert_eq!(
        many(MOST_TESTS + 1).unwrap_err(),
        "fake-binary lists more than 100000 tests, and these are the most: split it into several crates"
    );
    let long = |bytes: usize| listing(&format!("head -c {bytes} /dev/zero | tr '\\0' n; echo ': test'"));
    assert_eq!(long(LONGEST_NAME).unwrap()[0].name.len(), LONGEST_NAME);
    assert_eq!(
        long(LONGEST_NAME + 1).unwrap_err(),
        "fake-binary lists a test whose name has 1025 bytes, and 1024 are the most: give it a shorter one"
    );
    for (name, shown) in [
        ("a\\033[2J", "a␛[2J"),
        ("a\\rb", "a␍b"),
        ("a\\377", "a\u{fffd}"),
        ("\\342\\200\\256a", "\\u{202e}a"),
        ("", ""),
    ] {
        let error = listing(&format!("printf '{name}: test\\n'")).unwrap_err();
        let expected = format!("fake-binary lists a test whose name cannot be printed: `{shown}`");
        assert_eq!(error, expected);
    }
}

#[test]
fn what_a_binary_that_cannot_list_says_is_quoted_harmlessly() {
    let error = listing("printf '\\n\\033[31mno library\\nmore\\n' >&2; exit 127").unwrap_err();
    assert_eq!(
        error,
        "fake-binary cannot list its tests: exit status: 127: ␛[31mno library"
    );
}

#[test]
fn two_tests_that_would_share_a_log_are_refused_with_both_binaries() {
    let test = |package: &str, name: &str, executable: &str| Test {
        binary: TestBinary {
            package: package.to_owned(),
            executable: executable.into(),
            directory: "/".into(),
        },
        name: name.to_owned(),
        ignored: false,
        arguments: None,
    };
    let tests = vec![test("a", "b", "/one"), test("a", "c", "/one"), test("b", "b", "/two")];
    assert_eq!(all_different(tests).unwrap().len(), 3);
    // The second pair has one file name.
    for (name, other) in [("b", "b"), ("b.c", "b::c")] {
        let refused = all_different(vec![test("a", name, "/one"), test("a", other, "/two")]).unwrap_err();
        let said = refused.to_string();
        for part in [&format!("two tests are called a::{other}"), "/one", "/two"] {
            assert!(said.contains(part), "{said}");
        }
    }
}
