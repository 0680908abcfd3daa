//! Commands that end, that do not, and that the user has enough of.

use super::*;
use std::sync::mpsc;

type Ran = Result<(Option<ExitStatus>, Vec<u8>), DiscoverError>;

const LONG: Duration = Duration::from_secs(60);

/// What becomes of a shell script; `meanwhile` runs beside it once it has made a file `up` in its folder.
fn run(script: &str, limit: Duration, meanwhile: impl FnOnce(&Interrupt) + Send) -> (Ran, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let (household, interrupt) = (Household::default(), Interrupt::new().unwrap());
    let runner = Runner {
        household: &household,
        interrupt: &interrupt,
    };
    let mut command = Command::new("sh");
    command.args(["-c", script]).current_dir(folder.path());
    let (ended, has_ended) = mpsc::channel::<()>();
    let result = std::thread::scope(|scope| {
        let (up, interrupt) = (folder.path().join("up"), &interrupt);
        scope.spawn(move || {
            while has_ended.try_recv() == Err(mpsc::TryRecvError::Empty) {
                if up.exists() {
                    return meanwhile(interrupt);
                }
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        let result = runner.output(&mut command, limit);
        drop(ended);
        result
    });
    (result, folder)
}

#[test]
fn all_that_a_command_says_is_taken_and_its_end_told() {
    // More than a pipe holds, and slowly.
    let (result, _) = run("head -c 200000 /dev/zero; sleep 0.3; printf end; exit 7", LONG, |_| ());
    let (status, said) = result.unwrap();
    assert_eq!(status.and_then(|status| status.code()), Some(7));
    assert_eq!(said.len(), 200_003);
    assert!(said.ends_with(b"\0end"));
}

#[test]
fn a_command_has_its_time_and_no_more() {
    let start = Instant::now();
    let (result, _) = run("printf so far; exec sleep 1000", Duration::from_millis(700), |_| ());
    assert_eq!(result.unwrap(), (None, b"so".to_vec()));
    assert!(start.elapsed() >= Duration::from_millis(700));
    assert!(start.elapsed() < LONG);
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
fn a_given_binary_is_called_after_its_file() {
    let folder = tempfile::tempdir().unwrap();
    for (file, package) in [
        ("gpu-0123456789abcdef", "gpu"),
        ("some_tests", "some_tests"),
        ("a-b-c", "a-b"),
    ] {
        let path = folder.path().join(file);
        std::fs::write(&path, "").unwrap();
        let binary = given(&path).unwrap();
        assert_eq!(
            (binary.package.as_str(), binary.directory),
            (package, folder.path().canonicalize().unwrap())
        );
    }
    assert!(given(&folder.path().join("none")).is_err());
}

#[test]
fn a_listing_is_one_test_a_line_and_benches_are_not_tests() {
    let listing = "softmax::row_of_33: test\nrope::small: test\nspeed: benchmark\n\n2 tests, 1 benchmark\n";
    assert_eq!(parse_listing(listing), ["softmax::row_of_33", "rope::small"]);
}
