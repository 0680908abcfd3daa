//! Origin of a report: what was tested, how it was called, where and when.

use crate::card::device::Device;
use crate::card::files::short_text;
use crate::card::nvidia;
use rocmforge_machine::sysfs::Sysfs;
use serde::Serialize;
use std::ffi::OsString;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What a reader of a report may ask later.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Origin {
    /// What was tested, as git calls it, if that is known.
    pub(crate) commit: Option<String>,
    /// The command with its arguments, as a shell takes them.
    pub(crate) command_line: String,
    /// The kernel driver of a real card, with its version where it has one.
    pub(crate) driver: Option<String>,
    /// When the first test started: RFC 3339, UTC.
    pub(crate) started: String,
    /// `--filter`.
    pub(crate) filter: Option<String>,
}

impl Origin {
    /// All that is known, with a name each.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let rows = [
            ("commit", self.commit.as_deref()),
            ("command_line", Some(self.command_line.as_str())),
            ("driver", self.driver.as_deref()),
            ("started", Some(self.started.as_str())),
            ("filter", self.filter.as_deref()),
        ];
        let known = |(name, value): (_, Option<_>)| Some((name, value.filter(|value: &&str| !value.is_empty())?));
        rows.into_iter().filter_map(known)
    }
}

/// The arguments of a process as a shell takes them. Cargo starts its subcommands with a path of its own: the `command` that
/// the user called, and not the file, stands first then.
pub(crate) fn command_line(arguments: impl IntoIterator<Item = OsString>, command: &str, by_cargo: bool) -> String {
    let words = arguments.into_iter().map(|word| quoted(&word.to_string_lossy()));
    let mut words: Vec<String> = words.collect();
    if by_cargo && !words.is_empty() {
        words[0] = command.to_owned();
        // Its last word is the subcommand, which cargo or xtask was given as an argument.
        if words
            .get(1)
            .is_some_and(|word| command.split(' ').next_back() == Some(word))
        {
            words.remove(1);
        }
    }
    words.join(" ")
}

/// `text` as one word of a shell.
pub(super) fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-.:/".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// The kernel driver of a real card.
pub(crate) fn driver(device: &Device, sysfs: &Sysfs) -> Option<String> {
    let read = |path| short_text(sysfs, path);
    match device {
        Device::Sim(_) => None,
        Device::Nvidia(_) => nvidia::driver_version(sysfs).map(|version| format!("nvidia {version}")),
        Device::Hip(_) => {
            // Only a driver that was built beside the kernel has a version of its own.
            let own = read("sys/module/amdgpu/version").map(|version| format!("amdgpu {version}"));
            let with_kernel = || Some(format!("amdgpu of kernel {}", read("proc/sys/kernel/osrelease")?));
            own.or_else(with_kernel)
        }
    }
}

/// A moment as RFC 3339 in UTC, to the second.
pub(crate) fn rfc3339(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Year, month and day of a number of days since 1970 (Howard Hinnant's `civil_from_days`): years begin in March there.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rocmforge_test_support::machines::{H200, Machine};

    #[test]
    fn a_moment_is_written_as_rfc_3339() {
        // From `date -u -d @… +%FT%TZ`.
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (1_767_225_599, "2025-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(rfc3339(UNIX_EPOCH + Duration::from_secs(seconds)), text);
        }
        assert_eq!(rfc3339(UNIX_EPOCH - Duration::from_secs(1)), "1970-01-01T00:00:00Z");
    }

    #[test]
    fn the_command_line_is_what_the_user_called() {
        let line =
            |words: &[&str], command, by_cargo| command_line(words.iter().map(OsString::from), command, by_cargo);
        let xtask = ["target/debug/xtask", "test-gpu", "--filter", "it's"];
        assert_eq!(
            line(&xtask, "cargo xtask test-gpu", true),
            r"cargo xtask test-gpu --filter 'it'\''s'"
        );
        let gpu_test = ["/bin/cargo-gpu-test", "gpu-test", "--jobs", "2"];
        assert_eq!(line(&gpu_test, "cargo gpu-test", true), "cargo gpu-test --jobs 2");
        assert_eq!(
            line(&["./gpu-test", "--bundle", "."], "cargo gpu-test", false),
            "./gpu-test --bundle ."
        );
        assert_eq!(line(&[], "cargo gpu-test", true), "");
    }

    #[test]
    fn the_driver_of_a_card_is_known_by_files() {
        let of = |device: &str, tree: &Machine| {
            let sysfs = Sysfs::at(tree.path());
            let device = Device::find(device.parse().unwrap(), &sysfs, &sysfs.machine()).unwrap();
            driver(&device, &sysfs)
        };
        let tree = Machine::headless().nvidia(0, H200, 0x0302);
        assert_eq!(of("sim", &tree), None);
        assert_eq!(of("nvidia:0", &tree).as_deref(), Some("nvidia 580.95.05"));
        let tree = tree.file("proc/sys/kernel/osrelease", "6.8.0-45-generic\n");
        assert_eq!(of("hip:0", &tree).as_deref(), Some("amdgpu of kernel 6.8.0-45-generic"));
        let tree = tree.file("sys/module/amdgpu/version", "6.10.5\n");
        assert_eq!(of("hip:0", &tree).as_deref(), Some("amdgpu 6.10.5"));
    }
}
