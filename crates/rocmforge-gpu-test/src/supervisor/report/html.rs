//! HTML page of a run, self-contained: no script, no network, whatever a test is called or prints.

use super::result::{Kind, TestResult, Verdict};
use super::summary::{Counts, Summary};
use super::timeline::timeline;
use crate::text::{line, lines};
use horrorshow::helper::doctype;
use horrorshow::{Raw, RenderBox, Template, box_html, html};
use std::io;

const STYLE: &str = "
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 75em; padding: 0 1em; color: #222; background: #fff }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; padding: .2em .6em; border-bottom: 1px solid #ddd; vertical-align: top; overflow-wrap: anywhere }
td.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums }
pre, code { font: 13px/1.4 ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere }
pre { background: #f6f6f6; padding: .6em; max-height: 30em; overflow: auto }
.passed { color: #176117 } .failed { color: #a40000; font-weight: bold } .skipped { color: #666 } .blocked { color: #8a5a00 }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1em 1em } dd { margin: 0 }
svg { width: 100%; height: auto; font-size: 11px }
svg .grid { stroke: #ddd } svg path { fill: none; stroke-width: 1.5 }
svg .budget { stroke: #c17d11; stroke-dasharray: 4 3 } svg .held { stroke: #204a87 }
";
/// Lets the page load nothing and run nothing, should a test's text ever get where it must not.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

impl Summary {
    pub(super) fn html(&self) -> io::Result<String> {
        let title = &line(&format!("GPU tests on {}", self.device));
        let page = html! {
            : doctype::HTML;
            html(lang = "en") {
                head {
                    meta(charset = "utf-8");
                    meta(http-equiv = "Content-Security-Policy", content = POLICY);
                    title : title;
                    style : Raw(STYLE);
                }
                body {
                    h1 : title;
                    : self.totals();
                    : self.origin();
                    @ if !self.findings.is_empty() {
                        h2 : "The card";
                        ul { @ for finding in &self.findings { li : line(&finding.to_string()); } }
                    }
                    h2 : "VRAM held, against the budget";
                    : timeline(self);
                    @ if self.counts.failed > 0 {
                        h2 : "Failures";
                        @ for result in self.results.iter().filter(|result| result.failed()) { : self.failure(result); }
                    }
                    @ if self.counts.expected_failures > 0 {
                        h2 : "Expected failures";
                        ul(class = "expected") {
                            @ for result in &self.results {
                                @ if let Verdict::ExpectedFailure { reason, failure } = &result.verdict {
                                    li {
                                        : line(&result.id); : " "; : line(reason);
                                        pre { : "\n"; : lines(failure) }
                                    }
                                }
                            }
                        }
                    }
                    h2 : "Tests";
                    : self.table();
                }
            }
        };
        page.into_string().map_err(io::Error::other)
    }

    fn totals(&self) -> Box<dyn RenderBox> {
        let Counts {
            passed,
            expected_failures,
            failed,
            skipped,
            blocked,
        } = self.counts;
        let (seconds, interrupted) = (self.seconds, self.interrupted);
        box_html! {
            p {
                : count(passed, Kind::Passed); : ", "; : count(failed, Kind::Failed); : ", ";
                : count(skipped, Kind::Skipped); : ", "; : count(blocked, Kind::Blocked);
                : format_args!(" in {seconds:.1} s");
                @ if expected_failures > 0 { : "; "; : expected_failures; : " of the passed failed as expected"; }
                @ if let Some(signal) = interrupted { : "; ended by the user (signal "; : signal; : ")"; }
            }
        }
    }

    fn origin(&self) -> Box<dyn RenderBox + '_> {
        box_html! {
            dl {
                @ for (name, value) in self.origin.rows() {
                    dt : name.replace('_', " ");
                    dd { code : line(value); }
                }
            }
        }
    }

    fn failure<'a>(&'a self, result: &'a TestResult) -> Box<dyn RenderBox + 'a> {
        box_html! {
            h3 : line(&result.id);
            p : line(&result.verdict.to_string());
            @ if let Some(error) = &result.first_error { p { code : line(error); } }
            p { : "Again: "; code : line(&self.reproduction(result)); }
            @ if !result.output.is_empty() {
                details { summary : "output"; pre { : "\n"; : lines(&result.output) } }
            }
        }
    }

    fn table(&self) -> Box<dyn RenderBox + '_> {
        box_html! {
            table {
                thead {
                    tr { th : "test"; th : "round"; th : "outcome"; th : "seconds"; th : "peak VRAM"; th : "launches"; }
                }
                tbody {
                    @ for result in &self.results {
                        tr {
                            td : line(&result.id);
                            td(class = "number") : result.round.saturating_add(1);
                            td {
                                span(class = class(result.verdict.kind())) : line(&result.verdict.to_string());
                                @ for (_, remark) in result.remarks() { br; span(class = "remark") : line(&remark); }
                            }
                            td(class = "number") : format_args!("{:.2}", result.seconds);
                            td(class = "number") {
                                @ if let Some(bytes) = result.peak_bytes { : bytes; : " B"; }
                            }
                            td(class = "number") : result.launches;
                        }
                    }
                }
            }
        }
    }
}

/// A number with its name, in the colour of the name unless there is none of it.
fn count(number: usize, kind: Kind) -> Box<dyn RenderBox> {
    let name = class(kind);
    box_html! { span(class? = (number > 0).then_some(name)) { : number; : " "; : name } }
}

fn class(kind: Kind) -> &'static str {
    match kind {
        Kind::Passed => "passed",
        Kind::Failed => "failed",
        Kind::Skipped => "skipped",
        Kind::Blocked => "blocked",
    }
}
