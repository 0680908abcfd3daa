//! Report of a run: a table and a page for people, JUnit and JSON for machines.

pub(crate) mod folder;
mod html;
mod junit;
pub(crate) mod open;
pub(crate) mod origin;
pub(crate) mod progress;
mod result;
mod summary;
mod table;
#[cfg(test)]
mod tests;
mod timeline;

pub use folder::FolderError;
use folder::ReportFolder;
pub(crate) use result::{Kind, TestResult, Verdict};
pub(crate) use summary::Summary;

/// What every run on a device writes.
pub(crate) const REPORTS: [&str; 3] = ["report.json", "junit.xml", "report.html"];

/// Writes the three [`REPORTS`].
pub(crate) fn write(summary: &Summary, folder: &mut ReportFolder) -> Result<(), Box<dyn std::error::Error>> {
    let [json, junit, html] = REPORTS;
    folder.write(json, &serde_json::to_vec_pretty(summary)?)?;
    folder.write(junit, summary.junit()?.as_bytes())?;
    folder.write(html, summary.html()?.as_bytes())?;
    Ok(())
}
