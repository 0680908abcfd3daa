//! One run in all four forms.

use super::origin::{Origin, quoted};
use super::*;
use crate::card::preflight::{Finding, Level};
use crate::heartbeat::Sample;
use scraper::{Html, Selector};
use std::time::Duration;

/// What a hostile test is called and prints.
const HOSTILE: &str =
    "</pre></table></title><script>alert('\"&')</script><svg/onload=x> ' \u{1}\u{1b}[2J ]]> &amp; \u{202e}";

fn result(id: &str, verdict: Verdict) -> TestResult {
    let mut result = TestResult::new(id.to_owned(), 0);
    result.verdict = verdict;
    result
}

fn summary() -> Summary {
    let mut passed = result("kernels::softmax", Verdict::Passed);
    passed.peak_bytes = Some(3 << 20);
    passed.retained = Some(8 << 20);
    passed.left_behind = vec!["sleep".to_owned()];
    let beat = |at, held| Sample {
        at,
        held,
        budget: 2 << 30,
        ended: false,
    };
    passed.samples = vec![beat(1000, 0), beat(1100, 3 << 20), beat(2000, 0)];
    let mut failed = result("kernels::rope <x>", Verdict::Crashed { signal: 11 });
    failed.output = "it \u{1} broke & burned".to_owned();
    failed.first_error = Some("it broke".to_owned());
    failed.seed = Some(9);
    let skipped = result(
        "model::layers",
        Verdict::Skipped {
            reason: "no model".to_owned(),
        },
    );
    let expected = result(
        "model::layout",
        Verdict::ExpectedFailure {
            reason: "on gfx12: not written yet".to_owned(),
            failure: "element 3 is wrong\nby <much>".to_owned(),
        },
    );
    let blocked = |id: &str| {
        result(
            id,
            Verdict::Blocked {
                reason: "in quarantine".to_owned(),
            },
        )
    };
    let results = vec![
        passed,
        failed,
        skipped,
        blocked("model::one"),
        blocked("model::two"),
        expected,
    ];
    Summary::new("sim", results, Duration::from_secs(1))
}

fn hostile() -> Summary {
    let mut failed = result(
        &format!("{HOSTILE}::{HOSTILE}"),
        Verdict::Stuck {
            reason: HOSTILE.to_owned(),
        },
    );
    failed.output = HOSTILE.to_owned();
    failed.first_error = Some(HOSTILE.to_owned());
    failed.samples = vec![Sample {
        at: u64::MAX,
        held: u64::MAX,
        budget: 0,
        ended: true,
    }];
    let skipped = result(
        HOSTILE,
        Verdict::Skipped {
            reason: HOSTILE.to_owned(),
        },
    );
    let mut summary = Summary::new(HOSTILE, vec![failed, skipped], Duration::ZERO);
    summary.findings = vec![Finding {
        level: Level::Note,
        what: HOSTILE.to_owned(),
        advice: Some(HOSTILE.to_owned()),
    }];
    summary
}

fn write(summary: &Summary, directory: &std::path::Path) {
    let mut folder = ReportFolder::claim(directory, &[], REPORTS.map(str::to_owned)).unwrap();
    super::write(summary, &mut folder).unwrap();
}

fn page(summary: &Summary) -> Html {
    let text = summary.html().unwrap();
    let page = Html::parse_document(&text);
    assert_eq!(page.errors, Vec::<String>::new(), "{text}");
    page
}

fn texts(page: &Html, selector: &str) -> Vec<String> {
    let selector = Selector::parse(selector).unwrap();
    page.select(&selector).map(|element| element.text().collect()).collect()
}

#[test]
fn the_table_counts_and_ends_with_the_totals() {
    let text = summary().to_string();
    for part in [
        "3.00 MiB",
        "model::layers: skipped: no model",
        "2 tests blocked: in quarantine",
        "kernels::rope <x>: crashed with signal 11\n      it broke\n      ROCMFORGE_SEED=9 cargo gpu-test --device sim \
         --exact --filter 'kernels::rope <x>'\n",
        "kernels::softmax: left processes behind, which were ended: sleep",
        "kernels::softmax: the driver held 8.00 MiB more",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(text.ends_with("2 passed, 1 failed, 1 skipped, 2 blocked\n"), "{text}");
}

#[test]
fn expected_failures_are_named_with_their_reason_in_every_report() {
    let summary = summary();
    assert_eq!((summary.counts.passed, summary.counts.expected_failures), (2, 1));
    let text = summary.to_string();
    for line in [
        "  model::layout: failed as expected on gfx12: not written yet: element 3 is wrong\n",
        "\n1 of the passed failed as expected\n",
    ] {
        assert!(text.contains(line), "{text}");
    }
    let none = Summary::new("sim", vec![result("a::b", Verdict::Passed)], Duration::ZERO);
    assert!(!none.to_string().contains("as expected") && !none.html().unwrap().contains("as expected"));

    let json = serde_json::to_value(&summary).unwrap();
    assert_eq!(json["counts"]["expected_failures"], 1);
    let reported = ["outcome", "reason", "failure"].map(|key| json["results"][5][key].as_str().unwrap());
    assert_eq!(
        reported,
        [
            "expected_failure",
            "on gfx12: not written yet",
            "element 3 is wrong\nby <much>"
        ]
    );

    let xml = quick_junit::Report::deserialize_from_str(&summary.junit().unwrap()).unwrap();
    let case = (xml.test_suites.iter().flat_map(|suite| &suite.test_cases))
        .find(|case| case.name.as_str() == "model::layout")
        .unwrap();
    let left = (xml.test_suites.iter().flat_map(|suite| &suite.test_cases))
        .find(|case| case.name.as_str() == "kernels::softmax")
        .unwrap();
    let left: Vec<&str> = left.properties.iter().map(|property| property.name.as_str()).collect();
    assert_eq!(left, ["left_behind", "retained"]);
    assert_eq!(case.properties.len(), 1);
    let property = &case.properties[0];
    assert_eq!(
        (property.name.as_str(), property.value.as_str()),
        ("expected_failure", "on gfx12: not written yet")
    );
    assert!(
        case.system_out
            .as_ref()
            .is_some_and(|out| out.as_str().contains("by <much>"))
    );

    let page = page(&summary);
    let listed = "model::layout on gfx12: not written yetelement 3 is wrong\nby <much>";
    assert_eq!(texts(&page, "ul.expected li"), [listed]);
    assert!(texts(&page, "p")[0].contains("1 of the passed failed as expected"));
}

#[test]
fn every_run_is_counted_once_and_belongs_to_its_crate() {
    let summary = summary();
    assert_eq!((summary.counts.executed(), summary.counts.all()), (3, 6));
    let crates: Vec<(&str, usize)> = summary
        .by_package()
        .into_iter()
        .map(|(name, all)| (name, all.len()))
        .collect();
    assert_eq!(crates, [("kernels", 2), ("model", 4)]);
    let kinds = |result: &TestResult| (result.passed(), result.failed(), result.blocked());
    let reported: Vec<_> = summary.results.iter().map(kinds).collect();
    let (passed, failed, blocked, none) = (
        (true, false, false),
        (false, true, false),
        (false, false, true),
        (false, false, false),
    );
    assert_eq!(reported, [passed, failed, none, blocked, blocked, none]);
}

#[test]
fn all_reports_are_written_and_agree() {
    let directory = tempfile::tempdir().unwrap();
    write(&summary(), directory.path());
    let read = |name: &str| std::fs::read_to_string(directory.path().join(name)).unwrap();
    let json: serde_json::Value = serde_json::from_str(&read("report.json")).unwrap();
    assert_eq!(json["counts"]["blocked"], 2);
    assert_eq!(json["results"][1]["outcome"], "crashed");
    assert_eq!(json["results"][2]["reason"], "no model");
    assert_eq!(json["results"][3]["outcome"], "blocked");

    let xml = read("junit.xml");
    assert!(
        xml.contains("kernels::rope &lt;x&gt;") && xml.contains("crashed with signal 11"),
        "{xml}"
    );
    assert_eq!(xml.matches("<skipped").count(), 3);
    assert_eq!(xml.matches("type=\"blocked\"").count(), 2);
    assert_eq!(xml.matches("<failure").count(), 1);

    let page = page(&summary());
    assert_eq!(texts(&page, "tbody tr").len(), 6);
    assert_eq!(texts(&page, "td .blocked").len(), 2);
    assert_eq!(texts(&page, "h3"), ["kernels::rope <x>"]);
    let remarks = texts(&page, "td .remark");
    assert_eq!(remarks[0], "left processes behind, which were ended: sleep");
    assert!(remarks[1].starts_with("the driver held 8.00 MiB more when the ledger was clean"));
    assert_eq!(remarks.len(), 2);
    assert!(texts(&page, "code").contains(&"it broke".to_owned()));
}

#[test]
fn the_page_draws_what_was_held_against_the_budget() {
    let page = page(&summary());
    let select = |selector: &str| {
        let selector = Selector::parse(selector).unwrap();
        let path = page.select(&selector).next().expect("a line");
        path.value().attr("d").unwrap().to_owned()
    };
    // The budget is the highest line and does not move; what is held rises by 3 of 2048 MiB after a tenth of the time.
    assert_eq!(select("path.budget"), "M90.0 10.0H177.0V10.0H960.0V10.0");
    assert_eq!(select("path.held"), "M90.0 240.0H177.0V239.7H960.0V240.0");
    let labels = texts(&page, "svg text");
    let bytes = ["0.0 MiB", "512.0 MiB", "1024.0 MiB", "1536.0 MiB", "2048.0 MiB"];
    assert_eq!(labels[..5], bytes);
    assert_eq!(labels[5..], ["0 s", "1.0 s"]);
    let silent = Summary::new("sim", vec![result("a::b", Verdict::Passed)], Duration::ZERO);
    assert!(silent.html().unwrap().contains("No lease reported what it held."));
}

#[test]
fn the_page_needs_nothing_but_itself() {
    for text in [summary().html().unwrap(), hostile().html().unwrap()] {
        for outside in [
            "http://", "https://", "src=", "href=", "url(", "@import", "<script", "<link",
        ] {
            assert!(!text.contains(outside), "{outside}");
        }
        assert!(text.contains("default-src 'none'"));
    }
}

#[test]
fn rounds_are_named_apart_and_one_round_needs_no_name() {
    let rounds = |rounds: u32| {
        let results = (0..rounds).map(|round| TestResult::new("a::b".to_owned(), round));
        let mut summary = Summary::new("sim", results.collect(), Duration::ZERO);
        summary.rounds = rounds;
        let report = quick_junit::Report::deserialize_from_str(&summary.junit().unwrap()).unwrap();
        let cases = report.test_suites.iter().flat_map(|suite| suite.test_cases.clone());
        let reported = cases.map(|case| {
            let properties = case
                .properties
                .iter()
                .map(|one| format!("{}={}", one.name.as_str(), one.value.as_str()));
            (case.name.as_str().to_owned(), properties.collect::<Vec<_>>().join(","))
        });
        reported.collect::<Vec<_>>()
    };
    let reported = |name: &str, property: &str| (name.to_owned(), property.to_owned());
    assert_eq!(rounds(1), [reported("a::b", "")]);
    assert_eq!(
        rounds(3),
        [1, 2, 3].map(|round| reported(&format!("a::b (round {round} of 3)"), &format!("round={round}")))
    );
}

#[test]
fn every_report_says_what_was_tested_and_how() {
    let mut summary = summary();
    let filter = format!("softmax {HOSTILE}");
    summary.origin = Origin {
        commit: Some("v1-2-gabc-dirty".to_owned()),
        command_line: "cargo gpu-test --device nvidia:0".to_owned(),
        driver: Some("nvidia 580.95.05".to_owned()),
        started: "2026-01-02T03:04:05Z".to_owned(),
        filter: Some(filter.clone()),
    };
    let json = serde_json::to_value(&summary).unwrap();
    let html = texts(&page(&summary), "dd");
    let xml = quick_junit::Report::deserialize_from_str(&summary.junit().unwrap()).unwrap();
    let properties = &xml.test_suites[0].properties;
    let rows: Vec<(&str, &str)> = summary.origin.rows().collect();
    assert_eq!(rows.len(), 5);
    for (name, value) in rows {
        assert_eq!(json[name], value);
        let shown = crate::text::line(value);
        assert!(html.contains(&shown), "{html:?}");
        let reported = |one: &&quick_junit::Property| one.name.as_str() == name;
        assert_eq!(
            properties.iter().find(reported).map(|one| one.value.as_str()),
            Some(shown.as_str())
        );
    }
    assert_eq!(
        (json["device"].as_str(), json["rounds"].as_u64()),
        (Some("sim"), Some(1))
    );
    // Nothing is invented.
    summary.origin = Origin::default();
    assert!(texts(&page(&summary), "dd").is_empty());
    assert!(serde_json::to_value(&summary).unwrap()["commit"].is_null());
}

#[test]
fn none_that_failed_is_not_red() {
    let page_of = |verdict| page(&Summary::new("sim", vec![result("a::b", verdict)], Duration::ZERO));
    assert_eq!(texts(&page_of(Verdict::Passed), "p .failed"), [""; 0]);
    assert!(texts(&page_of(Verdict::Passed), "p")[0].contains("0 failed"));
    assert_eq!(
        texts(&page_of(Verdict::Failed { status: 1 }), "p .failed"),
        ["1 failed"]
    );
}

#[test]
fn hostile_names_and_outputs_stay_text() {
    let summary = hostile();
    let page = page(&summary);
    for element in ["script", "svg svg", "body title"] {
        let found = texts(&page, element);
        assert!(element == "body title" || found.is_empty(), "{element}: {found:?}");
    }
    assert_eq!(texts(&page, "tbody tr").len(), 2);
    let shown = "' ␁␛[2J ]]> &amp; \\u{202e}";
    assert!(texts(&page, "td")[0].contains(shown), "{:?}", texts(&page, "td"));
    let directory = tempfile::tempdir().unwrap();
    write(&summary, directory.path());
    let xml = std::fs::read_to_string(directory.path().join("junit.xml")).unwrap();
    let report = quick_junit::Report::deserialize_from_str(&xml).expect("well-formed");
    assert_eq!(report.tests, 2);
    for text in [summary.to_string(), summary.html().unwrap(), xml] {
        let hidden = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
        assert!(!text.contains(hidden), "{text:?}");
        assert!(text.contains("␛[2J"), "{text}");
    }
}

#[test]
fn no_test_writes_lines_of_its_own_into_the_table_and_none_is_endless() {
    let forged = "x\n99 passed, 0 failed, 0 skipped, 0 blocked";
    let mut failed = result("a::b", Verdict::Failed { status: 1 });
    failed.first_error = Some(format!("{forged}{}", "y".repeat(1 << 20)));
    failed.left_behind = vec![forged.to_owned()];
    let reason = forged.to_owned();
    let skipped = result(forged, Verdict::Skipped { reason });
    let summary = Summary::new(forged, vec![failed, skipped], Duration::ZERO);
    let text = summary.to_string();
    let forged = text.lines().filter(|line| line.starts_with("99 passed")).count();
    assert_eq!(forged, 0, "{text}");
    for text in [text, summary.html().unwrap(), summary.junit().unwrap()] {
        assert!(text.lines().all(|line| line.chars().count() < 16_000), "a line is cut");
        assert!(text.contains("more characters)"), "{text}");
    }
}

#[test]
fn a_command_holds_any_name() {
    assert_eq!(quoted("sim:gfx1201"), "sim:gfx1201");
    assert_eq!(quoted("it's; rm -rf"), r"'it'\''s; rm -rf'");
    assert_eq!(quoted(""), "''");
}
