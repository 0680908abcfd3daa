//! Test record: what a test said beside its exit status, in the records of its leases and in its output.

use crate::record::Record;
use crate::supervisor::report::Verdict;

/// Bytes of a first error kept in the reports: a test may print a line without an end.
const LONGEST_ERROR: usize = 4096;
/// Bytes of a test's output kept in the reports: its end.
const OUTPUT_TAIL: usize = 16_384;
/// What libtest says first when it runs one test, and last when that passed.
const RUNNING: &str = "running 1 test";
const PASSED: &str = "test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured;";

/// What a test's process printed, and the name that libtest knows the test by.
pub(crate) struct Word<'a> {
    pub(crate) name: &'a str,
    pub(crate) output: &'a str,
}

impl Word<'_> {
    /// Why it does not show that libtest ran this test once and saw it pass: what is missing, or is there more than once. Other lines
    /// may be anywhere, also after the last: a library may print when the process ends.
    fn doubt(&self) -> Option<String> {
        let is_ok = |line: &&str| {
            let line = line.strip_suffix(" ... ok").unwrap_or_default();
            let line = line.strip_suffix(" - should panic").unwrap_or(line);
            // What the test printed last may have had no line break.
            line.strip_suffix(self.name)
                .is_some_and(|before| before.ends_with("test "))
        };
        let lines = || self.output.lines();
        let own = format!("test {} ... ok", self.name);
        let counts = [
            (lines().filter(|line| *line == RUNNING).count(), RUNNING),
            (lines().filter(is_ok).count(), &own),
            (lines().filter(|line| line.contains(PASSED)).count(), PASSED),
        ];
        counts.into_iter().find_map(|(count, line)| match count {
            1 => None,
            0 => Some(format!("it exited with status 0 before libtest said {line:?}")),
            many => Some(format!(
                "it exited with status 0 and {line:?} was printed {many} times: capture the output of test binaries that a test runs"
            )),
        })
    }
}

/// The records of one test process.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct TestRecord {
    /// Why it could not run.
    skip: Option<String>,
    /// Where it failed as expected and why that is known, and what it failed with.
    expected_failures: Vec<(String, String)>,
    /// Leases that began, less those that ended.
    open_leases: i64,
    /// The most VRAM a lease held, in bytes.
    pub(crate) peak_bytes: Option<u64>,
    /// Kernels launched.
    pub(crate) launches: u64,
    /// The most bytes that the driver went on holding when a lease had ended.
    pub(crate) retained: Option<u64>,
}

impl TestRecord {
    /// Takes the records that a test wrote to its pipe.
    pub(crate) fn parse(text: &[u8]) -> Self {
        let text = String::from_utf8_lossy(text);
        // A line cut short by a kill says nothing.
        let records = text.lines().filter_map(|line| serde_json::from_str(line).ok());
        records.fold(Self::default(), Self::and)
    }

    fn and(mut self, record: Record) -> Self {
        match record {
            Record::Skip { reason } => self.skip = Some(reason),
            Record::ExpectedFailure { reason, failure } => self.expected_failures.push((reason, failure)),
            Record::LeaseBegan => self.open_leases += 1,
            Record::Lease {
                peak_bytes, launches, ..
            } => {
                self.open_leases -= 1;
                self.peak_bytes = self.peak_bytes.max(Some(peak_bytes));
                self.launches += launches;
            }
            Record::Driver { .. } => self.retained = self.retained.max(record.retained()),
        }
        self
    }

    /// What became of a test that exited with status 0: it passed only if libtest says so of this test, once, and every lease that
    /// began has ended.
    pub(crate) fn proven(&self, word: &Word<'_>) -> Verdict {
        if let Some(reason) = word.doubt() {
            return Verdict::Unproven { reason };
        }
        if self.open_leases > 0 {
            let reason = format!("{} of its leases began and never ended", self.open_leases);
            return Verdict::Unproven { reason };
        }
        self.verdict()
    }

    /// What a test that passed by libtest's word came to. One that was skipped in part was not run.
    fn verdict(&self) -> Verdict {
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
    first_error_line(output).map(|mut line| {
        line.truncate(line.floor_char_boundary(LONGEST_ERROR));
        line
    })
}

fn first_error_line(output: &str) -> Option<String> {
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

    fn record_of(records: &[Record]) -> TestRecord {
        records.iter().cloned().fold(TestRecord::default(), TestRecord::and)
    }

    #[test]
    fn the_leases_of_a_test_are_taken_together() {
        let mib = 1 << 20;
        let driver = |grown| Record::Driver {
            before: 10 * mib,
            after: [10 * mib + grown; 3],
        };
        let together = record_of(&[lease(5, 1), driver(9 * mib), lease(7, 2), driver(8 * mib), lease(6, 4)]);
        assert_eq!(
            (together.peak_bytes, together.launches, together.retained),
            (Some(7), 7, Some(9 * mib))
        );
        assert_eq!(together.verdict(), Verdict::Passed);
        assert_eq!(record_of(&[]), TestRecord::default());
    }

    #[test]
    fn records_cut_short_tell_what_is_whole() {
        assert_eq!(TestRecord::parse(b""), TestRecord::default());
        let line = serde_json::to_string(&lease(5, 3)).unwrap();
        let text = format!("{line}\nnonsense\n\u{fffd}{line}\n{line}\n{}", &line[..20]);
        assert_eq!(TestRecord::parse(text.as_bytes()).launches, 6);
    }

    /// What libtest prints of the test `name`, which printed `said`.
    fn word(name: &str, said: &str) -> String {
        format!("\nrunning 1 test\n{said}test {name} ... ok\n\n{PASSED} 3 filtered out; finished in 0.00s\n\n")
    }

    fn is_proven(record: &TestRecord, output: &str) -> bool {
        match record.proven(&Word { name: "a::b", output }) {
            Verdict::Passed => true,
            Verdict::Unproven { .. } => false,
            other => panic!("{other}"),
        }
    }

    #[test]
    fn a_pass_needs_libtests_word_and_the_end_of_every_lease() {
        let done = record_of(&[Record::LeaseBegan, lease(5, 1)]);
        let none = TestRecord::default();
        assert!(is_proven(&done, &word("a::b", "")) && is_proven(&none, &word("a::b", "")));
        for output in [
            "",
            "running 1 test\n",
            "running 1 test\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured;\n",
            &word("a::b", "").replace("running 1 test", "running 2 tests"),
            &word("a::b", "").replace("... ok", "... FAILED"),
        ] {
            assert!(!is_proven(&done, output), "{output}");
        }
        let open = record_of(&[Record::LeaseBegan, Record::LeaseBegan, lease(5, 1)]);
        assert!(!is_proven(&open, &word("a::b", "")));
    }

    #[test]
    fn other_lines_are_anywhere_and_the_word_is_of_this_test_and_once() {
        let none = TestRecord::default();
        for said in ["hello\n", "no line break ", "test c ... ok\n", "test result: FAILED.\n"] {
            assert!(is_proven(&none, &word("a::b", said)), "{said}");
        }
        assert!(is_proven(&none, &(word("a::b", "") + "a library prints at exit\n")));
        assert!(is_proven(&none, &word("a::b - should panic", "")));
        // Another test's word: of one that ran in its place, in its process or beside it.
        for other in ["c", "a::bc", "c::a::b", "xa::b"] {
            assert!(!is_proven(&none, &word(other, "")), "{other}");
            let beside = format!("running 1 test\n{}", word(other, ""));
            assert!(!is_proven(&none, &beside), "{other}");
        }
        // A forged last line, after which the process ended itself, or its own word twice.
        assert!(!is_proven(
            &none,
            &format!("running 1 test\n\n{PASSED} 3 filtered out\n")
        ));
        assert!(!is_proven(&none, &format!("{0}{0}", word("a::b", ""))));
        for line in ["running 1 test\n", "test a::b ... ok\n", PASSED] {
            assert!(!is_proven(&none, &(word("a::b", "") + line)), "{line}");
        }
    }

    #[test]
    fn a_test_skipped_in_part_was_not_run_and_an_expected_failure_is_no_plain_pass() {
        let (known, other) = (expected("on gfx12: a", "x"), expected("on gfx11: b", "y\nz"));
        let verdict = record_of(&[known.clone(), other.clone()]).verdict();
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
            assert_eq!(record_of(&records).verdict(), Verdict::Skipped { reason });
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
        let endless = format!("error {}", "\u{fffd}".repeat(10_000));
        assert!(first(&endless).len() <= 4096 && first(&endless).starts_with("error"));
    }
}
