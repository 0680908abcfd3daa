//! What a test told beside its exit status: in the records of its leases, and in its output.

use super::report::Verdict;
use rocmforge_testkit::report::Record;
use std::fs;
use std::path::Path;

/// Bytes of a test's output kept in the reports: its end.
const OUTPUT_TAIL: usize = 16_384;
/// The records of one test process.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    /// Why it could not run.
    skip: Option<String>,
    /// Where it failed as expected and why that is known, and what it failed with.
    expected_failures: Vec<(String, String)>,
    /// The most VRAM a lease held, in bytes.
    pub(crate) peak_bytes: Option<u64>,
    /// Kernels launched.
    pub(crate) launches: u64,
    /// The most bytes that the driver went on holding when a lease had ended.
    pub(crate) retained: Option<u64>,
}

impl Told {
    /// Reads the file that a test appended its records to; a test that wrote none told nothing.
    pub(crate) fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap_or_default();
        // A line cut short by a kill says nothing.
        let records = text.lines().filter_map(|line| serde_json::from_str(line).ok());
        records.fold(Self::default(), Self::and)
    }

    fn and(mut self, record: Record) -> Self {
        match record {
            Record::Skip { reason } => self.skip = Some(reason),
            Record::ExpectedFailure { reason, failure } => self.expected_failures.push((reason, failure)),
            Record::Lease {
                peak_bytes, launches, ..
            } => {
                self.peak_bytes = self.peak_bytes.max(Some(peak_bytes));
                self.launches += launches;
            }
            Record::Driver { .. } => self.retained = self.retained.max(record.retained()),
        }
        self
    }

    /// What became of a test that told this and exited with status 0. One that was skipped in part was not run.
    pub(crate) fn verdict(&self) -> Verdict {
        if let Some(reason) = &self.skip {
            let reason = reason.clone();
            return Verdict::Skipped { reason };
        }
        if self.expected_failures.is_empty() {
            return Verdict::Passed;
        }
        let (reasons, failures): (Vec<&str>, Vec<&str>) = (self.expected_failures.iter())
            .map(|(reason, failure)| (reason.as_str(), failure.as_str()))
            .unzip();
        Verdict::ExpectedFailure {
            reason: reasons.join("; "),
            failure: failures.join("\n"),
        }
    }
}

/// The end of a text, cut where a character begins.
pub(crate) fn tail(text: &str) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(OUTPUT_TAIL))..]
}

/// The seed with which to repeat a test: the one that its generator printed.
pub(crate) fn seed(text: &str) -> Option<u64> {
    let (_, rest) = text.split_once("repeat with ROCMFORGE_SEED=")?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// The first line of a test's output that names an error: a panic with its message, else a sanitizer's or a runtime's word,
/// else the last line that says anything.
pub(crate) fn first_error(output: &str) -> Option<String> {
    let mut lines = output.lines().map(str::trim).filter(|line| !line.is_empty());
    let words = ["error", "ERROR", "fatal", "has overflowed its stack", "Assertion"];
    let mut last = None;
    while let Some(line) = lines.next() {
        if line.contains("panicked at ") {
            // The message has a line of its own.
            let message = lines.next().map(|message| format!(" {message}")).unwrap_or_default();
            return Some(format!("{line}{message}"));
        }
        if words.iter().any(|word| line.contains(word)) {
            return Some(line.to_owned());
        }
        last = Some(line);
    }
    last.map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(peak_bytes: u64, launches: u64) -> Record {
        Record::Lease {
            device: "sim".to_owned(),
            peak_bytes,
            launches,
        }
    }

    fn skip(reason: &str) -> Record {
        let reason = reason.to_owned();
        Record::Skip { reason }
    }

    fn expected(reason: &str, failure: &str) -> Record {
        let (reason, failure) = (reason.to_owned(), failure.to_owned());
        Record::ExpectedFailure { reason, failure }
    }

    fn told(records: &[Record]) -> Told {
        records.iter().cloned().fold(Told::default(), Told::and)
    }

    #[test]
    fn the_leases_of_a_test_are_taken_together() {
        let mib = 1 << 20;
        let driver = |grown| Record::Driver {
            before: 10 * mib,
            after: [10 * mib + grown; 3],
        };
        let together = told(&[lease(5, 1), driver(9 * mib), lease(7, 2), driver(8 * mib), lease(6, 4)]);
        assert_eq!(
            (together.peak_bytes, together.launches, together.retained),
            (Some(7), 7, Some(9 * mib))
        );
        assert_eq!(together.verdict(), Verdict::Passed);
        assert_eq!(told(&[]), Told::default());
    }

    #[test]
    fn a_file_cut_short_tells_what_is_whole() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("records");
        assert_eq!(Told::read(&path), Told::default());
        let line = serde_json::to_string(&lease(5, 3)).unwrap();
        fs::write(&path, format!("{line}\nnonsense\n{line}\n{}", &line[..20])).unwrap();
        assert_eq!(Told::read(&path).launches, 6);
    }

    #[test]
    fn a_test_skipped_in_part_was_not_run_and_an_expected_failure_is_no_plain_pass() {
        let (known, other) = (expected("on gfx12: a", "x"), expected("on gfx11: b", "y\nz"));
        let verdict = told(&[known.clone(), other.clone()]).verdict();
        assert_eq!(
            verdict,
            Verdict::ExpectedFailure {
                reason: "on gfx12: a; on gfx11: b".to_owned(),
                failure: "x\ny\nz".to_owned(),
            }
        );
        let reason = "no model".to_owned();
        for records in [[known.clone(), skip("no model")], [skip("no model"), known]] {
            let reason = reason.clone();
            assert_eq!(told(&records).verdict(), Verdict::Skipped { reason });
        }
    }

    #[test]
    fn a_tail_begins_with_a_character() {
        const PROMISED: usize = 16 << 10;
        let text = "\u{fffd}".repeat(PROMISED);
        let end = tail(&text);
        assert!(end.len() <= PROMISED && end.len() > PROMISED - 3);
        assert_eq!(tail("short"), "short");
    }

    #[test]
    fn a_seed_is_read_where_one_is_printed() {
        assert_eq!(
            seed("x (repeat with ROCMFORGE_SEED=18446744073709551615)"),
            Some(u64::MAX)
        );
        assert_eq!(seed("repeat with ROCMFORGE_SEED="), None);
        assert_eq!(seed("no seed 7"), None);
    }

    #[test]
    fn the_first_error_is_the_first() {
        let first = |text: &str| first_error(text).unwrap_or_default();
        assert_eq!(
            first("ok\nthread 'a' panicked at x.rs:1:2:\n\n  boom  \nerror: later\n"),
            "thread 'a' panicked at x.rs:1:2: boom"
        );
        assert_eq!(
            first("thread 'a' panicked at x.rs:1:2:"),
            "thread 'a' panicked at x.rs:1:2:"
        );
        assert_eq!(first("one\nHIP error 700\ntwo"), "HIP error 700");
        assert_eq!(first("one\n\n  two  \n"), "two");
        assert_eq!(first_error(" \n"), None);
    }
}
