//! Table of a run, for a terminal.

use super::result::{TestResult, Verdict, mebibytes};
use super::summary::{Counts, Summary};
use crate::text::line;
use std::fmt;

/// A row a crate, then each test that did not pass, then totals.
impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\n{:<24} {:>7} {:>7} {:>8} {:>8} {:>9} {:>10} {:>9}",
            "crate", "passed", "failed", "skipped", "blocked", "seconds", "peak VRAM", "launches"
        )?;
        for (package, results) in self.by_package() {
            let counts = Counts::of(results.iter().copied());
            let peak = results.iter().filter_map(|result| result.peak_bytes).max();
            writeln!(
                f,
                "{:<24} {:>7} {:>7} {:>8} {:>8} {:>9.2} {:>10} {:>9}",
                line(package),
                counts.passed,
                counts.failed,
                counts.skipped,
                counts.blocked,
                results.iter().map(|result| result.seconds).sum::<f64>(),
                peak.map_or_else(|| "-".to_owned(), mebibytes),
                results.iter().map(|result| result.launches).sum::<u64>(),
            )?;
        }
        self.blocked(f)?;
        for result in &self.results {
            self.said_of(f, result)?;
        }
        writeln!(
            f,
            "on {} in {:.1} s, tests contained by: {}; reports: report.html, report.json, junit.xml",
            line(&self.device),
            self.seconds,
            self.containment
        )?;
        let Counts {
            passed,
            expected_failures,
            failed,
            skipped,
            blocked,
        } = self.counts;
        if expected_failures > 0 {
            writeln!(f, "{expected_failures} of the passed failed as expected")?;
        }
        writeln!(
            f,
            "{passed} passed, {failed} failed, {skipped} skipped, {blocked} blocked"
        )
    }
}

impl Summary {
    /// Why tests were blocked: one reason has many tests.
    fn blocked(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut reasons: Vec<(&Verdict, usize)> = Vec::new();
        let blocked = self.results.iter().map(|result| &result.verdict);
        for verdict in blocked.filter(|verdict| matches!(verdict, Verdict::Blocked { .. } | Verdict::Interrupted)) {
            match reasons.iter_mut().find(|(reason, _)| *reason == verdict) {
                Some((_, count)) => *count += 1,
                None => reasons.push((verdict, 1)),
            }
        }
        for (reason, count) in reasons {
            writeln!(f, "  {count} tests {}", line(&reason.to_string()))?;
        }
        Ok(())
    }

    fn said_of(&self, f: &mut fmt::Formatter<'_>, result: &TestResult) -> fmt::Result {
        let id = line(&result.id);
        match &result.verdict {
            Verdict::Passed | Verdict::Blocked { .. } | Verdict::Interrupted => {}
            verdict => writeln!(f, "  {id}: {}", line(&verdict.to_string()))?,
        }
        if result.failed() {
            if let Some(error) = &result.first_error {
                writeln!(f, "      {}", line(error))?;
            }
            writeln!(f, "      {}", line(&self.reproduction(result)))?;
        }
        for (_, remark) in result.remarks() {
            writeln!(f, "  {id}: {}", line(&remark))?;
        }
        Ok(())
    }
}
