//! Comparison of two devices: what the same tests computed on both, buffer by buffer.

use crate::buffers::{Outcome, Recorded, parse};
use crate::bundle::checksum::hex;
use crate::supervisor::report::TestResult;
use crate::supervisor::report::folder::ReportFolder;
use crate::supervisor::untrusted;
use crate::text::line;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The report of a comparison.
pub(crate) const COMPARISON: &str = "against.json";

/// Where a test run's buffers are recorded.
pub(crate) fn file(folder: &Path, id: &str, round: u32) -> PathBuf {
    folder.join(format!("{}.{round}.buffers", file_name(id)))
}

/// A test's name as the name of a file: one of its own, whatever characters the test has.
pub(crate) fn file_name(id: &str) -> String {
    let mut name = String::new();
    for byte in id.replace("::", ".").bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'_' | b'-' => name.push(char::from(byte)),
            byte => name += &format!("%{byte:02x}"),
        }
    }
    if name.len() > LONGEST_NAME {
        let hash = hex(&Sha256::digest(&name));
        name.truncate(LONGEST_NAME - hash.len() - 1);
        name = format!("{name}-{hash}");
    }
    name
}

/// The longest name of a file, less the round and the kind that come behind it: file systems take 255 bytes.
const LONGEST_NAME: usize = 200;

/// The most bytes of buffers that a test may record.
const MOST_BUFFERS: u64 = 1 << 30;

/// What a test recorded; nothing if it compared no buffer.
fn recorded(path: &Path) -> io::Result<Vec<Recorded>> {
    let bytes = untrusted::read(path, MOST_BUFFERS)?.unwrap_or_default();
    parse(&bytes).map_err(|error| untrusted::named(path, error))
}

/// One buffer that is not what it should be.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Difference {
    /// `crate::test`.
    pub(crate) test: String,
    /// Which repetition.
    pub(crate) round: u32,
    /// Which buffer.
    pub(crate) buffer: String,
    /// What is different.
    pub(crate) what: String,
}

/// Figures of a crate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Tally {
    /// Test runs that passed on both devices.
    pub(crate) tests: usize,
    /// Those of them that compare no buffer: errors, budgets, order.
    pub(crate) without_buffers: usize,
    pub(crate) buffers: usize,
    pub(crate) identical: usize,
    /// Not identical, and within the tolerance of the test.
    pub(crate) within: usize,
    pub(crate) different: usize,
    /// The part of its tolerance that the worst buffer within it took.
    pub(crate) worst: f64,
}

/// The buffer that took the largest part of its tolerance.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Worst {
    /// `crate::test`.
    test: String,
    buffer: String,
    part: f64,
}

/// The comparison of two runs of the same tests.
#[derive(Debug, Serialize)]
pub(crate) struct Comparison {
    device: String,
    against: String,
    crates: BTreeMap<String, Tally>,
    /// Of those within their tolerance.
    worst: Option<Worst>,
    pub(crate) differences: Vec<Difference>,
    /// Test runs that did not pass on both devices, so that there is nothing to compare.
    pub(crate) not_compared: Vec<String>,
}

/// One of the two runs: the device's name, its results and the folder of its buffers.
pub(crate) struct Run<'a> {
    pub(crate) device: String,
    pub(crate) results: &'a [TestResult],
    pub(crate) buffers: PathBuf,
}

impl Comparison {
    /// Compares every test run of `here` with the same one of `there`.
    pub(crate) fn new(here: &Run<'_>, there: &Run<'_>) -> io::Result<Self> {
        let mut comparison = Self {
            device: here.device.clone(),
            against: there.device.clone(),
            crates: BTreeMap::new(),
            worst: None,
            differences: Vec::new(),
            not_compared: Vec::new(),
        };
        for mine in here.results {
            let same = |other: &&TestResult| (&other.id, other.round) == (&mine.id, mine.round);
            match there.results.iter().find(same) {
                Some(theirs) if mine.passed() && theirs.passed() => {
                    let [a, b] =
                        [&here.buffers, &there.buffers].map(|folder| recorded(&file(folder, &mine.id, mine.round)));
                    comparison.add(mine, &a?, &b?);
                }
                _ => comparison.not_compared.push(mine.id.clone()),
            }
        }
        Ok(comparison)
    }

    fn add(&mut self, test: &TestResult, here: &[Recorded], there: &[Recorded]) {
        let tally = self.crates.entry(test.package().to_owned()).or_default();
        tally.tests += 1;
        tally.without_buffers += usize::from(here.is_empty() && there.is_empty());
        let key = |one: &Recorded| (one.header.site.clone(), one.header.occurrence);
        let mut theirs: BTreeMap<_, &Recorded> = there.iter().map(|one| (key(one), one)).collect();
        let mut differ = |tally: &mut Tally, buffer: &Recorded, what: String| {
            tally.different += 1;
            self.differences.push(Difference {
                test: test.id.clone(),
                round: test.round,
                buffer: buffer.header.to_string(),
                what,
            });
        };
        for mine in here {
            tally.buffers += 1;
            match theirs.remove(&key(mine)).map(|other| mine.against(other)) {
                Some(Outcome::Identical) => tally.identical += 1,
                Some(Outcome::Within(part)) => {
                    tally.within += 1;
                    tally.worst = tally.worst.max(part);
                    if self.worst.as_ref().is_none_or(|worst| part > worst.part) {
                        self.worst = Some(Worst {
                            test: test.id.clone(),
                            buffer: mine.header.to_string(),
                            part,
                        });
                    }
                }
                Some(Outcome::Differs(what)) => differ(tally, mine, what),
                None => differ(tally, mine, format!("{} has no such buffer", self.against)),
            }
        }
        for only_there in theirs.into_values() {
            tally.buffers += 1;
            differ(tally, only_there, format!("{} has no such buffer", self.device));
        }
    }

    /// Sums over all crates.
    pub(crate) fn total(&self) -> Tally {
        self.crates.values().fold(Tally::default(), |sum, one| Tally {
            tests: sum.tests + one.tests,
            without_buffers: sum.without_buffers + one.without_buffers,
            buffers: sum.buffers + one.buffers,
            identical: sum.identical + one.identical,
            within: sum.within + one.within,
            different: sum.different + one.different,
            worst: sum.worst.max(one.worst),
        })
    }

    /// Writes [`COMPARISON`] beside the reports of the first device.
    pub(crate) fn write_json(&self, directory: &Path) -> Result<(), Box<dyn std::error::Error>> {
        ReportFolder::reopen(directory)?.write(COMPARISON, &serde_json::to_vec_pretty(self)?)?;
        Ok(())
    }
}

/// A row a crate, the worst buffer, then each that is different.
impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\n{:<24} {:>6} {:>11} {:>8} {:>10} {:>7} {:>10} {:>10}",
            "crate", "tests", "no buffers", "buffers", "identical", "within", "different", "worst"
        )?;
        let mut row = |name: &str, tally: &Tally| {
            let (tests, without, worst) = (tally.tests, tally.without_buffers, tally.worst);
            writeln!(
                f,
                "{name:<24} {tests:>6} {without:>11} {:>8} {:>10} {:>7} {:>10} {worst:>10.3}",
                tally.buffers, tally.identical, tally.within, tally.different
            )
        };
        for (package, tally) in &self.crates {
            row(package, tally)?;
        }
        row("all", &self.total())?;
        if let Some(Worst { test, buffer, part }) = &self.worst {
            let worst = line(&format!("{test}: {buffer}"));
            writeln!(f, "  the worst took {part:.3} of its tolerance: {worst}")?;
        }
        for difference in &self.differences {
            let Difference { test, buffer, what, .. } = difference;
            writeln!(f, "  {}", line(&format!("{test}: {buffer}: {what}")))?;
        }
        for test in &self.not_compared {
            writeln!(f, "  {}: did not pass on both devices", line(test))?;
        }
        writeln!(
            f,
            "{} against {}; \"within\" is within the tolerance the test states, \"worst\" the part of it that was used",
            self.device, self.against
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffers::{Header, write};
    use crate::supervisor::judge::verdict;
    use crate::supervisor::report::Verdict;
    use crate::tolerance::Tolerance;

    fn put(folder: &Path, test: &str, line: u32, values: &[f32], tolerance: Tolerance) {
        std::fs::create_dir_all(folder).unwrap();
        let data: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let header = Header {
            site: format!("tests/gpu/x.rs:{line}"),
            occurrence: 0,
            dtype: "f32".to_owned(),
            shape: vec![values.len()],
            tolerance,
            bytes: data.len(),
        };
        write(&file(folder, test, 0), &header, &data).unwrap();
    }

    fn compare(directory: &Path, results: &[TestResult]) -> Comparison {
        let run = |name: &str| Run {
            device: name.to_owned(),
            results,
            buffers: directory.join(name),
        };
        Comparison::new(&run("hip"), &run("sim")).unwrap()
    }

    /// What the run ends with, if not well.
    fn agreement(comparison: &Comparison) -> Option<String> {
        let ended = verdict::agreement(comparison, "hip", "sim", Path::new("against.json"));
        ended.err().map(|error| error.to_string())
    }

    #[test]
    fn a_file_of_any_test_lies_in_its_folder() {
        assert_eq!(file_name("kernels::softmax::row_of_33"), "kernels.softmax.row_of_33");
        assert_eq!(file_name("a::../../b c"), "a...%2f..%2fb%20c");
        // Of a long name the beginning is readable, and the whole of it counts.
        let [one, two] = ["1", "2"].map(|end| file_name(&format!("a::{}{end}", "long_".repeat(200))));
        assert!(
            one.starts_with("a.long_") && one.len() <= 200 && two.len() <= 200,
            "{one}"
        );
        assert_ne!(one, two);
    }

    #[test]
    fn equal_runs_are_equal_and_a_planted_difference_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let folders = ["hip", "sim"].map(|name| directory.path().join(name));
        let ids = ["kernels::copy", "kernels::softmax", "runtime::budget"];
        let mut results: Vec<TestResult> = ids.map(|id| TestResult::new(id.to_owned(), 0)).into();
        for folder in &folders {
            put(folder, ids[0], 7, &[1.0, 2.0], Tolerance::Exact);
            put(folder, ids[1], 9, &[0.25; 4], Tolerance::Absolute(1e-3));
        }
        let equal = compare(directory.path(), &results);
        assert_eq!(agreement(&equal), None);
        let total = equal.total();
        assert_eq!((total.tests, total.without_buffers), (3, 1));
        assert_eq!((total.buffers, total.identical, total.different), (2, 2, 0), "{equal}");

        put(&folders[0], ids[1], 10, &[0.5], Tolerance::Absolute(1e-3));
        put(&folders[1], ids[1], 10, &[0.5004], Tolerance::Absolute(1e-3));
        put(&folders[0], ids[1], 11, &[0.5], Tolerance::Absolute(1e-3));
        put(&folders[1], ids[1], 11, &[0.51], Tolerance::Absolute(1e-3));
        put(&folders[0], ids[0], 8, &[1.0], Tolerance::Exact);
        put(&folders[1], ids[0], 8, &[1.0f32.next_up()], Tolerance::Exact);
        put(&folders[1], ids[0], 12, &[1.0], Tolerance::Exact);
        put(&folders[1], ids[2], 13, &[1.0], Tolerance::Exact);
        let planted = compare(directory.path(), &results);
        let said = "4 of 7 buffers are different on hip and sim; see against.json";
        assert_eq!(agreement(&planted).as_deref(), Some(said));
        let total = planted.total();
        assert_eq!((total.tests, total.without_buffers), (3, 0));
        assert_eq!(
            (total.buffers, total.identical, total.within, total.different),
            (7, 2, 1, 4)
        );
        assert!(total.worst > 0.3 && total.worst < 0.5, "{}", total.worst);
        let text = planted.to_string();
        for line in [
            "the worst took 0.400 of its tolerance: kernels::softmax: f32 [1] at tests/gpu/x.rs:10",
            "x.rs:8: ",
            "x.rs:11: element 0",
            "x.rs:12: hip has no such buffer",
            "x.rs:13: ",
        ] {
            assert!(text.contains(line), "{text}");
        }

        results[1].verdict = Verdict::Failed { status: 101 };
        let failed = compare(directory.path(), &results);
        assert_eq!(failed.not_compared, [ids[1]]);
        assert_eq!(failed.total().different, 3);

        failed.write_json(directory.path()).unwrap();
        let report = directory.path().join(COMPARISON);
        let json: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(report).unwrap()).unwrap();
        assert_eq!(json["differences"].as_array().unwrap().len(), 3);
        assert_eq!(json["not_compared"][0], ids[1]);

        let nothing = compare(directory.path(), &[results[1].clone()]);
        let said = "--against compared no buffer: 1 test runs did not pass on both devices, the others compare none";
        assert_eq!(agreement(&nothing).as_deref(), Some(said));
    }
}
