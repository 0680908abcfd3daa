//! Table of a comparison of bindings.

use rocmforge_gpu_test::say;

/// One thing compared.
pub(super) struct Row {
    pub(super) kind: &'static str,
    pub(super) name: String,
    pub(super) verdict: Verdict,
}

pub(super) enum Verdict {
    Same,
    /// Differs, as listed, for this reason.
    Known(String),
    /// Not in these headers, as listed, for this reason.
    Absent(String),
    /// Listed as different, but the same.
    Stale,
    Differs {
        ours: String,
        theirs: String,
    },
}

impl Row {
    pub(super) fn new(kind: &'static str, name: impl Into<String>, verdict: Verdict) -> Self {
        let name = name.into();
        Self { kind, name, verdict }
    }

    pub(super) fn is_failure(&self) -> bool {
        matches!(self.verdict, Verdict::Stale | Verdict::Differs { .. })
    }
}

/// Prints how many of each kind are the same, then every row that is not.
pub(super) fn print(rows: &[Row]) {
    say!("{:<10} {:>8} {:>8} {:>8} {:>8}", "", "same", "known", "absent", "WRONG");
    for kind in ["signature", "constant", "size", "offset"] {
        let count = |test: fn(&Verdict) -> bool| rows.iter().filter(|r| r.kind == kind && test(&r.verdict)).count();
        let same = count(|v| matches!(v, Verdict::Same));
        let known = count(|v| matches!(v, Verdict::Known(_)));
        let absent = count(|v| matches!(v, Verdict::Absent(_)));
        let wrong = count(|v| matches!(v, Verdict::Stale | Verdict::Differs { .. }));
        say!("{kind:<10} {same:>8} {known:>8} {absent:>8} {wrong:>8}");
    }
    for row in rows {
        let text = match &row.verdict {
            Verdict::Same => continue,
            Verdict::Known(reason) => format!("known   {}: {reason}", row.name),
            Verdict::Absent(reason) => format!("absent  {}: {reason}", row.name),
            Verdict::Stale => format!(
                "WRONG   {}: listed as different, but it is the same: take it off the list",
                row.name
            ),
            Verdict::Differs { ours, theirs } => format!("WRONG   {}: ours {ours}, theirs {theirs}", row.name),
        };
        say!("  {text}");
    }
}
