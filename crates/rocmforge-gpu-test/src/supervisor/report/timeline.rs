//! Timeline of a run: what each test held of the card, against its budget, as a drawing.

use super::result::TestResult;
use super::summary::Summary;
use crate::heartbeat::Sample;
use crate::text;
use horrorshow::{RenderBox, box_html};
use std::fmt::Write;

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 240.0;
/// Room for the figures at the left, and under the drawing.
const LEFT: f64 = 90.0;
const BELOW: f64 = 24.0;
/// Room over the highest line.
const ABOVE: f64 = 10.0;

/// From milliseconds and bytes to places of the drawing.
struct Scale {
    first: u64,
    last: u64,
    most: u64,
}

impl Scale {
    fn of(summary: &Summary) -> Option<Self> {
        let samples = || summary.results.iter().flat_map(|result| &result.samples);
        Some(Self {
            first: samples().map(|sample| sample.at).min()?,
            last: samples().map(|sample| sample.at).max()?,
            most: samples().map(|sample| sample.held.max(sample.budget)).max()?,
        })
    }

    fn x(&self, at: u64) -> f64 {
        let length = (self.last - self.first).max(1) as f64;
        LEFT + (at - self.first) as f64 / length * (WIDTH - LEFT)
    }

    fn y(&self, bytes: u64) -> f64 {
        let part = bytes as f64 / self.most.max(1) as f64;
        ABOVE + (1.0 - part) * (HEIGHT - ABOVE)
    }
}

/// A line that goes from point to point in steps: what was held stays held until something else is seen.
fn steps(points: impl Iterator<Item = (f64, f64)>) -> String {
    let mut path = String::new();
    for (x, y) in points {
        let _ = match path.is_empty() {
            true => write!(path, "M{x:.1} {y:.1}"),
            false => write!(path, "H{x:.1}V{y:.1}"),
        };
    }
    path
}

/// The drawing; a sentence where no lease reported anything.
pub(super) fn timeline(summary: &Summary) -> Box<dyn RenderBox + '_> {
    let Some(scale) = Scale::of(summary) else {
        return box_html! { p : "No lease reported what it held."; };
    };
    let seconds = (scale.last - scale.first) as f64 / 1000.0;
    let label = "VRAM held by each test against its budget";
    box_html! {
        svg(viewBox = format_args!("0 0 {WIDTH} {}", HEIGHT + BELOW), role = "img", aria-label = label) {
            @ for part in 0..=4u64 { : grid_line(&scale, scale.most / 4 * part); }
            @ for result in summary.results.iter().filter(|result| !result.samples.is_empty()) {
                : lines_of(&scale, result);
            }
            text(x = LEFT, y = HEIGHT + BELOW - 6.0) : "0 s";
            text(x = WIDTH, y = HEIGHT + BELOW - 6.0, text-anchor = "end") : format_args!("{seconds:.1} s");
        }
    }
}

fn grid_line(scale: &Scale, bytes: u64) -> Box<dyn RenderBox> {
    let y = format!("{:.1}", scale.y(bytes));
    box_html! {
        line(class = "grid", x1 = LEFT, x2 = WIDTH, y1 = &y, y2 = &y);
        text(x = LEFT - 6.0, y = &y, text-anchor = "end") : mebibytes(bytes);
    }
}

/// What a test held, and its budget.
fn lines_of<'a>(scale: &Scale, result: &'a TestResult) -> Box<dyn RenderBox + 'a> {
    let path = |bytes: fn(&Sample) -> u64| {
        let samples = result.samples.iter();
        steps(samples.map(|sample| (scale.x(sample.at), scale.y(bytes(sample)))))
    };
    let (budget, held) = (path(|sample| sample.budget), path(|sample| sample.held));
    box_html! {
        path(class = "budget", d = budget) { title { : text::line(&result.id); : ": budget" } }
        path(class = "held", d = held) { title { : text::line(&result.id); : ": held" } }
    }
}

fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / (1 << 20) as f64)
}
