//! Progress of a run: a bar with the name of the last test that ended, or on no terminal a line for each failure.

use crate::supervisor::report::TestResult;
use crate::text::line;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::Duration;

/// A message takes what the rest leaves of the terminal's width, and is cut there. The rest fits into 40 columns.
const TEMPLATE: &str = "{elapsed_precise} {bar:14} {pos}/{len} {wide_msg}";
/// Time between two looks at the clock while no test ends.
const TICK: Duration = Duration::from_millis(500);

/// The progress of the tests on one device.
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Draws the bar at once: the first test may take minutes.
    pub(crate) fn of(runs: u64) -> Self {
        Self::on(runs, ProgressDrawTarget::stderr())
    }

    fn on(runs: u64, target: ProgressDrawTarget) -> Self {
        let style = ProgressStyle::with_template(TEMPLATE).expect("a constant template");
        let bar = ProgressBar::with_draw_target(Some(runs), target).with_style(style);
        bar.tick();
        bar.enable_steady_tick(TICK);
        Self { bar }
    }

    /// Shows that a test has ended.
    pub(crate) fn ended(&self, result: &TestResult) {
        if result.failed() {
            let failed = line(&format!("FAILED {} ({})", result.id, result.verdict));
            match self.bar.is_hidden() {
                true => tell!("{failed}"),
                false => self.bar.println(failed),
            }
        }
        self.bar.inc(1);
        self.bar.set_message(line(&result.id));
    }

    /// Takes the bar away.
    pub(crate) fn end(self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supervisor::report::Verdict;
    use indicatif::TermLike;
    use std::io;
    use std::sync::{Arc, Mutex};

    /// A terminal of some width that keeps what is written.
    #[derive(Clone, Debug)]
    struct Terminal {
        columns: u16,
        written: Arc<Mutex<Vec<String>>>,
    }

    impl Terminal {
        fn keep(&self, text: &str) -> io::Result<()> {
            self.written.lock().unwrap().push(text.to_owned());
            Ok(())
        }
    }

    impl TermLike for Terminal {
        fn width(&self) -> u16 {
            self.columns
        }
        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn write_line(&self, text: &str) -> io::Result<()> {
            self.keep(text)
        }
        fn write_str(&self, text: &str) -> io::Result<()> {
            self.keep(text)
        }
        fn clear_line(&self) -> io::Result<()> {
            Ok(())
        }
        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_bar_is_there_before_the_first_test_and_fits_the_terminal() {
        for columns in [40, 80, 200] {
            let written = Arc::new(Mutex::new(Vec::new()));
            let terminal = Terminal {
                columns,
                written: written.clone(),
            };
            let progress = Progress::on(12_345, ProgressDrawTarget::term_like(Box::new(terminal)));
            assert!(written.lock().unwrap().concat().contains("0/12345"));
            let mut result = TestResult::new(format!("rocmforge::{}\n\u{1b}[2J", "long_name".repeat(40)), 0);
            for verdict in [Verdict::Passed, Verdict::Crashed { signal: 11 }] {
                result.verdict = verdict;
                progress.ended(&result);
                progress.bar.tick();
            }
            progress.end();
            let written = written.lock().unwrap();
            let bars = written.iter().filter(|text| text.contains("/12345"));
            let longest = bars.clone().map(|text| text.chars().count()).max().unwrap();
            assert!(longest <= usize::from(columns), "{longest} > {columns}: {written:?}");
            assert!(bars.clone().any(|text| text.contains(" 1/12345 ")), "{written:?}");
            if columns == 200 {
                assert!(
                    bars.clone().any(|text| text.contains(" rocmforge::long_name")),
                    "{written:?}"
                );
            }
            let all = written.concat();
            assert!(
                all.contains("FAILED rocmforge::long_name") && !all.contains("\u{1b}[2J"),
                "{all:?}"
            );
        }
    }
}
