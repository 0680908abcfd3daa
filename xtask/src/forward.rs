//! Commands that only run a test with other settings: one table.

use crate::workspace_root;
use clap::{Arg, ArgAction, ArgMatches};
use rocmforge_gpu_test::{Outcome, say};
use std::process::{Command, Stdio};

/// A command that runs a test.
struct Forward {
    name: &'static str,
    about: &'static str,
    /// Arguments of cargo, with a space between them.
    cargo: &'static str,
    /// Arguments of the test binary, as well.
    test: &'static str,
    env: &'static [(&'static str, &'static str)],
    options: &'static [Setting],
    /// A target directory of its own, in `target`: for flags that change every crate.
    target: Option<&'static str>,
    /// Whether it needs the nightly toolchain with Miri, and takes `--skip-if-absent`.
    miri: bool,
    /// What a failure means.
    failed: &'static str,
}

/// An option that sets an environment variable of the test.
struct Setting {
    name: &'static str,
    help: &'static str,
    /// `None`: unset unless given.
    default: Option<&'static str>,
    variable: &'static str,
}

const fn setting(
    name: &'static str,
    default: Option<&'static str>,
    variable: &'static str,
    help: &'static str,
) -> Setting {
    Setting {
        name,
        help,
        default,
        variable,
    }
}

const TABLE: &[Forward] = &[
    Forward {
        name: "budget",
        about: "Checks the budget against 1,000 simulated desktops with changing memory use",
        cargo: "test --release -p rocmforge-memory --test campaign",
        test: "--nocapture --test-threads=1",
        env: &[],
        options: &[
            setting("seeds", Some("1000"), "ROCMFORGE_BUDGET_SEEDS", "Sessions"),
            setting("steps", Some("100000"), "ROCMFORGE_BUDGET_STEPS", "Steps of each"),
            setting(
                "first",
                Some("0"),
                "ROCMFORGE_BUDGET_FIRST",
                "The first seed: a single one replays with `--seeds 1`",
            ),
        ],
        target: None,
        miri: false,
        failed: "the budget broke a promise; the seed and the figures are above",
    },
    Forward {
        name: "campaign",
        about: "Runs random host programs on the simulator, each with one planted mistake, and correct ones",
        cargo: "test -p rocmforge-sim --test campaign",
        test: "--nocapture --test-threads=1 every_planted_mistake_is_found correct_programs_make_no_report",
        env: &[("ROCMFORGE_CAMPAIGN_PROGRESS", "1")],
        options: &[
            setting(
                "seeds",
                Some("10000"),
                "ROCMFORGE_CAMPAIGN_SEEDS",
                "Programs with one mistake each",
            ),
            setting("ops", Some("1000"), "ROCMFORGE_CAMPAIGN_OPS", "Operations of each"),
            setting(
                "first",
                Some("0"),
                "ROCMFORGE_CAMPAIGN_FIRST",
                "The first seed: a single one replays with `--seeds 1 --clean-seeds 0`",
            ),
            setting(
                "clean-seeds",
                Some("1000"),
                "ROCMFORGE_CAMPAIGN_CLEAN_SEEDS",
                "Seeds for each of 100 correct programs",
            ),
            setting(
                "jobs",
                None,
                "ROCMFORGE_CAMPAIGN_JOBS",
                "Threads; all cores if not given",
            ),
        ],
        target: None,
        miri: false,
        failed: "the campaign failed; its last seeds are above",
    },
    Forward {
        name: "programs",
        about: "Runs generated programs on the runtime under many schedules and compares them with one operation after the other",
        cargo: "test -p rocmforge-runtime --test programs",
        test: "--nocapture every_schedule_gives_the_result_of_one_operation_after_the_other",
        env: &[("ROCMFORGE_PROGRAMS_PROGRESS", "1")],
        options: &[
            setting("programs", Some("2000"), "ROCMFORGE_PROGRAMS", "Programs"),
            setting("seeds", Some("200"), "ROCMFORGE_PROGRAM_SEEDS", "Schedules of each"),
            setting("first", Some("0"), "ROCMFORGE_PROGRAMS_FIRST", "The first program"),
            setting(
                "first-seed",
                Some("0"),
                "ROCMFORGE_PROGRAM_SEEDS_FIRST",
                "The first seed",
            ),
            setting(
                "jobs",
                None,
                "ROCMFORGE_PROGRAMS_JOBS",
                "Threads; all cores if not given",
            ),
        ],
        target: None,
        miri: false,
        failed: "a program failed; it is above, cut down, with the command that repeats it",
    },
    Forward {
        name: "loom",
        about: "Explores every order in which threads can take the locks of the budget, the pool and the last-use lists",
        cargo: "test --package rocmforge-memory --test loom",
        test: "",
        env: &[("RUSTFLAGS", "--cfg loom")],
        options: &[],
        target: Some("loom"),
        miri: false,
        failed: "a model failed; the last lines above are the order of steps that broke it",
    },
    Forward {
        name: "miri",
        about: "Runs the tests of rocmforge-memory in Miri",
        // Which tests these are stands in the target's `main.rs`.
        cargo: "test -p rocmforge-memory --test suite",
        test: "",
        env: &[
            // The clock and the file system of the machine; and few cases, each is slow.
            ("MIRIFLAGS", "-Zmiri-disable-isolation"),
            ("PROPTEST_CASES", "4"),
            // Tests that panic on purpose would have the names of all functions looked up, for minutes.
            ("RUST_BACKTRACE", "0"),
        ],
        options: &[],
        target: Some("miri"),
        miri: true,
        failed: "Miri found something, or a test failed; it is above",
    },
];

const NO_MIRI: &str = "there is no Miri: `rustup component add miri rust-src --toolchain nightly`";

/// The commands, for clap.
pub(crate) fn commands() -> impl Iterator<Item = clap::Command> {
    TABLE.iter().map(|row| {
        let settings = row.options.iter().map(|option| {
            let arg = Arg::new(option.name)
                .long(option.name)
                .value_parser(clap::value_parser!(u64));
            let arg = arg.help(option.help);
            match option.default {
                Some(default) => arg.default_value(default),
                None => arg,
            }
        });
        let mut command = clap::Command::new(row.name).about(row.about).args(settings);
        if row.target.is_some() {
            command = command.arg(Arg::new("filter").help("Runs only the tests whose name contains this"));
        }
        if row.miri {
            let skip = Arg::new("skip-if-absent")
                .long("skip-if-absent")
                .action(ArgAction::SetTrue);
            command =
                command.arg(skip.help("Succeeds, and says so, where no nightly toolchain with Miri is installed"));
        }
        command
    })
}

/// Runs the command `name`, if it is one of the table.
pub(crate) fn run(name: &str, matches: &ArgMatches) -> Option<Outcome> {
    let row = TABLE.iter().find(|row| row.name == name)?;
    Some(row.run(matches))
}

impl Forward {
    fn run(&self, matches: &ArgMatches) -> Outcome {
        if self.miri && !self.has_miri() {
            if matches.get_flag("skip-if-absent") {
                say!("skipped: {NO_MIRI}");
                return Ok(());
            }
            return Err(NO_MIRI.into());
        }
        let mut command = self.program();
        command.args(self.cargo.split(' ')).envs(self.env.iter().copied());
        if let Some(folder) = self.target {
            command.env("CARGO_TARGET_DIR", workspace_root().join("target").join(folder));
        }
        for option in self.options {
            if let Some(value) = matches.get_one::<u64>(option.name) {
                command.env(option.variable, value.to_string());
            }
        }
        let filter = self.target.and_then(|_| matches.get_one::<String>("filter"));
        command.arg("--").args(self.test.split_whitespace()).args(filter);
        match command.status()?.success() {
            true => Ok(()),
            false => Err(self.failed.into()),
        }
    }

    fn program(&self) -> Command {
        if !self.miri {
            return crate::cargo();
        }
        let mut cargo = Command::new("cargo");
        cargo
            .current_dir(workspace_root())
            .args(["+nightly", "miri"])
            // A toolchain chosen by the cargo that runs us would win over `+nightly`.
            .env_remove("RUSTUP_TOOLCHAIN")
            .env_remove("CARGO");
        cargo
    }

    fn has_miri(&self) -> bool {
        let mut command = self.program();
        let version = command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
        version.status().is_ok_and(|status| status.success())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_makes_sound_commands() {
        for command in commands() {
            let name = command.get_name().to_owned();
            command.debug_assert();
            assert!(TABLE.iter().any(|row| row.name == name));
        }
    }
}
