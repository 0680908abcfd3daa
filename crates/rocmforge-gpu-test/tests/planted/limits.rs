//! Limits of the shell that starts a run.

use super::contained::binary;
use super::supervisor::Run;
use std::process::Command;

/// A test has the limit that the user gave, also where the supervisor raises its own.
#[test]
fn no_more_tests_run_at_a_time_than_there_may_be_open_files_for() {
    for (limit, said) in [("ulimit -n 96", ", 3 at a time"), ("ulimit -Sn 96", ", 32 at a time")] {
        let run = Run::new();
        let script = binary(&run, "gpu", "[ \"$(ulimit -n)\" = 96 ] || exit 1; sleep 0.5");
        let mut command = run.building();
        command
            .arg("--binary")
            .arg(script)
            .args(["--jobs", "32", "--repeat", "32"]);
        let mut limited = Command::new("sh");
        limited.args(["-c", &format!("{limit}; exec \"$0\" \"$@\"")]);
        limited.arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => limited.env(name, value),
                None => limited.env_remove(name),
            };
        }
        let output = limited.current_dir(run.directory.path()).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{limit}: {errors}");
        assert!(errors.contains(said), "{limit}: {errors}");
    }
}
