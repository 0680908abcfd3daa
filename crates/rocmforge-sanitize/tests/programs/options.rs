//! Options of `rocmforge-sanitize run` that launch files have too.

use crate::{Program, missing, texts};
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// How a run ended, and what was printed.
struct Ran {
    status: Option<i32>,
    out: String,
    found: String,
}

impl Ran {
    /// The kernels of the findings that read what nobody has written, by the number in their name.
    fn taken(&self) -> Vec<u32> {
        let headings = self.found.lines().filter(|line| line.contains("was never written"));
        let number = |line: &str| line.split("_Z4takeILi").nth(1)?.chars().next()?.to_digit(10);
        headings.filter_map(number).collect()
    }

    #[track_caller]
    fn says(&self, text: &str) {
        assert!(self.found.contains(text), "{text:?} is not said\n{}", self.found);
    }
}

/// A program that has been compiled.
struct Compiled(TempDir);

impl Compiled {
    fn new(name: &'static str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        Program::new(name).compile(folder.path());
        Self(folder)
    }

    fn folder(&self) -> &Path {
        self.0.path()
    }

    fn run(&self, options: &[&str]) -> Ran {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rocmforge-sanitize"));
        command.current_dir(self.folder()).arg("run");
        command.args(options).args(["--", "./program"]);
        let ran = command.output().expect("the program under test is built");
        let (out, found) = texts(&ran);
        Ran {
            status: ran.status.code(),
            out,
            found,
        }
    }
}

/// Launches of `chosen_launches`: `fill`, then `take` of 1 to 4, of which the last has no fault, and twice of 5.
#[test]
fn launches_are_chosen_by_kernel_and_number() {
    if let Some(missing) = missing() {
        rocmforge_testkit::skip!("{missing}");
    }
    let program = Compiled::new("chosen_launches");
    for (options, taken, checked, others) in [
        (&[][..], &[1, 2, 3, 5][..], 7, 0),
        (&["--kernel-name", "fill"], &[], 0, 5),
        (&["--kernel-name", "_Z4fillPi"], &[], 1, 5),
        (&["--kernel-name", "kns=fill"], &[], 1, 5),
        (&["--kernel-name", "kernel_substring=take"], &[1, 2, 3, 5], 6, 0),
        (&["--kernel-name", "kns=ILi2E,kne=_Z4takeILi3EEvPKiPi"], &[2, 3], 2, 3),
        (&["--kernel-name", "kernel_name=_Z4takeILi5EEvPKiPi"], &[5], 2, 3),
        (&["--launch-skip", "3"], &[3, 5], 4, 2),
        (&["--launch-count", "2"], &[1], 2, 4),
        (
            &["--kernel-name", "kns=take", "--launch-skip", "1", "--launch-count", "1"],
            &[2],
            1,
            4,
        ),
        (&["--kernel-name", "kns=take", "--launch-skip", "5"], &[5], 1, 4),
    ] {
        let ran = program.run(options);
        // Its own checks, unless nothing was checked: unselected launches have run as well.
        let status = if checked == 0 { 2 } else { 0 };
        assert_eq!(ran.status, Some(status), "{options:?}\n{}\n{}", ran.out, ran.found);
        assert_eq!(ran.taken(), taken, "{options:?}\n{}", ran.found);
        let checks = format!("{checked} of 7 launches checked; {others} findings in the others");
        assert_eq!(
            ran.found.contains(&checks),
            !options.is_empty(),
            "{options:?}\n{}",
            ran.found
        );
        // Names are mangled.
        let fits_none = "========= nothing was checked: --kernel-name fits no launch; kernels that were launched: _Z4fillPi, _Z4takeILi1EEvPKiPi, ";
        assert_eq!(
            ran.found.contains(fits_none),
            checked == 0,
            "{options:?}\n{}",
            ran.found
        );
        ran.says(&format!("========= {} findings (", taken.len()));
    }
}

/// Also where findings go to a file, and where all launches are passed over.
#[test]
fn a_program_of_which_nothing_is_checked_says_so() {
    if let Some(missing) = missing() {
        rocmforge_testkit::skip!("{missing}");
    }
    let program = Compiled::new("chosen_launches");
    let ran = program.run(&["--kernel-name", "other", "--log-file", "log"]);
    assert_eq!(ran.status, Some(2));
    ran.says("nothing was checked: --kernel-name fits no launch; kernels that were launched: _Z4fillPi, ");
    let ran = program.run(&["--launch-skip", "7"]);
    assert_eq!(ran.status, Some(2));
    ran.says(
        "nothing was checked: --launch-skip leaves no launch to check: 7 fit, and 7 of each process are passed over",
    );
    let ran = Compiled::new("numbers").run(&["--kernel-name", "other", "--error-exitcode", "9"]);
    assert_eq!(ran.status, Some(2));
    ran.says("========= nothing was checked: ");
}

#[test]
fn suppressed_findings_are_counted() {
    if let Some(missing) = missing() {
        rocmforge_testkit::skip!("{missing}");
    }
    let program = Compiled::new("chosen_launches");
    let with = |text: &str, options: &[&str]| {
        std::fs::write(program.folder().join("known.toml"), text).expect("a file");
        program.run(&[&["--suppressions", "known.toml", "--error-exitcode", "7"], options].concat())
    };
    for (text, taken, suppressed) in [
        (
            "[[suppress]]\nkernel = \"_Z4takeILi2EEvPKiPi\"\nreason = \"known\"\n",
            &[1, 3, 5][..],
            1,
        ),
        (
            "[[suppress]]\nkernel_substring = \"take\"\nkind = \"uninitialised\"\n",
            &[],
            4,
        ),
        ("[[suppress]]\ntool = \"initcheck\"\n", &[], 4),
        ("[[suppress]]\ntool = \"racecheck\"\n", &[1, 2, 3, 5], 0),
        ("[[suppress]]\nfile = \"chosen_launches.hip\"\nline = 6\n", &[], 4),
        ("[[suppress]]\nfile = \"launches.hip\"\n", &[1, 2, 3, 5], 0),
    ] {
        let ran = with(text, &[]);
        assert_eq!(ran.taken(), taken, "{text}{}", ran.found);
        assert_eq!(
            ran.status,
            Some(if taken.is_empty() { 0 } else { 7 }),
            "{text}{}",
            ran.found
        );
        assert_eq!(
            ran.found.contains("known.toml:1: this suppression fits nothing"),
            suppressed == 0,
            "{text}{}",
            ran.found
        );
        assert_eq!(ran.found.contains(" suppressed\n"), suppressed > 0, "{}", ran.found);
        if suppressed > 0 {
            ran.says(&format!("========= {suppressed} suppressed\n"));
        }
        ran.says(&format!("========= {} findings (", taken.len()));
    }
    let both = "[[suppress]]\nkernel_substring = \"take\"\n[[suppress]]\nkernel = \"other\"\n";
    let ran = with(both, &["--save", "records"]);
    ran.says("known.toml:3: this suppression fits nothing");
    assert!(!ran.found.contains("known.toml:1"), "{}", ran.found);
    let records: String = std::fs::read_dir(program.folder().join("records"))
        .expect("the folder")
        .map(|file| std::fs::read_to_string(file.expect("a file").path()).expect("a text"))
        .collect();
    let records: Vec<serde_json::Value> = records
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let of = |what: &str| records.iter().filter(|record| record["what"] == what).count();
    assert_eq!((of("finding"), of("suppressed"), of("end")), (0, 4, 1));
    let end = records.last().expect("one at least");
    assert_eq!((&end["findings"], &end["suppressed"]), (&0.into(), &4.into()));
}

#[test]
fn findings_beyond_the_limit_are_counted_and_go_where_they_are_wanted() {
    if let Some(missing) = missing() {
        rocmforge_testkit::skip!("{missing}");
    }
    let program = Compiled::new("chosen_launches");
    let ran = program.run(&["--print-limit", "2"]);
    assert_eq!(ran.taken(), [1, 2], "{}", ran.found);
    ran.says("========= 2 more not printed: see --print-limit\n");
    ran.says("========= 4 findings (");
    assert_eq!(program.run(&["--print-limit", "0"]).taken(), [1, 2, 3, 5]);
    let ran = program.run(&["--error-exitcode", "9", "--save", "records", "--log-file", "log"]);
    assert_eq!(ran.status, Some(9));
    assert!(!ran.found.contains("was never written"), "{}", ran.found);
    let log = std::fs::read_to_string(program.folder().join("log")).expect("a text");
    let logged = Ran { found: log, ..ran };
    assert_eq!(logged.taken(), [1, 2, 3, 5]);
    let saved = std::fs::read_dir(program.folder().join("records")).expect("the folder");
    assert_eq!(saved.count(), 1, "a file for each process");
    let again = program.run(&["--save", "records"]);
    assert_eq!(again.status, Some(2), "the folder exists: {}", again.found);
    assert!(program.run(&["--tool", "memcheck,racecheck"]).taken().is_empty());
    assert_eq!(
        program.run(&["--tool", "initcheck", "--error-exitcode", "9"]).status,
        Some(9)
    );
}

#[test]
fn why_no_machine_could_be_simulated_is_said() {
    if let Some(missing) = missing() {
        rocmforge_testkit::skip!("{missing}");
    }
    let program = Compiled::new("padding");
    // Less address space than a card has memory.
    let mut command = Command::new("sh");
    command
        .current_dir(program.folder())
        .args(["-c", "ulimit -v 16000000; exec \"$0\" run -- ./program"]);
    let ran = command
        .arg(env!("CARGO_BIN_EXE_rocmforge-sanitize"))
        .output()
        .expect("a shell");
    let (_, found) = texts(&ran);
    assert!(!ran.status.success(), "{found}");
    assert!(
        found.contains("nothing was checked: no machine could be simulated: the host refused"),
        "{found}"
    );
    assert!(!found.contains("has made no HIP call"), "{found}");
}

#[test]
fn padding_and_leaks_are_as_in_launch_files() {
    if let Some(missing) = missing() {
        rocmforge_testkit::skip!("{missing}");
    }
    let program = Compiled::new("padding");
    assert_eq!(program.run(&[]).status, Some(0));
    let ran = program.run(&["--padding", "65536"]);
    assert_eq!(ran.status, Some(3), "{}", ran.found);
    ran.says("out of bounds: kernel");
    ran.says("B past the end of the allocation");
    for (options, leaks) in [
        (&[][..], 0),
        (&["--leak-check", "no"], 0),
        (&["--leak-check", "full"], 2),
    ] {
        let ran = program.run(options);
        assert_eq!(ran.found.matches("leak: hipMalloc").count(), leaks, "{}", ran.found);
    }
    // No leak is of a launch.
    let ran = program.run(&["--leak-check", "full", "--kernel-name", "other"]);
    ran.says("========= 2 findings (");
}
